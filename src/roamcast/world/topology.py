"""Who hears whom at this instant, and the global view that only measuring and the oracle may use.

The contact plan says who is in range; this adds who is switched on. Neighbour lists are sorted and are replaced, never
changed, so a frame may keep the list that held when it started.
"""

from bisect import insort
from typing import Final

from roamcast.protocols.api import NOBODY

KNOWN_DISTANCES_MAX: Final = 4_000_000
"""Distances between nodes that are kept at a time: in a large network at rest, not those of all pairs."""


class Topology:
    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.hear: list[list[int]] = [[] for _ in range(nodes)]  # in reception range and up
        self.sense: list[list[int]] = [[] for _ in range(nodes)]  # in carrier-sense range only, and up
        self.version = 0  # changes whenever one of these does
        self._near: list[set[int]] = [set() for _ in range(nodes)]
        self._far: list[set[int]] = [set() for _ in range(nodes)]
        self._up = [True] * nodes
        self._deaf: set[tuple[int, int]] = set()  # sender, and who does not hear it although it is in range
        self._one_way = False  # links may exist in one direction only: the sets above are those of the sender
        self._distances: dict[int, list[int]] = {}
        self._distances_version = -1

    def is_up(self, node: int) -> bool:
        return self._up[node]

    def set_up(self, node: int, up: bool) -> None:
        self._up[node] = up
        self._refresh(node)
        for other in range(self.nodes) if self._one_way else sorted(self._near[node] | self._far[node]):
            self._refresh(other)

    def set_contact(self, a: int, b: int, in_contact: bool) -> None:
        """`a` and `b` have come into reception range of each other, or left it."""
        self._change(self._near, a, b, in_contact)

    def set_sensed(self, a: int, b: int, sensed: bool) -> None:
        """`a` and `b` have come into carrier-sense range of each other, or left it."""
        self._change(self._far, a, b, sensed)

    def set_deaf(self, sender: int, receiver: int, deaf: bool) -> None:
        """For the time being `receiver` does not hear `sender`, or hears it again."""
        self._one_way = True
        if deaf:
            self._deaf.add((sender, receiver))
        else:
            self._deaf.discard((sender, receiver))
        self._refresh(sender)

    def _change(self, links: list[set[int]], a: int, b: int, present: bool) -> None:
        if present:
            links[a].add(b)
            links[b].add(a)
        else:
            links[a].discard(b)
            links[b].discard(a)
        if self._up[a] and self._up[b]:
            self._place(a, b)
            self._place(b, a)
            self.version += 1

    def _place(self, node: int, other: int) -> None:
        """Puts `other` on the lists of `node` where it belongs now; both are up."""
        in_range = other in self._near[node]
        is_near = in_range and not (self._deaf and (node, other) in self._deaf)
        is_far = not in_range and other in self._far[node]
        if is_near != (other in self.hear[node]):
            self.hear[node] = _changed(self.hear[node], other, is_near)
        if is_far != (other in self.sense[node]):
            self.sense[node] = _changed(self.sense[node], other, is_far)

    def load(self, contacts: list[tuple[int, int]], sensed: list[tuple[int, int]]) -> None:
        """Sets many links at once, as at the start of a run."""
        for links, pairs in ((self._near, contacts), (self._far, sensed)):
            for a, b in pairs:
                links[a].add(b)
                links[b].add(a)
        for node in range(self.nodes):
            self._refresh(node)

    def load_one_way(self, near: list[list[int]], far: list[list[int]]) -> None:
        """Replaces all links, by sender, each list in order. They may differ by direction."""
        self._one_way = True
        self._near = [set(nodes) for nodes in near]
        self._far = [set(nodes) for nodes in far]
        if all(self._up) and not self._deaf:
            self.hear, self.sense = near, far
            self.version += 1
            return
        for node in range(self.nodes):
            self._refresh(node)

    def _refresh(self, node: int) -> None:
        up = self._up
        if up[node]:
            near = self._near[node]
            deaf = self._deaf
            self.hear[node] = sorted(other for other in near if up[other] and not (deaf and (node, other) in deaf))
            self.sense[node] = sorted(other for other in self._far[node] if up[other] and other not in near)
        else:
            self.hear[node] = []
            self.sense[node] = []
        self.version += 1

    def distances(self, source: int) -> list[int]:
        """Hops from `source` to every node, -1 where there is no path; the list is shared, do not change it."""
        if self._distances_version != self.version:
            self._distances.clear()
            self._distances_version = self.version
        known = self._distances.get(source)
        if known is None:
            if len(self._distances) * self.nodes >= KNOWN_DISTANCES_MAX:
                del self._distances[next(iter(self._distances))]  # the oldest
            known = self._distances[source] = self._search(source, self.hear)
        return known

    def _search(self, source: int, hear: list[list[int]]) -> list[int]:
        distance = [-1] * self.nodes
        if not self._up[source]:
            return distance
        distance[source] = 0
        frontier = [source]
        hops = 0
        while frontier:
            hops += 1
            reached: list[int] = []
            for node in frontier:
                for other in hear[node]:
                    if distance[other] < 0:
                        distance[other] = hops
                        reached.append(other)
            frontier = reached
        return distance

    def next_hop(self, source: int, destination: int) -> int:
        """The neighbour with the lowest address on a shortest path, or `NOBODY`; every hop works in both directions."""
        if self._one_way:
            return self._next_hop_both_ways(source, destination)
        distance = self.distances(destination)
        if distance[source] <= 0:
            return NOBODY
        for neighbour in self.hear[source]:
            if distance[neighbour] == distance[source] - 1:
                return neighbour
        return NOBODY

    def _next_hop_both_ways(self, source: int, destination: int) -> int:
        key = -1 - destination  # beside the distances along single directions
        if self._distances_version != self.version:
            self.distances(destination)  # forgets what is out of date
        distance = self._distances.get(key)
        if distance is None:
            both = [[other for other in self.hear[node] if node in self.hear[other]] for node in range(self.nodes)]
            distance = self._distances[key] = self._search(destination, both)
        if distance[source] <= 0:
            return NOBODY
        for neighbour in self.hear[source]:
            if distance[neighbour] == distance[source] - 1 and source in self.hear[neighbour]:
                return neighbour
        return NOBODY


def _changed(nodes: list[int], node: int, is_added: bool) -> list[int]:
    """Sorted nodes, with `node` or without it."""
    if not is_added:
        return [other for other in nodes if other != node]
    changed = nodes.copy()
    insort(changed, node)
    return changed
