"""Sets of numbers as ranges, beside plain sets."""

from hypothesis import given
from hypothesis import strategies as some

from roamcast.delivery.numbers import NumberRanges

NUMBERS = some.integers(1, 40)


@given(some.lists(some.tuples(some.booleans(), NUMBERS), max_size=80))
def test_ranges_hold_what_a_set_holds(steps: list[tuple[bool, int]]) -> None:
    ranges, plain = NumberRanges(), set[int]()
    for adds, number in steps:
        if adds:
            ranges.add(number)
            plain.add(number)
        else:
            ranges.remove(number)
            plain.discard(number)
        held = [each for first, last in ranges.ranges for each in range(first, last + 1)]
        assert held == sorted(plain)
        assert all(first <= last for first, last in ranges.ranges)
        ends = zip(ranges.ranges, ranges.ranges[1:], strict=False)
        assert all(before[1] + 1 < after[0] for before, after in ends)
