"""The graph: the links that exist now, as far as this node knows.

A node is a bit, a set of nodes an integer. Links come from three sources, best first:

1. this node's own links and those of its neighbours, as measured (`links.py`);
2. the links that nodes list in their records (`extra`, `lacks`);
3. positions: two nodes with known positions are expected to hear each other if they are within reach. How far the radio
   reaches is learned from the distances at which neighbours are heard.

Adjacency is computed on demand, node by node, and cached for `view_s`.
"""

from typing import Final

from roamcast.protocols.api import Host
from roamcast.protocols.sender_tree import Adjacency, indices
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.records import Known, Records

CELLS: Final = 512  # a power of two


class Graph(Adjacency):
    def __init__(
        self, host: Host, parameters: WaymarkParameters, records: Records, places: Places, links: Links
    ) -> None:
        self._host = host
        self._parameters = parameters
        self._records = records
        self._links = links
        self._places = places
        self._view_s = -1e9
        self._state = (-1, -1)
        self._own_links = -1  # those that places do not explain; -1: not worked out
        self._safe: dict[int, int] = {}
        self._loose: dict[int, int] = {}
        self._cut = 0  # neighbours to which an acknowledged frame has failed
        self._silent = 0  # nodes that their neighbours do not hear any more
        self._cells: list[list[Known]] = [[] for _ in range(CELLS)]  # by number: nodes there, by their places
        self._occupied: list[list[Known]] = []  # the cells with nodes
        self._side_m = 1.0  # of a cell: nodes that may hear each other are in the same cell or in adjacent ones
        self._viewed = 0  # nodes that were known then
        self._around: dict[int, tuple[frozenset[int], frozenset[int]]] = {}  # by node: what it was made from, and it

    def refresh(self, older_s: float = 0.0) -> None:
        """Everything is worked out anew from now on, unless it is no older than this, or recent and nothing changed."""
        now = self._host.now()
        state = (self._records.changes, self._links.changes)
        age_s = now - self._view_s
        if age_s < older_s or (age_s <= self._parameters.view_s and state == self._state):
            return
        self._view_s, self._state = now, state
        self._cut = self.bits({node for node, neighbour in self._links.known.items() if neighbour.is_cut})
        self._own_links = -1
        self._safe.clear()
        self._loose.clear()
        self._around.clear()
        self._find_silent()
        self._place_in_cells()
        self._viewed = len(self._records.nodes)

    def _place_in_cells(self) -> None:
        """Where each node should be now."""
        for cell in self._occupied:
            cell.clear()
        self._occupied.clear()
        now = self._view_s
        side_m = self._side_m = max(self._parameters.reach_possible * self._places.reach_m, 1.0)
        site = self._host.site
        is_bounded = site is not None
        width_m, height_m = (0.0, 0.0) if site is None else (site.width_m, site.height_m)
        cells = self._cells
        for known in self._records.by_index:
            if known.has_place:
                age_s = now - known.place_s
                x, y = known.x + known.vx * age_s, known.y + known.vy * age_s
                if is_bounded:
                    x = 0.0 if x < 0.0 else x if x < width_m else width_m
                    y = 0.0 if y < 0.0 else y if y < height_m else height_m
                known.view_x = x
                known.view_y = y
                cell = cells[_cell(int(x / side_m), int(y / side_m))]
                if not cell:
                    self._occupied.append(cell)
                cell.append(known)
            else:
                known.view_x = known.view_y = 0.0

    def _find_silent(self) -> None:
        """A node that several others nearby say they cannot hear, and that has said nothing since, has no links."""
        records = self._records
        lacked: dict[int, int] = {}
        for known in records.by_index:
            for node in known.lacks:
                other = records.known.get(node)
                if other is not None and other.where_s < known.where_s:
                    lacked[node] = lacked.get(node, 0) + 1
        self._silent = 0
        for node, times in lacked.items():
            if times >= self._parameters.lacked_min and node not in self._links.neighbours():
                self._silent |= 1 << records.known[node].index

    def is_silent(self, node: int) -> bool:
        """Whether a node counts as silent by what others say."""
        self.refresh()
        return bool(self._silent & self.bit(node))

    def bit(self, node: int) -> int:
        known = self._records.known.get(node)
        return 0 if known is None else known.bit

    def bits(self, nodes: frozenset[int] | set[int]) -> int:
        found = 0
        for node in nodes:
            known = self._records.known.get(node)
            if known is not None:
                found |= known.bit
        return found

    def around(self, node: int) -> frozenset[int]:
        """Who can be expected to hear a node: for this node and its neighbours as measured, for others by the graph."""
        known = self._records.known.get(node)
        if node == self._host.address:
            found = self._links.neighbours()
        else:
            found = self._links.of(node)
        if known is None or not known.has_place or known.index >= self._viewed:
            return found
        before = self._around.get(node)
        if before is not None and before[0] is found:
            return before[1]
        nodes = self._records.nodes
        around = found.union([nodes[index] for index in indices(self.adjacent(known.index, True))])
        self._around[node] = (found, around)
        return around

    def connected(self) -> int:
        """All nodes to which a path leads from here, as far as is known."""
        self.refresh()
        connected = fresh = 1 << self._records.own.index
        while fresh:
            step = 0
            for index in indices(fresh):
                step |= self.adjacent(index, True)
            fresh = step & ~connected
            connected |= fresh
        return connected

    def adjacent(self, index: int, loose: bool) -> int:
        cache = self._loose if loose else self._safe
        found = cache.get(index)
        if found is None:
            found = cache[index] = self._work_out(index, loose)
        return found

    def _work_out(self, index: int, loose: bool) -> int:
        records = self._records
        known = records.by_index[index]
        own = records.own.index
        own_bit = records.own.bit
        found = self._expected(known, loose) if known.has_place else 0
        if index == own:
            found |= self._measured()
        else:
            says, said_of = records.says[index], records.said_of[index]
            if says or said_of:
                listed = says & said_of
                if loose:
                    listed |= self._newer_word(known, says, said_of)
                found |= listed & ~own_bit
            if self._measured() & known.bit:
                found |= own_bit
        if self._cut:
            if index == own:
                found &= ~self._cut
            elif self._cut & known.bit:
                found &= ~own_bit
        if self._silent:
            return 0 if self._silent & known.bit else found & ~self._silent
        return found

    def _newer_word(self, known: Known, says: int, said_of: int) -> int:
        """Links that only one of two nodes lists, and that one spoke last."""
        records = self._records
        found = 0
        for other in indices(says ^ said_of):
            other_s = records.by_index[other].listed_s
            if says >> other & 1 == (known.listed_s >= other_s):
                found |= 1 << other
        return found

    def _measured(self) -> int:
        """This node's own links that places do not explain."""
        if self._own_links < 0:
            self._own_links = 0
            for node in self._links.neighbours():
                known = self._records.known.get(node)
                if known is not None and (self._links.known[node].is_far or not self._places.explains(node)):
                    self._own_links |= 1 << known.index
        return self._own_links

    def _expected(self, known: Known, loose: bool) -> int:
        """Who should hear it by places, except for those of which it says otherwise, or which do."""
        node = self._records.nodes[known.index]
        share = self._parameters.reach_possible if loose else self._parameters.reach_safe
        reach_m = share * self._places.reach_m
        limit = reach_m * reach_m
        x, y = known.view_x, known.view_y
        column, row = int(x / self._side_m), int(y / self._side_m)
        lacks = known.lacks
        found = bytearray((len(self._records.nodes) >> 3) + 1)
        for i in range(column - 1, column + 2):
            for j in range(row - 1, row + 2):
                for other in self._cells[_cell(i, j)]:
                    dx = other.view_x - x
                    dy = other.view_y - y
                    if dx * dx + dy * dy <= limit and other is not known:
                        if lacks and known.where_s >= other.reborn_s and self._records.nodes[other.index] in lacks:
                            continue
                        if other.lacks and other.where_s >= known.reborn_s and node in other.lacks:
                            continue
                        index = other.index
                        found[index >> 3] |= 1 << (index & 7)
        return int.from_bytes(found, "little")


def _cell(column: int, row: int) -> int:
    """The number of a cell. Cells that are far apart may share one: distances decide anyway."""
    return (column * 37 + row) & CELLS - 1
