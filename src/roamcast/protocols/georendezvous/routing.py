"""Cell routing: packets to the home of a place, or to a node last known at a place (paper section 2.1).

Theory of operation
-------------------
Every node beacons its position each `beacon_period_s`, and with cells for vertices at once when it enters another; so
each knows which vertices around it are populated, and by whom. A neighbour that misses several beacons, or that the
link gave up on, is forgotten. Every node that holds a packet decides its next step alone (`steering.py`): the next
vertex. Which member of a *cell* gets the frame is a random choice, so load spreads and no single node matters. A link
that fails costs one frame: the packet is steered anew, from here and without that neighbour.

Beacons get lost and nodes move on, so neighbours may disagree on who is where. Three rules keep a packet from going
back and forth between them: a node that has moved says so before it sends anything on that account; nobody returns a
packet to the one it has it from, who knows best not to be closer; and whoever gets a packet though it is not closer
than the sender beacons at once, for the sender has missed where it is. Greedy steps to nodes at the very edge of the
range are taken only if there are no others (`Graph.steady`).

A packet for a *place* is at home in the vertex that steering ends at. The owner may know earlier that this cell is the
home, because it keeps something under that key already (`is_home`); that saves the tour around an empty cell.
A packet for a *node* goes toward the place where the node was last known. Whoever is next to the node's cell on the way
hands it over. Whoever hears that the node is elsewhere by now sends it the packet directly, so one that has moved on by
less than the radio range is found.

A node that has just started knows nobody. It asks for beacons, and holds all packets until the answers are in.

Timers: `route.beacon` sends the next beacon; `route.settled` ends the listening of a new node.

The component belongs to an owner that hands it every message, timer and failed frame, and keeps what it does not claim.
"""

from abc import ABC, abstractmethod
from math import dist
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import NOBODY, Host, Message, Point, Timer
from roamcast.protocols.georendezvous.cells import Cell, CellGraph, CellGrid, Graph, NodeGraph, Vertex
from roamcast.protocols.georendezvous.messages import AnyPayload, Beacon, Packet
from roamcast.protocols.georendezvous.neighbourhood import Neighbourhood
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.steering import Step, begin_tour, closeness, closer, continue_tour, greedy
from roamcast.protocols.georendezvous.tour import Tour

FIRST_BEACON_WITHIN_S: Final = 0.1  # of a new node, at random
ANSWER_WITHIN_S: Final = 0.4  # a beacon that somebody asked for, at random
SETTLED_AFTER_S: Final = 0.6  # by then a new node has heard the answers
BEACON_JITTER: Final = 0.25  # of the period, either way, so that neighbours do not fall into step
BEACON_GAP_MIN_S: Final = 0.1  # a node that zigzags along a border of cells does not beacon more often

BEACON: Final[Timer] = ("route.beacon", 0)
SETTLED: Final[Timer] = ("route.settled", 0)

DROP_ABSENT: Final = "absent"  # the addressee is not near where it was last known
DROP_HOPS: Final = "hops"  # the packet went too far, probably in circles while cells changed


class RouterOwner(ABC):
    """What the router tells its owner."""

    @abstractmethod
    def on_arrival(self, payload: AnyPayload, hops: int) -> None:
        """A payload is at home here, or was addressed to this node."""

    @abstractmethod
    def is_home(self, payload: AnyPayload) -> bool:
        """Whether this cell is known to be the home of a payload for a place."""

    @abstractmethod
    def on_cell_changed(self, before: Cell) -> None:
        """This node has left the cell `before`."""

    @abstractmethod
    def on_neighbour_moved(self, address: int, before: Cell | None, after: Cell | None) -> None:
        """A neighbour appeared, changed cells or vanished."""

    @abstractmethod
    def on_beat(self) -> None:
        """This node looked where it is, as it does before every beacon."""


