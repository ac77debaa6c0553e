"""Order per publisher: holds an event back until those before it have come, or will not come.

A publisher numbers its events in ascending order and lists in its `PublisherProgress` which numbers it offers. A gap
between two numbers is therefore either an event worth waiting for or a number that was never used. Event n is passed on
once every lower number on offer is accounted for: either passed on already, or known here and of no interest. Without
a `PublisherProgress`, or if an event does not arrive, the wait ends after `wait_s`; an event that then arrives after
one with a higher number is dropped. The number directly after the last one passed on never waits.
"""

from collections.abc import Callable

from roamcast.events import NUMBER_BITS, Event, event_id

Ranges = tuple[tuple[int, int], ...]


class WaitingEvent:
    """An event that waits for its turn."""

    def __init__(self, event: Event, hops: int, came_s: float) -> None:
        self.event = event
        self.hops = hops
        self.came_s = came_s


class Order:
    """The events of all publishers on their way to one subscription."""

    def __init__(
        self, wait_s: float, progress: Callable[[int], Ranges | None], is_known: Callable[[int], bool]
    ) -> None:
        self._wait_s = wait_s
        self._progress = progress
        self._is_known = is_known  # whether an event has arrived at this node, wanted or not
        self._last: dict[int, int] = {}  # by publisher: the number passed on last
        self._waiting: dict[int, dict[int, WaitingEvent]] = {}  # by publisher and number
        self.late = 0  # dropped, because one with a higher number was passed on before
        self.skipped = 0  # waits that timed out

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def resume(self, event_id: int) -> None:
        """The event was passed on in an earlier life."""
        publisher, number = event_id >> NUMBER_BITS, event_id & (1 << NUMBER_BITS) - 1
        self._last[publisher] = max(number, self._last.get(publisher, 0))

    def add(self, arrival: WaitingEvent) -> bool:
        """Takes an event; false if it is too late for it."""
        publisher, number = arrival.event.publisher, arrival.event.number
        if number <= self._last.get(publisher, 0):
            self.late += 1
            return False
        self._waiting.setdefault(publisher, {})[number] = arrival
        return True

    def ready(self, now_s: float) -> list[WaitingEvent]:
        """The events whose turn has come, in order."""
        passed: list[WaitingEvent] = []
        for publisher in list(self._waiting):
            waiting = self._waiting[publisher]
            while waiting:
                number = min(waiting)
                arrival = waiting[number]
                if not self._is_next(publisher, number):
                    if now_s - arrival.came_s < self._wait_s:
                        break
                    self.skipped += 1
                del waiting[number]
                self._last[publisher] = number
                passed.append(arrival)
            if not waiting:
                del self._waiting[publisher]
        return passed

    def _is_next(self, publisher: int, number: int) -> bool:
        last = self._last.get(publisher, 0)
        if last and number == last + 1:
            return True
        ranges = self._progress(publisher)
        if ranges is None or not ranges or ranges[-1][1] < number:
            return False  # it has not said anything about this number yet
        for first, end in ranges:
            for missing in range(max(first, last + 1), min(end + 1, number)):
                if not self._is_known(event_id(publisher, missing)):
                    return False
        return True
