"""The event queue of the simulator.

Time is divided into spans, and the current span into slots. The entries of a slot form a linked list in order of time;
entries of later spans wait unsorted until their span becomes current. A slot is so short that its list holds few
entries. So scheduling a call that is due soon takes a handful of comparisons, and running it takes the first entry off
a list. Neither depends on how long the run is or how much is scheduled. Compiled, times and links are plain fields,
while a sorted list or a binary heap would compare numbers that are objects. Entries are reused, because allocating one
costs more than all the rest.

Entries are never removed early: a caller that no longer needs one ignores the call. That is cheaper
than searching the queue, and the two users (timers, channel access) know at once whether a call still holds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final

SPANS_PER_S: Final = 8  # powers of two, so that the borders of spans and slots are exact
SLOTS: Final = 256  # of a span
SLOTS_PER_S: Final = SLOTS * SPANS_PER_S

_by_time: Final = itemgetter(0)


class Due(ABC):
    """What can be scheduled."""

    __slots__ = ()

    @abstractmethod
    def due(self) -> None:
        """Its time has come."""


class ScheduledCall(Due):
    """A function to call with an argument."""

    __slots__ = ("_argument", "_callback")

    def __init__(self, callback: Callable[[Any], None], argument: Any) -> None:
        self._callback = callback
        self._argument = argument

    def due(self) -> None:
        self._callback(self._argument)


class QueueEntry:
    """What is due when, and the entry after it."""

    __slots__ = ("after", "t", "what")

    def __init__(self, t: float, what: Due | None, after: "QueueEntry | None") -> None:
        self.t = t
        self.what = what  # None: here a slot begins
        self.after = after


class Scheduler:
    """Calls in order of time; what is due at the same instant, in the order in which it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0  # calls made so far
        self._open_from_s = 0.0  # the open span
        self._open_until_s = 0.0
        self._slots = [QueueEntry(0.0, None, None) for _ in range(SLOTS)]  # of the open span
        self._place = 0  # before this one the slots are empty
        self._spare: QueueEntry | None = None  # entries to be reused, a linked list
        self._later: dict[int, list[tuple[float, Due]]] = {}  # by number of the span
        self._spans: list[int] = []  # the numbers of these, a heap

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self.put(t, ScheduledCall(callback, argument))

    def put(self, t: float, what: Due) -> None:
        """`what.due()` at `t`."""
        if t >= self._open_until_s:
            self._put_later(t, what)
            return
        place = int((t - self._open_from_s) * SLOTS_PER_S)
        before = self._slots[place if place > self._place else self._place]
        after = before.after
        while after is not None and after.t <= t:  # behind its equals, which were asked for earlier and go first
            before = after
            after = after.after
        entry = self._spare
        if entry is None:
            before.after = QueueEntry(t, what, after)
        else:
            self._spare = entry.after
            entry.t = t
            entry.what = what
            entry.after = after
            before.after = entry

    def _put_later(self, t: float, what: Due) -> None:
        span = int(t * SPANS_PER_S)
        later = self._later.get(span)
        if later is None:
            self._later[span] = [(t, what)]
            heappush(self._spans, span)
        else:
            later.append((t, what))

    def next_s(self, until_s: float) -> float:
        """The next instant at which something is due, but no later than `until_s`."""
        slot = self._next_slot(until_s)
        return until_s if slot is None or slot.after is None else min(slot.after.t, until_s)

    def run(self, until_s: float) -> None:
        """Runs everything due up to and including `until_s`."""
        slot = self._slots[self._place]
        while True:  # a condition here would keep the interpreter from adapting to the loop
            entry = slot.after
            if entry is None:
                following = self._next_slot(until_s)
                if following is None:
                    break
                slot = following
                continue
            t = entry.t
            if t > until_s:
                break
            slot.after = entry.after
            entry.after = self._spare
            self._spare = entry
            self.now = t
            self.events += 1
            what = entry.what
            assert what is not None
            what.due()
        self.now = until_s

    def _next_slot(self, until_s: float) -> QueueEntry | None:
        """The next slot in which something is due; none if nothing is due in the spans that begin by `until_s`."""
        while True:
            for place in range(self._place, SLOTS):
                slot = self._slots[place]
                if slot.after is not None:
                    self._place = place
                    return slot
            if not self._spans or self._spans[0] > until_s * SPANS_PER_S:
                return None
            self._open_span(heappop(self._spans))

    def _open_span(self, span: int) -> None:
        self._open_from_s = span / SPANS_PER_S
        self._open_until_s = (span + 1) / SPANS_PER_S
        self._place = 0
        later = self._later.pop(span)
        later.sort(key=_by_time)
        for t, what in reversed(later):  # each goes before the entries that its slot has already
            slot = self._slots[int((t - self._open_from_s) * SLOTS_PER_S)]
            slot.after = QueueEntry(t, what, slot.after)
