"""Cells: how geography becomes a graph in which packets can be steered.

The operator tells every node the area and the nominal radio range, so all nodes agree on the same square cells. The
side is at most range / (2 sqrt 2): then any two nodes in the same cell or in cells that touch, even at a corner, hear
each other. (It is shrunk a little so that a whole number of cells spans the width: slivers at the border would hardly
ever have a member.)

A `RoutingGraph` says what the vertices are that packets travel between, which are adjacent, and which edges to keep so
that no two cross (`planar`):

- `CellGraph`, the paper's: a vertex is a populated cell, an edge joins cells that touch. Two diagonals of a 2 x 2 block
  cross, so a diagonal is kept only if both cells that flank it are empty; where one is populated, there is a path
  through it. What is kept is the relative neighbourhood graph of the cell centres. It is planar, and what was connected
  stays connected.
- `NodeGraph`, for networks of any density: a vertex is a node's position, an edge joins nodes that hear each other, and
  `planar` is the Gabriel graph. Pure cells need about one node per cell, some 20 neighbours per node; below that the
  cells fall apart long before the radio network does. The paper itself allows any position-based hash table (section
  2.2, on GHT); everything above the routing is the same: what the nearest node keeps, its cell keeps.

In both, the edge between a and b is dropped if another vertex lies in the closed disc with diameter ab; the proof in
`steering.py` rests on that alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from hashlib import blake2b
from math import ceil, dist, floor, sqrt
from typing import Final

from roamcast.protocols.api import Point, Site

Vertex = tuple[int, int]
"""A place that packets travel between: column and row of a cell, or decimetres east and north of a node."""

Cell = tuple[int, int]
"""Column and row, counted from the area's corner; nodes outside the area have cells too."""

HEARING_SHARE: Final = 1 / (2 * sqrt(2))
"""Side of a cell as a share of the range at which cells that touch at a corner still hear each other."""

DECIMETRES: Final = 10.0
"""In a metre. Positions are told and compared in whole decimetres: exact, finite, and short in a frame."""

COORDINATE_MAX: Final = 2**31 - 1

CACHED_MAX: Final = 4096
"""How many keys' points a node caches. The cache only saves time: packets keep asking for the same few keys."""

