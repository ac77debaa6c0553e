"""AODV: ad hoc on-demand distance vector routing, after draft-ietf-manet-aodv-13.

Theory of operation
-------------------
Goal: bring packets to any node that a chain of links connects with this one, keeping routes only to those destinations
that are in use.

State: the routing table (`routes.py`), kept true by the router (`router.py`) together with this node's own sequence
number, which orders statements about routes to it; and the running searches with the packets that wait for them
(`discovery.py`). This module deals with the packets and the searches.

Rules:
1. *Search.* Without a route, a packet waits and an RREQ goes out in widening rings (6.3, 6.4). Each hearer learns the
   route back to the originator from it. The destination answers, or a relay whose route is at least as new as the
   request demands; all others repeat the request once (6.5).
2. *Answer.* An RREP travels back along the reverse route. Each relay learns the route to the destination (6.6, 6.7).
3. *Numbers.* A newer route replaces an older one; an equally new one only if it is shorter or the entry is invalid.
   That alone keeps routes free of loops, so it is decided in one place, `RouteTable.learn`.
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
- A neighbour that sends this node data for a destination becomes a precursor, and is told directly if there is no
  route: routes learned from requests are used for data too, and no RREP ever made their users known.
- The own number starts from the host's clock, so a node that crashed and returns is not taken for its past. It does
  not keep silent for a delete period, as 6.13 asks; `hops_max` ends the rare loop through such a node.
- A source whose first link breaks sends the packet again over a new route, up to `attempts_max` times.
"""

from enum import StrEnum

from roamcast.protocols.api import INSTANT_S, Host, Message
from roamcast.protocols.components import Inputs
from roamcast.protocols.routing.api import Arrived, Drop, Unicast, Unreachable
from roamcast.protocols.routing.discovery import Discovery, Packet, RateLimit, repair_ring, widening_rings
from roamcast.protocols.routing.messages import Routed
from roamcast.protocols.routing.parameters import AodvParameters
from roamcast.protocols.routing.router import Router
from roamcast.protocols.routing.routes import Losses, Route


class AodvTimer(StrEnum):
    """The key is the destination that is sought."""

    RING = "aodv.ring"  # no node answered the last request in time
    OVERDUE = "aodv.overdue"  # the oldest waiting packet has waited too long


class Aodv(Unicast):
    def __init__(
        self,
        host: Host,
        inputs: Inputs,
        arrived: Arrived,
        unreachable: Unreachable,
        parameters: AodvParameters | None = None,
    ) -> None:
        super().__init__(host, inputs, arrived, unreachable)
        self.parameters = parameters or AodvParameters()
        self.router = Router(host, self.parameters, self._on_route)
        self.routes = self.router.routes
        self._discoveries: dict[int, Discovery] = {}  # by destination
        self._request_limit = RateLimit(self.parameters.request_rate_limit)

    def declare(self, inputs: Inputs) -> None:
        self.router.declare(inputs)
        inputs.on(Routed, self._on_packet)
        inputs.on_failure(Routed, self._on_packet_failed)
        inputs.on_any_failure(self._on_link_failed)
        inputs.on_timer(AodvTimer.RING, self._on_ring)
        inputs.on_timer(AodvTimer.OVERDUE, self._on_overdue)

    def start(self) -> None:
        self.router.start()

    def send(self, destination: int, payload: Message) -> None:
        if destination == self.host.address:
            self._arrive_later(payload)
        else:
            self._dispatch(Routed(self.host.address, destination, 1, 1, payload))

    # -- Packets -------------------------------------------------------------------------------------------------

    def _dispatch(self, packet: Packet) -> None:
        """Sends a packet, or lets it wait for a route."""
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
        self.router.use(route.destination, route.next_hop)
        self.host.send(route.next_hop, packet)

    def _on_packet(self, sender: int, packet: Packet) -> None:
        self.router.use(packet.source, sender)
        if packet.destination == self.host.address:
            if packet.source != self.host.address:  # in this node's own name: a forgery, or a loop
                self._arrived(packet.source, packet.payload, packet.hops)
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
        self.router.report(losses)

    def _on_link_failed(self, neighbour: int, message: Message) -> None:
        """Each failed frame tells that a link broke; a packet's own handler knows more than this one."""
        if type(message) is not Routed:
            self.router.lose_neighbour(neighbour)

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
        self.router.lose_neighbour(neighbour, repairing=destination if repair else None)
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
            self.host.set_timer(self.parameters.buffer_timeout_s, (AodvTimer.OVERDUE, packet.destination))
        discovery.add(packet, self.host.now() + self.parameters.buffer_timeout_s)

    def _on_overdue(self, destination: int) -> None:
        discovery = self._discoveries[destination]
        now_s = self.host.now()
        for packet in discovery.pop_overdue(now_s + INSTANT_S):
            self._give_up(packet, Drop.BUFFER_TIMEOUT)
        deadline_s = discovery.next_deadline_s()
        if deadline_s is not None:
            self.host.set_timer(deadline_s - now_s, (AodvTimer.OVERDUE, discovery.destination))
        else:
            self._fail(discovery)

    def _on_ring(self, destination: int) -> None:
        self._widen(self._discoveries[destination])

    def _widen(self, discovery: Discovery) -> None:
        """Sends the request of the next ring, as soon as the rate limit allows."""
        now_s = self.host.now()
        pause_s = self._request_limit.wait_s(now_s)
        if pause_s > 0:
            self.host.set_timer(pause_s, (AodvTimer.RING, discovery.destination))
            return
        ring = next(discovery.rings, None)
        if ring is None:
            self._fail(discovery)
            return
        ttl, wait_s = ring
        self._request_limit.note(now_s)
        self.router.request(discovery.destination, ttl)
        self.host.set_timer(wait_s, (AodvTimer.RING, discovery.destination))

    def _end(self, discovery: Discovery) -> None:
        del self._discoveries[discovery.destination]
        self.host.cancel_timer((AodvTimer.RING, discovery.destination))
        self.host.cancel_timer((AodvTimer.OVERDUE, discovery.destination))

    def _on_route(self, route: Route) -> None:
        """The router has a usable route: what waited for it leaves."""
        discovery = self._discoveries.get(route.destination)
        if discovery is None:
            return
        self._end(discovery)
        for packet in discovery.pop_all():
            self._forward(packet, route)
        if discovery.repair_of_hops is not None and route.hops > discovery.repair_of_hops:
            losses = Losses()
            losses.note(route.destination, route.sequence, route.precursors)
            self.router.report(losses, keep=True)

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
            self.router.report(losses)
        for packet in discovery.pop_all():  # this node's own deserve more than the one ring of a repair
            self._dispatch(packet)
