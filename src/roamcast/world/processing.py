"""A node's computer: what it takes to handle events, and what has to wait meanwhile.

A node handles one message at a time, in the order of arrival (`scenario.Processing`). A message that carries an event
costs the time of a match, in every protocol; all others are free, but wait for their turn. A publication costs a match,
too. What a protocol itself declares as work (`Host.work`), such as a root that passes events on to other trees, costs
its own time. While a node is busy, what it sends waits: frames leave when the work is done that was begun before them.
Timers ring on time.

Nodes may differ: each has a factor, drawn from the seed, by which all its times are multiplied.

Without such times there is no processor, and nothing here costs anything.
"""

from collections import deque
from math import exp

from roamcast.events import Event
from roamcast.protocols.api import Listener, Message, Work
from roamcast.seeds import derive
from roamcast.world.scenario import Processing
from roamcast.world.scheduler import Due, Scheduler


class Processor(Listener):
    """Stands between the link and the protocol of a node, for one life."""

    def __init__(self, scheduler: Scheduler, listener: Listener, match_s: float, root_s: float) -> None:
        self._scheduler = scheduler
        self._listener = listener
        self._match_s = match_s
        self._root_s = root_s
        self._free_s = 0.0  # when the work begun so far is done
        self._waiting: deque[tuple[int, Message]] = deque()  # the first one is being handled
        self._is_closed = False

    @property
    def free_s(self) -> float:
        """When what is sent now can leave; in the past if the node is idle."""
        return self._free_s

    def work(self, kind: Work) -> None:
        self._spend(self._match_s if kind == "match" else self._root_s)

    def on_message(self, sender: int, message: Message) -> None:
        self._waiting.append((sender, message))
        if len(self._waiting) == 1:
            self._begin()

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self._listener.on_send_failed(neighbour, message)

    def close(self) -> None:
        self._is_closed = True
        self._waiting.clear()

    def _begin(self) -> None:
        """Begins with the first that waits; a node that is idle hands what is free of cost on at once."""
        while self._waiting:
            if carried(self._waiting[0][1]) is not None:
                self._spend(self._match_s)
            if self._free_s > self._scheduler.now:
                self._scheduler.put(self._free_s, _Handled(self))
                return
            self._hand_over()

    def done(self) -> None:
        """The first that waits has been handled. Work that was declared meanwhile goes before the next."""
        if self._is_closed:
            return
        self._hand_over()
        self._begin()

    def _hand_over(self) -> None:
        sender, message = self._waiting[0]
        self._listener.on_message(sender, message)
        if self._waiting:  # the node may have ended its life in there
            self._waiting.popleft()

    def _spend(self, duration_s: float) -> None:
        self._free_s = max(self._free_s, self._scheduler.now) + duration_s


class _Handled(Due):
    """The end of the work on a message."""

    __slots__ = ("_processor",)

    def __init__(self, processor: Processor) -> None:
        super().__init__()
        self._processor = processor

    def due(self) -> None:
        self._processor.done()


def factor(settings: Processing, seed: int, node: int) -> float:
    """By how much a node is slower than the median one."""
    return exp(settings.spread * derive(seed, "processing", node).gauss(0.0, 1.0)) if settings.spread else 1.0


def carried(message: Message | None) -> Event | None:
    """The event inside a message or inside its payload: every message that carries one calls it `event`."""
    while isinstance(payload := getattr(message, "payload", None), Message):
        message = payload
    event = getattr(message, "event", None)
    return event if isinstance(event, Event) else None
