"""The broker topology table and the shortest paths through it [2.3 steps 2-4].

A row says which brokers its owner has chosen as neighbours, with the length of each link in hops. A link exists if
either end lists it. Paths are worked out only when they are asked for after a change.
"""

from heapq import heappop, heappush

from roamcast.protocols.overlays.messages import LinkState
from roamcast.protocols.routing.sequence import newer


class TopologyTable:
    def __init__(self, own: int) -> None:
        self._own = own
        self.rows: dict[int, LinkState] = {}
        self.heard_s: dict[int, float] = {}  # when the row was last replaced
        self.changed: dict[int, None] = {}  # rows to propagate
        self._links: dict[int, dict[int, int]] | None = None
        self._paths: dict[int, tuple[dict[int, int], dict[int, int]]] = {}  # from -> distances, predecessors

    def merge(self, row: LinkState, now_s: float) -> bool:
        """Takes a row if it is newer than the one at hand (step 3), or this broker's own."""
        known = self.rows.get(row.broker)
        if known is not None and row.broker != self._own and not newer(row.sequence, known.sequence):
            return False
        self.rows[row.broker] = row
        self.heard_s[row.broker] = now_s
        self.changed[row.broker] = None
        if known is None or known.neighbours != row.neighbours:
            self._forget_paths()
        return True

    def expire(self, before_s: float) -> list[int]:
        """Forgets brokers that have said nothing new for long, and returns them."""
        gone = [broker for broker, heard_s in self.heard_s.items() if heard_s < before_s and broker != self._own]
        for broker in gone:
            del self.rows[broker], self.heard_s[broker]
            self.changed.pop(broker, None)
        if gone:
            self._forget_paths()
        return gone

    def linked(self, broker: int) -> list[int]:
        """The brokers that share a link with `broker`, by address."""
        return sorted(self._graph().get(broker, ()))

    def distance(self, one: int, other: int) -> int | None:
        """Length in hops of the shortest path between two brokers; None if the table knows none."""
        return self._tree(one)[0].get(other)

    def path(self, destination: int, avoid: frozenset[int] = frozenset()) -> tuple[int, ...] | None:
        """The brokers on the shortest path from here, the destination last."""
        predecessors = (self._dijkstra(self._own, avoid) if avoid else self._tree(self._own))[1]
        if destination not in predecessors:
            return None
        path = [destination]
        while predecessors[path[-1]] != self._own:
            path.append(predecessors[path[-1]])
        return tuple(reversed(path))

    def _graph(self) -> dict[int, dict[int, int]]:
        if self._links is None:
            self._links = {broker: {} for broker in self.rows}
            for broker, row in self.rows.items():
                for neighbour, hops in row.neighbours:
                    if neighbour in self.rows:
                        shorter = min(hops, self._links[neighbour].get(broker, hops))
                        self._links[broker][neighbour] = self._links[neighbour][broker] = shorter
        return self._links

    def _forget_paths(self) -> None:
        self._links = None
        self._paths.clear()

    def _tree(self, root: int) -> tuple[dict[int, int], dict[int, int]]:
        if root not in self._paths:
            self._paths[root] = self._dijkstra(root, frozenset())
        return self._paths[root]

    def _dijkstra(self, root: int, avoid: frozenset[int]) -> tuple[dict[int, int], dict[int, int]]:
        graph = self._graph()
        distances: dict[int, int] = {}
        predecessors: dict[int, int] = {}
        queue = [
            (0, 0, root, root)
        ]  # hops, links, broker, the broker before it; ties go to fewer links, then addresses
        while queue:
            hops, links, broker, before = heappop(queue)
            if broker in distances:
                continue
            distances[broker] = hops
            if broker != root:
                predecessors[broker] = before
                if broker in avoid:
                    continue
            for neighbour, length in graph.get(broker, {}).items():
                if neighbour not in distances:
                    heappush(queue, (hops + length, links + 1, neighbour, broker))
        return distances, predecessors
