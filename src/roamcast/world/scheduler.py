"""The event queue of the simulator."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Entry = tuple[float, int, Callable[[Any], None], Any]


class Scheduler:
    """Calls back in order of time; what is due at the same instant, in the order in which it was asked for.

    Nothing is ever taken out of the queue early: whoever changes its mind ignores the call when it comes. That is
    cheaper than searching the heap, and the two users (timers, channel access) know at once whether a call still holds.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0  # callbacks made so far
        self._heap: list[Entry] = []
        self._sequence = 0

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self._sequence += 1
        heappush(self._heap, (t, self._sequence, callback, argument))

    def run(self, until_s: float) -> None:
        """Runs everything due up to and including `until_s`."""
        heap = self._heap
        events = 0
        while heap and heap[0][0] <= until_s:
            t, _, callback, argument = heappop(heap)
            self.now = t
            events += 1
            callback(argument)
        self.now = until_s
        self.events += events
