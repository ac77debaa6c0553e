"""The event queue of the simulator.

Time is cut into spans. What is due in the open span stands in one sorted list, the next at its end; what is due in a
later span waits unsorted until its span opens. So a call that is due soon costs one short binary search, its turn costs
nothing but taking the last of a list, and the length of the run and its agenda cost neither. Compiled, that is faster
than a binary heap of everything, which compares more, and entries instead of numbers; interpreted it is about the same.

Nothing is ever taken out of the queue early: whoever changes its mind ignores the call when it comes. That is cheaper
than searching the queue, and the two users (timers, channel access) know at once whether a call still holds.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

SPANS_PER_S: Final = 32  # a power of two, so that the borders of spans are exact

_place: Final = bisect_left  # before its equals, which were asked for earlier and go first


class Due(ABC):
    """What can stand in the queue."""

    __slots__ = ()

    @abstractmethod
    def due(self) -> None:
        """Its time has come."""


class Call(Due):
    """A function that is to be called with an argument."""

    __slots__ = ("_argument", "_callback")

    def __init__(self, callback: Callable[[Any], None], argument: Any) -> None:
        self._callback = callback
        self._argument = argument

    def due(self) -> None:
        self._callback(self._argument)


class Scheduler:
    """Calls in order of time; what is due at the same instant, in the order in which it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0  # calls made so far
        self._open_until_s = 0.0  # the end of the open span
        self._negated: list[float] = []  # minus the due times of the open span, ascending: the next is the last
        self._entries: list[Due] = []  # what is due then
        self._later: dict[int, list[tuple[float, Due]]] = {}  # by number of the span
        self._spans: list[int] = []  # the numbers of these, a heap

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self.put(t, Call(callback, argument))

    def put(self, t: float, entry: Due) -> None:
        """`entry.due()` at `t`."""
        if t < self._open_until_s:
            negated: Any = -t  # one object for both calls
            place = _place(self._negated, negated)
            self._negated.insert(place, negated)
            self._entries.insert(place, entry)
            return
        span = int(t * SPANS_PER_S)
        later = self._later.get(span)
        if later is None:
            self._later[span] = [(t, entry)]
            heappush(self._spans, span)
        else:
            later.append((t, entry))

    def next_s(self, until_s: float) -> float:
        """The next instant at which something is due, but no later than `until_s`."""
        if not self._negated:
            self._open_span(until_s)
        return min(-self._negated[-1], until_s) if self._negated else until_s

    def run(self, until_s: float) -> None:
        """Runs everything due up to and including `until_s`."""
        negated, entries = self._negated, self._entries
        while negated or self._open_span(until_s):
            if negated[-1] < -until_s:
                break
            self.now = -negated.pop()
            self.events += 1
            entries.pop().due()
        self.now = until_s

    def _open_span(self, until_s: float) -> bool:
        """Opens the next span in which something is due; false if there is none that begins by `until_s`."""
        if not self._spans or self._spans[0] > until_s * SPANS_PER_S:
            return False
        span = heappop(self._spans)
        self._open_until_s = (span + 1) / SPANS_PER_S
        for t, entry in self._later.pop(span):
            self.put(t, entry)
        return True
