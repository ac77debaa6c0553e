"""Sets of numbers as half-open ranges `[low, high)`: sorted, disjoint and not touching. What `Intervals` is made of."""

import math
from bisect import bisect_right
from collections.abc import Iterable

Number = int | float
Range = tuple[Number, Number]
Ranges = tuple[Range, ...]


def is_normal(ranges: Ranges) -> bool:
    previous: Number = -math.inf
    for index, (low, high) in enumerate(ranges):
        if not (low < high and (previous < low or index == 0)):
            return False
        previous = high
    return True


def normalised(ranges: Iterable[Range]) -> Ranges:
    """Any ranges, in any order, overlapping or empty, as the same set in normal form."""
    merged: list[Range] = []
    for low, high in sorted([part for part in ranges if part[0] < part[1]]):
        if merged and low <= merged[-1][1]:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def contains(ranges: Ranges, value: Number) -> bool:
    if len(ranges) == 1:
        low, high = ranges[0]
        return low <= value < high
    at = bisect_right(ranges, (value, math.inf)) - 1
    return at >= 0 and value < ranges[at][1]


def covers(ranges: Ranges, others: Ranges) -> bool:
    for low, high in others:
        at = bisect_right(ranges, (low, math.inf)) - 1
        if at < 0 or ranges[at][1] < high:
            return False
    return True


def overlap(ranges: Ranges, others: Ranges) -> bool:
    for low, high in others:
        at = bisect_right(ranges, (low, math.inf))
        if (at > 0 and ranges[at - 1][1] > low) or (at < len(ranges) and ranges[at][0] < high):
            return True
    return False


def extra_length(ranges: Ranges, others: Ranges, pool: float) -> float:
    """How much of `[0, pool)` is in `ranges` and not in `others`."""
    extra = 0.0
    for low, high in ranges:
        low, high = max(low, 0), min(high, pool)
        if low < high:
            at = max(0, bisect_right(others, (low, math.inf)) - 1)
            extra += high - low
            while at < len(others) and others[at][0] < high:
                extra -= max(0, min(high, others[at][1]) - max(low, others[at][0]))
                at += 1
    return extra
