"""Trees with few senders. One broadcast serves all neighbours, so a tree costs as many frames as it has senders.

Pure functions of who can hear whom; Waymark plans with them from what it knows, the broadcast oracle from the truth.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

_PLACES: Final = [[place for place in range(8) if byte >> place & 1] for byte in range(256)]
"""Of the bits that are set in a byte. A set is read byte by byte: taking bit after bit makes new large numbers."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Adjacency(ABC):
    """Who can hear whom. A node is an index, a set of nodes a whole number with a bit for each."""

    @abstractmethod
    def adjacent(self, index: int, loose: bool) -> int:
        """Who hears this node. `loose`: counting links that may be gone already."""


class Plan:
    """What one frame has to say. `groups`: for each neighbour that is to pass it on, the destinations behind it; none
    for a neighbour that is only a destination itself. `lost`: destinations without a path."""

    __slots__ = ("groups", "lost")

    def __init__(self, groups: dict[int, int], lost: int) -> None:
        self.groups = groups
        self.lost = lost


def grow_tree(graph: Adjacency, me: int, excluded: int, wanted: int, loose: bool, idle: int = 0) -> Plan:
    """Repeatedly connects the nearest destination that is not reached yet by a path that reaches the most
    other destinations. Nodes are indices; `excluded` are not reached directly, `idle` ones pass nothing on."""
    own = graph.adjacent(me, loose) & ~excluded
    here = 1 << me
    head: dict[int, int] = {}  # of a node that is reached: the neighbour through which
    for index in indices(own):
        head[index] = index
    leaves = wanted & own
    open_ = wanted & ~own & ~here
    reached = own
    groups: dict[int, int] = {}
    beyond = 0  # who hears a node that is reached
    fresh = own  # reached, but not yet accounted for in `beyond`
    while open_:
        for index in indices(fresh & ~idle):
            beyond |= graph.adjacent(index, loose)
        fresh = 0
        path = _path(
            graph=graph,
            reached=reached,
            beyond=beyond,
            here=here,
            open_=open_,
            wanted=wanted,
            loose=loose,
            idle=idle,
        )
        if not path:
            break
        first = head[path[0]]
        for sender in path:
            new = graph.adjacent(sender, loose) & ~reached & ~here
            for index in indices(new):
                head[index] = first
            reached |= new
            fresh |= new
        served = open_ & reached
        groups[first] = groups.get(first, 0) | served
        open_ &= ~served
    for index in indices(leaves):
        groups.setdefault(index, 0)
    return Plan(groups, open_)


def _path(
    graph: Adjacency, reached: int, beyond: int, here: int, open_: int, wanted: int, loose: bool, idle: int
) -> list[int]:
    """Senders, first one reached already, that lead to the nearest open destination; empty if there is no way. `beyond`
    is who hears one of the reached."""
    levels = [reached]
    seen = reached | here
    while not levels[-1] & open_:
        step = beyond
        if len(levels) > 1:
            step = 0
            for index in indices(levels[-1] & ~idle):
                step |= graph.adjacent(index, loose)
        step &= ~seen
        if not step:
            return []
        seen |= step
        levels.append(step)
    goal = levels[-1] & open_
    path: list[int] = []
    for level in range(len(levels) - 2, -1, -1):
        near = 0
        for index in indices(goal):
            near |= graph.adjacent(index, loose)
        best, best_gain = -1, -1
        for index in indices(near & levels[level] & ~idle):
            around = graph.adjacent(index, loose)
            if not around & goal:
                continue
            gain = 2 * (around & open_).bit_count() + (wanted >> index & 1)
            if gain > best_gain:
                best, best_gain = index, gain
        if best < 0:
            return []  # the graph is not symmetric here
        path.append(best)
        goal = 1 << best
    path.reverse()
    return path


def indices(bits: int) -> list[int]:
    """The nodes of a set, ascending."""
    found: list[int] = []
    first = 0
    for byte in bits.to_bytes((bits.bit_length() + 7) >> 3, "little"):
        if byte:
            for place in _PLACES[byte]:
                found.append(first + place)
        first += 8
    return found
