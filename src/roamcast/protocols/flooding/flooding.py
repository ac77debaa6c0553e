"""Flooding: every node repeats every event once. The smallest complete protocol; read it first.

Theory of operation
-------------------
Goal: an event reaches every node that a chain of radio hops connects with its publisher, with no knowledge of the
network at all. Subscriptions stay at home: everybody hears everything, and each node picks what it wants.

State: the ids of events seen, and the frames that wait for their turn to be repeated.

Rules:
1. A node that publishes broadcasts the event at once.
2. A node that hears an event for the first time delivers it if its application wants it, waits a random time of up to
   `jitter_s` and broadcasts it. Without the wait all who heard the same frame would answer it in the same instant and
   collide.
3. A node that hears an event again ignores it.

The cost is one frame per node and event; the yield depends on collisions, since nobody acknowledges a broadcast.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message, Protocol, Timer
from roamcast.protocols.flooding.messages import Flood
from roamcast.protocols.flooding.parameters import FloodingParameters
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions


@mypyc_attr(allow_interpreted_subclasses=True)
class Flooding(Protocol):
    name: ClassVar[str] = "flooding"
    summary: ClassVar[str] = "every node repeats every event once"
    Parameters: ClassVar[type[api.Parameters]] = FloodingParameters
    messages: ClassVar[Any] = Flood

    def __init__(self, host: Host, parameters: FloodingParameters) -> None:
        super().__init__(host)
        self._hops_max = parameters.hops_max
        self._jitter_s = parameters.jitter_s
        self.subscriptions = Subscriptions()
        self._seen = SeenCache()
        self._draw: Callable[[], float] = host.random.random  # looked up once
        self._latest: Event | None = None  # of these: what is heard again is mostly what was just heard
        self._waiting: dict[int, Flood] = {}  # event id -> the frame that will repeat it

    def start(self) -> None:
        """Nothing to set up: flooding has no structure."""

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        self.host.broadcast(Flood(1, event))

    def on_message(self, sender: int, message: Message) -> None:
        flood: Any = message  # a `Flood`: there is no other message, and most are told for nothing, so nobody asks
        event = flood.event
        if event is self._latest:
            return
        number = event.id
        if not self._seen.add(number):
            return
        self._latest = event
        hops = flood.hops
        if self.subscriptions.match(event):
            self.host.deliver(event, hops)
        if hops < self._hops_max and self._repeats(flood):
            self._waiting[number] = Flood(hops + 1, event)
            self.host.set_timer(self._draw() * self._jitter_s, ("repeat", number))

    def on_timer(self, timer: Timer) -> None:
        number: Any = timer[1]
        message = self._waiting[number]
        del self._waiting[number]
        self.host.broadcast(message)

    def _repeats(self, message: Flood) -> bool:
        """Whether this node passes the event on; gossip tosses a coin here."""
        return True
