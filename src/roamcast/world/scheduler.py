"""The event queue of the simulator."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Entry = tuple[Callable[[Any], None], Any]


class Scheduler:
    """Calls back in order of time; what is due at the same instant, in the order in which it was asked for.

    The heap holds instants, and a table what is due at each: comparing two numbers is several times cheaper than
    comparing two entries, and a heap compares a lot.

    Nothing is ever taken out of the queue early: whoever changes its mind ignores the call when it comes. That is
    cheaper than searching the heap, and the two users (timers, channel access) know at once whether a call still holds.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0  # callbacks made so far
        self._instants: list[float] = []  # a heap; each once
        self._due: dict[float, list[Entry]] = {}

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        due = self._due.get(t)
        if due is None:
            self._due[t] = [(callback, argument)]
            heappush(self._instants, t)
        else:
            due.append((callback, argument))

    def next_s(self, until_s: float) -> float:
        """The next instant at which something is due, but no later than `until_s`."""
        return min(self._instants[0], until_s) if self._instants else until_s

    def run(self, until_s: float) -> None:
        """Runs everything due up to and including `until_s`."""
        instants = self._instants
        while instants and instants[0] <= until_s:
            self.now = t = instants[0]
            due = self._due[t]
            for callback, argument in due:  # calls may add to the very list
                callback(argument)
            self.events += len(due)
            heappop(instants)
            del self._due[t]
        self.now = until_s
