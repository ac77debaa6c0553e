"""The dependency specification: which type of event makes its receiver publish which.

    a => b; a => c => e; b => e

Statements are separated by semicolons or line ends. `x => y` says that a node that subscribes to x and publishes y
publishes a y for every x that it receives. Each cause is enough on its own, so an event with two causes is published
twice. `x => y => z` is short for `x => y; y => z`.

    a => b [0.6]; b => c [30s]; c => d [50%, 2s]

A link may be *probabilistic* and *delay-tolerant* (the thesis names both as future work, chapter 7). In brackets behind
the effect stand a probability, as a fraction or in percent, with which a receipt causes it, and a time, in seconds,
that it may take to occur. A link without brackets always holds and is time-sensitive.

An event type may be defined in the network's interest language, by
`a: 0..100` (intervals) or `a: fire/north/**` (topics). Types without a definition get one: the topic
`causal/a`, or the first, second, ... whole number from `first_number` on in the order in which they are named.

Dependencies between events are anti-symmetric and transitive (thesis, section 5.1), so a specification that leads from
a type back to itself is refused: its chain would never end. Cycles among nodes are allowed (`splitting`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.fields import SmallCounter
from roamcast.interests import LANGUAGES, Interest, Intervals, Topics, parse_interest

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(s|%)?")
ARROW: Final = "=>"
TOPIC_PREFIX: Final = "causal"


class EventType(msgspec.Struct, frozen=True):
    """A name for the events that `interest` matches."""

    name: str
    interest: Interest


class Role(msgspec.Struct, frozen=True, array_like=True):
    """Which event types a node publishes and which it subscribes to: their numbers in the specification, ascending."""

    publishes: tuple[SmallCounter, ...] = ()
    subscribes: tuple[SmallCounter, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.publishes or self.subscribes)


class Link(msgspec.Struct, frozen=True):
    """How a cause leads to its effect."""

    probability: float = 1.0  # with which the receipt of the cause leads to the effect; above 0
    tolerance_s: float = 0.0  # the effect occurs within this time; 0: at once

    def __str__(self) -> str:
        parts = [f"{self.probability:g}"] if self.probability < 1 else []
        parts += [f"{self.tolerance_s:g}s"] if self.tolerance_s else []
        return f" [{', '.join(parts)}]" if parts else ""


CERTAIN: Final = Link()


class Specification(msgspec.Struct, frozen=True):
    """Event types, known by their number, and the acyclic graph of their dependencies; see `parse_specification`."""

    types: tuple[EventType, ...]
    dependencies: tuple[tuple[int, int], ...]  # (cause, effect), in the order of the text, each once
    links: tuple[Link, ...] = ()  # one per dependency; none: all are certain and time-sensitive

    def link(self, cause: int, effect: int) -> Link:
        return self.links[self.dependencies.index((cause, effect))] if self.links else CERTAIN

    def effects(self, cause: int) -> tuple[int, ...]:
        return tuple(effect for first, effect in self.dependencies if first == cause)

    def causes(self, effect: int) -> tuple[int, ...]:
        return tuple(cause for cause, second in self.dependencies if second == effect)

    def known_roles(self, roles: Mapping[int, Role]) -> dict[int, Role]:
        """Those of the roles, by node, that are of a node and name only types of this specification."""
        types = len(self.types)
        return {
            node: role
            for node, role in roles.items()
            if node >= 0 and all(0 <= number < types for number in (*role.publishes, *role.subscribes))
        }

    @property
    def initial(self) -> tuple[int, ...]:
        """Types that nothing causes; initiators publish them on their own."""
        return tuple(number for number in range(len(self.types)) if not self.causes(number))

    @property
    def final(self) -> tuple[int, ...]:
        """Types that cause nothing: with their publication a chain is complete."""
        return tuple(number for number in range(len(self.types)) if not self.effects(number))

    def role(self, publishes: Iterable[Interest], subscribes: Iterable[Interest]) -> Role:
        """The role of a node with these advertisements and subscriptions: all types that they overlap."""
        return Role(self._overlapped(publishes), self._overlapped(subscribes))

    def _overlapped(self, interests: Iterable[Interest]) -> tuple[int, ...]:
        known = list(interests)
        return tuple(
            number
            for number, event_type in enumerate(self.types)
            if any(interest.overlaps(event_type.interest) for interest in known)
        )

    def __str__(self) -> str:
        definitions = [f"{event_type.name}: {event_type.interest}" for event_type in self.types]
        arrows = [
            f"{self.types[cause].name} {ARROW} {self.types[effect].name}{self.link(cause, effect)}"
            for cause, effect in self.dependencies
        ]
        return "; ".join(definitions + arrows)


def parse_specification(
    text: str, *, language: str = "intervals", first_number: int = 0, copies: int = 1
) -> Specification:
    """The specification that `text` describes; `ConfigurationError` if it is not one.

    `copies` repeats it with types of their own, named `a.1`, `a.2` and so on: as many causal graphs that have nothing
    to do with each other. Only types without a definition can be repeated.
    """
    if language not in LANGUAGES:
        raise ConfigurationError(f"language: {language!r} is unknown; allowed: {', '.join(LANGUAGES)}")
    definitions: dict[str, Interest] = {}
    arrows: dict[tuple[str, str], Link] = {}
    names: dict[str, None] = {}
    for statement in _statements(text):
        if ARROW in statement:
            steps = [_step(part, statement) for part in statement.split(ARROW)]
            if steps[0][1] is not None:
                raise ConfigurationError(f"dependencies: {statement!r} begins with a link; allowed: behind an effect")
            names.update(dict.fromkeys(name for name, _ in steps))
            for (cause, _), (effect, link) in pairwise(steps):
                _add(arrows, (cause, effect), link or CERTAIN)
        else:
            name, interest = _definition(statement, language)
            if name in definitions:
                raise ConfigurationError(f"dependencies: {name!r} is defined twice; allowed: one definition per type")
            definitions[name] = interest
    _check(names, definitions, arrows, copies)
    if copies > 1:
        names = {f"{name}.{copy}": None for copy in range(1, copies + 1) for name in names}
        arrows = {
            (f"{cause}.{copy}", f"{effect}.{copy}"): link
            for copy in range(1, copies + 1)
            for (cause, effect), link in arrows.items()
        }
    numbers = {name: number for number, name in enumerate(names)}
    types = tuple(
        EventType(name, definitions.get(name) or _default(name, number, language, first_number))
        for name, number in numbers.items()
    )
    links = tuple(arrows.values()) if any(link != CERTAIN for link in arrows.values()) else ()
    return Specification(types, tuple((numbers[cause], numbers[effect]) for cause, effect in arrows), links)


def _statements(text: str) -> Iterator[str]:
    for part in re.split(r"[;\n]", text):
        if part.strip():
            yield part.strip()


def _name(text: str, statement: str) -> str:
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"dependencies: {name!r} in {statement!r} is not an event type; write names, as in fire => alarm"
        )
    return name


def _step(text: str, statement: str) -> tuple[str, Link | None]:
    """An event type, perhaps with a link in brackets behind it."""
    head, bracket, rest = text.partition("[")
    if not bracket:
        return _name(text, statement), None
    inside, closed, behind = rest.partition("]")
    if not closed or behind.strip():
        raise ConfigurationError(f"dependencies: {text.strip()!r} has no closing bracket at its end; write b [0.6]")
    return _name(head, statement), _link(inside, statement)


def _link(text: str, statement: str) -> Link:
    probability, tolerance_s = 1.0, 0.0
    for part in text.split(","):
        found = _NUMBER.fullmatch(part.strip())
        if found is None:
            raise ConfigurationError(
                f"dependencies: {part.strip()!r} in {statement!r} is neither a probability nor a time; "
                "write 0.6, 60% or 5s"
            )
        number, unit = float(found[1]), found[2]
        if unit == "s":
            tolerance_s = number
        else:
            probability = number / 100 if unit else number
    if not 0 < probability <= 1:
        raise ConfigurationError(f"dependencies: probability {probability:g}: must be above 0 and at most 1")
    return Link(probability, tolerance_s)


def _add(arrows: dict[tuple[str, str], Link], arrow: tuple[str, str], link: Link) -> None:
    known = arrows.setdefault(arrow, link)
    if known != link:
        raise ConfigurationError(f"dependencies: {f' {ARROW} '.join(arrow)} is given twice, with different links")


def _definition(statement: str, language: str) -> tuple[str, Interest]:
    head, colon, meaning = statement.partition(":")
    if not colon:
        raise ConfigurationError(
            f"dependencies: {statement!r} is neither a dependency nor a definition; write a => b, or a: 0..10"
        )
    name = _name(head, statement)
    interest = parse_interest(language, meaning.strip())
    if interest.is_empty:
        raise ConfigurationError(f"dependencies: {name!r} is defined as nothing; allowed: an interest in some event")
    return name, interest


def _default(name: str, number: int, language: str, first_number: int) -> Interest:
    if language == "topics":
        return Topics.of(f"{TOPIC_PREFIX}/{name}")
    return Intervals.of((first_number + number, first_number + number + 1))


def _check(
    names: dict[str, None], definitions: dict[str, Interest], arrows: dict[tuple[str, str], Link], copies: int
) -> None:
    if not arrows:
        raise ConfigurationError("dependencies: no dependency is given; write at least one, as in a => b")
    for name in definitions:
        if name not in names:
            raise ConfigurationError(f"dependencies: {name!r} is defined but in no dependency; remove it, or use it")
    if copies < 1 or (copies > 1 and definitions):
        allowed = "1, because types are defined" if definitions else "at least 1"
        raise ConfigurationError(f"copies = {copies!r}: must be {allowed}")
    defined = list(definitions.items())
    for at, (name, interest) in enumerate(defined):
        for other, theirs in defined[:at]:
            if interest.overlaps(theirs):
                raise ConfigurationError(f"dependencies: {other!r} and {name!r} share events; allowed: types apart")
    circle = _circle(names, arrows)
    if circle:
        raise ConfigurationError(
            f"dependencies: {f' {ARROW} '.join(circle)} never ends; allowed: dependencies without circles"
        )


def _circle(names: dict[str, None], arrows: dict[tuple[str, str], Link]) -> list[str]:
    """A path from a type back to itself, or nothing. Removes types without causes until none is left."""
    causes = {name: [cause for cause, effect in arrows if effect == name] for name in names}
    while True:
        free = [name for name, waiting in causes.items() if not waiting]
        if not free:
            break
        for name in free:
            del causes[name]
        causes = {name: [cause for cause in waiting if cause in causes] for name, waiting in causes.items()}
    if not causes:
        return []
    way = [next(iter(causes))]
    while way[-1] not in way[:-1]:
        way.append(causes[way[-1]][0])
    return way[way.index(way[-1]) :][::-1]
