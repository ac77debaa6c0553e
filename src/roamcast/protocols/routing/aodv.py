"""AODV: ad hoc on-demand distance vector routing, after draft-ietf-manet-aodv-13.

Theory of operation
-------------------
Goal: bring packets to any node that a chain of links connects with this one, keeping routes only to those destinations
that are in use.

State: the routing table (`routes.py`), the searches under way with the packets that wait for them and the requests
already heard (`discovery.py`), and this node's own sequence number, which orders the news about the way to it.

Rules:
1. *Search.* Without a route, a packet waits and an RREQ goes out in widening rings (6.3, 6.4). Each hearer learns the
   way back to the originator from it. The destination answers, or a relay whose route is at least as new as the
   request demands; everybody else repeats the request once (6.5).
2. *Answer.* An RREP travels back along the reverse route, and each relay learns the way to the destination (6.6, 6.7).
3. *Numbers.* Newer news replaces older; equally new news only if it is shorter or the entry is invalid. That alone
   keeps routes free of loops, so it is decided in one place, `RouteTable.learn`.
4. *Break.* When the link gives up on a frame (`on_send_failed`), or a greeting neighbour falls silent, all routes
   through it become invalid, their numbers are raised, and an RERR tells the precursors, which do the same (6.11).
   A relay may look for a near destination itself first (6.12, `local_repair`).
5. *Age.* Routes that are not used expire. Their numbers are remembered for the delete period.

Where this differs from the draft, and why:
- Requests carry the time-to-live that IP would carry. HELLO is a message of its own, not an RREP with zero hops.
- Multicast flags, prefixes and RREP-ACK are left out: links here are acknowledged, so an RREP that did not arrive is
  known to be lost, and the neighbour is blacklisted just the same (6.8).
- Expiry raises the number as a break does, an RERR never lowers one, and hearing a neighbour without a number never
  erases one. Read otherwise, the draft admits routing loops.
- A relay never answers a request from the neighbour that its own route leads through.
- A destination asked with `destination_only` raises its number first; otherwise relays that know the same number
  already would not pass the answer on.
- Whoever sends this node data for a destination becomes a precursor, and is told directly if there is no route: routes
  learned from requests are used for data too, and no RREP ever made their users known.
- The own number starts from the host's clock, so a node that crashed and returns is not taken for its past. It does
  not keep silent for a delete period, as 6.13 asks; `hops_max` ends the rare loop through such a node.
- A source whose first link breaks sends the packet again over a new route, up to `attempts_max` times.
"""

from math import inf

from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.routing.api import Drop, Unicast, UnicastOwner
from roamcast.protocols.routing.discovery import (
    Discovery,
    Packet,
    RateLimit,
    SeenRequests,
    repair_ring,
    widening_rings,
)
from roamcast.protocols.routing.messages import Control, Hello, Rerr, Routed, Rrep, Rreq
from roamcast.protocols.routing.parameters import AodvParameters
from roamcast.protocols.routing.routes import Losses, Route, RouteTable
from roamcast.protocols.routing.sequence import MODULUS, newer, newest, successor

RING = "aodv.ring"  # key: destination; nobody answered the last request in time
OVERDUE = "aodv.overdue"  # key: destination; the oldest packet has waited too long
REPEAT = "aodv.repeat"  # key: running number; pass a request on
SILENCE = "aodv.silence"  # key: neighbour; it greeted and was not heard since
HELLO = "aodv.hello"  # key 0; perhaps greet
SWEEP = "aodv.sweep"  # key 0; forget what is long past

HOPS_LIMIT = 255  # what the messages can count
DESTINATIONS_PER_ERROR = 100  # so that an RERR fits a frame
NUMBERS_PER_S = 100  # own numbers start at the clock times this, well above the rate at which requests raise them


