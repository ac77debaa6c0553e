"""The consumers' side of a broker: the client information table, and the way of an event through it [3.3].

A row belongs to a client whose modulator runs here; this broker is its *site*, and normally its home broker too. Events
for it pass through the row's intake (in order, once), its modulator (on the broker's CPU), and out as numbered
deliveries that are repeated until the client acknowledges them.

The producers' home brokers are told twice how far a client has got: *processed* means that the event need not be sent
again, *settled* that the client has it, or that its modulator threw it away. An event that a modulator keeps for later,
as a window does, is settled with the delivery that comes of it. A client that loses its broker tells the next one what
it has got, and every home broker starts over from there; so what was acknowledged survives as long as one copy exists.
"""

from typing import Any, Final

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.channel import BrokerDiscovery, ModulatorMeasured, SystemChannel
from roamcast.protocols.overlays.client_row import ClientRow, Sent, Unsettled
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.intake import Arrival
from roamcast.protocols.overlays.messages import (
    Attach,
    Attached,
    Delivery,
    DeliveryAck,
    Detach,
    Forward,
    Receipt,
    Report,
    ReportAck,
    Served,
    WelcomeAck,
)
from roamcast.protocols.overlays.modulators import Modulator, Outcome
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.registry import Registry
from roamcast.protocols.overlays.repeats import Patience, Ticker
from roamcast.protocols.overlays.resources import ResourceMonitor
from roamcast.protocols.overlays.sources import SourceManager
from roamcast.protocols.overlays.wants import Wants

DELIVERIES_MAX: Final = 64  # per client, sent and not yet acknowledged; further events wait
SWEEP_S: Final = 10.0
MOVED_MAX: Final = 1024  # clients whose new site is remembered
RECEIPTS: Final = "clients.receipts"
RETRY: Final = "clients.retry"
SWEEP: Final = "clients.sweep"


