"""Cell routing: packets to the home of a place, or to a node last known at a place (paper section 2.1).

Theory of operation
-------------------
Every node beacons its position each `beacon_period_s`, and with cells for vertices at once when it enters another. So
each knows which vertices around it are populated, and by whom. Every node that holds a packet decides its next step
alone (`steering.py`): the next vertex. Which member of a *cell* gets the frame is a random choice, so load spreads and
no single node matters.

Neighbours are lost in three ways: they say goodbye, they miss more than `beacon_losses_max` beacons, or the link fails.
A single failed frame says little: in a busy network that stands still, frames collide. So the packet is tried again,
and the neighbour is forgotten after `link_failures_max` failures with nothing heard in between, or at the first one if
it has missed a beacon as well.

Beacons get lost and nodes move on, so neighbours may disagree on who is where. Three rules keep a packet from going
back and forth between them. A node that has moved says so before it sends anything on that account. No node returns a
packet to the sender, which is not closer to the target. A node that receives a packet although it is not closer than
the sender beacons at once, because the sender has missed where it is.

A packet for a *place* is at home in the vertex that steering ends at. The listener may know earlier that this cell is
the home, because it keeps something under that key already (`is_home`); that saves the tour around an empty cell.
A packet for a *node* goes toward the place where the node was last known. A node next to the addressee's cell hands it
over. A node that hears the addressee elsewhere sends it the packet directly, so an addressee that has moved by less
than the radio range is found.

A packet may have several legs (`messages.py`). Each node decides the next step of every leg and sends one frame to
each neighbour that serves one or more of them (`branching.py`).

A frame may come twice, and passing both on would double the packet at every such node. A node drops a packet that it
has just had from the same neighbour (`copy_within_s`). No two steps of one packet look alike, because each uses up a
hop, so one that walks by again, or is tried again, is no copy.

A node that has just started knows no neighbours. It asks for beacons, and holds all packets until the answers are in.

What siblings send is queued until the current input has been handled, so an arrival never re-enters its sender.
"""

from abc import abstractmethod
from enum import StrEnum
from math import dist
from typing import Final

from mypy_extensions import trait

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import NOBODY, Host, Message, Point, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.georendezvous.branching import branches
from roamcast.protocols.georendezvous.cells import (
    Cell,
    CellGraph,
    CellGrid,
    NodeGraph,
    RoutingGraph,
    Vertex,
    decimetres,
    metres,
)
from roamcast.protocols.georendezvous.messages import AnyPayload, Beacon, Leg, Packet
from roamcast.protocols.georendezvous.neighbourhood import Neighbourhood
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.steering import Step, begin_tour, closeness, closer, continue_tour, greedy
from roamcast.protocols.georendezvous.tour import Tour


class RouterTimer(StrEnum):
    BEACON = "georendezvous.beacon"  # the next beacon is due
    SETTLED = "georendezvous.settled"  # a new node has heard its neighbours, and the packets it holds may leave


_BEACON: Final[Timer] = (RouterTimer.BEACON.value, 0)
_SETTLED: Final[Timer] = (RouterTimer.SETTLED.value, 0)

_CROSSED_S: Final = 0.001  # a moment more than it takes to a border, to be across

COPIES_MAX: Final = 1024  # packets remembered, so that copies are recognised

DROP_ABSENT: Final = "absent"  # the addressee is not near where it was last known
DROP_HOPS: Final = "hops"  # the packet went too far, probably in circles while cells changed
DROP_HELD: Final = "held"  # a new node had too many packets to hold
DROP_COPY: Final = "copy"  # the same frame came again


@trait
class RouterListener:
    """What the router tells the component above it."""

    @abstractmethod
    def on_arrival(self, payload: AnyPayload, leg: Leg, hops: int) -> None:
        """A payload is at home here, or was addressed to this node."""

    @abstractmethod
    def is_home(self, payload: AnyPayload, point: int) -> bool:
        """Whether this cell is known to be the home of a payload for a place."""

    @abstractmethod
    def on_cell_changed(self, before: Cell) -> None:
        """This node has left the cell `before`."""

    @abstractmethod
    def on_neighbour_moved(self, address: int, before: Cell | None, after: Cell | None) -> None:
        """A neighbour appeared, changed cells or vanished."""

    @abstractmethod
    def on_beat(self) -> None:
        """This node has just checked where it is, as it does before every beacon."""


