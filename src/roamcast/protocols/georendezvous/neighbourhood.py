"""Whom a node hears: every neighbour's place and when it was last heard, and who is in which cell."""

from typing import TypeVar

from roamcast.protocols.api import Point
from roamcast.protocols.georendezvous.cells import Cell, Graph, Vertex

PlaceT = TypeVar("PlaceT", Cell, Vertex)


class Neighbour:
    __slots__ = ("cell", "heard_s", "vertex", "x_m", "y_m")

    def __init__(self, x_m: float, y_m: float, cell: Cell, vertex: Vertex, heard_s: float) -> None:
        self.x_m = x_m
        self.y_m = y_m
        self.cell = cell
        self.vertex = vertex
        self.heard_s = heard_s


class Neighbourhood:
    """Neighbours by address, by cell and by vertex. Lists are in the order in which their members appeared."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.nodes: dict[int, Neighbour] = {}
        self.cells: dict[Cell, list[int]] = {}  # only cells with members
        self.vertices: dict[Vertex, list[int]] = {}  # only vertices with members

    def place(self, address: int, point: Point, now_s: float) -> Cell | None:
        """Notes where a neighbour is; answers in which cell it was before."""
        cell, vertex = self._graph.grid.cell(point), self._graph.vertex(point)
        known = self.nodes.get(address)
        before = None if known is None else known.cell
        if known is not None:
            self._take_out(address, known)
        self.nodes[address] = Neighbour(point[0], point[1], cell, vertex, now_s)
        self.cells.setdefault(cell, []).append(address)
        self.vertices.setdefault(vertex, []).append(address)
        return before

    def forget(self, address: int) -> Cell | None:
        """Answers in which cell the neighbour was, if it was known."""
        known = self.nodes.pop(address, None)
        if known is None:
            return None
        self._take_out(address, known)
        return known.cell

    def silent_since(self, limit_s: float) -> list[int]:
        """Neighbours last heard before `limit_s`."""
        return [address for address, known in self.nodes.items() if known.heard_s < limit_s]

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
