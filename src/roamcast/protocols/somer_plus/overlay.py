"""What a root knows of all other roots: what their trees want, who their neighbours are, and so how to reach them.

Entries spread by flooding among roots; a newer one replaces what was known of its root. In the thesis an entry leaves
behind a route back to its root, so that events follow the shortest reverse path (section 4.3.2). That route is only as
fresh as the last advertisement: when two trees merge, every path through the absorbed root is dead until all roots have
advertised again. Here an entry names the neighbouring roots with their distances instead, and each root computes the
shortest paths itself. In a network at rest these are the same paths. After a merge only the roots around it need to
advertise. A tree is known to be gone if its heir says so, or if no root names it as a neighbour any more. (The heir has
priority: trees that are gone name each other for as long as they are remembered.)
"""

from collections.abc import Collection
from heapq import heappop, heappush

from roamcast.causal import Role
from roamcast.events import Event
from roamcast.interests.matching import matches
from roamcast.protocols.api import NOBODY
from roamcast.protocols.somer_plus.messages import Distances, Entry, Leg


class Overlay:
    """The other roots as one root sees them."""

    def __init__(self, own: int, lifetime_s: float, period_s: float, depth_max: int) -> None:
        self.entries: dict[int, Entry] = {}  # by root
        self._own = own
        self._near: Distances = ()
        self._heard_s: dict[int, float] = {}
        self._heirs: dict[int, list[int]] = {}  # root that was absorbed -> by whom
        self._gone: set[int] = set()  # roots that were absorbed and have said nothing since
        self._near_lifetime_s = lifetime_s  # a neighbouring root that has been silent for this long is forgotten
        self._period_s = period_s
        self._depth_max = depth_max  # roots in a row on a planned path
        self._vias: dict[int, int] | None = None  # target -> neighbouring root; None: to be computed

    def set_near(self, near: Distances) -> None:
        """The own neighbouring roots and their distances."""
        self._near = near
        self._vias = None

    def learn(self, entry: Entry, now_s: float, eager: bool = False) -> bool:
        """Takes in an entry; true if it is what others wait to hear: a tree that is new, has absorbed another or wants
        more than before, or neighbours that put other trees within reach or out of it. An eager root takes all other
        neighbours for news: what puts nothing within its own reach may still do so for who knows less."""
        known = self.entries.get(entry.root)
        if known is not None and entry.sequence <= known.sequence:
            return False
        back = entry.root in self._gone
        others_near = known is not None and {root for root, _ in known.near} != {root for root, _ in entry.near}
        before = self.vias if others_near or back else None
        self.entries[entry.root] = entry
        self._heard_s[entry.root] = now_s
        self._gone.discard(entry.root)
        if known is None or back or known.near != entry.near:
            self._vias = None
        inherited = [root for root in entry.absorbed if entry.root not in self._heirs.get(root, ())]
        for root in inherited:
            self._heirs.setdefault(root, []).append(entry.root)
            self.dismiss(root)
        grown = entry.interest is not None and (
            known is None or known.interest is None or not known.interest.covers(entry.interest)
        )
        if known is None or grown or inherited:
            return True
        return (eager and others_near) or (before is not None and before.keys() != self.vias.keys())

    def dismiss(self, root: int) -> None:
        """A tree is part of others now; what its root has said until then leads nowhere."""
        self._gone.add(root)
        self._vias = None

    def expire(self, now_s: float) -> None:
        for root in [root for root, heard_s in self._heard_s.items() if heard_s < now_s - self._lifetime_s(root)]:
            del self.entries[root], self._heard_s[root]
            self._heirs.pop(root, None)
            self._gone.discard(root)
            self._vias = None

    def _lifetime_s(self, root: int) -> float:
        """A root farther away has a period more for each root between: what is no news goes on with each root's own
        advertisement, one root a period."""
        lifetime_s = self._near_lifetime_s
        for _ in range(self._depth_max):
            root = self.vias.get(root, self._own)
            if root == self._own:
                break
            lifetime_s += self._period_s
        return lifetime_s

    def sequence(self, root: int) -> int:
        """The newest entry known of a root, or -1."""
        entry = self.entries.get(root)
        return -1 if entry is None else entry.sequence

    def wanting(self, event: Event) -> list[int]:
        """Roots whose trees want the event, within reach or not."""
        return [r for r, entry in self.entries.items() if entry.interest is not None and matches(entry.interest, event)]

    def heirs(self, root: int) -> list[int]:
        """The roots within reach that serve another's tree now: itself, or who absorbed it; some may share it."""
        found: list[int] = []
        passed = [root]
        for heir in passed:  # which grows
            if heir in self.vias:
                found.append(heir)
            else:
                passed += [further for further in self._heirs.get(heir, ()) if further not in passed]
        return found

    def via(self, root: int) -> int:
        """The last root before that one on the shortest path, this one if they are neighbours, or `NOBODY`."""
        return self.vias.get(root, NOBODY)

    @property
    def vias(self) -> dict[int, int]:
        """For every root within reach, the last root before it on the shortest path."""
        if self._vias is None:
            self._vias = self._shortest(())
        return self._vias

    def plan(self, targets: Collection[int], besides: tuple[int, ...]) -> tuple[Leg, ...]:
        """The shortest paths to those targets that can be reached without the roots `besides`. An absorbed tree is
        addressed behind its heirs, so that they know whom the event is for."""
        if not targets:
            return ()
        vias = self._shortest(besides) if besides else self.vias
        onward: dict[int, dict[int, None]] = {}  # root -> those that follow
        for target in sorted(targets):
            for heir in self.heirs(target):
                if heir not in vias:
                    continue
                path = self._path(heir, vias)
                if len(path) > self._depth_max:
                    continue
                if heir != target:
                    onward.setdefault(heir, {})[target] = None
                for before, root in path:
                    onward.setdefault(before, {})[root] = None
        return _legs(self._own, onward, targets)

    def _path(self, root: int, vias: dict[int, int]) -> list[tuple[int, int]]:
        """The steps to a root as (root before, root), the last one first; longer than allowed if it is too far."""
        path: list[tuple[int, int]] = []
        while root != self._own and len(path) <= self._depth_max:
            path.append((vias[root], root))
            root = vias[root]
        return path

    def roles(self) -> dict[int, Role]:
        """The causal nodes of all other trees."""
        return {node: role for entry in self.entries.values() for node, role in entry.roles}

    def _shortest(self, besides: tuple[int, ...]) -> dict[int, int]:
        """Dijkstra from the own root; of equal ways the one through the lowest address."""
        vias: dict[int, int] = {}
        nearest = dict.fromkeys((self._own, *besides, *self._gone), -1)  # the shortest paths; none leads to these
        queue: list[tuple[int, int, int]] = []
        for root, distance in self._near:
            if root not in besides:
                nearest[root] = distance
                queue.append((distance, self._own, root))
        queue.sort()
        while queue:
            distance, via, root = heappop(queue)
            if root in vias:
                continue
            vias[root] = via
            entry = self.entries.get(root)
            for further, leg in entry.near if entry is not None else ():
                way = distance + leg
                if way <= nearest.get(further, way):
                    nearest[further] = way
                    heappush(queue, (way, root, further))
        return vias


def _legs(root: int, onward: dict[int, dict[int, None]], wanted: Collection[int]) -> tuple[Leg, ...]:
    """As deep as the longest path, which is bounded."""
    return tuple(Leg(r, r in wanted, _legs(r, onward, wanted)) for r in onward.get(root, ()))
