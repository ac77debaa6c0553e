"""The mesh: what every node does for the brokers, whether it is one or not.

State: for each publishing broker the way back to it, learned from its newest Join Request; the members behind this
node, learned from Join Tables that named it as next hop; the members that wait to be passed on or to be confirmed.

Rules (section 3.5; ODMRP draft 4, section 5):
1. A new Join Request is remembered with its sender as *upstream*, and repeated after a jitter.
2. A Join Table that names this node makes it part of the forwarding group for the channels of the members in it, until
   `forwarding_timeout_s` passes without another; and its members are passed on to the upstream, together with whatever
   else arrives within `table_pause_s`. Members that were passed on since the last request are not repeated.
3. A member is confirmed by overhearing the upstream pass it on, or by a Join Ack where it does not: the publisher
   itself, and a relay that has passed it on before. Otherwise it is sent again, `table_tries` times in all.
4. An event is repeated once, if this node forwards for one of its channels: if a member of such a channel is behind
   it whose summary the event matches (with `forwarding_filter`), or any member at all.
5. A broker may send an event again for members that answered late, and then lists them. A relay treats every sending
   as an event of its own. A request names events that are under way, and a member's table says which of them are here,
   as of when it leaves.
6. All of it is soft state: members that no table renews disappear, and with the last one the role of forwarder; ways
   back to publishers that ask no more are forgotten.

Ways back cannot run in circles: along a way the sequence numbers never fall, and where they are equal the hops do.

Summaries are long, so a member leaves its own out when it answers a publisher that knows it. Relays know it too if they
overheard it before, on its way to any publisher; where they do not, they forward without a filter.

Channels are the publisher's business. It moves members between them and says so in its next request, from which every
node takes the news, so that an event on the new channel finds its way at once. For a moment the old channel counts too,
for events that left just before. A member that the newest request does not list is a newcomer, on channel 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from roamcast.protocols.api import Host, Timer
from roamcast.protocols.odmrp.grouping import NEWCOMERS
from roamcast.protocols.odmrp.messages import Data, JoinAck, JoinRequest, JoinTable, Member
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import lasts_longer, link_expiration_s, own_motion, shorter
from roamcast.protocols.odmrp.sizes import in_frames
from roamcast.protocols.odmrp.summaries import Entry, Family
from roamcast.protocols.seen import SeenCache

REPEAT: Final = "mesh.repeat"  # key: running number; pass a Join Request on
RELAY: Final = "mesh.relay"  # key: a sending of an event; pass it on
TABLE: Final = "mesh.table"  # key: publisher; send the Join Table that has collected
CONFIRM: Final = "mesh.confirm"  # key: publisher; look which members were not confirmed
ACK: Final = "mesh.ack"  # key: publisher; confirm what was received
SWEEP: Final = "mesh.sweep"  # key 0; forget what is past

ADDRESS_BITS: Final = 32
SENDING_BITS: Final = 8
SUMMARIES_MAX: Final = 4096  # that a node remembers; the oldest goes first
SWEEPS_PER_TIMEOUT: Final = 5  # how closely the trace follows when a node stops forwarding

NO_UPSTREAM: Final = "no-upstream"  # a Join Table came for a publisher whose request was never heard
UNCONFIRMED: Final = "table-unconfirmed"  # nobody confirmed a member


class Route:
    """The way back to a publishing broker, and the members that go there."""

    def __init__(self) -> None:
        self.waiting: dict[int, Member] = {}  # to be sent
        self.sent: dict[int, Member] = {}  # sent and not confirmed
        self.tries: dict[int, int] = {}
        self.confirmed: set[int] = set()
        self.sequence = -1
        self.events: tuple[int, ...] = ()  # that the newest request named
        self.listed: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()  # by the newest request
        self.channels: dict[int, int] = {}  # of members: the same by address
        self.channels_before: dict[int, int] = {}
        self.moved_s = -inf

    def renew(self, request: JoinRequest, upstream: int, lifetime_s: float | None, now_s: float) -> bool:
        """A newer request came; true if members have other channels now. What is under way goes on."""
        self.heard_s = now_s
        self.sequence = request.sequence
        self.events = request.events
        has_moved = False
        if request.channels != self.listed:
            self.listed = request.channels
            channels = {address: channel for channel, members in request.channels for address, _ in members}
            has_moved = channels != self.channels
            if has_moved:
                self.channels, self.channels_before, self.moved_s = channels, self.channels, now_s
        self.take(upstream, request.hops, lifetime_s)
        self.members_lifetime_s: float | None = None
        self.confirmed.clear()
        self.tries = {address: tries for address, tries in self.tries.items() if address in self.sent}
        return has_moved

    def take(self, upstream: int, hops: int, lifetime_s: float | None) -> None:
        self.upstream, self.hops, self.lifetime_s = upstream, hops, lifetime_s


class Overheard:
    """What a member said of itself in a Join Table, and its summary unpacked."""

    def __init__(self, member: Member, family: Family) -> None:
        self.member = member
        self.entries = tuple([family.unpacked(each) for each in member.entries or ()])


class Downstream:
    """A member behind this node."""

    __slots__ = ("entries", "expires_s")

    def __init__(self, expires_s: float, entries: tuple[Entry, ...] | None) -> None:
        self.expires_s = expires_s
        self.entries = entries  # its summary; None: this node never heard it


class Mesh:
    def __init__(
        self,
        host: Host,
        parameters: OdmrpParameters,
        on_members: Callable[[tuple[Member, ...], float | None], None],
    ) -> None:
        """`on_members` takes the members that arrive at this node as their publisher, with their routes' lifetime."""
        self.host = host
        self.parameters = parameters
        self._predicts = parameters.mobility_prediction
        self.routes: dict[int, Route] = {}  # by publisher
        self.downstream: dict[int, dict[int, Downstream]] = {}  # by publisher and member
        self._on_members = on_members
        self._family = parameters.encoder().family
        self._seen = SeenCache()  # events
        self._sendings = SeenCache()  # of events
        self._roles: dict[int, list[int]] = {}  # publisher -> channels that this node forwards, as the trace knows it
        self._requests = SeenCache()
        self._repeats: dict[int, JoinRequest] = {}  # by running number
        self._repeats_so_far = 0
        self._relays: dict[int, Data] = {}
        self._acks: dict[int, dict[int, None]] = {}  # by publisher: members to confirm
        self._overheard: dict[int, Overheard] = {}  # by member
        self._sweeps = False

    def on_timer(self, timer: Timer) -> bool:
        """True if the timer was the mesh's."""
        name, key = timer
        if name == REPEAT:
            self.host.broadcast(self._repeats.pop(key))
        elif name == RELAY:
            self.host.broadcast(self._relays.pop(key))
        elif name == TABLE:
            self._send_tables(key, self.routes[key])
        elif name == CONFIRM:
            self._retry(key, self.routes[key])
        elif name == ACK:
            self.host.broadcast(JoinAck(key, tuple(self._acks.pop(key))))
        elif name == SWEEP:
            self._sweep()
        else:
            return False
        return True

    # -- Join Requests -------------------------------------------------------------------------------------------

    def on_request(self, sender: int, request: JoinRequest) -> bool:
        """True if the request is new. One that a newer one overtook still asks what it asks, but leads nowhere."""
        publisher = request.publisher
        if publisher == self.host.address:
            return False
        lifetime_s = self._lifetime_s(request)
        route = self.routes.get(publisher)
        if not self._requests.add(request.sequence << ADDRESS_BITS | publisher):
            if route is not None and request.sequence == route.sequence:
                self._consider(route, sender, request.hops, lifetime_s)
            return False
        if route is None or request.sequence > route.sequence:
            route = self.routes.setdefault(publisher, Route())
            if route.renew(request, sender, lifetime_s, self.host.now()):
                self._tell_role(publisher)
            self._sweep_later()
        if request.hops < self.parameters.hops_max:
            self._repeat(request, lifetime_s)
        return True

    def _repeat(self, request: JoinRequest, lifetime_s: float | None) -> None:
        self._repeats_so_far += 1
        self._repeats[self._repeats_so_far] = JoinRequest(
            request.publisher,
            request.sequence,
            request.hops + 1,
            request.questions,
            request.channels,
            request.events,
            own_motion(self.host) if self._predicts else None,
            lifetime_s,
        )
        self.host.set_timer(self.host.random.random() * self.parameters.jitter_s, (REPEAT, self._repeats_so_far))

    def _lifetime_s(self, request: JoinRequest) -> float | None:
        motion = own_motion(self.host) if self._predicts else None
        if motion is None or request.motion is None or self.host.site is None:
            return request.lifetime_s
        return shorter(request.lifetime_s, link_expiration_s(motion, request.motion, self.host.site.range_m))

    def _consider(self, route: Route, sender: int, hops: int, lifetime_s: float | None) -> None:
        """Under mobility prediction, takes a way that lasts longer and has no more hops, while nothing was sent yet."""
        better = hops <= route.hops and lasts_longer(lifetime_s, route.lifetime_s)
        if self._predicts and not route.tries and better:
            route.take(sender, hops, lifetime_s)

    # -- Join Tables ---------------------------------------------------------------------------------------------

    def answer(self, publisher: int, member: Member) -> None:
        """A member, this node or one behind it, on its way to the publisher."""
        route = self.routes[publisher]
        if not route.waiting:  # the first waits for company
            delay_s = (0.5 + self.host.random.random() / 2) * self.parameters.table_pause_s
            self.host.set_timer(delay_s, (TABLE, publisher))
        route.waiting[member.address] = member

    def on_table(self, sender: int, table: JoinTable) -> None:
        publisher, members = table.publisher, table.members
        route = self.routes.get(publisher)
        for member in members:
            if member.entries is not None:
                self._learn(member)
        if route is not None and sender == route.upstream:
            self._confirm(publisher, route, [member.address for member in members])
        if table.next_hop != self.host.address:
            return
        if publisher == self.host.address:
            self._on_members(members, table.lifetime_s)
            self._acknowledge(publisher, [member.address for member in members])
        elif route is None:
            self.host.dropped(NO_UPSTREAM)
        else:
            self._pass_on(route, table)

    def _learn(self, member: Member) -> None:
        address = member.address
        known = self._overheard.get(address)
        if known is None or (known.member is not member and known.member.version != member.version):
            overheard = Overheard(member, self._family)
            self._overheard.pop(address, None)
            self._overheard[address] = overheard
            if len(self._overheard) > SUMMARIES_MAX:
                del self._overheard[next(iter(self._overheard))]

    def _pass_on(self, route: Route, table: JoinTable) -> None:
        publisher = table.publisher
        expires_s = self.host.now() + self.parameters.forwarding_timeout_s
        behind = self.downstream.setdefault(publisher, {})
        before = len(behind)
        passed_on: list[int] = []
        for member in table.members:
            address = member.address
            known = self._overheard.get(address)
            if known is not None and known.member.version != member.version:
                known = None
            behind[address] = Downstream(expires_s, None if known is None else known.entries)
            if address in route.sent or address in route.confirmed:
                passed_on.append(address)
            elif address not in route.waiting:
                self.answer(publisher, member)
        route.members_lifetime_s = shorter(route.members_lifetime_s, table.lifetime_s)
        self._acknowledge(publisher, passed_on)
        if len(behind) != before:
            self._tell_role(publisher)

    def _send_tables(self, publisher: int, route: Route) -> None:
        members = [self._with_arrivals(publisher, member) for member in route.waiting.values()]
        route.waiting.clear()
        lifetime_s = shorter(route.lifetime_s, route.members_lifetime_s)
        for part in in_frames(members):
            self.host.broadcast(JoinTable(publisher, route.upstream, part, lifetime_s))
        for member in members:
            address = member.address
            route.sent[address] = member
            route.tries[address] = route.tries.get(address, 0) + 1
        self.host.set_timer(self.parameters.confirm_timeout_s, (CONFIRM, publisher))

    def _with_arrivals(self, publisher: int, member: Member) -> Member:
        """This node's own answer says last what has arrived meanwhile; what others say is passed on as it is."""
        if member.address != self.host.address:
            return member
        arrived = tuple([event_id for event_id in self.routes[publisher].events if event_id in self._seen])
        if not arrived:
            return member
        return Member(member.address, member.version, member.entries, arrived)

    def _retry(self, publisher: int, route: Route) -> None:
        unconfirmed = list(route.sent.values())
        route.sent.clear()
        for member in unconfirmed:
            if route.tries[member.address] < self.parameters.table_tries:
                self.answer(publisher, member)
            else:
                del route.tries[member.address]
                self.host.dropped(UNCONFIRMED)

    def on_ack(self, sender: int, ack: JoinAck) -> None:
        route = self.routes.get(ack.publisher)
        if route is not None and sender == route.upstream:
            self._confirm(ack.publisher, route, ack.members)

    def _confirm(self, publisher: int, route: Route, members: Iterable[int]) -> None:
        for address in members:
            if address in route.sent:
                del route.sent[address]
                route.confirmed.add(address)
            elif address in route.waiting and address in route.tries:  # about to be sent once more
                del route.waiting[address]
                route.confirmed.add(address)
        if not route.sent:
            self.host.cancel_timer((CONFIRM, publisher))
        if not route.waiting:
            self.host.cancel_timer((TABLE, publisher))

    def _acknowledge(self, publisher: int, members: list[int]) -> None:
        if members:
            if publisher not in self._acks:
                delay_s = self.host.random.random() * self.parameters.table_pause_s
                self.host.set_timer(delay_s, (ACK, publisher))
            self._acks.setdefault(publisher, {}).update(dict.fromkeys(members))

    # -- Events --------------------------------------------------------------------------------------------------

    def see(self, event_id: int) -> bool:
        """Remembers an event; true if it is new."""
        return self._seen.add(event_id)

    def see_sending(self, data: Data) -> bool:
        """Remembers a sending of an event; true if it is new."""
        return self._sendings.add(data.event.id << SENDING_BITS | data.sending)

    def relay(self, data: Data, digest: Digest | None) -> None:
        """Passes an event on, if this node forwards for it."""
        if data.hops < 255 and self._forwards(data, digest):
            key = data.event.id << SENDING_BITS | data.sending
            self._relays[key] = Data(
                data.publisher, data.channels, data.hops + 1, data.event, data.sending, data.members
            )
            self.host.set_timer(self.host.random.random() * self.parameters.jitter_s, (RELAY, key))

    def _forwards(self, data: Data, digest: Digest | None) -> bool:
        route = self.routes.get(data.publisher)
        if route is None:
            return False
        now_s = self.host.now()
        filters = self.parameters.forwarding_filter and digest is not None
        just_moved = now_s < route.moved_s + self.parameters.channel_overlap_s
        for address, member in self.downstream.get(data.publisher, {}).items():
            if data.members:
                is_meant = address in data.members
            else:
                is_meant = route.channels.get(address, NEWCOMERS) in data.channels or (
                    just_moved and route.channels_before.get(address, NEWCOMERS) in data.channels
                )
            if is_meant and member.expires_s > now_s:
                if not filters or member.entries is None:
                    return True
                assert digest is not None
                if self._family.matches_any(member.entries, digest):
                    return True
        return False

    # -- Soft state ----------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if not self._sweeps:
            self._sweeps = True
            self.host.set_timer(self.parameters.forwarding_timeout_s / SWEEPS_PER_TIMEOUT, (SWEEP, 0))

    def _sweep(self) -> None:
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
        timeout_s = self.parameters.forwarding_timeout_s
        for publisher, route in list(self.routes.items()):
            if route.heard_s + timeout_s <= now_s and publisher not in self.downstream:
                del self.routes[publisher]
                self._roles.pop(publisher, None)
        if self.routes:
            self._sweep_later()

    def _tell_role(self, publisher: int) -> None:
        """Notes in the trace for which channels of a publisher this node forwards. Called when others are behind this
        node, or those have other channels."""
        route = self.routes[publisher]
        behind = self.downstream.get(publisher, {})
        channels = sorted({route.channels.get(address, NEWCOMERS) for address in behind})
        if channels != self._roles.get(publisher, []):
            self._roles[publisher] = channels
            detail = ",".join(map(str, channels))
            self.host.structure("forwarding", peer=publisher, value=float(bool(channels)), detail=detail)
