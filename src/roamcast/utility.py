"""What an event is worth to its receivers, by its age on arrival: deadlines and utility curves.

An event may carry such a text (`Event.utility`), and its `published` row keeps it:

    250ms               a deadline: worth 1 up to that age, nothing afterwards
    100ms:1 1s:0.2 5s:0 a curve: worth 1 up to 100 ms, then straight down to 0.2 at 1 s and to 0 at 5 s

A curve is a list of points `age:worth` in ascending order of age. Before its first point it has the worth of the first,
after its last point that of the last. Two points may have the same age: there the worth drops, and the earlier of the
two still holds at that very age. Ages are in seconds (`s`, or no unit) or milliseconds (`ms`).

These are the time/utility functions of real-time systems, by which the SOMER thesis (chapter 1) means its time
constraints. `canonical` writes a text as points in plain seconds, `0.25:1 0.25:0`, which is what traces hold.
"""

import math
from functools import lru_cache

from roamcast.errors import ConfigurationError

POINTS_MAX = 32
PRIORITY_MAX = 1000.0

Points = tuple[tuple[float, float], ...]
"""Ages in seconds, ascending, each with its worth."""


@lru_cache(1024)
def parse_utility(text: str) -> Points:
    """The points of a curve; none for an empty text."""
    words = text.split()
    if not words:
        return ()
    if len(words) == 1 and ":" not in words[0]:
        deadline_s = _age_s(words[0], text)
        return (deadline_s, 1.0), (deadline_s, 0.0)
    points = tuple(_point(word, text) for word in words)
    ages = [age_s for age_s, _ in points]
    if ages != sorted(ages):
        raise ConfigurationError(f"utility = {text!r}: ages must not descend")
    if len(points) > POINTS_MAX:
        raise ConfigurationError(f"utility = {text!r}: at most {POINTS_MAX} points are allowed")
    return points


def canonical(text: str) -> str:
    """The same curve with ages in plain seconds, as Spark splits it; empty for an empty text."""
    return " ".join(f"{age_s!r}:{worth!r}" for age_s, worth in parse_utility(text))


def _point(word: str, text: str) -> tuple[float, float]:
    age, separator, value = word.partition(":")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not separator or not 0 <= number < math.inf:
        raise ConfigurationError(f"utility = {text!r}: {word!r} is no point; write AGE:WORTH as in 250ms:1")
    return _age_s(age, text), number


def _age_s(word: str, text: str) -> float:
    number, scale = (word[:-2], 1000.0) if word.endswith("ms") else (word.removesuffix("s"), 1.0)
    try:
        age_s = float(number) / scale
    except ValueError:
        age_s = math.nan
    if not 0 <= age_s < math.inf:
        raise ConfigurationError(f"utility = {text!r}: {word!r} is no age; write it as in 250ms or 1.5s")
    return age_s


@lru_cache(1024)
def worthless_after_s(text: str) -> float:
    """The age from which on a receipt is worth nothing; infinite if there is none, or if the text makes no sense."""
    points = _points_if_sensible(text)
    if not points or points[-1][1] > 0:
        return math.inf
    age_s = points[-1][0]
    for earlier_s, worth in reversed(points):
        if worth > 0:
            break
        age_s = earlier_s
    return age_s


@lru_cache(1024)
def priority(text: str) -> float:
    """What a receipt is worth when the event is new, at most `PRIORITY_MAX`; 1 if there is no text that makes sense."""
    points = _points_if_sensible(text)
    return min(points[0][1], PRIORITY_MAX) if points else 1.0


def _points_if_sensible(text: str) -> Points:
    try:
        return parse_utility(text)
    except ConfigurationError:
        return ()