class CellRouter:
    def __init__(self, host: Host, owner: RouterOwner, parameters: CellHashParameters) -> None:
        self.host = host
        self._owner = owner
        self._parameters = parameters
        site = host.site
        if site is None:
            raise ConfigurationError("georendezvous: the site is not set; every node must know the area and the range")
        self.grid = CellGrid(site, parameters.cell_side_m or None, parameters.margin_cells)
        self.graph: Graph = CellGraph(self.grid) if parameters.graph == "cells" else NodeGraph(self.grid)
        self._hops_max = parameters.hops_max or 4 * (self.grid.columns + self.grid.rows) + 64
        self._silence_max_s = parameters.beacon_period_s * (1 + BEACON_JITTER) * (parameters.beacon_losses_max + 0.5)
        self.neighbourhood = Neighbourhood(self.graph)
        self.point: Point = self._position()
        self.cell: Cell = self.grid.cell(self.point)
        self.here: Vertex = self.graph.vertex(self.point)
        self._next_beacon_s = 0.0
        self._beaconed_s = float("-inf")
        self._is_new = True
        self._held: list[Packet] | None = []  # until settled

    def start(self) -> None:
        self._trace_cell()
        self._beacon_in(self.host.random.random() * FIRST_BEACON_WITHIN_S)
        self.host.set_timer(SETTLED_AFTER_S, SETTLED)

    # -- Sending -------------------------------------------------------------------------------------------------

    def target(self, key: str) -> Vertex:
        return self.graph.vertex(self.grid.point(key))

    def is_closest(self, key: str) -> bool:
        """Whether this node hears nobody who is closer to `key`."""
        heard = self.graph.neighbours(self.here, self.neighbourhood.vertices)
        return greedy(self.here, heard, self.target(key)) is None

    def send_to_place(self, target: Vertex, payload: AnyPayload, hops: int = 0) -> None:
        """To whoever is at home at `target`. `hops` is how far the payload has come already."""
        self._take(Packet(target, NOBODY, hops, self._hops_max, None, payload))

    def send_to_node(self, address: int, last_at: Vertex, payload: AnyPayload, hops: int = 0) -> None:
        """To one node, last known at `last_at`."""
        self._take(Packet(last_at, address, hops, self._hops_max, None, payload))

    def send_away(self, target: Vertex, payload: AnyPayload) -> None:
        """To the neighbour nearest to `target`, which takes it from there: for the last words of a leaving node."""
        others = [vertex for vertex in self.neighbourhood.vertices if vertex != self.here]
        nearest = min(others, key=lambda vertex: closeness(vertex, target), default=None)
        if nearest is not None:
            self._hop(self.neighbourhood.vertices[nearest][0], Packet(target, NOBODY, 0, self._hops_max, None, payload))

    def say_goodbye(self) -> None:
        self.host.broadcast(Beacon(*self.point, leaves=True))

    # -- What the host says --------------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> bool:
        if type(message) is Beacon:
            known = self.neighbourhood.nodes.get(sender)
            if known is not None and known.x_m == message.x_m and known.y_m == message.y_m:
                known.heard_s = self.host.now()
            else:
                self._place(sender, message)
            if message.asks or message.leaves:
                self._heed(sender, message)
            return True
        if type(message) is Packet:
            known = self.neighbourhood.nodes.get(sender)
            if known is not None:
                known.heard_s = self.host.now()
            self._take(message, sender)
            return True
        return False

    def on_timer(self, timer: Timer) -> bool:
        if timer == BEACON:
            self._beat()
        elif timer == SETTLED:
            held, self._held = self._held or [], None
            for packet in held:
                self._forward(packet)
        else:
            return False
        return True

    def on_send_failed(self, neighbour: int, message: Message) -> bool:
        self._forget(neighbour)
        if type(message) is not Packet:
            return False
        if message.hops_left:  # what failed still counts against the limit, so nothing is tried for ever
            self._take(
                Packet(
                    message.target, message.addressee, message.hops - 1, message.hops_left, None, message.payload
                )
            )
        else:
            self.host.dropped(DROP_HOPS, message.payload.event_id)
        return True

    # -- Neighbours ----------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Looks where this node is and says so, before anything that follows from it leaves."""
        for address in self.neighbourhood.silent_since(self.host.now() - self._silence_max_s):
            self._forget(address)
        point = self._position()
        if dist(point, self.point) >= self.graph.still_m:
            self.point = point
        before, self.cell = self.cell, self.grid.cell(self.point)
        self.here = self.graph.vertex(self.point)
        self.host.broadcast(Beacon(*self.point, asks=self._is_new))
        self._beaconed_s = self.host.now()
        self._is_new = False
        self._beat_later()
        if self.cell != before:
            self._trace_cell()
            self._owner.on_cell_changed(before)
        self._owner.on_beat()

    def _beat_later(self) -> None:
        jitter = BEACON_JITTER * (2 * self.host.random.random() - 1)
        delay_s = self._parameters.beacon_period_s * (1 + jitter)
        if not self.graph.still_m:
            delay_s = min(delay_s, max(BEACON_GAP_MIN_S, self._leaves_cell_in_s()))
        self._beacon_in(delay_s)

    def _position(self) -> Point:
        point = self.host.position()
        if point is None:
            raise ConfigurationError("georendezvous: position is unknown; every node must know where it is")
        return point

    def _leaves_cell_in_s(self) -> float:
        """When this node crosses the border of its cell if it goes on as now, and a moment more to be across."""
        soonest_s = float("inf")
        side_m = self.grid.side_m
        for at_m, speed_mps, index in zip(self.point, self.host.velocity() or (0.0, 0.0), self.cell, strict=True):
            if speed_mps:
                border_m = (index + (speed_mps > 0)) * side_m
                soonest_s = min(soonest_s, (border_m - at_m) / speed_mps)
        return soonest_s + 0.001

    def _beacon_in(self, delay_s: float) -> None:
        self._next_beacon_s = self.host.now() + delay_s
        self.host.set_timer(delay_s, BEACON)

    def _place(self, sender: int, beacon: Beacon) -> None:
        before = self.neighbourhood.place(sender, (beacon.x_m, beacon.y_m), self.host.now())
        after = self.neighbourhood.nodes[sender].cell
        if before != after:
            self._owner.on_neighbour_moved(sender, before, after)

    def _heed(self, sender: int, beacon: Beacon) -> None:
        if beacon.leaves:
            self._forget(sender)
        elif self._next_beacon_s > self.host.now() + ANSWER_WITHIN_S:
            self._beacon_in(self.host.random.random() * ANSWER_WITHIN_S)

    def _forget(self, address: int) -> None:
        before = self.neighbourhood.forget(address)
        if before is not None:
            self._owner.on_neighbour_moved(address, before, None)

    def _trace_cell(self) -> None:
        self.host.structure("cell", value=self.grid.side_m, detail=f"{self.cell[0]} {self.cell[1]}")

    # -- Packets -------------------------------------------------------------------------------------------------

    def _take(self, packet: Packet, sender: int = NOBODY) -> None:
        if self._held is None:
            self._forward(packet, sender)
        else:
            self._held.append(packet)

    def _forward(self, packet: Packet, sender: int = NOBODY) -> None:
        addressee = packet.addressee
        if addressee == self.host.address:
            self._owner.on_arrival(packet.payload, packet.hops)
            return
        known = self.neighbourhood.nodes.get(addressee)
        if known is not None and (known.vertex != packet.target or self.graph.adjacent(self.here, known.vertex)):
            self._hop(addressee, packet)
        else:
            self._steer(packet, sender)

    def _steer(self, packet: Packet, sender: int) -> None:
        here, target, tour = self.here, packet.target, packet.tour
        heard = self.neighbourhood.vertices
        if here == target:
            self._arrive(packet)
        elif tour is None or closer(here, tour.start, target):
            if tour is None:
                self._correct(sender, target)
            nearer = self._nearer(target, sender)
            if nearer is not None:
                self._hop_to(nearer, packet)
            elif self._is_known_home(packet):
                self._arrive(packet)
            else:
                self._go_around(packet, begin_tour(here, self.graph.planar(here, heard), target))
        else:
            self._go_around(packet, continue_tour(here, self.graph.planar(here, heard), target, tour))

    def _correct(self, sender: int, target: Vertex) -> None:
        """Whoever sends a packet here takes this node for closer; where that is wrong, it has missed a beacon."""
        known = self.neighbourhood.nodes.get(sender)
        soonest_s = self._beaconed_s + BEACON_GAP_MIN_S
        if known is not None and not closer(self.here, known.vertex, target) and self.host.now() >= soonest_s:
            self._beacon_in(0.0)

    def _nearer(self, target: Vertex, sender: int) -> Vertex | None:
        """Greedy's next step. Whoever gave us the packet is not closer, whatever its last beacon said."""
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

    def _go_around(self, packet: Packet, step: Step | None) -> None:
        if step is None:
            self._arrive(packet)
        else:
            self._hop_to(step.vertex, packet, step.tour)

    def _is_known_home(self, packet: Packet) -> bool:
        if self.graph.surely_nearest(self.here, packet.target):
            return True
        return packet.addressee == NOBODY and self._owner.is_home(packet.payload)

    def _arrive(self, packet: Packet) -> None:
        if packet.addressee == NOBODY:
            self._owner.on_arrival(packet.payload, packet.hops)
        else:
            self.host.dropped(DROP_ABSENT, packet.payload.event_id)

    def _hop_to(self, step: Vertex, packet: Packet, tour: Tour | None = None) -> None:
        self._hop(self.host.random.choice(self.neighbourhood.vertices[step]), packet, tour)

    def _hop(self, neighbour: int, packet: Packet, tour: Tour | None = None) -> None:
        if packet.hops_left == 0:
            self.host.dropped(DROP_HOPS, packet.payload.event_id)
            return
        onward = Packet(
            packet.target, packet.addressee, packet.hops + 1, packet.hops_left - 1, tour, packet.payload
        )
        self.host.send(neighbour, onward)
