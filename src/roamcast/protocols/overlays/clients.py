"""The client manager: which clients have their modulator at this broker [3.3].

A row of the client information table (CIT) belongs to a client whose modulators run here. This broker is their *site*,
and normally the client's home broker too. The row has the client's address, where it is, how far away, and which
channels with which modulators it has. What a client says about itself (`Attach`, `Report`, `Detach`) is handled here.
`deliveries` takes events through a row, `registry` tells the producers' home brokers about it, `relocation` moves it.
"""

from enum import StrEnum
from typing import Final

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.channel import BrokerDiscovery, ModulatorMeasured, SystemChannel
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.client_updates import ClientUpdates
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import (
    TEXT_MAX,
    Attach,
    Attached,
    Detach,
    Refused,
    Report,
    ReportAck,
    Served,
    WelcomeAck,
)
from roamcast.protocols.overlays.modulator_manager import ModulatorManager, ModulatorRefusedError
from roamcast.protocols.overlays.modulator_sites import ModulatorSite, ModulatorSites
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import is_newer_epoch
from roamcast.protocols.overlays.sources import SourceManager

FULL: Final = "overlays: too many clients"


class ClientsTimer(StrEnum):
    SWEEP = "clients.sweep"  # drop silent clients, read how modulators behave; key 0


class ClientManager(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        channel: SystemChannel,
        registry: ClientUpdates,
        modulators: ModulatorManager,
        sources: SourceManager,
        table: dict[int, ClientRow],
        whereabouts: ModulatorSites,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.table = table  # CIT
        self.registry = registry
        self.modulators = modulators
        self.whereabouts = whereabouts
        self._concentrator = concentrator
        self._channel = channel
        self._sources = sources
        self._parameters = parameters

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(Attach, self._on_attach)
        self._concentrator.on(Report, self._on_report)
        self._concentrator.on(Detach, self._on_detach)
        self._concentrator.on(Served, self._on_served)
        inputs.on_timer(ClientsTimer.SWEEP, self._sweep)

    def start(self) -> None:
        self.host.set_timer(self._parameters.sweep_period_s, (ClientsTimer.SWEEP, 0))

    # -- For the relocation layer ----------------------------------------------------------------------------------

    def open(self, client: int, epoch: int, generation: int) -> ClientRow:
        """A fresh row for the client, in place of the one that there may be."""
        self.drop(client)
        row = ClientRow(client, epoch, generation, self.host.now(), self._parameters.intake_max)
        self.table[client] = row
        return row

    def drop(self, client: int) -> None:
        """Takes a client out of the table."""
        row = self.table.pop(client, None)
        if row is not None:
            row.is_current = False
            self.registry.withdraw(client)

    # -- Clients attach, change and leave --------------------------------------------------------------------------

    def _on_attach(self, source: int, message: Attach, hops: int) -> None:
        client = message.client
        served = self.whereabouts.served.get(client)
        if served is not None and served.epoch == message.epoch:
            self._concentrator.send(served.site, message)
            return
        row = self.table.get(client)
        moved = self.whereabouts.moved.get(client)
        has_left = moved is not None and moved.epoch == message.epoch
        is_coming = row is not None and row.is_passive and row.epoch == message.epoch
        if has_left or is_coming:
            return  # its site, or its site to be, will welcome the client, which then repeats this there
        if moved is not None and is_newer_epoch(moved.epoch, message.epoch):
            self._concentrator.send(client, Attached(moved.epoch, 0))
            return
        if row is None and len(self.table) >= self._parameters.clients_max:
            self.host.dropped(FULL)
            return
        is_new = row is None or is_newer_epoch(message.epoch, row.epoch)
        try:
            if row is None or is_new:
                self.modulators.check(message.modulations)
                row = self._admit(message)
            elif message.epoch == row.epoch and message.version > row.version:
                self._update(row, message)
        except ModulatorRefusedError as error:
            reason = str(error)[:TEXT_MAX]
            self._concentrator.send(client, Refused(message.epoch, message.version, error.channel, reason))
            return
        if message.epoch == row.epoch:
            row.heard_s = self.host.now()
        self._concentrator.send(client, Attached(row.epoch, row.version))

    def _admit(self, message: Attach) -> ClientRow:
        row = self.open(message.client, message.epoch, 0)
        self.whereabouts.forget(message.client)
        self.registry.note_left(message.client)
        row.home = self.host.address
        row.start_from(message.cursors)
        self._update(row, message)
        return row

    def _update(self, row: ClientRow, message: Attach) -> None:
        self.modulators.install(row, message.wants, message.modulations, {})
        row.version = message.version
        row.produces, row.advertised = message.produces, message.advertised
        if row.produces:
            self._sources.host_producer(row.client, message.advertised)
        if not row.is_passive:
            self.registry.register(row)

    def _on_detach(self, source: int, message: Detach, hops: int) -> None:
        row = self.table.get(source)
        if row is not None and not is_newer_epoch(row.epoch, message.epoch):
            self.drop(source)
            self._sources.drop_producer(source)
            if message.is_final:
                self.registry.deregister(row)

    def _on_report(self, source: int, message: Report, hops: int) -> None:
        client = message.client
        row = self.table.get(client)
        if row is not None and row.epoch == message.epoch and not row.is_passive:
            row.heard_s = self.host.now()
            row.position, row.home_hops = message.position, hops
            self._concentrator.send(client, ReportAck(message.epoch, True))
            candidate = message.nearest if message.nearest != self.host.address else None
            self._channel.post(BrokerDiscovery(client, candidate, message.distance_hops, message.load, hops))
            return
        # A site elsewhere answers the client itself: only the site knows whether the client is still there.
        site = self.whereabouts.site_elsewhere(client, message.epoch)
        if site is not None and source == client:
            self._concentrator.send(site, message)
        elif row is None or row.epoch != message.epoch:
            self._concentrator.send(client, ReportAck(message.epoch, False))

    def _on_served(self, source: int, message: Served, hops: int) -> None:
        self._concentrator.send(source, WelcomeAck(message.epoch, message.generation))
        if self.whereabouts.site_elsewhere(message.client, message.epoch) is not None:
            self.whereabouts.note_served(message.client, ModulatorSite(message.epoch, message.generation, source))
        else:  # this broker crashed since then, and knows nothing of what the client told its home
            self._concentrator.send(message.client, ReportAck(message.epoch, False))

    def _sweep(self, _: int) -> None:
        """Drops clients that have long been silent, and reads how modulators behave."""
        self.host.set_timer(self._parameters.sweep_period_s, (ClientsTimer.SWEEP, 0))
        silent_s = self.host.now() - self._parameters.store_lifetime_s
        self.registry.sweep(silent_s)
        for client, row in list(self.table.items()):
            if row.heard_s < silent_s:
                self.drop(client)
                self._sources.drop_producer(client)
                if not row.is_passive:
                    self.registry.deregister(row)
            elif row.taken:
                self._channel.post(
                    ModulatorMeasured(
                        client=client,
                        taken=tuple([(source, *taken) for source, taken in row.taken.items()]),
                        bytes_out=row.bytes_out,
                        events_out=row.events_out,
                        cpu_s=row.cpu_s,
                    )
                )
                row.taken.clear()
                row.bytes_out = row.events_out = 0
                row.cpu_s = 0.0
