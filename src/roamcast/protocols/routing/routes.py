"""The routing table of AODV.

An entry says how to reach one destination. It is *valid* (may be used) until `until_s`; then, or when its link breaks,
it becomes invalid: its sequence number is raised by one and it is kept for the delete period, only to recognise old
routes. What may replace an entry is decided in one place, `learn`, because loop freedom depends on it: along every path
to a destination, the pair (sequence number, fewer hops) must grow from node to node.

Expiry is worked out when an entry is looked at (`find`), not by a timer per entry. That raising of the number at expiry
matters as much as at a break: otherwise a node whose route expired could accept the route of a neighbour that still
leads through itself.

`Losses` gathers lost routes and those who relied on them, for the RERR that tells them.
"""

from collections.abc import Iterable, Iterator

from roamcast.protocols.api import NOBODY
from roamcast.protocols.routing.sequence import newer, newest, successor


class Route:
    __slots__ = ("destination", "hops", "next_hop", "precursors", "sequence", "until_s", "valid")

    def __init__(self, destination: int, sequence: int | None, hops: int, next_hop: int, until_s: float) -> None:
        self.destination = destination
        self.sequence = sequence  # None: only the neighbour's own frames told of it, without a number
        self.hops = hops  # while invalid, the last known distance
        self.next_hop = next_hop
        self.until_s = until_s  # of validity; while invalid, of remembrance
        self.valid = True
        self.precursors: dict[int, None] = {}  # neighbours that route to the destination through this node

    def invalidate(self, sequence: int | None, until_s: float) -> None:
        self.sequence = sequence
        self.valid = False
        self.until_s = until_s

    def next_sequence(self) -> int | None:
        """The number that makes the loss of this route newer than the route."""
        return None if self.sequence is None else successor(self.sequence)


class RouteTable:
    def __init__(self, delete_period_s: float) -> None:
        self._routes: dict[int, Route] = {}
        self._delete_period_s = delete_period_s

    def __len__(self) -> int:
        return len(self._routes)

    def find(self, destination: int, now_s: float) -> Route | None:
        """The entry for `destination`, valid or remembered."""
        route = self._routes.get(destination)
        if route is None or now_s < route.until_s:
            return route
        if route.valid:  # expired, and noticed only now
            route.invalidate(route.next_sequence(), route.until_s + self._delete_period_s)
            route.precursors.clear()
            if now_s < route.until_s:
                return route
        del self._routes[destination]
        return None

    def usable(self, destination: int, now_s: float) -> Route | None:
        """The entry for `destination` if it is valid."""
        route = self.find(destination, now_s)
        return route if route is not None and route.valid else None

    def next_hop(self, destination: int, now_s: float) -> int:
        """Where a packet for `destination` would go now, or `NOBODY`. Changes nothing: for checkers."""
        route = self._routes.get(destination)
        return route.next_hop if route is not None and route.valid and now_s < route.until_s else NOBODY

    def through(self, neighbour: int, now_s: float) -> list[Route]:
        """The valid routes that lead through `neighbour`, by destination."""
        candidates = sorted(d for d, route in self._routes.items() if route.valid and route.next_hop == neighbour)
        return [route for route in (self.usable(d, now_s) for d in candidates) if route is not None]

    def learn(
        self, destination: int, sequence: int | None, hops: int, next_hop: int, until_s: float, now_s: float
    ) -> bool:
        """Takes a route; true if the entry now says so, false if it knew a better one. Only what comes from the
        destination itself, one hop away, may lack a number."""
        route = self.find(destination, now_s)
        if route is None:
            self._routes[destination] = Route(destination, sequence, hops, next_hop, until_s)
            return True
        same = route.valid and route.next_hop == next_hop and route.hops == hops
        if sequence is None:
            # The neighbour itself was heard. A number that is known stays: forgetting it would admit outdated routes.
            fresh = True
        else:
            fresh = (
                route.sequence is None
                or newer(sequence, route.sequence)
                or (sequence == route.sequence and (not route.valid or hops < route.hops or same))
            )
        if not fresh:
            return False
        route.sequence = newest(route.sequence, sequence)
        route.until_s = max(route.until_s, until_s) if same else until_s
        route.hops = hops
        route.next_hop = next_hop
        route.valid = True
        return True

    def is_neighbour(self, node: int, until_s: float, now_s: float) -> bool:
        """True if there is a valid route of one hop to `node`, which then lives until `until_s` at least."""
        route = self._routes.get(node)
        if route is None or not route.valid or route.next_hop != node or route.hops != 1 or now_s >= route.until_s:
            return False
        if route.until_s < until_s:
            route.until_s = until_s
        return True

    def refresh(self, destination: int, until_s: float, now_s: float) -> None:
        """A valid route was used: it lives until `until_s` at least."""
        route = self.usable(destination, now_s)
        if route is not None and route.until_s < until_s:
            route.until_s = until_s

    def lose(self, route: Route, sequence: int | None, now_s: float) -> None:
        """A valid route is gone; from now on only a route at least as new as `sequence` can bring it back."""
        route.invalidate(newest(route.next_sequence(), sequence), now_s + self._delete_period_s)

    def sweep(self, now_s: float) -> None:
        """Forgets what is long past."""
        for destination in list(self._routes):
            self.find(destination, now_s)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes.values())


class Losses:
    """Destinations that are no longer reached through this node, and the neighbours that have to know."""

    def __init__(self) -> None:
        self.unreachable: dict[int, int | None] = {}  # destination -> the number that outdates the route
        self.told: dict[int, None] = {}

    def add(self, route: Route) -> None:
        """Notes a route that is lost, if a neighbour relied on it; from now on none does."""
        self.note(route.destination, route.sequence, route.precursors)
        route.precursors.clear()

    def note(self, destination: int, sequence: int | None, precursors: Iterable[int]) -> None:
        for precursor in precursors:
            self.unreachable[destination] = sequence
            self.told[precursor] = None
