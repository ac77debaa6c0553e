"""The event queue of the simulator.

Time is divided into spans, and the current span into slots. The entries of a slot form a linked list in order of time;
entries of later spans wait unsorted until their span becomes current. A slot is so short that its list holds few
entries: there are the more slots, the more was due in the span before. So scheduling a call that is due soon takes a
handful of comparisons, and running it takes the first entry off a list. Neither depends on how long the run is or how
much is scheduled. Compiled, times and links are plain fields, while a sorted list or a heap would compare numbers
that are objects. What is scheduled is an entry itself, so there is nothing to allocate.

Entries are never removed early: a caller that no longer needs one ignores the call. That is cheaper
than searching the queue, and the two users (timers, channel access) know at once whether a call still holds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from roamcast.errors import CallerError

SPANS_PER_S: Final = 8  # powers of two, so that the borders of spans and slots are exact
SLOTS_MIN: Final = 256  # of a span
SLOTS_MAX: Final = 65_536
ENTRIES_PER_SLOT: Final = 4  # of a span, on average; fewer would make more slots than fit the processor's cache


class Due(ABC):
    """What can be scheduled. It is in the queue once at most."""

    __slots__ = ("after", "due_at_s", "is_queued")

    def __init__(self) -> None:
        self.due_at_s = 0.0
        self.after: Due | None = None  # the entry after it
        self.is_queued = False

    @abstractmethod
    def due(self) -> None:
        """Its time has come."""


class ScheduledCall(Due):
    """A function to call with an argument."""

    __slots__ = ("_argument", "_callback")

    def __init__(self, callback: Callable[[Any], None], argument: Any) -> None:
        super().__init__()
        self._callback = callback
        self._argument = argument

    def due(self) -> None:
        self._callback(self._argument)


class Slot(Due):
    """Where the list of a slot begins."""

    __slots__ = ()

    def due(self) -> None:
        """Never: it is not an entry."""


class Scheduler:
    """Calls in order of time; what is due at the same instant, in the order in which it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0  # calls made so far
        self._events_before = 0  # calls made before the open span
        self._open_from_s = 0.0  # the open span
        self._open_until_s = 0.0
        self._slots = [Slot() for _ in range(SLOTS_MIN)]  # of the open span
        self._slots_per_s = float(SLOTS_MIN * SPANS_PER_S)
        self._place = 0  # before this one the slots are empty
        self._later: dict[int, list[Due]] = {}  # by number of the span
        self._spans: list[int] = []  # the numbers of these, a heap

    def at(self, t: float, callback: Callable[[Any], None], argument: Any) -> None:
        self.put(t, ScheduledCall(callback, argument))

    def put(self, t: float, what: Due) -> None:
        """`what.due()` at `t`."""
        if what.is_queued:
            raise CallerError(f"scheduler: {what!r} is in the queue already")
        what.is_queued = True
        what.due_at_s = t
        if t >= self._open_until_s:
            self._put_later(t, what)
            return
        place = int((t - self._open_from_s) * self._slots_per_s)
        before: Due = self._slots[place if place > self._place else self._place]
        after = before.after
        while after is not None and after.due_at_s <= t:  # behind its equals, which were asked for earlier and go first
            before = after
            after = after.after
        what.after = after
        before.after = what

    def _put_later(self, t: float, what: Due) -> None:
        span = int(t * SPANS_PER_S)
        later = self._later.get(span)
        if later is None:
            self._later[span] = [what]
            heappush(self._spans, span)
        else:
            later.append(what)

    def next_s(self, until_s: float) -> float:
        """The next instant at which something is due, but no later than `until_s`."""
        slot = self._next_slot(until_s)
        return until_s if slot is None or slot.after is None else min(slot.after.due_at_s, until_s)

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
            t = entry.due_at_s
            if t > until_s:
                break
            slot.after = entry.after
            entry.after = None
            entry.is_queued = False
            self.now = t
            self.events += 1
            entry.due()
        self.now = until_s

    def _next_slot(self, until_s: float) -> Slot | None:
        """The next slot in which something is due; none if nothing is due in the spans that begin by `until_s`."""
        while True:
            slots = self._slots
            for place in range(self._place, len(slots)):
                slot = slots[place]
                if slot.after is not None:
                    self._place = place
                    return slot
            if not self._spans or self._spans[0] > until_s * SPANS_PER_S:
                return None
            self._open_span(heappop(self._spans))

    def _open_span(self, span: int) -> None:
        slots = self._slots  # all are empty
        if self.events - self._events_before > ENTRIES_PER_SLOT * len(slots) and len(slots) < SLOTS_MAX:
            slots.extend([Slot() for _ in range(len(slots))])
            self._slots_per_s = float(len(slots) * SPANS_PER_S)
        self._events_before = self.events
        self._open_from_s = span / SPANS_PER_S
        self._open_until_s = (span + 1) / SPANS_PER_S
        self._place = 0
        later = self._later.pop(span)
        later.reverse()  # each goes before its equals, which were asked for later
        for what in later:
            t = what.due_at_s
            before: Due = slots[int((t - self._open_from_s) * self._slots_per_s)]
            after = before.after
            while after is not None and after.due_at_s < t:
                before = after
                after = after.after
            what.after = after
            before.after = what
