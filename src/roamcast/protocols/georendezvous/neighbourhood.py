"""The neighbours of a node: where each is, when it was last heard, and who is in which cell."""

from typing import TypeVar

from roamcast.protocols.georendezvous.cells import Cell, RoutingGraph, Vertex, metres

PlaceT = TypeVar("PlaceT", Cell, Vertex)


class Neighbour:
    __slots__ = ("cell", "failures", "heard_s", "place", "vertex")

    def __init__(self, place: Vertex, cell: Cell, vertex: Vertex, heard_s: float) -> None:
        self.place = place  # in decimetres
        self.cell = cell
        self.vertex = vertex
        self.heard_s = heard_s
        self.failures = 0  # frames to it that the link gave up on since it was last heard


class Neighbourhood:
    """Neighbours by address, by cell and by vertex. Lists are in the order in which their members appeared."""

    def __init__(self, graph: RoutingGraph) -> None:
        self._graph = graph
        self.nodes: dict[int, Neighbour] = {}
        self.cells: dict[Cell, list[int]] = {}  # only cells with members
        self.vertices: dict[Vertex, list[int]] = {}  # only vertices with members

    def put(self, address: int, place: Vertex, now_s: float) -> Cell | None:
        """Notes where a neighbour is; returns the cell it was in before."""
        point = metres(place)
        cell, vertex = self._graph.grid.cell(point), self._graph.vertex(point)
        known = self.nodes.get(address)
        before = None if known is None else known.cell
        if known is not None:
            self._take_out(address, known)
        self.nodes[address] = Neighbour(place, cell, vertex, now_s)
        self.cells.setdefault(cell, []).append(address)
        self.vertices.setdefault(vertex, []).append(address)
        return before

    def forget(self, address: int) -> Cell | None:
        """Returns the cell that the neighbour was in, if it was known."""
        known = self.nodes.pop(address, None)
        if known is None:
            return None
        self._take_out(address, known)
        return known.cell

    def silent_since(self, limit_s: float) -> list[int]:
        """Neighbours last heard before `limit_s`."""
        return [address for address, known in self.nodes.items() if known.heard_s < limit_s]

    def longest_silent(self) -> int:
        """The neighbour that was heard longest ago."""
        return min(self.nodes, key=lambda address: (self.nodes[address].heard_s, address))

    def members(self, cell: Cell) -> list[int]:
        return self.cells.get(cell, [])

    def _take_out(self, address: int, known: Neighbour) -> None:
        _remove(self.cells, known.cell, address)
        _remove(self.vertices, known.vertex, address)


def _remove(groups: dict[PlaceT, list[int]], place: PlaceT, address: int) -> None:
    group = groups[place]
    group.remove(address)
    if not group:
        del groups[place]
