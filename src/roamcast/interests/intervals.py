"""Number intervals: the event is a number, the interest a set of half-open ranges `[low, high)`.

The ranges of an interest are kept sorted, disjoint and not touching, so two interests are equal as sets exactly when
they are equal as structs. The text form is `low..high low..high`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from roamcast.errors import ConfigurationError, PeerError
from roamcast.events import Event
from roamcast.interests import ranges as sets
from roamcast.interests.ranges import Number, Range

if TYPE_CHECKING:
    from roamcast.interests import Interest

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1
"""Whole numbers beyond these have no place in a frame."""


class Intervals(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A set of numbers; build it with `of` unless the ranges are known to be in normal form."""

    ranges: tuple[Range, ...] = ()

    def __post_init__(self) -> None:
        if not sets.is_normal(self.ranges):
            raise PeerError(f"ranges: {self.ranges!r} are not sorted, disjoint and non-empty")

    @staticmethod
    def of(*ranges: Range) -> Intervals:
        """Any ranges, in any order, overlapping or empty, brought into normal form."""
        for low, high in ranges:
            for bound in (low, high):
                if bound != bound or (isinstance(bound, int) and not INTEGER_MIN <= bound <= INTEGER_MAX):
                    raise ConfigurationError(f"interest: bound {bound!r} is not a number of at most 64 bits")
        return Intervals(sets.normalised(ranges))

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
        value = event.content
        return isinstance(value, (int, float)) and sets.contains(self.ranges, value)

    def contains(self, value: object) -> bool:
        return isinstance(value, (int, float)) and sets.contains(self.ranges, value)

    def covers(self, other: Interest) -> bool:
        return isinstance(other, Intervals) and sets.covers(self.ranges, other.ranges)

    def overlaps(self, other: Interest) -> bool:
        return isinstance(other, Intervals) and sets.overlap(self.ranges, other.ranges)

    def union(self, other: Interest) -> Intervals:
        if not isinstance(other, Intervals):
            raise PeerError(f"interest: {other!r} is not of the language 'intervals'")
        return Intervals(sets.normalised(self.ranges + other.ranges))

    def extra_share(self, other: Interest | None, pool: float) -> float:
        """The share of the numbers in `[0, pool)` that this interest holds and `other` does not: the share of uniformly
        drawn events that this interest attracts and `other` does not."""
        return sets.extra_length(self.ranges, other.ranges if isinstance(other, Intervals) else (), pool) / pool


def _number(text: str) -> Number:
    """A whole number as `int`, anything else as `float`, so that text and value convert back and forth."""
    try:
        return int(text)
    except ValueError:
        return float(text)
