"""The graph: the links that exist now, as far as this node knows.

A node is a bit, a set of nodes an integer. Links come from three sources, best first:

1. this node's own links and those of its neighbours, as measured (`links.py`);
2. the links that nodes list in their records (`extra`, `lacks`);
3. positions: two nodes with known positions are expected to hear each other if they are within reach. How far the radio
   reaches is learned from the distances at which neighbours are heard.

Adjacency is computed on demand, node by node, and cached for `view_s`.
"""

from roamcast.protocols.api import Host
from roamcast.protocols.sender_tree import Adjacency, indices
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.records import Known, Records


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
        self._cells: dict[int, list[Known]] = {}  # by `_cell`
        self._x: list[float] = []
        self._y: list[float] = []

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
        self._cells.clear()
        self._find_silent()
        side_m = max(self._parameters.reach_possible * self._places.reach_m, 1.0)
        xs, ys, cells = self._x, self._y, self._cells
        xs.clear()
        ys.clear()
        site = self._host.site
        for known in self._records.by_index:
            x = y = 0.0
            if known.has_place:
                age_s = now - known.place_s
                x, y = known.x + known.vx * age_s, known.y + known.vy * age_s
                if site is not None:
                    x = min(max(x, 0.0), site.width_m)
                    y = min(max(y, 0.0), site.height_m)
                place = _cell(int(x // side_m), int(y // side_m))
                cell = cells.get(place)
                if cell is None:
                    cells[place] = [known]
                else:
                    cell.append(known)
            xs.append(x)
            ys.append(y)

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
        return 0 if known is None else 1 << known.index

    def bits(self, nodes: frozenset[int] | set[int]) -> int:
        found = 0
        for node in nodes:
            known = self._records.known.get(node)
            if known is not None:
                found |= 1 << known.index
        return found

    def around(self, node: int) -> frozenset[int]:
        """Who can be expected to hear a node: for this node and its neighbours as measured, for others by the graph."""
        known = self._records.known.get(node)
        if node == self._host.address:
            found = self._links.neighbours()
        else:
            found = self._links.of(node)
        if known is not None and known.has_place and known.index < len(self._x):
            nodes = self._records.nodes
            found = found.union([nodes[index] for index in indices(self.adjacent(known.index, True))])
        return found

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
        found = self._expected(known, loose) if known.has_place else 0
        if index == own:
            found |= self._measured()
        else:
            says, said_of = records.says[index], records.said_of[index]
            listed = says & said_of
            if loose:
                listed |= self._newer_word(known, says, said_of)
            found |= listed & ~(1 << own) | (self._measured() >> index & 1) << own
        if index == own or found >> own & 1:
            found &= ~self._cut if index == own else ~((self._cut >> index & 1) << own)
        return 0 if self._silent >> index & 1 else found & ~self._silent

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
        xs, ys = self._x, self._y
        x, y = xs[known.index], ys[known.index]
        side_m = max(self._parameters.reach_possible * self._places.reach_m, 1.0)
        column, row = int(x // side_m), int(y // side_m)
        lacks = known.lacks
        found = 0
        for i in range(column - 1, column + 2):
            for j in range(row - 1, row + 2):
                cell = self._cells.get(_cell(i, j))
                if cell is None:
                    continue
                for other in cell:
                    index = other.index
                    dx, dy = xs[index] - x, ys[index] - y
                    if dx * dx + dy * dy <= limit and other is not known:
                        if lacks and known.where_s >= other.reborn_s and self._records.nodes[index] in lacks:
                            continue
                        if other.lacks and other.where_s >= known.reborn_s and node in other.lacks:
                            continue
                        found |= 1 << index
        return found


def _cell(column: int, row: int) -> int:
    """Two cells that share a number do no harm: distances decide."""
    return column * 65_537 + row
