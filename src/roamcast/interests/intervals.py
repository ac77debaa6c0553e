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
        if isinstance(value, (int, float)):
            for low, high in self.ranges:
                if value < low:
                    return False
                if value < high:
                    return True
        return False

    def covers(self, other: Interest) -> bool:
        if not isinstance(other, Intervals):
            return False
        for low, high in other.ranges:
            at = bisect_right(self.ranges, low, key=_low) - 1
            if at < 0 or self.ranges[at][1] < high:
                return False
        return True

    def overlaps(self, other: Interest) -> bool:
        if not isinstance(other, Intervals):
            return False
        for low, high in other.ranges:
            at = bisect_right(self.ranges, low, key=_low)
            if (at > 0 and self.ranges[at - 1][1] > low) or (at < len(self.ranges) and self.ranges[at][0] < high):
                return True
        return False

    def union(self, other: Interest) -> Intervals:
        if not isinstance(other, Intervals):
            raise PeerError(f"interest: {other!r} is not of the language 'intervals'")
        return Intervals(_normalised(self.ranges + other.ranges))

    def minus(self, other: Interest) -> Intervals:
        """The numbers that are in this interest and not in `other`."""
        if not isinstance(other, Intervals):
            return self
        left: list[Range] = []
        for low, high in self.ranges:
            for cut_low, cut_high in other.ranges:
                if cut_high <= low or cut_low >= high:
                    continue
                if cut_low > low:
                    left.append((low, cut_low))
                low = cut_high
                if low >= high:
                    break
            if low < high:
                left.append((low, high))
        return Intervals(tuple(left))

    def share(self, pool: Number) -> float:
        """The share of the numbers in `[0, pool)` that this interest holds: the rate of uniform events it attracts."""
        inside = (min(high, pool) - max(low, 0) for low, high in self.ranges)
        return sum(length for length in inside if length > 0) / pool


def _low(part: Range) -> Number:
    return part[0]


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
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if math.isnan(value):
            raise ValueError from None
        return value