AROUND: Final = tuple((dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy)


class CellGrid:
    """The cells of a site, and where keys lie in it."""

    def __init__(self, site: Site, side_m: float | None = None, margin_cells: float = 0.0) -> None:
        self.site = site
        self.columns = ceil(site.width_m / (site.range_m * HEARING_SHARE if side_m is None else side_m))
        self.side_m = site.width_m / self.columns if side_m is None else side_m
        self.rows = max(1, ceil(site.height_m / self.side_m))
        # Keys keep off the border, but in a small area at least the middle half of it is theirs.
        self._west_m = min(margin_cells * self.side_m, site.width_m / 4)
        self._south_m = min(margin_cells * self.side_m, site.height_m / 4)
        self._points: dict[str, Point] = {}  # of keys asked for, as far as remembered

    def cell(self, point: Point) -> Cell:
        """The cell of a point; the far borders of the area belong to its last cells."""
        x_m, y_m = point
        column = self.columns - 1 if x_m == self.site.width_m else floor(x_m / self.side_m)
        row = self.rows - 1 if y_m == self.site.height_m else floor(y_m / self.side_m)
        return column, row

    def centre(self, cell: Cell) -> Point:
        return (cell[0] + 0.5) * self.side_m, (cell[1] + 0.5) * self.side_m

    def point(self, key: str) -> Point:
        """Where a key lies: the same pseudo-random point of the area for all nodes."""
        known = self._points.get(key)
        if known is None:
            if len(self._points) >= CACHED_MAX:
                self._points.clear()
            known = self._points[key] = self._computed(key)
        return known

    def _computed(self, key: str) -> Point:
        digest = blake2b(key.encode(), digest_size=16).digest()
        across = int.from_bytes(digest[:8], "big") / 2**64
        up = int.from_bytes(digest[8:], "big") / 2**64
        width_m = self.site.width_m - 2 * self._west_m
        height_m = self.site.height_m - 2 * self._south_m
        return self._west_m + across * width_m, self._south_m + up * height_m


def decimetres(point: Point) -> Vertex:
    """A position as it is told to others; what is absurdly far away is brought to the largest number."""
    x, y = round(point[0] * DECIMETRES), round(point[1] * DECIMETRES)
    return (
        min(max(x, -COORDINATE_MAX), COORDINATE_MAX),
        min(max(y, -COORDINATE_MAX), COORDINATE_MAX),
    )


def metres(place: Vertex) -> Point:
    return place[0] / DECIMETRES, place[1] / DECIMETRES


def touching(a: Cell, b: Cell) -> bool:
    """Whether two cells are the same or neighbours, corners included."""
    return -1 <= a[0] - b[0] <= 1 and -1 <= a[1] - b[1] <= 1


class RoutingGraph(ABC):
    """What packets travel on, as one node sees it: its own vertex and those it hears of."""

    def __init__(self, grid: CellGrid, still_m: float = 0.0) -> None:
        self.grid = grid
        self.still_m = still_m  # a node that has moved by less counts as not having moved

    @abstractmethod
    def vertex(self, point: Point) -> Vertex:
        """The vertex of a node at `point`, or the target of packets that go there."""

    @abstractmethod
    def adjacent(self, here: Vertex, there: Vertex) -> bool:
        """Whether a node at `here` that hears one at `there` shares its vertex or an edge with it."""

    @abstractmethod
    def neighbours(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        """Those vertices out of `heard` that share an edge with `here`."""

    def steady(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        """Those neighbours that are likely to be in range still, even if they have moved since they were heard."""
        return self.neighbours(here, heard)

    @abstractmethod
    def planar(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        """Those neighbours whose edge is kept when crossing edges are dropped."""

    def near(self, here: Cell, home: Cell) -> bool:
        """Whether nodes in `here` keep backups of what `home` keeps."""
        return touching(here, home)

    @abstractmethod
    def surely_nearest(self, here: Vertex, target: Vertex) -> bool:
        """Whether `here`, with no neighbour closer to `target`, can be sure that no other node is closer either."""


class CellGraph(RoutingGraph):
    def vertex(self, point: Point) -> Vertex:
        return self.grid.cell(point)

    def adjacent(self, here: Vertex, there: Vertex) -> bool:
        return -1 <= here[0] - there[0] <= 1 and -1 <= here[1] - there[1] <= 1

    def neighbours(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        x, y = here
        return [(x + dx, y + dy) for dx, dy in AROUND if (x + dx, y + dy) in heard]

    def planar(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        x, y = here
        kept: list[Vertex] = []
        for dx, dy in AROUND:
            if (x + dx, y + dy) in heard:
                flanked = dx and dy and ((x + dx, y) in heard or (x, y + dy) in heard)
                if not flanked:
                    kept.append((x + dx, y + dy))
        return kept

    def surely_nearest(self, here: Vertex, target: Vertex) -> bool:
        """Next to an empty target the only rivals are the other three sides of it, and ties go to the north, then to
        the east (`steering.closer`): the northern cell has no rival, and the eastern one sees whether that is empty."""
        return (here[0] - target[0], here[1] - target[1]) in ((0, 1), (1, 0))


class NodeGraph(RoutingGraph):
    def __init__(self, grid: CellGrid, still_share: float = 1 / 16, steady_share: float = 0.9) -> None:
        super().__init__(grid, still_share * grid.site.range_m)
        self._range = grid.site.range_m * DECIMETRES
        self._steady = steady_share * self._range

    def vertex(self, point: Point) -> Vertex:
        return decimetres(point)

    def adjacent(self, here: Vertex, there: Vertex) -> bool:
        return True

    def neighbours(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        return [vertex for vertex in heard if vertex != here]

    def steady(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        limit = self._steady * self._steady
        x, y = here
        kept: list[Vertex] = []
        for vertex in heard:
            east, north = vertex[0] - x, vertex[1] - y
            if (east or north) and east * east + north * north <= limit:
                kept.append(vertex)
        return kept

    def planar(self, here: Vertex, heard: Collection[Vertex]) -> list[Vertex]:
        others = self.neighbours(here, heard)
        return [there for there in others if not any(_within(here, there, third) for third in others)]

    def near(self, here: Cell, home: Cell) -> bool:
        """All cells in range of each other: the node that is nearest to a key next may be in any of these."""
        return dist(here, home) * self.grid.side_m <= self.grid.site.range_m

    def surely_nearest(self, here: Vertex, target: Vertex) -> bool:
        """A node that is closer to a target within half the range of here is in range of here, so it is heard."""
        return 2 * dist(here, target) <= self._range


def _within(a: Vertex, b: Vertex, third: Vertex) -> bool:
    """Whether `third` lies in the disc with diameter `ab`: it sees that line under a right angle or more."""
    if third in (a, b):
        return False
    return (a[0] - third[0]) * (b[0] - third[0]) + (a[1] - third[1]) * (b[1] - third[1]) <= 0
