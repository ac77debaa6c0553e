"""An event between trees, apart from where it goes next; and what helps with the legs of its path."""

from collections.abc import Iterable
from typing import NamedTuple

from roamcast.events import Event
from roamcast.protocols.somer_plus.messages import Crossing, Leg

Legs = tuple[Leg, ...]


class Voyage:
    """What all legs of a copy have in common; never changed."""

    __slots__ = ("event", "hops", "passed", "tries")

    def __init__(self, event: Event, hops: int, passed: tuple[int, ...] = (), tries: int = 0) -> None:
        self.event = event
        self.hops = hops
        self.passed = passed  # roots that it went through
        self.tries = tries  # how often it came back to a root, or waited there

    def again(self) -> "Voyage":
        """The next try, which may pass the same roots."""
        return Voyage(self.event, self.hops, (), self.tries + 1)

    def through(self, root: int) -> "Voyage":
        return Voyage(self.event, self.hops, (*self.passed, root), self.tries)


class Stranded(NamedTuple):
    """An event that waits at a root for paths to these trees."""

    voyage: Voyage
    targets: tuple[int, ...]
    vias: tuple[int, ...]  # for each target the last root before it, when the wait began


def voyage_of(message: Crossing, hops: int) -> Voyage:
    return Voyage(message.event, hops, message.passed, message.tries)


def crossing(voyage: Voyage, climbs: bool, legs: Legs, returns: bool = False) -> Crossing:
    return Crossing(
        hops=voyage.hops,
        climbs=climbs,
        event=voyage.event,
        legs=legs,
        passed=voyage.passed,
        tries=voyage.tries,
        returns=returns,
    )


def targets_of(legs: Iterable[Leg]) -> list[int]:
    """The trees that want the event at the end of some leg, in the order of a walk along the legs."""
    targets: list[int] = []
    waiting = [*legs][::-1]
    while waiting:
        leg = waiting.pop()
        if leg.wanted:
            targets.append(leg.towards)
        waiting.extend(leg.onward[::-1])
    return targets


def depth(legs: Iterable[Leg]) -> int:
    """How many legs follow each other at most."""
    deepest = 0
    level = [*legs]
    while level:
        deepest += 1
        level = [onward for leg in level for onward in leg.onward]
    return deepest
