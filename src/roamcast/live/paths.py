"""Over which groups of which interfaces neighbours are heard, and so over which ones a broadcast has to go.

A node may be heard over IPv6 and IPv4, by multicast and by broadcast. To send every frame over all of them would waste
the channel. Beacons go over all; the group over which a neighbour's beacon came is one over which it can be reached. A
broadcast takes the fewest groups of each interface that reach every neighbour there. Pure.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from roamcast.live.endpoints import Endpoint

NODES_MAX = 4096


class Novelty(Enum):
    NODE = "node"  # it was not heard before
    GROUP = "group"  # it was, but not over this group


class _Heard:
    def __init__(self) -> None:
        self.last_s = 0.0
        self.groups: dict[Endpoint, float] = {}


class Paths:
    def __init__(self) -> None:
        self._nodes: dict[int, _Heard] = {}

    def __len__(self) -> int:
        """Neighbours."""
        return len(self._nodes)

    def __contains__(self, node: int) -> bool:
        return node in self._nodes

    @property
    def nodes(self) -> list[int]:
        """The neighbours, ascending."""
        return sorted(self._nodes)

    def forget(self, node: int) -> None:
        self._nodes.pop(node, None)

    def heard(self, node: int, group: Endpoint | None, now_s: float) -> Novelty | None:
        """A datagram of the node arrived; what is new about that."""
        novelty = None
        heard = self._nodes.get(node)
        if heard is None:
            novelty = Novelty.NODE
            if len(self._nodes) >= NODES_MAX:
                del self._nodes[min(self._nodes, key=lambda each: self._nodes[each].last_s)]
            heard = self._nodes[node] = _Heard()
        heard.last_s = now_s
        if group is not None:
            if novelty is None and group not in heard.groups:
                novelty = Novelty.GROUP
            heard.groups[group] = now_s
        return novelty

    def expire(self, before_s: float, groups_before_s: float) -> list[int]:
        """Forgets neighbours, and groups of neighbours, that were not heard since then; returns those neighbours."""
        gone = [node for node, heard in self._nodes.items() if heard.last_s < before_s]
        for node in gone:
            del self._nodes[node]
        for heard in self._nodes.values():
            heard.groups = {group: last_s for group, last_s in heard.groups.items() if last_s >= groups_before_s}
        return gone

    def forget_groups(self, groups: Iterable[Endpoint]) -> None:
        """Their interface is gone."""
        closed = set(groups)
        for heard in self._nodes.values():
            heard.groups = {group: last_s for group, last_s in heard.groups.items() if group not in closed}

    def choose(self, groups: Sequence[Sequence[Endpoint]]) -> tuple[Endpoint, ...]:
        """Of each interface, the groups to which a broadcast goes; the preferred one where there is no neighbour."""
        chosen: list[Endpoint] = []
        for of_interface in groups:
            chosen += self._fewest(of_interface)
        return tuple(chosen)

    def _fewest(self, groups: Sequence[Endpoint]) -> list[Endpoint]:
        reached = {group: {node for node, heard in self._nodes.items() if group in heard.groups} for group in groups}
        missing: set[int] = set().union(*reached.values())
        chosen: list[Endpoint] = []
        while missing:
            best = max(groups, key=lambda group: len(reached[group] & missing))  # of equal ones the first
            chosen.append(best)
            missing -= reached[best]
        return chosen or list(groups[:1])
