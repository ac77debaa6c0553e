"""Which values a claim is computed from, and which points of a campaign have them.

`reproduce` goes on only with the points that an undecided claim needs (`sequential`). A statistic is any function of
the values, so what it needs is found by trial: a value that changes the result when it becomes very large or very
small.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from roamcast.campaign.plan import Point
from roamcast.papers.figure import Curve, Places, Values, X

Cell = tuple[str, X]
"""A curve and a place on it."""
Cells = frozenset[Cell]

LARGE = 1e6


def cells_of(statistic: Callable[[Values], float], values: Values) -> Cells:
    """The values that a statistic depends on."""
    found = places_of(lambda changed: {None: statistic(changed)}, values)
    return found[None] if found else frozenset()


def places_of(places: Places, values: Values) -> dict[Any, Cells]:
    """For each of several results, the values that it depends on; nothing if values are missing."""
    whole = _tried(places, values)
    found: dict[Any, set[Cell]] = {place: set() for place in whole}
    for curve, course in values.items():
        for x, value in course.items():
            for other in (value * LARGE + LARGE, value / LARGE - 1 / LARGE):
                changed = _tried(places, values | {curve: course | {x: other}})
                for place, result in whole.items():
                    if changed.get(place) != result:
                        found[place].add((curve, x))
    return {place: frozenset(cells) for place, cells in found.items()}


def _tried(places: Places, values: Values) -> Mapping[Any, float]:
    try:
        return places(values)
    except (KeyError, ZeroDivisionError):
        return {}


def points_with(cells: Iterable[Cell], curves: Iterable[Curve], x: str, points: Iterable[Point]) -> list[Point]:
    """The points whose runs have these values, where `x` is the setting on the axis."""
    wanted = set(cells)
    return [point for point in points if any(_shows(curve, x, point, wanted) for curve in curves)]


def points_at(cells: Iterable[Cell], x: str, points: Iterable[Point]) -> list[Point]:
    """The points at the places of these values, whatever their curves."""
    wanted = {place for _, place in cells}
    return [point for point in points if x in point.settings and _number(point.settings[x]) in wanted]


def _shows(curve: Curve, x: str, point: Point, cells: set[Cell]) -> bool:
    if point.label != curve.contender or x not in point.settings:
        return False
    inside = all(point.settings.get(name) == value for name, value in curve.where.items())
    return inside and (curve.label, _number(point.settings[x])) in cells


def _number(text: str) -> X:
    try:
        return float(text)
    except ValueError:
        return text
