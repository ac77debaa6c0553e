"""Number intervals: the event is a number, the interest a set of half-open ranges `[low, high)`.

The ranges of an interest are kept sorted, disjoint and not touching, so two interests are equal as sets exactly when
they are equal as structs. The text form is `low..high low..high`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event

if TYPE_CHECKING:
    from roamcast.interests import Interest

Number = int | float
Range = tuple[Number, Number]

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1
"""Whole numbers beyond these have no place in a frame."""


class Intervals(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A set of numbers; build it with `of` unless the ranges are known to be in normal form."""

    ranges: tuple[Range, ...] = ()

    def __post_init__(self) -> None:
        previous: Number = -math.inf
        for index, (low, high) in enumerate(self.ranges):
            if not (low < high and (previous < low or index == 0)):
                raise PeerError(f"ranges: {self.ranges!r} are not sorted, disjoint and non-empty")
            previous = high

    @staticmethod
    def of(*ranges: Range) -> Intervals:
        """Any ranges, in any order, overlapping or empty, brought into normal form."""
        for low, high in ranges:
            for bound in (low, high):
                if bound != bound or (isinstance(bound, int) and not INTEGER_MIN <= bound <= INTEGER_MAX):
                    raise ConfigurationError(f"interest: bound {bound!r} is not a number of at most 64 bits")
        return Intervals(_normalised(ranges))

    @staticmethod
    def parse(text: str) -> Intervals:
        ranges: list[Range] = []
        for part in text.split():
            low, separator, high = part.partition("..")
            try:
                if not separator:
                    raise ValueError
                ranges.append((_number(low), _number(high)))
            except ValueError:
                raise ConfigurationError(f"interest: {part!r} is not a range; write low..high, as in 10..20") from None
        return Intervals.of(*ranges)

    def __str__(self) -> str:
        return " ".join(f"{low}..{high}" for low, high in self.ranges)

    @property
    def is_empty(self) -> bool:
        return not self.ranges

    def matches(self, event: Event) -> bool:
        return self.contains(event.content)

    def contains(self, value: object) -> bool:
        if not isinstance(value, (int, float)):
            return False
        at = bisect_right(self.ranges, (value, math.inf)) - 1
        return at >= 0 and value < self.ranges[at][1]

    def covers(self, other: Interest) -> bool:
        if not isinstance(other, Intervals):
            return False
        for low, high in other.ranges:
            at = bisect_right(self.ranges, (low, math.inf)) - 1
            if at < 0 or self.ranges[at][1] < high:
                return False
        return True

    def overlaps(self, other: Interest) -> bool:
        if not isinstance(other, Intervals):
            return False
        for low, high in other.ranges:
            at = bisect_right(self.ranges, (low, math.inf))
            if (at > 0 and self.ranges[at - 1][1] > low) or (at < len(self.ranges) and self.ranges[at][0] < high):
                return True
        return False

    def union(self, other: Interest) -> Intervals:
        if not isinstance(other, Intervals):
            raise PeerError(f"interest: {other!r} is not of the language 'intervals'")
        return Intervals(_normalised(self.ranges + other.ranges))

    def extra_share(self, other: Interest | None, pool: float) -> float:
        """The share of the numbers in `[0, pool)` that this interest holds and `other` does not: the share of uniformly
        drawn events that this interest attracts and `other` does not."""
        theirs = other.ranges if isinstance(other, Intervals) else ()
        extra = 0.0
        for low, high in self.ranges:
            low, high = max(low, 0), min(high, pool)
            if low < high:
                at = max(0, bisect_right(theirs, (low, math.inf)) - 1)
                extra += high - low
                while at < len(theirs) and theirs[at][0] < high:
                    extra -= max(0, min(high, theirs[at][1]) - max(low, theirs[at][0]))
                    at += 1
        return extra / pool


def _normalised(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for low, high in sorted(part for part in ranges if part[0] < part[1]):
        if merged and low <= merged[-1][1]:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _number(text: str) -> Number:
    """A whole number as `int`, anything else as `float`, so that what was written is written back."""
    try:
        return int(text)
    except ValueError:
        return float(text)
