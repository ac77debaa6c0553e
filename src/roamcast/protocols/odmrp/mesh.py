"""The mesh: what every node does for the brokers, whether it is one or not.

State: for each publishing broker the path back to it, learned from its newest Join Request; the members behind this
node, learned from Join Tables that named it as next hop; the members that wait to be forwarded or to be confirmed.

Rules (section 3.5; ODMRP draft 4, section 5):
1. A new Join Request is remembered with its sender as *upstream*, and repeated after a jitter.
2. A Join Table that names this node makes it part of the forwarding group for the channels of the members in it, until
   `forwarding_timeout_s` passes without another. Its members are forwarded to the upstream, together with what else
   arrives within `table_pause_s`. Members that were forwarded since the last request are not repeated.
3. A member is confirmed by overhearing the upstream forward it, or by a Join Ack where it does not: from the publisher
   itself, and from a relay that has forwarded it before. Otherwise it is sent again, `table_tries` times in all.
4. An event is repeated once if a member of one of its channels is behind this node and, with `forwarding_filter`, the
   middleware admits the event for it. With `shared_mesh` the members behind this node for *any* publisher count, so
   that the forwarding groups of all publishers form one mesh with redundant paths.
5. A broker may send an event again for members that answered late, and then lists them. A relay treats every sending
   as an event of its own. A request names events that were sent, and a member's table says which of them are here.
6. All of it is soft state: members that no table renews disappear, and with the last one the role of forwarder. Paths
   back to publishers that ask no more are forgotten. So is what an attacker claimed, within `forwarding_timeout_s`.

Paths back cannot run in circles: along a path life and sequence numbers never fall, and where they are equal the hops
do.

Contexts are long, so a member leaves its own out when it answers a publisher that knows it. Relays know it too if they
overheard it before, on its way to any publisher; where they do not, they forward without a filter.

The publisher decides on channels. It moves members between them and says so in its next request, from which every node
takes the new list. For a moment the old channel counts too, for events that left just before. A member that the newest
list does not name is a newcomer, on channel 0. The list travels only when it has changed, and now and then; a node that
has missed the newest one knows that by its number, and forwards for all members behind it.

The mesh does not read context; `middleware.py` says who does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from roamcast.errors import PeerError
from roamcast.fields import HOPS_MAX
from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import shortened
from roamcast.protocols.odmrp.grouping import NEWCOMERS
from roamcast.protocols.odmrp.messages import MEMBERS_MAX, Data, JoinAck, JoinRequest, JoinTable, MemberEntry
from roamcast.protocols.odmrp.middleware import Middleware
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import lasts_longer, link_expiration_s, own_motion, shorter
from roamcast.protocols.odmrp.routes import Downstream, Route
from roamcast.protocols.seen import SeenCache


class MeshTimer(StrEnum):
    REPEAT = "odmrp.repeat"  # key: running number; repeat a Join Request
    RELAY = "odmrp.relay"  # key: a sending of an event; repeat it
    TABLE = "odmrp.table"  # key: publisher; send the Join Table that has been collected
    CONFIRM = "odmrp.confirm"  # key: publisher; send members again that were not confirmed
    ACK = "odmrp.ack"  # key: publisher; confirm what was received
    SWEEP = "odmrp.sweep"  # key 0; forget state that has ended


_REPEAT: Final[str] = MeshTimer.REPEAT.value
_RELAY: Final[str] = MeshTimer.RELAY.value

SENDING_BITS: Final = 8

NO_UPSTREAM: Final = "no-upstream"  # a Join Table came for a publisher whose request was never heard
UNCONFIRMED: Final = "table-unconfirmed"  # no node confirmed a member


class _Overheard:
    """What is kept of a member's context, and of which version."""

    __slots__ = ("kept", "version")

    def __init__(self, version: int | None, kept: Any) -> None:
        self.version = version
        self.kept = kept