class ClientManager:
    def __init__(
        self,
        host: Host,
        concentrator: Concentrator,
        channel: SystemChannel,
        brokers: BrokerManager,
        sources: SourceManager,
        resources: ResourceMonitor,
        parameters: OverlaysParameters,
    ) -> None:
        self.table: dict[int, ClientRow] = {}  # CIT
        self.registry = Registry(host, concentrator, brokers, self.table)
        self.moved: dict[int, tuple[int, int, int]] = {}  # client -> epoch and generation of its new site, the site
        self.served: dict[int, tuple[int, int, int]] = {}  # client of this home -> the same, of a site elsewhere
        self.on_progress: list[Any] = []  # called with a row after each event that it processed
        self._host = host
        self._concentrator = concentrator
        self._channel = channel
        self._brokers = brokers
        self._producers = sources
        self._resources = resources
        self._parameters = parameters
        self._receipts: dict[int, dict[tuple[int, int], None]] = {}  # source -> (client, publisher)
        self._patience = Patience(parameters.retry_s)
        self._ticker = Ticker(host, RETRY, parameters.retry_s, self._repeat)
        concentrator.on_all(
            {
                Attach: self._on_attach,
                Report: self._on_report,
                Forward: self._on_forward,
                DeliveryAck: self._on_delivery_ack,
                Detach: self._on_detach,
                Served: self._on_served,
            }
        )
        concentrator.on_tick(RECEIPTS, self._send_receipts)
        concentrator.on_tick(RETRY, self._ticker.tick)
        concentrator.on_tick(SWEEP, self._sweep)

    def start(self) -> None:
        self._host.set_timer(SWEEP_S, (SWEEP, 0))

    # -- Clients come, change and go ---------------------------------------------------------------------------------

    def _on_attach(self, source: int, message: Attach, hops: int) -> None:
        client = message.client
        served = self.served.get(client)
        if served is not None and served[0] == message.epoch:
            self._concentrator.send(served[2], message)
            return
        row = self.table.get(client)
        moved = self.moved.get(client)
        has_left = moved is not None and moved[0] >= message.epoch
        is_coming = row is not None and row.is_passive and row.epoch >= message.epoch
        if has_left or is_coming:
            return  # its site, or its site to be, will welcome the client, which then repeats this there
        if row is None or message.epoch > row.epoch:
            row = self._admit(message)
        elif message.epoch == row.epoch and message.version > row.version:
            self._update(row, message)
        if message.epoch == row.epoch:
            row.heard_s = self._host.now()
            self._concentrator.send(client, Attached(row.epoch, row.version))

    def _admit(self, message: Attach) -> ClientRow:
        self.drop(message.client)
        self.moved.pop(message.client, None)
        self.served.pop(message.client, None)
        self.registry.note_left(message.client)
        row = ClientRow(message.client, message.epoch, 0, self._host.now())
        row.home = self._host.address
        row.start_from(message.cursors)
        self.table[message.client] = row
        self._update(row, message)
        return row

    def _update(self, row: ClientRow, message: Attach) -> None:
        row.version = message.version
        row.wants = Wants(message.wants)
        if message.modulator != row.modulator_text:
            row.set_modulator(message.modulator)
        row.produces, row.advertised = message.produces, message.advertised
        if row.produces:
            self._producers.host_producer(row.client, message.advertised)
        if not row.is_passive:
            self.registry.register(row)

    def drop(self, client: int) -> ClientRow | None:
        """Takes a client out of the table."""
        row = self.table.pop(client, None)
        if row is not None:
            row.is_current = False
            self.registry.withdraw(client)
        return row

    def _on_detach(self, source: int, message: Detach, hops: int) -> None:
        row = self.table.get(source)
        if row is not None and row.epoch <= message.epoch:
            self.drop(source)
            self._producers.drop_producer(source)
            if message.is_final:
                self.registry.deregister(row)

    def _on_report(self, source: int, message: Report, hops: int) -> None:
        client = message.client
        row = self.table.get(client)
        if row is not None and row.epoch == message.epoch and not row.is_passive:
            row.heard_s = self._host.now()
            self._concentrator.send(client, ReportAck(message.epoch, True))
            candidate = message.nearest if message.nearest != self._host.address else None
            self._channel.post(BrokerDiscovery(client, candidate, message.distance_hops, message.load, hops))
            return
        # A site elsewhere answers the client itself: nobody else can know whether it is still there.
        site = self._site_elsewhere(client, message.epoch)
        if site is not None and source == client:
            self._concentrator.send(site, message)
        elif row is None or row.epoch != message.epoch:
            self._concentrator.send(client, ReportAck(message.epoch, False))

    def _site_elsewhere(self, client: int, epoch: int) -> int | None:
        """The broker that serves a client which this broker served before, or whose home it is."""
        for places in (self.served, self.moved):
            place = places.get(client)
            if place is not None and place[0] == epoch:
                return place[2]
        return None

    def _on_served(self, source: int, message: Served, hops: int) -> None:
        self._concentrator.send(source, WelcomeAck(message.epoch, message.generation))
        if self._site_elsewhere(message.client, message.epoch) is not None:
            self.served[message.client] = (message.epoch, message.generation, source)
        else:  # this broker crashed since then, and knows nothing of what the client told its home
            self._concentrator.send(message.client, ReportAck(message.epoch, False))

    def _sweep(self, _: int) -> None:
        """Drops clients that have not been heard of for long, and reads how modulators behave."""
        self._host.set_timer(SWEEP_S, (SWEEP, 0))
        for remembered in (self.moved, self.served):
            while len(remembered) > MOVED_MAX:
                del remembered[next(iter(remembered))]
        silent_s = self._host.now() - self._parameters.store_lifetime_s
        self.registry.sweep(silent_s)
        for client, row in list(self.table.items()):
            if row.heard_s < silent_s:
                self.drop(client)
                self._producers.drop_producer(client)
                if not row.is_passive:
                    self.registry.deregister(row)
            elif row.bytes_in or row.cpu_s:
                self._channel.post(ModulatorMeasured(client, row.bytes_in, row.bytes_out, row.cpu_s))
                row.bytes_in = row.bytes_out = 0
                row.cpu_s = 0.0

    # -- Events ------------------------------------------------------------------------------------------------------

    def _on_forward(self, source: int, message: Forward, hops: int) -> None:
        event = message.event
        self.registry.learn(message.source)
        for client, epoch, previous in message.targets:
            row = self.table.get(client)
            if row is None:
                self.send_after(client, epoch, Arrival(event, message.hops + hops, previous), message.source)
                continue
            if row.epoch != epoch:
                # What the source believes the client to have, it had in another epoch. It has to hear of this one.
                self.registry.register_at(row, message.source)
                continue
            row.origins[event.publisher] = message.source
            if row.intake.is_new(event):
                row.intake.offer(event, previous, message.hops + hops)
                self.drain(row)
            elif not row.is_passive:
                self._receipt_soon(row, event.publisher)

    def send_after(self, client: int, epoch: int, arrival: Arrival, source: int) -> None:
        """The client has another site by now; its events follow it, unless the variant gives them up."""
        moved = self.moved.get(client)
        follows = self._parameters.relocation in ("strict", "fresh-modulator")
        if moved is not None and moved[0] == epoch and follows:
            onward = Forward(source, arrival.hops, ((client, epoch, arrival.previous),), arrival.event)
            self._concentrator.carry(self._brokers.path(moved[2]), onward)

    def drain(self, row: ClientRow) -> None:
        """Processes what has come and whose turn it is."""
        while not row.is_passive and len(row.deliveries) < DELIVERIES_MAX and self._resources.has_room:
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
        self._receipt_soon(row, event.publisher)
        for notify in self.on_progress:
            notify(row)

    def _deliver(self, row: ClientRow, event: Event, hops: int) -> None:
        row.sequence += 1
        row.bytes_out += len(event.payload)
        cursors = tuple(row.unreported.items())
        row.unreported.clear()
        delivery = Delivery(row.epoch, row.sequence, self._host.address, min(255, hops), event, cursors)
        self.send_delivery(row, delivery)

    def send_delivery(self, row: ClientRow, delivery: Delivery) -> None:
        """Sends a delivery until the client acknowledges it."""
        sent = row.deliveries[delivery.sequence] = Sent(delivery)
        self._patience.tried(sent, self._host.now())
        self._concentrator.carry(self._path_to(row), delivery)
        self._ticker.start()

    def _path_to(self, row: ClientRow) -> tuple[int, ...]:
        if row.home == self._host.address:
            return (row.client,)
        return (*self._brokers.path(row.home), row.client)

    def _repeat(self, now_s: float) -> bool:
        for row in self.table.values():
            for sent in row.deliveries.values():
                if sent.due_s <= now_s:
                    self._patience.tried(sent, now_s)
                    self._concentrator.carry(self._path_to(row), sent.delivery)
        return any(row.deliveries for row in self.table.values())

    def _on_delivery_ack(self, source: int, message: DeliveryAck, hops: int) -> None:
        row = self.table.get(source)
        if row is None or row.epoch != message.epoch or row.is_passive:
            return
        if message.sequence > row.sequence:
            raise PeerError(f"client {source} acknowledges delivery {message.sequence} of {row.sequence}")
        row.heard_s = self._host.now()
        for sequence, sent in row.deliveries.items():
            if sequence <= message.sequence:
                self._patience.answered(sent, row.heard_s)
        for publisher in row.acknowledge(message.sequence):
            self._receipt_soon(row, publisher)
        self.drain(row)

    def _receipt_soon(self, row: ClientRow, publisher: int) -> None:
        source = row.origins.get(publisher)
        if source is None:
            return
        if not self._receipts:
            self._host.set_timer(self._parameters.acknowledgement_delay_s, (RECEIPTS, 0))
        self._receipts.setdefault(source, {})[row.client, publisher] = None

    def _send_receipts(self, _: int) -> None:
        receipts, self._receipts = self._receipts, {}
        for source, pairs in receipts.items():
            rows = []
            for client, publisher in pairs:
                row = self.table.get(client)
                if row is not None and not row.is_passive:
                    processed, settled = row.processed.get(publisher, 0), row.settled.get(publisher, 0)
                    rows.append((client, row.epoch, publisher, processed, settled))
            if rows:
                self._concentrator.send(source, Receipt(tuple(rows)))
