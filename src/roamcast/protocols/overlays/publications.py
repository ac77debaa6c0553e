"""The events that a node's application has published, until the home broker says that all consumers have them.

Each event is sent to the home broker and repeated until that acknowledges it. It is kept longer, until it is settled
with all consumers: if the home broker is lost, the client brings it to the next one.
"""

from enum import StrEnum
from typing import Final

from roamcast.events import Event, event_id
from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.home import Home
from roamcast.protocols.overlays.messages import Publish, PublishAck
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.repeats import Attempt, Patience, Ticker

EXPIRED: Final = "overlays: publisher's store"


class PublicationsTimer(StrEnum):
    RETRY = "publications.retry"  # repeat what the home broker has not acknowledged; key 0


class _Kept(Attempt):
    __slots__ = ("event", "is_old")

    def __init__(self, event: Event) -> None:
        super().__init__()
        self.event = event
        self.is_old = False  # published before the current home became the home


class Publications(Component):
    def __init__(self, host: Host, concentrator: Concentrator, home: Home, parameters: OverlaysParameters) -> None:
        super().__init__(host)
        self.received = 0  # published events up to this number are with the home broker
        self._concentrator = concentrator
        self._home = home
        self._parameters = parameters
        self._kept: dict[int, _Kept] = {}  # published and not yet settled, by number
        self._patience = Patience(parameters)
        self._ticker = Ticker(host, PublicationsTimer.RETRY, parameters.retry_s, self._repeat)

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(PublishAck, self._on_ack)
        inputs.on_timer(PublicationsTimer.RETRY, self._ticker.tick)

    def add(self, event: Event) -> None:
        self._kept[event.number] = _Kept(event)
        if len(self._kept) > self._parameters.store_events:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            if oldest > self.received:
                self.host.dropped(EXPIRED, event_id(self.host.address, oldest))
        if self._home.broker != NOBODY:
            self._send(event.number)
        self._ticker.start()

    def bring_to_new_home(self) -> None:
        """The home broker is another one: it gets everything that is not settled."""
        self.received = 0
        for kept in self._kept.values():
            kept.tries = 0
            kept.is_old = True
        for number in self._kept:
            self._send(number)

    def _send(self, number: int) -> None:
        kept = self._kept[number]
        self._patience.tried(kept, self.host.now())
        previous = 0
        for earlier in reversed(self._kept):  # most calls are about the newest
            if earlier < number:
                previous = earlier if earlier > self.received else 0
                break
        self._concentrator.send(self._home.broker, Publish(previous, kept.event, kept.is_old))

    def _on_ack(self, source: int, message: PublishAck, hops: int) -> None:
        if source == self._home.broker:
            now_s = self._home.heard_s = self.host.now()
            for number, kept in self._kept.items():
                if self.received < number <= message.received:
                    self._patience.answered(kept, now_s)
            self.received = max(self.received, message.received)
        for number in [number for number in self._kept if number <= message.released]:
            del self._kept[number]

    def _repeat(self, now_s: float) -> bool:
        old_s = now_s - self._parameters.store_lifetime_s
        for number, kept in list(self._kept.items()):
            if kept.event.time_s < old_s:
                del self._kept[number]
                if number > self.received:
                    self.host.dropped(EXPIRED, kept.event.id)
            elif self._home.broker != NOBODY and number > self.received and kept.due_s <= now_s:
                self._send(number)
        return bool(self._kept)
