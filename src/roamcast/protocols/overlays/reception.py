"""The deliveries that a consumer takes: in order, each once.

Deliveries are numbered by the site of the consumer's modulator, from 1 in each epoch. The consumer remembers how far it
has got with each publisher; that is where the next home broker starts if this one is lost. Several deliveries may come
of one event, on several channels. If a home broker is lost between two of them, the next one makes all of them again;
those that are here already are dropped.

A home broker that has forgotten its consumer, unnoticed, and hears of it by a changed interest numbers from 1 again.
Then something new comes under an old number, or an acknowledgement is ahead of the numbers: the consumer begins a new
epoch.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.home import Home
from roamcast.protocols.overlays.messages import ClientDelivery, DeliveryAck, Detach
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import is_newer_epoch

REPEATED: Final = "overlays: repeated delivery"


class ReceptionTimer(StrEnum):
    ACKNOWLEDGE = "reception.acknowledge"  # acknowledge what has come; key 0


class Reception(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        home: Home,
        is_wanted: Callable[[Event, int], bool],
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.on_renumbered: Callable[[], None] = lambda: None
        self.cursors: dict[int, int] = {}  # publisher -> number of its latest event whose outcome is here
        self._parts: dict[int, tuple[int, int]] = {}  # publisher -> its latest event of which something is here; parts
        self._concentrator = concentrator
        self._home = home
        self._is_wanted = is_wanted
        self._parameters = parameters
        self._expected = 1  # sequence of the next delivery
        self._early: dict[int, tuple[ClientDelivery, int]] = {}
        self._acknowledge_to: dict[int, None] = {}
        self._unacknowledged = 0  # deliveries

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(ClientDelivery, self._on_delivery)
        inputs.on_timer(ReceptionTimer.ACKNOWLEDGE, self._acknowledge)

    def begin_epoch(self) -> None:
        self._expected = 1
        self._early.clear()

    def _on_delivery(self, source: int, message: ClientDelivery, hops: int) -> None:
        if message.epoch != self._home.epoch:
            if is_newer_epoch(self._home.epoch, message.epoch):
                self._concentrator.send(message.site, Detach(message.epoch, is_final=False))
            return
        self._home.heard_s = self.host.now()
        if message.sequence < self._expected and self._is_new(message):
            self.on_renumbered()
            return
        if message.sequence >= self._expected and len(self._early) < self._parameters.early_max:
            self._early[message.sequence] = (message, message.hops + hops)
        while self._expected in self._early:
            self._take(*self._early.pop(self._expected))
            self._expected += 1
        if not self._acknowledge_to:
            self.host.set_timer(self._parameters.acknowledgement_delay_s, (ReceptionTimer.ACKNOWLEDGE, 0))
        self._acknowledge_to[message.site] = None
        self._unacknowledged += 1
        if self._unacknowledged >= self._parameters.acknowledgements_max:
            self.host.cancel_timer((ReceptionTimer.ACKNOWLEDGE, 0))
            self._acknowledge(0)

    def _take(self, delivery: ClientDelivery, hops: int) -> None:
        event = delivery.event
        is_new = self._is_new(delivery)
        if is_new:
            self._parts[event.publisher] = (event.number, delivery.part + 1)
        for publisher, number in delivery.cursors:
            self.cursors[publisher] = max(number, self.cursors.get(publisher, 0))
        if len(self.cursors) > self._parameters.publishers_max:
            forgotten = next(iter(self.cursors))
            del self.cursors[forgotten]
            self._parts.pop(forgotten, None)
        is_own = event.publisher == self.host.address  # of an earlier life
        if not is_new:
            self.host.dropped(REPEATED, event.id)
        elif not is_own and self._is_wanted(event, delivery.channel):
            self.host.deliver(event, hops, delivery.channel)

    def _is_new(self, delivery: ClientDelivery) -> bool:
        event = delivery.event
        got = self._parts.get(event.publisher, (0, 0))
        return event.number > self.cursors.get(event.publisher, 0) and (event.number, delivery.part + 1) > got

    def _acknowledge(self, _: int) -> None:
        for site in self._acknowledge_to:
            self._concentrator.send(site, DeliveryAck(self._home.epoch, self._expected - 1))
        self._acknowledge_to.clear()
        self._unacknowledged = 0
