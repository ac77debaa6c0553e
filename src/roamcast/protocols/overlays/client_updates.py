"""What the producers' home brokers are told about the clients of this broker.

A producer's home broker (a *source*) announces itself, and gets all clients that may want its events. From then on it
is told of every change: a client that is new, wants something else, arrived by a relocation, or is gone. Each update is
repeated until it is acknowledged, and again later if a partition swallowed all repetitions. Updates about one client
are ordered by epoch, generation and version (`messages.py`), so it does not matter which arrives last.
"""

from msgspec.structs import replace

from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import Announce, Register, RegisterAck, Registration, Registrations
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import following
from roamcast.protocols.overlays.wants import Wants


class ClientUpdates(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        brokers: BrokerManager,
        table: dict[int, ClientRow],
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.sources: dict[int, Interest | None] = {}  # producers' home brokers -> what they offer
        self._leaving: dict[int, tuple[Registration, float]] = {}  # handed over and not yet confirmed; since when, s
        self._concentrator = concentrator
        self._brokers = brokers
        self._table = table
        self._parameters = parameters

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(Announce, self._on_announce)
        self._concentrator.on(RegisterAck, self._on_register_ack)

    def register(self, row: ClientRow, known_to: tuple[int, ...] = ()) -> None:
        """Tells all sources, except those that know, what the client wants and where it is."""
        row.registered = row.version
        row.confirmed = dict.fromkeys(known_to)
        for source, offer in self.sources.items():
            if source not in known_to and (not row.wants or row.wants.may_match(offer)):
                self._ask(row, source)

    def register_at(self, row: ClientRow, source: int) -> None:
        """Tells one source."""
        if row.wants and not row.is_passive and not self._concentrator.is_asking(("register", row.client, source)):
            self._ask(row, source)

    def deregister(self, row: ClientRow) -> None:
        """The client wants nothing any more, unless it has said otherwise elsewhere, in a later epoch."""
        row.wants = Wants(())
        row.generation = following(row.generation)
        self.register(row)

    def withdraw(self, client: int) -> None:
        """The client is not here any more: nothing that was said about it is repeated."""
        for source in self.sources:
            self._concentrator.answered(("register", client, source))

    def learn(self, source: int) -> None:
        """A source that has not announced itself to this life of this broker sent an event."""
        if source not in self.sources and source in self._brokers.topology.rows:
            self.sources[source] = None
            for row in self._table.values():
                self.register_at(row, source)

    def note_leaving(self, row: ClientRow, generation: int, site: int) -> None:
        """Until the destination confirms that it has the client, this broker answers for what it wants."""
        if row.wants:
            registration = replace(self._registration(row), generation=generation, site=site)
            self._leaving[row.client] = (registration, self.host.now())

    def note_left(self, client: int) -> None:
        self._leaving.pop(client, None)

    def sweep(self, silent_s: float) -> None:
        """Forgets who left before `silent_s` without a confirmation, and tells sources what has not reached them."""
        for client in [client for client, (_, since_s) in self._leaving.items() if since_s < silent_s]:
            del self._leaving[client]
        reachable = self._brokers.topology.rows
        for row in self._table.values():
            for source, offer in self.sources.items():
                if source not in row.confirmed and source in reachable and row.wants.may_match(offer):
                    self.register_at(row, source)

    def _ask(self, row: ClientRow, source: int) -> None:
        tries = self._parameters.request_tries
        self._concentrator.ask(("register", row.client, source), source, Register(self._registration(row)), tries)

    def _registration(self, row: ClientRow) -> Registration:
        return Registration(
            client=row.client,
            epoch=row.epoch,
            generation=row.generation,
            version=row.version,
            site=self.host.address,
            wants=row.wants.rows,
            cursors=tuple(row.processed.items()),
        )

    def _on_register_ack(self, source: int, message: RegisterAck, hops: int) -> None:
        row = self._table.get(message.client)
        if row is not None:
            if (message.epoch, message.generation, message.version) != (row.epoch, row.generation, row.version):
                return
            row.confirmed[source] = None
        self._concentrator.answered(("register", message.client, source))

    def _on_announce(self, source: int, message: Announce, hops: int) -> None:
        rows: list[Registration] = []
        if message.active and (source in self.sources or len(self.sources) < self._parameters.brokers_max):
            self.sources[source] = message.advertised
            for row in self._table.values():
                if not row.is_passive and row.wants and row.wants.may_match(message.advertised):
                    rows.append(self._registration(row))
                    row.confirmed[source] = None  # the source asks until it has the answer
            rows.extend(registration for registration, _ in self._leaving.values())
        else:
            self.sources.pop(source, None)
        self._concentrator.send(source, Registrations(message.number, tuple(rows)))
