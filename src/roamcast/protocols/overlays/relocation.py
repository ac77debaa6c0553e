"""Modulator relocation: moving a client's modulator to another broker; nothing lost, repeated, reordered [2.4, 3.4].

The steps of the paper, between the source broker (where the modulator is), the destination broker and the producers'
home brokers:

1. source -> destination: `HandoffRequest`
2. destination: opens a passive row for the client, in which events wait; -> source: `HandoffAck`
3. source -> producers' home brokers: `Detour`
4. each switches in one step; -> source and destination: `DetourAck`, with the last events it had sent to the source
5. source: processes events until all have acknowledged and it has got all those last events
6. destination: buffers what comes over the new paths
7. source -> destination: `HandoffState`, the modulator with its state and the point it has reached; forgets the client
8. destination: goes on from that point with the buffered events; -> source: `HandoffDone`; -> client: `Welcome`

The paper calls both the first and the seventh message HANDOFF. Steps 1, 3, 7 and 8 are repeated until answered, and
each side may be told twice. Events that reach the source after step 7 are sent after the client.

Three forms [3.4]: a *horizontal* relocation makes the destination the client's home broker too; an *upstream* one
moves only the modulator, towards the producers, and a *downstream* one moves it back to the home broker. While the
modulator is elsewhere, the home broker passes the deliveries on and forwards what the client says.

What fails: if the destination refuses or does not answer step 1, nothing has happened. If a producer's home broker does
not answer step 3 in time, the relocation goes on without it, and the destination registers there itself. If the
destination vanishes after that, the client notices that its home is silent, attaches elsewhere in a new epoch, and all
start over from what the client has got.

Lighter variants: `fresh-modulator` does not carry the modulator's state; `unbuffered` skips steps 5 and 6, so that
events in transit may be lost (never repeated, never reordered); `loose` does both.
"""

from enum import StrEnum
from typing import Final, Literal

from msgspec.structs import replace

from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.client_row import ClientRow
from roamcast.protocols.overlays.clients import ClientManager
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.deliveries import Deliveries
from roamcast.protocols.overlays.intake import Intake
from roamcast.protocols.overlays.messages import (
    ClientDelivery,
    Detour,
    DetourAck,
    HandoffAck,
    HandoffDone,
    HandoffRequest,
    HandoffState,
    Modulations,
    Served,
    Welcome,
    WelcomeAck,
)
from roamcast.protocols.overlays.modulator_manager import ModulatorRefusedError
from roamcast.protocols.overlays.modulator_sites import ModulatorSite
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import following, is_newer
from roamcast.protocols.overlays.sources import SourceManager

STATE_ROOM_BYTES: Final = 32_768  # of a message, for what is neither modulator, state nor payload

Form = Literal["horizontal", "upstream", "downstream"]


class RelocationTimer(StrEnum):
    DEADLINE = "relocation.deadline"  # a relocation has taken too long; key: the client


class _Handoff:
    """A relocation as its source broker sees it."""

    def __init__(self, row: ClientRow, destination: int, home: int) -> None:
        self.row = row
        self.destination = destination
        self.home = home  # of the client, afterwards
        self.generation = following(row.generation)
        self.is_accepted = False
        self.waiting: dict[int, None] = {}  # producers' home brokers that have not switched
        self.switched: list[int] = []
        self.last: dict[int, int] = {}  # publisher -> the last event that comes here


