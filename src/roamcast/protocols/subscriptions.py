"""What a node's own application asked for: the inherent interest of the papers."""

from collections.abc import Iterator

from roamcast.errors import CallerError
from roamcast.events import Event
from roamcast.interests import Interest, Intervals, union_all
from roamcast.interests.ranges import Ranges, contains


class Subscriptions:
    """The application's open subscriptions; equal ones count separately."""

    def __init__(self) -> None:
        self._open: list[Interest] = []
        self.interest: Interest | None = None  # their union
        self._ranges: Ranges | None = None  # of the union, if it is made of intervals

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Interest]:
        return iter(self._open)

    def add(self, interest: Interest) -> None:
        self._open.append(interest)
        self._wants(interest if self.interest is None else self.interest.union(interest))

    def remove(self, interest: Interest) -> None:
        if interest not in self._open:
            raise CallerError(f"unsubscribe: there is no open subscription {interest}")
        self._open.remove(interest)
        self._wants(union_all(self._open))

    def _wants(self, interest: Interest | None) -> None:
        self.interest = interest
        self._ranges = interest.ranges if isinstance(interest, Intervals) else None

    def match(self, event: Event) -> bool:
        if self._ranges is not None:  # as `Intervals.matches`, which is not compiled
            value = event.content
            return not isinstance(value, str) and contains(self._ranges, value)
        return self.interest is not None and self.interest.matches(event)