class CellRouter(Component):
    _inputs: Inputs

    def __init__(self, host: Host, parameters: CellHashParameters, listener: RouterListener) -> None:
        super().__init__(host)
        self._listener = listener
        self._parameters = parameters
        site = host.site
        if site is None:
            raise ConfigurationError("georendezvous: the site is not set; every node must know the area and the range")
        self.grid = CellGrid(site, parameters.cell_side_m or None, parameters.margin_cells)
        self.graph: RoutingGraph = (
            CellGraph(self.grid)
            if parameters.graph == "cells"
            else NodeGraph(self.grid, parameters.still_share, parameters.steady_share)
        )
        self._hops_max = parameters.hops_max or min(65535, 4 * (self.grid.columns + self.grid.rows) + 64)
        longest_s = parameters.beacon_period_s * (1 + parameters.beacon_jitter)
        self._silence_max_s = longest_s * (parameters.beacon_losses_max + 0.5)
        self._late_s = longest_s + parameters.beacon_gap_min_s  # a neighbour silent for longer has missed a beacon
        self._neighbours_max = parameters.neighbours_max
        self._link_failures_max = parameters.link_failures_max
        self._copy_within_s = parameters.copy_within_s
        self._tree_share = 1.0
        self.neighbourhood = Neighbourhood(self.graph)
        self.place: Vertex = self._position()  # in decimetres
        self.point: Point = metres(self.place)
        self.cell: Cell = self.grid.cell(self.point)
        self.here: Vertex = self.graph.vertex(self.point)
        self._next_beacon_s = 0.0
        self._beaconed_s = float("-inf")
        self._is_new = True
        self._held: list[tuple[Packet, int]] | None = []  # until settled
        self._outbox: list[Packet] = []  # until the current input has been handled
        self._recent: dict[tuple[int, Packet], float] = {}  # by neighbour and packet: when it came, the oldest first

    def declare(self, inputs: Inputs) -> None:
        self._inputs = inputs
        inputs.on(Beacon, self._on_beacon)
        inputs.on(Packet, self._on_packet)
        inputs.on_any_failure(self._on_failure)
        inputs.on_timer(RouterTimer.BEACON, self._beat)
        inputs.on_timer(RouterTimer.SETTLED, self._release_held)

    def start(self) -> None:
        self._trace_cell()
        self._beacon_in(self.host.random.random() * self._parameters.first_beacon_within_s)
        self.host.set_timer(self._parameters.settle_s, _SETTLED)

    def share_links(self, progress_share: float) -> None:
        """From now on legs may take steps that make only this share of the best progress, to share links."""
        self._tree_share = progress_share

    # -- Sending -------------------------------------------------------------------------------------------------

    def target(self, key: str) -> Vertex:
        return self.graph.vertex(self.grid.point(key))

    def is_closest(self, key: str) -> bool:
        """Whether this node hears no neighbour that is closer to `key`."""
        heard = self.graph.neighbours(self.here, self.neighbourhood.vertices)
        return greedy(self.here, heard, self.target(key)) is None

    def send_to_place(self, target: Vertex, payload: AnyPayload) -> None:
        """To the home of `target`."""
        self.send((Leg(target, NOBODY),), payload)

    def send_to_node(self, address: int, last_at: Vertex, payload: AnyPayload, hops: int = 0) -> None:
        """To one node, last known at `last_at`. `hops` is how far the payload has come already."""
        self.send((Leg(last_at, address),), payload, hops)

    def send(self, legs: tuple[Leg, ...], payload: AnyPayload, hops: int = 0) -> None:
        """To several destinations, on as few links as possible."""
        if not self._outbox:
            self._inputs.later(self._send_outbox)
        self._outbox.append(Packet(legs, min(hops, 65535 - self._hops_max), self._hops_max, payload))

    def send_away(self, target: Vertex, payload: AnyPayload) -> None:
        """To the neighbour nearest to `target`, which takes it from there: for the last words of a leaving node."""
        others = [vertex for vertex in self.neighbourhood.vertices if vertex != self.here]
        nearest = min(others, key=lambda vertex: closeness(vertex, target), default=None)
        if nearest is not None:
            packet = Packet((Leg(target, NOBODY),), 0, self._hops_max, payload)
            self._transmit(self.neighbourhood.vertices[nearest][0], packet, packet.legs)

    def say_goodbye(self) -> None:
        self.host.broadcast(Beacon(self.place[0], self.place[1], leaves=True))

    def _send_outbox(self) -> None:
        outbox, self._outbox = self._outbox, []
        for packet in outbox:
            self._take(packet, NOBODY)

    # -- Neighbours ----------------------------------------------------------------------------------------------

    def _on_beacon(self, sender: int, beacon: Beacon) -> None:
        known = self.neighbourhood.nodes.get(sender)
        if known is not None and known.place[0] == beacon.x_dm and known.place[1] == beacon.y_dm:
            known.heard_s = self.host.now()
            known.failures = 0
        else:
            self._put_neighbour(sender, (beacon.x_dm, beacon.y_dm))
        if beacon.leaves:
            self._forget(sender)
        elif beacon.asks and self._next_beacon_s > self.host.now() + self._parameters.answer_within_s:
            self._beacon_in(self.host.random.random() * self._parameters.answer_within_s)

    def _on_failure(self, neighbour: int, message: Message) -> None:
        known = self.neighbourhood.nodes.get(neighbour)
        if known is not None:
            known.failures += 1
            is_late = self.host.now() - known.heard_s > self._late_s
            if is_late or known.failures >= self._link_failures_max:
                self._forget(neighbour)
        if type(message) is not Packet:
            return
        if message.hops_left:  # a failed hop counts against the limit, so no packet is tried for ever
            legs = tuple([Leg(leg.target, leg.addressee, leg.point) for leg in message.legs])
            self._take(Packet(legs, max(0, message.hops - 1), message.hops_left, message.payload), NOBODY)
        else:
            self.host.dropped(DROP_HOPS, message.payload.event_id)

    def _beat(self, key: int) -> None:
        """Checks where this node is and says so, before anything that follows from it leaves."""
        for address in self.neighbourhood.silent_since(self.host.now() - self._silence_max_s):
            self._forget(address)
        place = self._position()
        if dist(metres(place), self.point) >= self.graph.still_m:
            self.place, self.point = place, metres(place)
        before, self.cell = self.cell, self.grid.cell(self.point)
        self.here = self.graph.vertex(self.point)
        self.host.broadcast(Beacon(self.place[0], self.place[1], asks=self._is_new))
        self._beaconed_s = self.host.now()
        self._is_new = False
        self._beat_later()
        if self.cell != before:
            self._trace_cell()
            self._listener.on_cell_changed(before)
        self._listener.on_beat()

    def _beat_later(self) -> None:
        parameters = self._parameters
        jitter = parameters.beacon_jitter * (2 * self.host.random.random() - 1)
        delay_s = parameters.beacon_period_s * (1 + jitter)
        if not self.graph.still_m:
            delay_s = min(delay_s, max(parameters.beacon_gap_min_s, self._leaves_cell_in_s()))
        self._beacon_in(delay_s)

    def _position(self) -> Vertex:
        point = self.host.position()
        if point is None:
            raise ConfigurationError("georendezvous: position is unknown; every node must know where it is")
        return decimetres(point)

    def _leaves_cell_in_s(self) -> float:
        """When this node crosses the border of its cell if it keeps its velocity."""
        soonest_s = float("inf")
        side_m = self.grid.side_m
        for at_m, speed_mps, index in zip(self.point, self.host.velocity() or (0.0, 0.0), self.cell, strict=True):
            if speed_mps:
                border_m = (index + (speed_mps > 0)) * side_m
                soonest_s = min(soonest_s, (border_m - at_m) / speed_mps)
        return soonest_s + _CROSSED_S

    def _beacon_in(self, delay_s: float) -> None:
        self._next_beacon_s = self.host.now() + delay_s
        self.host.set_timer(delay_s, _BEACON)

    def _put_neighbour(self, sender: int, place: Vertex) -> None:
        neighbourhood = self.neighbourhood
        if sender not in neighbourhood.nodes and len(neighbourhood.nodes) >= self._neighbours_max:
            self._forget(neighbourhood.longest_silent())
        before = neighbourhood.put(sender, place, self.host.now())
        after = neighbourhood.nodes[sender].cell
        if before != after:
            self._listener.on_neighbour_moved(sender, before, after)

    def _forget(self, address: int) -> None:
        before = self.neighbourhood.forget(address)
        if before is not None:
            self._listener.on_neighbour_moved(address, before, None)

    def _trace_cell(self) -> None:
        self.host.structure("cell", value=self.grid.side_m, detail=f"{self.cell[0]} {self.cell[1]}")

    # -- Packets -------------------------------------------------------------------------------------------------

    def _on_packet(self, sender: int, packet: Packet) -> None:
        known = self.neighbourhood.nodes.get(sender)
        if known is not None:
            known.heard_s = self.host.now()
            known.failures = 0
        if packet.hops_left > self._hops_max:  # no node of this network sends that
            packet = Packet(packet.legs, packet.hops, self._hops_max, packet.payload)
        if self._is_copy(sender, packet):
            self.host.dropped(DROP_COPY, packet.payload.event_id)
        else:
            self._take(packet, sender)

    def _is_copy(self, sender: int, packet: Packet) -> bool:
        recent, now_s = self._recent, self.host.now()
        while recent:
            oldest = next(iter(recent))
            if len(recent) < COPIES_MAX and recent[oldest] > now_s - self._copy_within_s:
                break
            del recent[oldest]
        known = len(recent)
        recent.setdefault((sender, packet), now_s)
        return len(recent) == known

    def _take(self, packet: Packet, sender: int) -> None:
        if self._held is None:
            self._forward(packet, sender)
        elif len(self._held) < self._parameters.held_max:
            self._held.append((packet, sender))
        else:
            self.host.dropped(DROP_HELD, packet.payload.event_id)

    def _release_held(self, key: int) -> None:
        held, self._held = self._held or [], None
        for packet, sender in held:
            self._forward(packet, sender)

    def _forward(self, packet: Packet, sender: int) -> None:
        if len(packet.legs) == 1:
            leg = packet.legs[0]
            hop = self._hop(packet, leg, sender)
            if hop is not None:
                onward = leg if leg.tour is hop[1] else Leg(leg.target, leg.addressee, leg.point, hop[1])
                self._transmit(hop[0], packet, (onward,))
        else:
            self._branch(packet, sender)

    def _branch(self, packet: Packet, sender: int) -> None:
        """Decides the next step of every leg, and sends one frame to each neighbour that serves some of them."""
        onward: dict[int, list[Leg]] = {}  # by neighbour
        members: dict[Vertex, int] = {}  # which member of a vertex carries the packet on
        free: list[Leg] = []  # legs that may choose among neighbours
        for leg in packet.legs:
            if self._tree_share < 1 and leg.tour is None and self._is_under_way(leg):
                free.append(leg)
                continue
            hop = self._hop(packet, leg, sender, members)
            if hop is not None:
                onward.setdefault(hop[0], []).append(Leg(leg.target, leg.addressee, leg.point, hop[1]))
        candidates = self._candidates(sender) if free else []
        steps = branches(self.here, candidates, [leg.target for leg in free], self._tree_share)
        for leg, step in zip(free, steps, strict=True):
            if step is not None:
                onward.setdefault(self._member(step, members), []).append(leg)
                continue
            hop = self._hop(packet, leg, sender, members)
            if hop is not None:
                onward.setdefault(hop[0], []).append(Leg(leg.target, leg.addressee, leg.point, hop[1]))
        for neighbour, legs in onward.items():
            self._transmit(neighbour, packet, tuple(legs))

    def _is_under_way(self, leg: Leg) -> bool:
        """Whether a leg has neither arrived nor can be handed to its addressee."""
        return (
            self.here != leg.target
            and leg.addressee != self.host.address
            and leg.addressee not in self.neighbourhood.nodes
        )

    def _candidates(self, sender: int) -> list[Vertex]:
        heard = self.neighbourhood.vertices
        candidates = self.graph.steady(self.here, heard)
        known = self.neighbourhood.nodes.get(sender)
        if known is not None and len(heard[known.vertex]) == 1 and known.vertex in candidates:
            candidates.remove(known.vertex)
        return candidates

    def _hop(
        self, packet: Packet, leg: Leg, sender: int, members: dict[Vertex, int] | None = None
    ) -> tuple[int, Tour | None] | None:
        """The neighbour that carries a leg on, and the leg's tour from there; None if the leg ends here."""
        addressee = leg.addressee
        if addressee == self.host.address:
            self._listener.on_arrival(packet.payload, leg, packet.hops)
            return None
        known = self.neighbourhood.nodes.get(addressee)
        if known is not None and (known.vertex != leg.target or self.graph.adjacent(self.here, known.vertex)):
            return addressee, None
        step = self._steer(packet, leg, sender)
        if step is None:
            if addressee == NOBODY:
                self._listener.on_arrival(packet.payload, leg, packet.hops)
            else:
                self.host.dropped(DROP_ABSENT, packet.payload.event_id)
            return None
        return self._member(step[0], members), step[1]

    def _member(self, vertex: Vertex, members: dict[Vertex, int] | None) -> int:
        """A random member of a vertex; for one packet always the same."""
        if members is None:
            return self.host.random.choice(self.neighbourhood.vertices[vertex])
        member = members.get(vertex)
        if member is None:
            member = members[vertex] = self.host.random.choice(self.neighbourhood.vertices[vertex])
        return member

    def _steer(self, packet: Packet, leg: Leg, sender: int) -> tuple[Vertex, Tour | None] | None:
        """The next vertex and the tour from there; None if this vertex is the home of the target."""
        here, target, tour = self.here, leg.target, leg.tour
        if here == target:
            return None
        if tour is not None and not closer(here, tour.start, target):
            planar = self.graph.planar(here, self.neighbourhood.vertices)
            return _around(continue_tour(here, planar, target, tour))
        if tour is None:
            self._correct(sender, target)
        nearer = self._nearer(target, sender)
        if nearer is not None:
            return nearer, None
        if self._is_known_home(packet.payload, leg):
            return None
        return _around(begin_tour(here, self.graph.planar(here, self.neighbourhood.vertices), target))

    def _correct(self, sender: int, target: Vertex) -> None:
        """The sender takes this node for closer than itself; where that is wrong, it has missed a beacon."""
        known = self.neighbourhood.nodes.get(sender)
        soonest_s = self._beaconed_s + self._parameters.beacon_gap_min_s
        if known is not None and not closer(self.here, known.vertex, target) and self.host.now() >= soonest_s:
            self._beacon_in(0.0)

    def _nearer(self, target: Vertex, sender: int) -> Vertex | None:
        """Greedy's next step. The sender is not closer, whatever its last beacon said."""
        here, heard = self.here, self.neighbourhood.vertices
        known = self.neighbourhood.nodes.get(sender)
        outdated = known.vertex if known is not None and len(heard[known.vertex]) == 1 else None
        for candidates in (self.graph.steady(here, heard), self.graph.neighbours(here, heard)):
            if outdated in candidates:
                candidates.remove(outdated)
            nearer = greedy(here, candidates, target)
            if nearer is not None:
                return nearer
        return None

    def _is_known_home(self, payload: AnyPayload, leg: Leg) -> bool:
        if self.graph.surely_nearest(self.here, leg.target):
            return True
        return leg.addressee == NOBODY and self._listener.is_home(payload, leg.point)

    def _transmit(self, neighbour: int, packet: Packet, legs: tuple[Leg, ...]) -> None:
        if packet.hops_left == 0:
            self.host.dropped(DROP_HOPS, packet.payload.event_id)
            return
        self.host.send(neighbour, Packet(legs, min(packet.hops + 1, 65535), packet.hops_left - 1, packet.payload))


def _around(step: Step | None) -> tuple[Vertex, Tour | None] | None:
    return None if step is None else (step.vertex, step.tour)