class Mesh(Component):
    def __init__(self, host: Host, parameters: OdmrpParameters, middleware: Middleware) -> None:
        super().__init__(host)
        self._middleware = middleware
        self._parameters = parameters
        self._predicts = parameters.mobility_prediction
        self._filters = parameters.forwarding_filter
        self._is_shared = parameters.shared_mesh
        self.routes: dict[int, Route] = {}  # by publisher
        self.downstream: dict[int, dict[int, Downstream]] = {}  # by publisher and member
        self._seen = SeenCache()  # events
        self._sendings = SeenCache()  # of events
        self._roles: dict[int, list[int]] = {}  # publisher -> channels that this node forwards, as the trace knows it
        self._repeats: dict[int, JoinRequest] = {}  # by running number
        self._repeats_so_far = 0
        self._relays: dict[int, Data] = {}
        self._acks: dict[int, dict[int, None]] = {}  # by publisher: members to confirm
        self._overheard: dict[int, _Overheard] = {}  # by member
        self._sweeps = False

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Data, self._on_data)
        inputs.on(JoinRequest, self._on_request)
        inputs.on(JoinTable, self._on_table)
        inputs.on(JoinAck, self._on_ack)
        inputs.on_timer(MeshTimer.REPEAT, self._repeat)
        inputs.on_timer(MeshTimer.RELAY, self._relay)
        inputs.on_timer(MeshTimer.TABLE, self._send_tables)
        inputs.on_timer(MeshTimer.CONFIRM, self._retry)
        inputs.on_timer(MeshTimer.ACK, self._send_ack)
        inputs.on_timer(MeshTimer.SWEEP, self._sweep)

    def see(self, event_id: int) -> bool:
        """Remembers an event; true if it is new."""
        return self._seen.add(event_id)

    # -- Join Requests -------------------------------------------------------------------------------------------

    def _on_request(self, sender: int, request: JoinRequest) -> None:
        """A request that a newer one overtook is still answered and repeated, but it changes no path."""
        publisher = request.publisher
        if publisher == self.host.address:
            return
        lifetime_s = self._lifetime_s(request)
        route = self.routes.get(publisher)
        number = request.life, request.sequence
        if route is None:
            route = self._new_route(publisher)
        if not route.see(number):
            if number == route.newest:
                self._consider(route, sender, request.hops, lifetime_s)
            return
        if number > route.newest:
            if route.renew(request, sender, lifetime_s, self.host.now()):
                self._tell_role(publisher)
            self._sweep_later()
        if request.hops < self._parameters.hops_max:
            self._repeat_later(request, lifetime_s)
        member = self._middleware.answer(request.context, route.versions.get(self.host.address))
        if member is not None:
            self._answer(publisher, route, member)

    def join_again(self) -> None:
        """The middleware wants other events than before: answers again what publishers asked for lately."""
        for publisher, route in self.routes.items():
            for context in route.contexts:
                member = self._middleware.answer(context, route.versions.get(self.host.address))
                if member is not None and route.confirmed.get(member.address) != member.version:
                    route.tries.pop(member.address, None)
                    self._answer(publisher, route, member)

    def _new_route(self, publisher: int) -> Route:
        if len(self.routes) >= self._parameters.publishers_max:
            self._forget(min(self.routes, key=lambda each: (self.routes[each].heard_s, each)))
        route = self.routes[publisher] = Route(self._parameters.contexts_max)
        return route

    def _repeat_later(self, request: JoinRequest, lifetime_s: float | None) -> None:
        self._repeats_so_far += 1
        self._repeats[self._repeats_so_far] = JoinRequest(
            publisher=request.publisher,
            life=request.life,
            sequence=request.sequence,
            hops=request.hops + 1,
            context=request.context,
            listing=request.listing,
            channels=request.channels,
            events=request.events,
            motion=own_motion(self.host) if self._predicts else None,
            lifetime_s=lifetime_s,
            signature=request.signature,
        )
        self.host.set_timer(self.host.random.random() * self._parameters.jitter_s, (_REPEAT, self._repeats_so_far))

    def _repeat(self, number: int) -> None:
        self.host.broadcast(self._repeats.pop(number))

    def _lifetime_s(self, request: JoinRequest) -> float | None:
        motion = own_motion(self.host) if self._predicts else None
        if motion is None or request.motion is None or self.host.site is None:
            return request.lifetime_s
        return shorter(request.lifetime_s, link_expiration_s(motion, request.motion, self.host.site.range_m))

    def _consider(self, route: Route, sender: int, hops: int, lifetime_s: float | None) -> None:
        """Under mobility prediction, takes a path that lasts longer and has no more hops, if nothing was sent yet."""
        better = hops <= route.hops and lasts_longer(lifetime_s, route.lifetime_s)
        if self._predicts and not route.tries and better:
            route.take(sender, hops, lifetime_s)

    # -- Join Tables ---------------------------------------------------------------------------------------------

    def _answer(self, publisher: int, route: Route, member: MemberEntry) -> None:
        """A member, this node or one behind it, is to be told to the publisher."""
        if not route.waiting:  # the first waits for company
            delay_s = shortened(self._parameters.table_pause_s, self._parameters.table_jitter, self.host.random)
            self.host.set_timer(delay_s, (MeshTimer.TABLE.value, publisher))
        route.waiting[member.address] = member

    def _on_table(self, sender: int, table: JoinTable) -> None:
        publisher, members = table.publisher, table.members
        route = self.routes.get(publisher)
        for member in members:
            if member.context is not None:
                self._learn(member, member.context)
        if route is not None and sender == route.upstream:
            self._confirm(publisher, route, {member.address: member.version for member in members})
        if table.next_hop != self.host.address:
            return
        if publisher == self.host.address:
            self._middleware.on_members(members, table.lifetime_s)
            self._acknowledge(publisher, [member.address for member in members])
        elif route is None:
            self.host.dropped(NO_UPSTREAM)
        else:
            self._carry(route, table)

    def _learn(self, member: MemberEntry, context: bytes) -> None:
        address = member.address
        known = self._overheard.get(address)
        if known is None or known.version != member.version:
            try:
                kept = self._middleware.read(context)
            except PeerError:
                return  # it is forwarded without a filter
            self._overheard.pop(address, None)
            self._overheard[address] = _Overheard(member.version, kept)
            if len(self._overheard) > self._parameters.summaries_max:
                del self._overheard[next(iter(self._overheard))]

    def _carry(self, route: Route, table: JoinTable) -> None:
        """This node is named as next hop: it forwards for the members of the table from now on."""
        publisher = table.publisher
        expires_s = self.host.now() + self._parameters.forwarding_timeout_s
        behind = self.downstream.setdefault(publisher, {})
        before = len(behind)
        carried: list[int] = []
        for member in table.members:
            address = member.address
            if address not in behind and len(behind) >= self._parameters.members_max:
                continue
            known = self._overheard.get(address)
            kept = known.kept if known is not None and known.version == member.version else None
            behind[address] = Downstream(expires_s, kept)
            sent, waiting = route.sent.get(address), route.waiting.get(address)
            if route.confirmed.get(address) == member.version or (sent is not None and sent.version == member.version):
                carried.append(address)
            elif waiting is None or waiting.version != member.version:
                route.tries.pop(address, None)
                self._answer(publisher, route, member)
        route.members_lifetime_s = shorter(route.members_lifetime_s, table.lifetime_s)
        self._acknowledge(publisher, carried)
        if len(behind) != before:
            self._tell_role(publisher)

    def _send_tables(self, publisher: int) -> None:
        route = self.routes.get(publisher)
        if route is None:
            return  # forgotten since
        members = [self._with_arrivals(route, member) for member in route.waiting.values()]
        route.waiting.clear()
        lifetime_s = shorter(route.lifetime_s, route.members_lifetime_s)
        room = room_bytes(self.host, JoinTable(publisher, route.upstream, (), lifetime_s))
        for batch in batches(members, encoded_bytes, room, MEMBERS_MAX):
            self.host.broadcast(JoinTable(publisher, route.upstream, tuple(batch), lifetime_s))
        for member in members:
            address = member.address
            route.sent[address] = member
            route.tries[address] = route.tries.get(address, 0) + 1
        self.host.set_timer(self._parameters.confirm_timeout_s, (MeshTimer.CONFIRM.value, publisher))

    def _with_arrivals(self, route: Route, member: MemberEntry) -> MemberEntry:
        """This node's own answer says at the last moment what has arrived; what others say is forwarded as it is."""
        if member.address != self.host.address:
            return member
        arrived = tuple([event_id for event_id in route.events if event_id in self._seen])
        if not arrived:
            return member
        return MemberEntry(member.address, member.version, member.context, arrived)

    def _retry(self, publisher: int) -> None:
        route = self.routes.get(publisher)
        if route is None:
            return  # forgotten since
        unconfirmed = list(route.sent.values())
        route.sent.clear()
        for member in unconfirmed:
            address = member.address
            if address in route.waiting:
                continue  # a newer version of it is about to leave
            if route.tries.get(address, 0) < self._parameters.table_tries:
                self._answer(publisher, route, member)
            else:
                route.tries.pop(address, None)
                self.host.dropped(UNCONFIRMED)

    def _on_ack(self, sender: int, ack: JoinAck) -> None:
        route = self.routes.get(ack.publisher)
        if route is not None and sender == route.upstream:
            self._confirm(ack.publisher, route, dict.fromkeys(ack.members))

    def _confirm(self, publisher: int, route: Route, members: Mapping[int, int | None]) -> None:
        """The upstream has these members, of these versions; None: whichever it was sent last."""
        for address, version in members.items():
            sent, waiting = route.sent.get(address), route.waiting.get(address)
            if sent is not None and version in (None, sent.version):
                del route.sent[address]
                route.confirmed[address] = sent.version
            elif waiting is not None and address in route.tries and version in (None, waiting.version):
                del route.waiting[address]  # it was about to be sent once more
                route.confirmed[address] = waiting.version
        if not route.sent:
            self.host.cancel_timer((MeshTimer.CONFIRM.value, publisher))
        if not route.waiting:
            self.host.cancel_timer((MeshTimer.TABLE.value, publisher))

    def _acknowledge(self, publisher: int, members: list[int]) -> None:
        if members:
            if publisher not in self._acks:
                delay_s = self.host.random.random() * self._parameters.table_pause_s
                self.host.set_timer(delay_s, (MeshTimer.ACK.value, publisher))
            self._acks.setdefault(publisher, {}).update(dict.fromkeys(members))

    def _send_ack(self, publisher: int) -> None:
        self.host.broadcast(JoinAck(publisher, tuple(self._acks.pop(publisher))))

    # -- Events --------------------------------------------------------------------------------------------------

    def _on_data(self, sender: int, data: Data) -> None:
        key = data.event.id << SENDING_BITS | data.sending
        if not self._sendings.add(key):
            return
        if data.hops < HOPS_MAX and self._forwards(data):
            self._relays[key] = Data(
                publisher=data.publisher,
                channels=data.channels,
                hops=data.hops + 1,
                event=data.event,
                sending=data.sending,
                members=data.members,
            )
            self.host.set_timer(self.host.random.random() * self._parameters.jitter_s, (_RELAY, key))
        if self._seen.add(data.event.id):  # not here before, in another sending
            self._middleware.on_data(data)

    def _relay(self, key: int) -> None:
        self.host.broadcast(self._relays.pop(key))

    def _forwards(self, data: Data) -> bool:
        if self._forwards_for(data.publisher, data, is_own=True):
            return True
        if not self._is_shared or data.members:
            return False
        return any(
            self._forwards_for(publisher, data, is_own=False)
            for publisher in self.downstream
            if publisher != data.publisher
        )

    def _forwards_for(self, publisher: int, data: Data, *, is_own: bool) -> bool:
        """Whether a member that answered `publisher` is behind this node and may want the event. Channels are those of
        the event's own publisher."""
        route = self.routes.get(data.publisher)
        behind = self.downstream.get(publisher)
        if behind is None or (is_own and route is None):
            return False
        now_s = self.host.now()
        by_channel = is_own and route is not None and route.knows_channels
        just_moved = route is not None and now_s < route.moved_s + self._parameters.channel_overlap_s
        for address, member in behind.items():
            if data.members:
                is_meant = address in data.members
            elif by_channel and route is not None:
                is_meant = route.channels.get(address, NEWCOMERS) in data.channels or (
                    just_moved and route.channels_before.get(address, NEWCOMERS) in data.channels
                )
            else:
                is_meant = is_own or member.kept is not None
            if is_meant and member.expires_s > now_s:
                if not self._filters or member.kept is None:
                    return True
                if self._middleware.admits(member.kept, data):
                    return True
        return False

    # -- Soft state ----------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if not self._sweeps:
            self._sweeps = True
            delay_s = self._parameters.forwarding_timeout_s / self._parameters.sweeps_per_timeout
            self.host.set_timer(delay_s, (MeshTimer.SWEEP.value, 0))

    def _sweep(self, key: int) -> None:
        self._sweeps = False
        now_s = self.host.now()
        for publisher, behind in list(self.downstream.items()):
            kept = {address: member for address, member in behind.items() if member.expires_s > now_s}
            if kept:
                self.downstream[publisher] = kept
            else:
                del self.downstream[publisher]
            if len(kept) != len(behind):
                self._tell_role(publisher)
        timeout_s = self._parameters.forwarding_timeout_s
        for publisher, route in list(self.routes.items()):
            if route.heard_s + timeout_s <= now_s:
                self._forget(publisher)
        if self.routes:
            self._sweep_later()

    def _forget(self, publisher: int) -> None:
        self.downstream.pop(publisher, None)
        self._tell_role(publisher)
        self._roles.pop(publisher, None)
        del self.routes[publisher]

    def _tell_role(self, publisher: int) -> None:
        """Notes in the trace for which channels of a publisher this node forwards. Called when other members are behind
        this node, or when they have other channels."""
        route = self.routes.get(publisher)
        if route is None:
            return
        behind = self.downstream.get(publisher, {})
        channels = sorted({route.channels.get(address, NEWCOMERS) for address in behind})
        if channels != self._roles.get(publisher, []):
            self._roles[publisher] = channels
            detail = ",".join(map(str, channels))
            self.host.structure("forwarding", peer=publisher, value=float(bool(channels)), detail=detail)
