"""What a root knows of all other roots: what their trees want, and through which neighbouring root they are reached.

Entries spread by flooding among roots. One that is newer replaces what was known of its root's tree. The way back to
that root is the way it came, so events follow the shortest reverse path (thesis, section 4.3.2): a neighbour's offer is
taken if it is shorter than the present way, or newer on the present way, or if the present way has brought nothing new
for a while. Only offers that are newer, or as new and shorter, are ever taken, also when the way is lost because its
first root is no neighbour any more; so ways do not run in circles.
"""

from roamcast.causal import Role
from roamcast.events import Event
from roamcast.protocols.api import NOBODY
from roamcast.protocols.somer.messages import Entry

PATIENCE_PERIODS = 1.5
"""How long the present way may bring nothing new before a longer one is taken."""

LIFETIME_PERIODS = 3.5
"""A root that was not heard of for so long is gone: three advertisements were lost."""


class ForeignTree:
    __slots__ = ("distance", "heard_s", "interest", "roles", "sequence", "told_s", "via", "way_sequence")

    def __init__(self, entry: Entry, via: int, distance: int, now_s: float) -> None:
        self.sequence = entry.sequence
        self.interest = entry.interest
        self.roles = entry.roles
        self.heard_s = now_s  # when its sequence number last rose
        self.via = via  # neighbouring root that leads to it; NOBODY: none is known
        self.distance = distance  # hops
        self.way_sequence = entry.sequence  # of the entry that showed the way
        self.told_s = now_s  # when the way was last confirmed


class Overlay:
    def __init__(self, advertisement_period_s: float) -> None:
        self.trees: dict[int, ForeignTree] = {}  # by root
        self._patience_s = PATIENCE_PERIODS * advertisement_period_s
        self._lifetime_s = LIFETIME_PERIODS * advertisement_period_s

    def learn(self, entry: Entry, via: int, distance: int, now_s: float) -> bool:
        """Takes in what a neighbouring root said; true if that tree is new or wants more than before."""
        tree = self.trees.get(entry.root)
        if tree is None:
            self.trees[entry.root] = ForeignTree(entry, via, distance, now_s)
            return True
        newer_way = entry.sequence > tree.way_sequence
        shorter = distance < tree.distance
        idle = tree.via in (NOBODY, via) or now_s - tree.told_s > self._patience_s
        if (newer_way and (idle or shorter)) or (entry.sequence == tree.way_sequence and shorter):
            tree.via, tree.distance, tree.way_sequence, tree.told_s = via, distance, entry.sequence, now_s
        if entry.sequence <= tree.sequence:
            return False
        tree.sequence, tree.heard_s = entry.sequence, now_s
        before, tree.interest, tree.roles = tree.interest, entry.interest, entry.roles
        return entry.interest is not None and (before is None or not before.covers(entry.interest))

    def lose_way(self, via: int) -> bool:
        """A neighbouring root is none any more; true if it was the way to somebody."""
        lost = [tree for tree in self.trees.values() if tree.via == via]
        for tree in lost:
            tree.via = NOBODY
        return bool(lost)

    def withdraw(self, root: int) -> bool:
        """A tree is known to be gone; true if it was there. That is the newest word until its root speaks again."""
        tree = self.trees.get(root)
        if tree is None or tree.interest is None:
            return False
        tree.sequence += 1
        tree.interest, tree.roles = None, ()
        return True

    def expire(self, now_s: float) -> None:
        for root in [root for root, tree in self.trees.items() if tree.heard_s < now_s - self._lifetime_s]:
            del self.trees[root]

    def entry(self, root: int) -> Entry:
        tree = self.trees[root]
        return Entry(root, tree.sequence, tree.distance, tree.interest, tree.roles)

    def sequence(self, root: int) -> int:
        """The newest entry known of a root, or -1."""
        tree = self.trees.get(root)
        return -1 if tree is None else tree.sequence

    def wanting(self, event: Event) -> list[int]:
        """Roots whose trees want the event."""
        return [r for r, tree in self.trees.items() if tree.interest is not None and tree.interest.matches(event)]

    def roles(self) -> dict[int, Role]:
        """The causal nodes of all other trees."""
        return {node: role for tree in self.trees.values() for node, role in tree.roles}
