"""Inter-tree routes: through whom a node reaches the neighbouring trees (thesis, section 4.3.2).

A candidate is a neighbour in the other tree, or a child that reported a route; its distance is that from root to root
on this path. The thesis keeps the best only. Here the others are remembered too, so that when the best one breaks the
next is at hand, and a report can take back what an earlier one said: a route that may only improve goes stale.
"""

from collections.abc import Container
from typing import Final

from roamcast.protocols.api import NOBODY

NONE: Final[dict[int, int]] = {}


class Routes:
    def __init__(self) -> None:
        self._candidates: dict[int, dict[int, int]] = {}  # foreign root -> next hop -> hops from root to root

    def put(self, next_hop: int, root: int, distance: int) -> bool:
        """Remembers a candidate; true if it is new."""
        candidates = self._candidates.setdefault(root, {})
        if candidates.get(next_hop) == distance:
            return False
        candidates[next_hop] = distance
        return True

    def has_room(self, root: int, roots_max: int) -> bool:
        """Whether that root is known, or one more may be."""
        return root in self._candidates or len(self._candidates) < roots_max

    def drop(self, next_hop: int) -> bool:
        """Forgets all that went through a node; true if there was any."""
        found = [root for root, candidates in self._candidates.items() if next_hop in candidates]
        for root in found:
            del self._candidates[root][next_hop]
            if not self._candidates[root]:
                del self._candidates[root]
        return bool(found)

    def drop_root(self, root: int) -> None:
        self._candidates.pop(root, None)

    def next_hop(self, root: int, besides: int = NOBODY) -> int | None:
        """The neighbour, other than `besides`, on the shortest known way to that root; of equal ones the lowest
        address."""
        best: tuple[int, int] | None = None
        for next_hop, distance in self._candidates.get(root, NONE).items():
            if next_hop != besides and (best is None or (distance, next_hop) < best):
                best = (distance, next_hop)
        return None if best is None else best[1]

    def nearest(self, besides: Container[int]) -> int | None:
        """The neighbour, not one of `besides`, that is nearest to some root."""
        best: tuple[int, int] | None = None
        for candidates in self._candidates.values():
            for next_hop, distance in candidates.items():
                if (best is None or (distance, next_hop) < best) and next_hop not in besides:
                    best = (distance, next_hop)
        return None if best is None else best[1]

    def next_hops(self) -> list[int]:
        """All neighbours that are a candidate for some root, ascending."""
        return sorted({next_hop for candidates in self._candidates.values() for next_hop in candidates})

    def roots(self) -> list[int]:
        """All that can be reached, ascending."""
        return sorted(self._candidates)

    def summary(self) -> tuple[tuple[int, int], ...]:
        """Each reachable root with its distance, ascending."""
        return tuple(sorted((root, min(candidates.values())) for root, candidates in self._candidates.items()))
