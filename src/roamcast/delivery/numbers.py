"""A set of numbers that mostly follow each other, as ranges."""

from bisect import bisect_left, bisect_right


class NumberRanges:
    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []  # first and last, ascending, not touching

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.ranges, number, key=lambda each: each[0]) - 1
        return at >= 0 and number <= self.ranges[at][1]

    def add(self, number: int) -> None:
        if number in self:
            return
        ranges = self.ranges
        at = bisect_left(ranges, (number, number))  # of the range after it
        touches_before = at > 0 and ranges[at - 1][1] == number - 1
        touches_after = at < len(ranges) and ranges[at][0] == number + 1
        first = ranges[at - 1][0] if touches_before else number
        last = ranges[at][1] if touches_after else number
        ranges[at - touches_before : at + touches_after] = [(first, last)]

    def remove(self, number: int) -> None:
        if number not in self:
            return
        at = bisect_right(self.ranges, number, key=lambda each: each[0]) - 1
        first, last = self.ranges[at]
        rest = [(first, number - 1), (number + 1, last)]
        self.ranges[at : at + 1] = [(low, high) for low, high in rest if low <= high]
