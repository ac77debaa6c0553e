"""The path of an event through its consumer's site, from `Forward` to `ClientDelivery` [3.3].

An event passes the intake of the consumer's row (in order, once) and its modulators (on the broker's CPU). The
outcome leaves as numbered deliveries, each repeated until the client acknowledges it.

An event that a modulator keeps for later, as a window does, is settled with the delivery that results from it. A client
that loses its broker tells the next one what it has got, and every producer's home broker starts over from there; so
what was acknowledged survives as long as one copy exists.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.client_row import ClientRow, Sent, Unsettled
from roamcast.protocols.overlays.client_updates import ClientUpdates
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.intake import IncomingEvent
from roamcast.protocols.overlays.messages import TEXT_MAX, ClientDelivery, DeliveryAck, Forward, Refused, ReportAck
from roamcast.protocols.overlays.modulator_manager import Execution, ModulatorManager
from roamcast.protocols.overlays.modulator_sites import ModulatorSites
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import following
from roamcast.protocols.overlays.receipts import Receipts
from roamcast.protocols.overlays.repeats import Patience, Ticker

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
        registry: ClientUpdates,
        modulators: ModulatorManager,
        table: dict[int, ClientRow],
        whereabouts: ModulatorSites,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.on_progress: Callable[[ClientRow], None] = lambda row: None  # a row has processed an event
        self._concentrator = concentrator
        self._brokers = brokers
        self._registry = registry
        self._modulators = modulators
        self._table = table
        self._whereabouts = whereabouts
        self._parameters = parameters
        self._receipts = Receipts(host, concentrator, table, parameters)
        self._is_draining = False  # what is finished meanwhile needs no drain of its own
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
                self.send_after(client, epoch, IncomingEvent(event, message.hops + hops, previous), message.source)
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

    def send_after(self, client: int, epoch: int, arrival: IncomingEvent, source: int) -> None:
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
        while not row.is_passive and len(row.deliveries) < deliveries_max and self._modulators.has_room:
            arrival = row.intake.take()
            if arrival is None:
                return
            self._modulate(row, arrival)

    def _modulate(self, row: ClientRow, arrival: IncomingEvent) -> None:
        def finish(executions: list[Execution], cpu_s: float) -> None:
            if row.is_current:
                self._processed(row, arrival, executions, cpu_s)
                if not self._is_draining:
                    self.drain(row)

        self._is_draining = True
        self._modulators.process(row, arrival.event, finish)
        self._is_draining = False

    def _processed(self, row: ClientRow, arrival: IncomingEvent, executions: list[Execution], cpu_s: float) -> None:
        event = arrival.event
        row.processed[event.publisher] = row.unreported[event.publisher] = event.number
        source = row.origins.get(event.publisher, self.host.address)
        events, size = row.taken.get(source, (0, 0))
        row.taken[source] = (events + 1, size + len(event.payload))
        row.cpu_s += cpu_s
        outputs = [(each.channel.number, output) for each in executions for output in each.outcome.outputs]
        for part, (channel, output) in enumerate(outputs):
            is_last = part == len(outputs) - 1
            self._deliver(row, output, arrival.hops, channel=channel, part=part, is_last=is_last)
        if outputs:
            channels = tuple([channel for channel, _ in outputs])
            for kept in row.unsettled:
                kept.put_out(channels, row.sequence)
        kept_by = tuple([execution.channel.number for execution in executions if execution.outcome.is_kept])
        row.unsettled.append(Unsettled(event.publisher, event.number, None if kept_by else row.sequence, kept_by))
        row.acknowledge(row.acknowledged)  # settles what had no delivery
        for execution in executions:
            if execution.outcome.failure:
                self._tell_failure(row, execution)
        self._receipts.note_processed(row, event.publisher)
        self.on_progress(row)

    def _tell_failure(self, row: ClientRow, execution: Execution) -> None:
        """With every event that finds the modulator stopped, until the client has changed it."""
        reason = execution.outcome.failure[:TEXT_MAX]
        self._concentrator.send(row.client, Refused(row.epoch, row.version, execution.channel.number, reason))

    # -- Out -------------------------------------------------------------------------------------------------------

    def _deliver(self, row: ClientRow, event: Event, hops: int, *, channel: int, part: int, is_last: bool) -> None:
        row.sequence = following(row.sequence)
        row.bytes_out += len(event.payload)
        row.events_out += 1
        delivery = ClientDelivery(
            epoch=row.epoch,
            sequence=row.sequence,
            site=self.host.address,
            hops=min(255, hops),
            event=event,
            cursors=tuple(row.unreported.items()) if is_last else (),
            channel=channel,
            part=part,
        )
        if is_last:
            row.unreported.clear()
        self.send(row, delivery)

    def send(self, row: ClientRow, delivery: ClientDelivery) -> None:
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
            # This broker had forgotten the client, which has not noticed and counts on. It has to attach anew.
            self._concentrator.send(source, ReportAck(message.epoch, False))
            return
        row.heard_s = self.host.now()
        for sequence, sent in row.deliveries.items():
            if sequence <= message.sequence:
                self._patience.answered(sent, row.heard_s)
        for publisher in row.acknowledge(message.sequence):
            self._receipts.note(row, publisher)
        self.on_progress(row)
        self.drain(row)
