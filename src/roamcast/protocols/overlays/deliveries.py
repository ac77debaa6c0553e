"""The path of an event through its consumer's site, from `Forward` to `Delivery` [3.3].

An event passes the intake of the consumer's row (in order, once), its modulator (on the broker's CPU), and leaves as a
numbered delivery, which is repeated until the client acknowledges it.

An event that a modulator keeps for later, as a window does, is settled with the delivery that results from it. A client
that loses its broker tells the next one what it has got, and every producer's home broker starts over from there; so
what was acknowledged survives as long as one copy exists.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.client_row import ClientRow, Sent, Unsettled
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.intake import Arrival
from roamcast.protocols.overlays.messages import Delivery, DeliveryAck, Forward
from roamcast.protocols.overlays.modulators import Modulator, Outcome
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import following
from roamcast.protocols.overlays.receipts import Receipts
from roamcast.protocols.overlays.registry import Registry
from roamcast.protocols.overlays.repeats import Patience, Ticker
from roamcast.protocols.overlays.resources import ResourceMonitor
from roamcast.protocols.overlays.whereabouts import Whereabouts

TOO_MANY: Final = "overlays: too many publishers"


class DeliveriesTimer(StrEnum):
    RETRY = "deliveries.retry"  # repeat deliveries that were not acknowledged; key 0


class Deliveries(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        brokers: BrokerManager,
        registry: Registry,
        resources: ResourceMonitor,
        table: dict[int, ClientRow],
        whereabouts: Whereabouts,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.on_progress: Callable[[ClientRow], None] = lambda row: None  # a row has processed an event
        self._concentrator = concentrator
        self._brokers = brokers
        self._registry = registry
        self._resources = resources
        self._table = table
        self._whereabouts = whereabouts
        self._parameters = parameters
        self._receipts = Receipts(host, concentrator, table, parameters)
        self._patience = Patience(parameters)
        self._ticker = Ticker(host, DeliveriesTimer.RETRY, parameters.retry_s, self._repeat)

    def declare(self, inputs: Inputs) -> None:
        self._receipts.declare(inputs)
        self._concentrator.on(Forward, self._on_forward)
        self._concentrator.on(DeliveryAck, self._on_ack)
        inputs.on_timer(DeliveriesTimer.RETRY, self._ticker.tick)

    # -- In --------------------------------------------------------------------------------------------------------

    def _on_forward(self, source: int, message: Forward, hops: int) -> None:
        event = message.event
        self._registry.learn(message.source)
        for client, epoch, previous in message.targets:
            row = self._table.get(client)
            if row is None:
                self.send_after(client, epoch, Arrival(event, message.hops + hops, previous), message.source)
                continue
            if row.epoch != epoch:
                # The source believes the client to be in another epoch. It has to hear of this one.
                self._registry.register_at(row, message.source)
                continue
            if event.publisher not in row.origins and len(row.origins) >= self._parameters.publishers_max:
                self.host.dropped(TOO_MANY, event.id)
                continue
            row.origins[event.publisher] = message.source
            if row.intake.is_new(event):
                row.intake.offer(event, previous, message.hops + hops)
                self.drain(row)
            elif not row.is_passive:
                self._receipts.note(row, event.publisher)

    def send_after(self, client: int, epoch: int, arrival: Arrival, source: int) -> None:
        """The client has another site by now; its events follow it, unless the variant gives them up."""
        moved = self._whereabouts.moved.get(client)
        follows = self._parameters.relocation in ("strict", "fresh-modulator")
        if moved is not None and moved.epoch == epoch and follows:
            onward = Forward(source, arrival.hops, ((client, epoch, arrival.previous),), arrival.event)
            self._concentrator.carry(self._brokers.path(moved.site), onward)

    # -- Through the modulator -------------------------------------------------------------------------------------

    def drain(self, row: ClientRow) -> None:
        """Processes the events whose turn it is."""
        deliveries_max = self._parameters.deliveries_max
        while not row.is_passive and len(row.deliveries) < deliveries_max and self._resources.has_room:
            arrival = row.intake.take()
            if arrival is None:
                return
            if row.modulator is None:
                self._processed(row, arrival, Outcome((arrival.event,)), 0.0)
            else:
                self._modulate(row, row.modulator, arrival)

    def _modulate(self, row: ClientRow, modulator: Modulator, arrival: Arrival) -> None:
        def finish(outcome: Outcome, cpu_s: float) -> None:
            if row.is_current:
                self._processed(row, arrival, outcome, cpu_s)
                self.drain(row)

        event = arrival.event
        self._resources.run(modulator.cost_s(event), lambda: modulator.process(event), finish)

    def _processed(self, row: ClientRow, arrival: Arrival, outcome: Outcome, cpu_s: float) -> None:
        event = arrival.event
        row.processed[event.publisher] = row.unreported[event.publisher] = event.number
        row.bytes_in += len(event.payload)
        row.cpu_s += cpu_s
        for output in outcome.outputs:
            self._deliver(row, output, arrival.hops)
        if outcome.outputs:
            for kept in row.unsettled:
                if kept.sequence is None:
                    kept.sequence = row.sequence
        row.unsettled.append(Unsettled(event.publisher, event.number, None if outcome.is_kept else row.sequence))
        row.acknowledge(row.acknowledged)  # settles what had no delivery
        self._receipts.note_processed(row, event.publisher)
        self.on_progress(row)

    # -- Out -------------------------------------------------------------------------------------------------------

    def _deliver(self, row: ClientRow, event: Event, hops: int) -> None:
        row.sequence = following(row.sequence)
        row.bytes_out += len(event.payload)
        delivery = Delivery(
            epoch=row.epoch,
            sequence=row.sequence,
            site=self.host.address,
            hops=min(255, hops),
            event=event,
            cursors=tuple(row.unreported.items()),
        )
        row.unreported.clear()
        self.send(row, delivery)

    def send(self, row: ClientRow, delivery: Delivery) -> None:
        """Sends a delivery until the client acknowledges it."""
        sent = row.deliveries[delivery.sequence] = Sent(delivery)
        self._patience.tried(sent, self.host.now())
        self._concentrator.carry(self._path_to(row), delivery)
        self._ticker.start()

    def _path_to(self, row: ClientRow) -> tuple[int, ...]:
        if row.home == self.host.address:
            return (row.client,)
        return (*self._brokers.path(row.home), row.client)

    def _repeat(self, now_s: float) -> bool:
        for row in self._table.values():
            for sent in row.deliveries.values():
                if sent.due_s <= now_s:
                    self._patience.tried(sent, now_s)
                    self._concentrator.carry(self._path_to(row), sent.delivery)
        return any(row.deliveries for row in self._table.values())

    def _on_ack(self, source: int, message: DeliveryAck, hops: int) -> None:
        row = self._table.get(source)
        if row is None or row.epoch != message.epoch or row.is_passive:
            return
        if message.sequence > row.sequence:
            raise PeerError(f"client {source} acknowledges delivery {message.sequence} of {row.sequence}")
        row.heard_s = self.host.now()
        for sequence, sent in row.deliveries.items():
            if sequence <= message.sequence:
                self._patience.answered(sent, row.heard_s)
        for publisher in row.acknowledge(message.sequence):
            self._receipts.note(row, publisher)
        self.drain(row)