class Relocation(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        clients: ClientManager,
        deliveries: Deliveries,
        sources: SourceManager,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self._concentrator = concentrator
        self._clients = clients
        self._deliveries = deliveries
        self._sources = sources
        self._parameters = parameters
        self._buffers = parameters.relocation in ("strict", "fresh-modulator")
        self._keeps_state = parameters.relocation in ("strict", "unbuffered")
        self._handoffs: dict[int, _Handoff] = {}  # by client
        deliveries.on_progress = self._check

    def declare(self, inputs: Inputs) -> None:
        self._concentrator.on(HandoffRequest, self._on_request)
        self._concentrator.on(HandoffAck, self._on_acknowledged)
        self._concentrator.on(DetourAck, self._on_switched)
        self._concentrator.on(HandoffState, self._on_state)
        self._concentrator.on(HandoffDone, self._on_done)
        self._concentrator.on(WelcomeAck, self._on_welcome_ack)
        inputs.on_timer(RelocationTimer.DEADLINE, self._on_deadline)

    def is_relocating(self, client: int) -> bool:
        return client in self._handoffs

    def migrate(self, client: int, destination: int, form: Form = "horizontal") -> bool:
        """Begins to move a client's modulator; false if that is impossible now."""
        row = self._clients.table.get(client)
        if row is None or row.is_passive or client in self._handoffs or destination == self.host.address:
            return False
        if not self._fits(row, with_deliveries=False):
            return False
        if form == "downstream" and destination != row.home:
            return False
        handoff = _Handoff(row, destination, destination if form == "horizontal" else row.home)
        self._handoffs[client] = handoff
        request = HandoffRequest(client, row.epoch, handoff.generation, self._clients.modulators.modulations(row))
        tries = self._parameters.handoff_tries
        self._concentrator.ask(("handoff", client), destination, request, tries, lambda: self._abandon(client))
        return True

    # -- At the source broker --------------------------------------------------------------------------------------

    def _abandon(self, client: int) -> None:
        self._handoffs.pop(client, None)

    def _current(self, client: int, epoch: int, generation: int) -> _Handoff | None:
        handoff = self._handoffs.get(client)
        if handoff is None or (handoff.row.epoch, handoff.generation) != (epoch, generation):
            return None
        if not handoff.row.is_current:  # the client has attached again meanwhile
            self._abandon(client)
            return None
        return handoff

    def _on_acknowledged(self, source: int, message: HandoffAck, hops: int) -> None:
        handoff = self._current(message.client, message.epoch, message.generation)
        if handoff is None or source != handoff.destination or handoff.is_accepted:
            return
        self._concentrator.answered(("handoff", message.client))
        if not message.accepted:
            self._abandon(message.client)
            return
        handoff.is_accepted = True
        row = handoff.row
        for broker, offer in self._clients.registry.sources.items():
            if row.wants.may_match(offer):
                handoff.waiting[broker] = None
        detour = Detour(row.client, row.epoch, handoff.generation, handoff.destination)
        for broker in handoff.waiting:
            self._concentrator.answered(("register", row.client, broker))  # an older update must not arrive later
            self._concentrator.ask(("detour", row.client, broker), broker, detour, self._parameters.detour_tries)
        if self._buffers:
            self.host.set_timer(self._parameters.handoff_timeout_s, (RelocationTimer.DEADLINE, row.client))
            self._check(row)
        else:
            handoff.switched = list(handoff.waiting)
            self._hand_over(handoff)

    def _on_switched(self, source: int, message: DetourAck, hops: int) -> None:
        self._concentrator.answered(("detour", message.client, source))
        handoff = self._current(message.client, message.epoch, message.generation)
        if handoff is None or source not in handoff.waiting:
            return
        del handoff.waiting[source]
        if message.known:
            handoff.switched.append(source)
        for publisher, number in message.last:
            handoff.last[publisher] = max(number, handoff.last.get(publisher, 0))
        self._check(handoff.row)

    def _check(self, row: ClientRow) -> None:
        """Whether the source has done its part (step 5)."""
        handoff = self._handoffs.get(row.client)
        if handoff is None or handoff.row is not row or not handoff.is_accepted or handoff.waiting or not row.is_idle:
            return
        has_all = all(row.processed.get(publisher, 0) >= number for publisher, number in handoff.last.items())
        if has_all and self._fits(row):
            self._hand_over(handoff)

    def travel_bytes(self, row: ClientRow) -> int:
        """What a client's modulators and their states take on the way."""
        modulators = self._clients.modulators
        size = sum(modulation.size_bytes for _, modulation in modulators.modulations(row))
        return size + (sum(len(state) for _, state in modulators.states(row)) if self._keeps_state else 0)

    def _fits(self, row: ClientRow, with_deliveries: bool = True) -> bool:
        """Whether a client's modulators, with their states and what is not acknowledged, fit a message."""
        size = self.travel_bytes(row)
        if with_deliveries:
            size += sum(len(sent.delivery.event.payload) for sent in row.deliveries.values())
        return size <= self.host.message_bytes_max - STATE_ROOM_BYTES

    def _on_deadline(self, client: int) -> None:
        handoff = self._handoffs.get(client)
        if handoff is None:
            return
        if not handoff.row.is_current:
            self._abandon(client)
        elif handoff.row.is_idle and self._fits(handoff.row):
            self._hand_over(handoff)
        else:
            handoff.waiting.clear()
            handoff.last.clear()

    def _hand_over(self, handoff: _Handoff) -> None:
        row = handoff.row
        client = row.client
        message = self._state(handoff)
        self._abandon(client)
        self.host.cancel_timer((RelocationTimer.DEADLINE, client))
        self._clients.drop(client)
        place = ModulatorSite(row.epoch, handoff.generation, handoff.destination)
        whereabouts = self._clients.whereabouts
        whereabouts.note_moved(client, place)
        self._clients.registry.note_leaving(row, handoff.generation, handoff.destination)
        if handoff.home == self.host.address:
            whereabouts.note_served(client, place)
        else:
            whereabouts.served.pop(client, None)
            self._sources.drop_producer(client)
        self._concentrator.ask(("state", client), handoff.destination, message, self._parameters.state_tries)
        for arrival in row.intake:  # came, but was not its turn: the destination will know what to do with it
            source = row.origins.get(arrival.event.publisher, NOBODY)
            if self._buffers and source != NOBODY:
                self._deliveries.send_after(client, row.epoch, arrival, source)

    def _state(self, handoff: _Handoff) -> HandoffState:
        row = handoff.row
        changes_home = handoff.home != self.host.address
        return HandoffState(
            client=row.client,
            epoch=row.epoch,
            generation=handoff.generation,
            version=row.version,
            registered=row.registered,
            home=handoff.home,
            wants=row.wants.rows,
            modulations=self._clients.modulators.modulations(row),
            states=self._clients.modulators.states(row) if self._keeps_state else (),
            produces=row.produces,
            advertised=row.advertised,
            cursors=tuple(row.processed.items()),
            settled=tuple(row.settled.items()),
            unsettled=tuple(
                (event.publisher, event.number, event.sequence or 0, event.kept_by) for event in row.unsettled
            ),
            unreported=tuple(row.unreported.items()),
            sequence=row.sequence,
            deliveries=tuple(sent.delivery for sent in row.deliveries.values()),
            origins=tuple(row.origins.items()),
            sources=tuple(handoff.switched),
            consumers=self._sources.consumers_of(row.client) if changes_home else (),
            held_s=self._sources.held_s(row.client),
        )

    def _on_done(self, source: int, message: HandoffDone, hops: int) -> None:
        moved = self._clients.whereabouts.moved.get(message.client)
        if moved is not None and moved[:2] == (message.epoch, message.generation):
            self._concentrator.answered(("state", message.client))
            self._clients.registry.note_left(message.client)

    # -- At the destination broker ---------------------------------------------------------------------------------

    def _on_request(self, source: int, message: HandoffRequest, hops: int) -> None:
        client = message.client
        row = self._clients.table.get(client)
        rank = (message.epoch, message.generation)
        has_room = row is not None or len(self._clients.table) < self._parameters.clients_max
        is_news = row is None or is_newer(rank, (row.epoch, row.generation))
        accepted = has_room and is_news and self._can_run(message.modulations)
        if accepted:
            row = self._open(client, message.epoch, message.generation)
            row.is_passive = True
            row.home = self.host.address
        elif row is not None and row.is_passive and (row.epoch, row.generation) == rank:
            accepted = True
        self._concentrator.send(source, HandoffAck(client, *rank, accepted))

    def _on_state(self, source: int, message: HandoffState, hops: int) -> None:
        client = message.client
        rank = (message.epoch, message.generation)
        row = self._clients.table.get(client)
        moved = self._clients.whereabouts.moved.get(client)
        is_news = moved is None or is_newer(rank, moved[:2])
        if is_news and row is not None:
            known = (row.epoch, row.generation)
            is_news = is_newer(rank, known) or (row.is_passive and known == rank)
        elif is_news:
            is_news = len(self._clients.table) < self._parameters.clients_max
        if is_news and self._can_run(message.modulations):
            if row is None or (row.epoch, row.generation) != rank:
                row = self._open(client, message.epoch, message.generation)
            self._take_over(row, message)
        self._concentrator.send(source, HandoffDone(client, *rank))

    def _open(self, client: int, epoch: int, generation: int) -> ClientRow:
        row = self._clients.open(client, epoch, generation)
        row.intake = Intake(self._parameters.intake_max, passes_over=not self._buffers)
        return row

    def _take_over(self, row: ClientRow, message: HandoffState) -> None:
        clients = self._clients
        row.is_passive = False
        row.heard_s = self.host.now()
        row.version, row.registered, row.home = message.version, message.registered, message.home
        clients.modulators.install(row, message.wants, message.modulations, dict(message.states))
        row.produces, row.advertised = message.produces, message.advertised
        row.start_from(message.cursors)
        row.settled = dict(message.settled)
        row.resume_unsettled(message.unsettled)
        row.unreported = dict(message.unreported)
        row.origins = {**dict(message.origins), **row.origins}
        row.sequence = message.sequence
        row.acknowledged = message.sequence - len(message.deliveries)
        for delivery in message.deliveries:
            self._deliveries.send(row, _from_here(delivery, self.host.address))
        clients.whereabouts.forget(row.client)
        clients.registry.note_left(row.client)
        if row.home == self.host.address:
            if row.produces:
                self._sources.host_producer(row.client, row.advertised, message.held_s)
                self._sources.adopt(message.consumers)
            welcome = Welcome(row.epoch, row.generation)
            self._concentrator.ask(("welcome", row.client), row.client, welcome, self._parameters.request_tries)
        else:
            served = Served(row.client, row.epoch, row.generation)
            self._concentrator.ask(("welcome", row.client), row.home, served, self._parameters.request_tries)
        clients.registry.register(row, known_to=message.sources if row.registered == row.version else ())
        self._deliveries.drain(row)

    def _can_run(self, modulations: Modulations) -> bool:
        try:
            self._clients.modulators.check(modulations)
        except ModulatorRefusedError:
            return False
        return True

    def _on_welcome_ack(self, source: int, message: WelcomeAck, hops: int) -> None:
        for client, row in self._clients.table.items():
            if source in (client, row.home) and (row.epoch, row.generation) == (message.epoch, message.generation):
                self._concentrator.answered(("welcome", client))


def _from_here(delivery: ClientDelivery, site: int) -> ClientDelivery:
    return replace(delivery, site=site)