class Aodv(Unicast):
    def __init__(self, host: Host, owner: UnicastOwner, parameters: AodvParameters | None = None) -> None:
        super().__init__(host, owner)
        self.parameters = parameters = parameters or AodvParameters()
        self.routes = RouteTable(parameters.delete_period_s)
        self._sequence = int(host.now() * NUMBERS_PER_S) % MODULUS
        self._request_id = self._sequence
        self._discoveries: dict[int, Discovery] = {}  # by destination
        self._seen = SeenRequests(parameters.path_discovery_time_s)
        self._repeats: dict[int, Rreq] = {}  # by running number: requests that wait for their turn
        self._repeats_so_far = 0
        self._request_limit = RateLimit(parameters.request_rate_limit)
        self._error_limit = RateLimit(parameters.error_rate_limit)
        self._blacklist: dict[int, float] = {}  # neighbour -> until when its requests are ignored
        self._greeters: dict[int, None] = {}  # neighbours that said hello and are expected to be heard
        self._last_broadcast_s = -inf
        self._active_until_s = -inf  # this node is on a route that carries data

    def start(self) -> None:
        self.host.set_timer(self.parameters.delete_period_s, (SWEEP, 0))
        if self.parameters.hello:
            self.host.set_timer(self.host.random.random() * self.parameters.hello_interval_s, (HELLO, 0))

    def send(self, destination: int, payload: Message) -> None:
        if destination == self.host.address:
            self._arrive_later(payload)
        else:
            self._dispatch(Routed(self.host.address, destination, 1, 1, payload))

    def on_message(self, sender: int, message: Message) -> bool:
        if sender in self._greeters:
            self.host.set_timer(self.parameters.silence_s, (SILENCE, sender))
        if isinstance(message, Routed):
            self._on_packet(sender, message)
        elif isinstance(message, Rreq):
            self._on_request(sender, message)
        elif isinstance(message, Rrep):
            self._on_reply(sender, message)
        elif isinstance(message, Rerr):
            self._on_error(sender, message)
        elif isinstance(message, Hello):
            self._on_hello(sender, message)
        else:
            return False
        return True

    def on_timer(self, timer: Timer) -> bool:
        name, key = timer
        if name == RING:
            self._widen(self._discoveries[key])
        elif name == OVERDUE:
            self._drop_overdue(self._discoveries[key])
        elif name == REPEAT:
            self._broadcast(self._repeats.pop(key))
        elif name == SILENCE:
            del self._greeters[key]
            self._lose_neighbour(key)
        elif name == HELLO:
            self._greet()
        elif name == SWEEP:
            self._sweep()
        else:
            return super().on_timer(timer)
        return True

    def on_send_failed(self, neighbour: int, message: Message) -> bool:
        if isinstance(message, Routed):
            self._on_packet_failed(neighbour, message)
            return True
        self._lose_neighbour(neighbour)
        if isinstance(message, Rrep) and self.parameters.blacklist_timeout_s > 0:
            self._blacklist[neighbour] = self.host.now() + self.parameters.blacklist_timeout_s
        return isinstance(message, Control)

    # -- Packets -------------------------------------------------------------------------------------------------

    def _dispatch(self, packet: Packet) -> None:
        """Sends a packet on its way, or lets it wait for one."""
        route = self.routes.usable(packet.destination, self.host.now())
        if route is not None:
            self._forward(packet, route)
            return
        discovery = self._discoveries.get(packet.destination)
        if discovery is not None:
            self._wait(packet, discovery)
        else:
            self._search(packet)

    def _forward(self, packet: Packet, route: Route) -> None:
        self._use(route.destination, route.next_hop)
        self.host.send(route.next_hop, packet)

    def _use(self, *destinations: int) -> None:
        """Data flows: the routes that carry it stay alive."""
        now_s = self.host.now()
        self._active_until_s = now_s + self.parameters.active_route_timeout_s
        for destination in destinations:
            self.routes.refresh(destination, self._active_until_s, now_s)

    def _on_packet(self, sender: int, packet: Packet) -> None:
        self._use(packet.source, sender)
        if packet.destination == self.host.address:
            self._owner.on_unicast(packet.source, packet.payload, packet.hops)
            return
        if packet.hops >= self.parameters.hops_max:
            self._give_up(packet, Drop.TOO_MANY_HOPS)
            return
        route = self.routes.usable(packet.destination, self.host.now())
        if route is not None:
            route.precursors[sender] = None
            self._forward(packet.onward(), route)
            return
        discovery = self._discoveries.get(packet.destination)
        if discovery is not None and discovery.repair_of_hops is not None:
            self._wait(packet.onward(), discovery)
            return
        self._give_up(packet, Drop.NO_ROUTE)
        stale = self.routes.find(packet.destination, self.host.now())
        if stale is not None:
            stale.sequence = stale.next_sequence()  # the sender's own number may be as new as ours was
        losses = Losses()
        losses.note(packet.destination, None if stale is None else stale.sequence, [sender])
        self._report(losses)

    def _on_packet_failed(self, neighbour: int, packet: Packet) -> None:
        destination = packet.destination
        own = packet.source == self.host.address
        route = self.routes.usable(destination, self.host.now())
        broke = route is not None and route.next_hop == neighbour
        repair = (
            self.parameters.local_repair
            and not own
            and route is not None
            and broke
            and route.hops <= self.parameters.max_repair_ttl_hops
            and packet.attempt < self.parameters.attempts_max
        )
        self._lose_neighbour(neighbour, repairing=destination if repair else None)
        discovery = self._discoveries.get(destination)
        if packet.attempt >= self.parameters.attempts_max:
            self._give_up(packet, Drop.LINK_BROKEN)
        elif own or (route is not None and not broke):
            self._dispatch(packet.again())
        elif repair and route is not None:
            rings = repair_ring(self.parameters, route.hops, packet.hops - 1)
            self._search(packet.again(), Discovery(destination, rings, repair_of_hops=route.hops))
        elif discovery is not None and discovery.repair_of_hops is not None:
            self._wait(packet.again(), discovery)
        else:
            self._give_up(packet, Drop.LINK_BROKEN)

    def _give_up(self, packet: Packet, reason: Drop) -> None:
        self.host.dropped(reason)
        if packet.source == self.host.address:
            self._give_up_later(packet.destination, packet.payload)

    # -- Searching -----------------------------------------------------------------------------------------------

    def _search(self, packet: Packet, discovery: Discovery | None = None) -> None:
        """Begins to look for the packet's destination, where it was last known to be unless told otherwise."""
        destination = packet.destination
        if discovery is None:
            stale = self.routes.find(destination, self.host.now())
            discovery = Discovery(destination, widening_rings(self.parameters, stale.hops if stale else None))
        self._discoveries[destination] = discovery
        self._wait(packet, discovery)
        self._widen(discovery)

    def _wait(self, packet: Packet, discovery: Discovery) -> None:
        if len(discovery) >= self.parameters.buffer_packets:
            self._give_up(discovery.pop_oldest(), Drop.BUFFER_FULL)
        if not len(discovery):
            self.host.set_timer(self.parameters.buffer_timeout_s, (OVERDUE, packet.destination))
        discovery.add(packet, self.host.now() + self.parameters.buffer_timeout_s)

    def _drop_overdue(self, discovery: Discovery) -> None:
        now_s = self.host.now()
        for packet in discovery.pop_overdue(now_s):
            self._give_up(packet, Drop.BUFFER_TIMEOUT)
        deadline_s = discovery.next_deadline_s()
        if deadline_s is not None:
            self.host.set_timer(deadline_s - now_s, (OVERDUE, discovery.destination))
        else:
            self._fail(discovery)

    def _widen(self, discovery: Discovery) -> None:
        """Sends the request of the next ring, as soon as the rate limit allows."""
        now_s = self.host.now()
        pause_s = self._request_limit.wait_s(now_s)
        if pause_s > 0:
            self.host.set_timer(pause_s, (RING, discovery.destination))
            return
        ring = next(discovery.rings, None)
        if ring is None:
            self._fail(discovery)
            return
        ttl, wait_s = ring
        self._request_limit.note(now_s)
        self._sequence = successor(self._sequence)
        self._request_id = successor(self._request_id)
        known = self.routes.find(discovery.destination, now_s)
        self._broadcast(
            Rreq(
                ttl=ttl,
                hops=0,
                request_id=self._request_id,
                destination=discovery.destination,
                destination_sequence=known.sequence if known is not None else None,
                originator=self.host.address,
                originator_sequence=self._sequence,
                gratuitous=self.parameters.gratuitous,
                destination_only=self.parameters.destination_only,
            )
        )
        self.host.set_timer(wait_s, (RING, discovery.destination))

    def _end(self, discovery: Discovery) -> None:
        del self._discoveries[discovery.destination]
        self.host.cancel_timer((RING, discovery.destination))
        self.host.cancel_timer((OVERDUE, discovery.destination))

    def _succeed(self, discovery: Discovery, route: Route) -> None:
        self._end(discovery)
        for packet in discovery.pop_all():
            self._forward(packet, route)
        if discovery.repair_of_hops is not None and route.hops > discovery.repair_of_hops:
            losses = Losses()
            losses.note(route.destination, route.sequence, route.precursors)
            self._report(losses, keep=True)

    def _fail(self, discovery: Discovery) -> None:
        self._end(discovery)
        for packet in discovery.pop_foreign(self.host.address):
            self._give_up(packet, Drop.NO_ROUTE)
        if discovery.repair_of_hops is None:
            for packet in discovery.pop_all():
                self._give_up(packet, Drop.NO_ROUTE)
            return
        lost = self.routes.find(discovery.destination, self.host.now())
        if lost is not None:
            losses = Losses()
            losses.add(lost)
            self._report(losses)
        for packet in discovery.pop_all():  # this node's own deserve more than the one ring of a repair
            self._dispatch(packet)

    # -- Requests and replies ------------------------------------------------------------------------------------

    def _on_request(self, sender: int, request: Rreq) -> None:
        now_s = self.host.now()
        if self._blacklist.get(sender, -inf) > now_s:
            return
        self._meet(sender)
        if request.originator == self.host.address or request.hops >= HOPS_LIMIT:
            return
        if not self._seen.add(request.originator, request.request_id, now_s):
            return
        hops = request.hops + 1
        reverse_life_s = self.parameters.path_discovery_time_s - 2 * hops * self.parameters.node_traversal_time_s
        self._learn(request.originator, request.originator_sequence, hops, sender, reverse_life_s)
        back = self.routes.usable(request.originator, now_s)
        route = self.routes.usable(request.destination, now_s)
        if request.destination == self.host.address:
            if back is not None:
                self._answer_for_self(request, back)
        elif route is not None and back is not None and self._may_answer(request, route, sender):
            self._answer_for(request, route, back)
        elif request.ttl > 1:
            self._repeat(request)

    def _may_answer(self, request: Rreq, route: Route, sender: int) -> bool:
        asked = request.destination_sequence
        return (
            not request.destination_only
            and route.sequence is not None
            and (asked is None or not newer(asked, route.sequence))
            and route.next_hop != sender
        )

    def _answer_for_self(self, request: Rreq, back: Route) -> None:
        if request.destination_only:
            self._sequence = successor(self._sequence)
        asked = request.destination_sequence
        if asked is not None and newer(asked, self._sequence):
            self._sequence = asked % MODULUS
        lifetime_ms = _milliseconds(self.parameters.my_route_timeout_s)
        self.host.send(back.next_hop, Rrep(0, self.host.address, self._sequence, request.originator, lifetime_ms))

    def _answer_for(self, request: Rreq, route: Route, back: Route) -> None:
        """Answers for a destination that this node knows the way to."""
        if route.sequence is None or back.sequence is None:
            return
        now_s = self.host.now()
        route.precursors[back.next_hop] = None
        back.precursors[route.next_hop] = None
        lifetime_ms = _milliseconds(route.until_s - now_s)
        reply = Rrep(route.hops, route.destination, route.sequence, request.originator, lifetime_ms)
        self.host.send(back.next_hop, reply)
        if request.gratuitous:
            lifetime_ms = _milliseconds(back.until_s - now_s)
            self.host.send(
                route.next_hop, Rrep(back.hops, request.originator, back.sequence, route.destination, lifetime_ms)
            )

    def _repeat(self, request: Rreq) -> None:
        known = self.routes.find(request.destination, self.host.now())
        self._repeats_so_far += 1
        demanded = newest(request.destination_sequence, known.sequence if known is not None else None)
        self._repeats[self._repeats_so_far] = request.onward(demanded)
        jitter_s = self.host.random.random() * self.parameters.broadcast_jitter_s
        self.host.set_timer(jitter_s, (REPEAT, self._repeats_so_far))

    def _on_reply(self, sender: int, reply: Rrep) -> None:
        self._meet(sender)
        if reply.destination == self.host.address or reply.hops >= HOPS_LIMIT:
            return
        hops = reply.hops + 1
        fresh = self._learn(reply.destination, reply.destination_sequence, hops, sender, reply.lifetime_ms / 1000)
        if not fresh or reply.originator == self.host.address:
            return
        now_s = self.host.now()
        route = self.routes.usable(reply.destination, now_s)
        back = self.routes.usable(reply.originator, now_s)
        if route is None or back is None or back.next_hop == sender:
            return
        route.precursors[back.next_hop] = None
        back.precursors[sender] = None
        self.routes.refresh(reply.originator, now_s + self.parameters.active_route_timeout_s, now_s)
        self.host.send(back.next_hop, reply.onward())

    def _meet(self, neighbour: int) -> None:
        """A control frame of this neighbour was heard: there is a route of one hop to it."""
        self._learn(neighbour, None, 1, neighbour, self.parameters.active_route_timeout_s)

    def _learn(self, destination: int, sequence: int | None, hops: int, next_hop: int, life_s: float) -> bool:
        """Takes news of a route, and sends off the packets that waited for it."""
        if destination == self.host.address:
            return False
        now_s = self.host.now()
        life_s = min(life_s, self.parameters.delete_period_s)  # a longer one could outlive what others remember
        fresh = self.routes.learn(destination, sequence, hops, next_hop, now_s + life_s, now_s)
        discovery = self._discoveries.get(destination)
        if discovery is not None:
            route = self.routes.usable(destination, now_s)
            if route is not None:
                self._succeed(discovery, route)
        return fresh

    # -- Broken links --------------------------------------------------------------------------------------------

    def _lose_neighbour(self, neighbour: int, repairing: int | None = None) -> None:
        """All routes through the neighbour are gone; whoever relied on them is told, except about a repair."""
        now_s = self.host.now()
        losses = Losses()
        for route in self.routes.through(neighbour, now_s):
            self.routes.lose(route, None, now_s)
            if route.destination != repairing:
                losses.add(route)
        losses.told.pop(neighbour, None)
        self._report(losses)

    def _on_error(self, sender: int, error: Rerr) -> None:
        now_s = self.host.now()
        losses = Losses()
        for destination, sequence in error.unreachable:
            route = self.routes.usable(destination, now_s)
            if route is None or route.next_hop != sender:
                continue
            if error.keep:
                losses.note(destination, sequence, route.precursors)
            elif sequence is None or route.sequence is None or newer(sequence, route.sequence):
                self.routes.lose(route, sequence, now_s)
                losses.add(route)
        losses.told.pop(sender, None)
        self._report(losses, error.keep)

    def _report(self, losses: Losses, keep: bool = False) -> None:
        """Tells neighbours that routes are gone: one by name, several by a broadcast."""
        unreachable = tuple(losses.unreachable.items())
        if not losses.told:
            return
        for start in range(0, len(unreachable), DESTINATIONS_PER_ERROR):
            now_s = self.host.now()
            if self._error_limit.wait_s(now_s) > 0:
                return
            self._error_limit.note(now_s)
            error = Rerr(unreachable[start : start + DESTINATIONS_PER_ERROR], keep)
            if len(losses.told) == 1:
                self.host.send(next(iter(losses.told)), error)
            else:
                self._broadcast(error)

    # -- Greetings and housekeeping ------------------------------------------------------------------------------

    def _greet(self) -> None:
        """A node on an active route is heard at least once per hello interval, if only by a hello."""
        now_s = self.host.now()
        pause_s = self.parameters.hello_interval_s * (0.75 + 0.25 * self.host.random.random())
        if now_s < self._active_until_s:
            if now_s - self._last_broadcast_s >= 0.75 * self.parameters.hello_interval_s:
                self._broadcast(Hello(self._sequence, _milliseconds(self.parameters.silence_s)))
            pause_s -= now_s - self._last_broadcast_s
        self.host.set_timer(max(0.0, pause_s), (HELLO, 0))

    def _on_hello(self, sender: int, hello: Hello) -> None:
        self._learn(sender, hello.sequence, 1, sender, hello.lifetime_ms / 1000)
        if self.parameters.hello:
            self._greeters[sender] = None
            self.host.set_timer(self.parameters.silence_s, (SILENCE, sender))

    def _sweep(self) -> None:
        now_s = self.host.now()
        self.routes.sweep(now_s)
        self._blacklist = {neighbour: until_s for neighbour, until_s in self._blacklist.items() if now_s < until_s}
        self.host.set_timer(self.parameters.delete_period_s, (SWEEP, 0))

    def _broadcast(self, message: Message) -> None:
        self._last_broadcast_s = self.host.now()
        self.host.broadcast(message)


def _milliseconds(duration_s: float) -> int:
    return int(max(0.0, duration_s) * 1000)
