"""Taking the events of several producers, each in its order, once, and none passed over.

An event comes with the number of the previous one in its chain (`messages.py`). It is taken when everything up to that
previous one has been taken; until then it waits. So it does not matter by which brokers and in which order events came,
or how often: what is taken per producer is a growing sequence without holes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from roamcast.events import Event
from roamcast.protocols.overlays.messages import Cursor


class IncomingEvent(NamedTuple):
    event: Event
    hops: int  # from its producer
    previous: int
    is_old: bool = False  # as in `Publish`


class Intake:
    def __init__(self, waiting_max: int, passes_over: bool = False) -> None:
        self.taken: dict[int, int] = {}  # publisher -> number of the latest event taken
        self._waiting_max = waiting_max  # beyond this the newest events are refused, and their sender repeats them
        self._passes_over = passes_over  # take what is there, and do not wait for what is missing
        self._waiting: dict[int, dict[int, IncomingEvent]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def is_new(self, event: Event) -> bool:
        return event.number > self.taken.get(event.publisher, 0)

    def offer(self, event: Event, previous: int, hops: int, is_old: bool = False) -> None:
        if not self.is_new(event):
            return
        waiting = self._waiting.setdefault(event.publisher, {})
        known = waiting.get(event.number)
        if known is None and self._count >= self._waiting_max:
            return
        if known is None or previous < known.previous:  # events in between expired since it was first sent
            waiting[event.number] = IncomingEvent(event, hops, previous, is_old)
        self._count += known is None

    def take(self) -> IncomingEvent | None:
        """The next event whose turn has come, if there is one."""
        for publisher in self._waiting:
            arrival = self._next(publisher)
            if arrival is not None:
                self.taken[publisher] = arrival.event.number
                return arrival
        return None

    def resume(self, cursors: Iterable[Cursor]) -> None:
        """Continues from the point that another broker has reached, keeping the events that wait behind it."""
        for publisher, number in cursors:
            self.taken[publisher] = max(number, self.taken.get(publisher, 0))

    def _next(self, publisher: int) -> IncomingEvent | None:
        """The earliest event whose previous one is taken. Earlier ones that still wait are obsolete then: their
        sender would have named them as previous if they still mattered."""
        waiting = self._waiting[publisher]
        taken = self.taken.get(publisher, 0)
        for number in sorted(waiting):
            arrival = waiting[number]
            if number > taken and (arrival.previous <= taken or self._passes_over):
                for obsolete in [earlier for earlier in waiting if earlier <= number]:
                    del waiting[obsolete]
                    self._count -= 1
                return arrival
        return None

    def __iter__(self) -> Iterator[IncomingEvent]:
        for waiting in self._waiting.values():
            yield from waiting.values()
