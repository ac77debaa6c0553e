"""Flooding: every node repeats every event once. The smallest complete protocol; read it first.

Theory of operation
-------------------
Goal: an event reaches every node that a chain of radio hops connects with its publisher, with no knowledge of the
network at all. Subscriptions are not sent anywhere: every node hears every event and delivers those it wants.

State: the ids of events seen, and the frames that wait to be repeated.

Rules:
1. A node that publishes an event broadcasts it at once.
2. A node that hears an event for the first time delivers it if its application wants it, waits a random time of up to
   `jitter_s` and broadcasts it. Without the wait, all nodes that heard the same frame would repeat it at the same
   instant and collide.
3. A node that hears an event again ignores it.

The cost is one frame per node and event. Delivery depends on collisions, since broadcasts are not acknowledged.
"""

from enum import StrEnum
from typing import ClassVar

from mypy_extensions import mypyc_attr

from roamcast.events import NUMBER_BITS, Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Protocol, Timer
from roamcast.protocols.flooding.messages import Flood
from roamcast.protocols.flooding.parameters import FloodingParameters
from roamcast.protocols.seen import SeenEvents
from roamcast.protocols.subscriptions import Subscriptions


class FloodingTimer(StrEnum):
    REPEAT = "flooding.repeat"  # the jitter of an event has passed; key: the event's id


@mypyc_attr(allow_interpreted_subclasses=True)
class Flooding(Protocol):
    name: ClassVar[str] = "flooding"
    summary: ClassVar[str] = "every node repeats every event once"
    Parameters: ClassVar[type[api.Parameters]] = FloodingParameters
    messages: ClassVar[type[Flood]] = Flood

    def __init__(self, host: Host, parameters: FloodingParameters) -> None:
        super().__init__(host)
        self._hops_max = parameters.hops_max
        self._jitter_s = parameters.jitter_s
        self.subscriptions = Subscriptions()
        self._seen = SeenEvents()
        self._address = host.address
        self._draw = host.random.random
        self._waiting: dict[int, Flood] = {}  # event id -> the frame that will repeat it

    def start(self) -> None:
        """Nothing to set up: flooding has no structure."""

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)

    def publish(self, event: Event) -> None:
        self._seen.add(event)
        self.host.broadcast(Flood(1, event))

    def on_message(self, sender: int, message: Flood) -> None:
        event = message.event
        if not self._seen.add(event):
            return
        hops = message.hops
        number = event.id
        if self.subscriptions.match(event) and number >> NUMBER_BITS != self._address:  # own: of an earlier life
            self.host.deliver(event, hops)
        if hops < self._hops_max and self._repeats(message):
            self._waiting[number] = Flood(hops + 1, event)
            self.host.set_timer(self._draw() * self._jitter_s, (FloodingTimer.REPEAT, number))

    def on_timer(self, timer: Timer) -> None:
        number = timer[1]
        message = self._waiting[number]
        del self._waiting[number]  # compiled, faster than `pop`
        self.host.broadcast(message)

    def _repeats(self, message: Flood) -> bool:
        """Whether this node repeats the event; gossip decides at random."""
        return True
