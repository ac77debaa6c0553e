"""Standing: what makes the tree free of loops at every instant, whatever is lost or late.

A node's standing is the pair (sequence, level). One standing is *above* another if its sequence number is newer, or if
it is equal and the level is lower. Two rules:

1. A node takes a parent only if the parent's standing is above its own, and then stands one level below it.
2. A node's standing never falls: not when it loses its parent, not when it changes from one tree to another.

So a child always stands below its parent: when the link is made, and later, because the parent can only rise. Along a
chain of parents the standing rises strictly, and no chain can return to where it began. (This is the feasibility
condition of loop-free distance-vector routing; MAODV's rule for repliers, "newer sequence number, or equal and fewer
hops", is its local form.) Sequence numbers are compared across trees, so it holds for mixed chains too, while trees
merge and new roots arise: a root that needs to be followed takes a number above all that it was told of.

A node that lost its memory in a crash starts with the lowest standing of all. Those who still take it for their parent
are not its children: a link counts only if both ends know of it, and the reborn node disowns them.
"""

from typing import Final, NamedTuple

LEVEL_NONE: Final = 1 << 30
"""Level of a node that has never been in a tree: below every other."""

LEVEL_MAX: Final = 1 << 16
"""No node takes a parent at this level or below it: no real tree is so deep."""

SEQUENCE_MAX: Final = (1 << 62) - 1
"""The highest sequence number that a message carries. A node that would need a higher one forgets its standing, so
that no number can be used up (see `joining.py`)."""


class Standing(NamedTuple):
    sequence: int
    level: int

    def above(self, other: "Standing") -> bool:
        return self.sequence > other.sequence or (self.sequence == other.sequence and self.level < other.level)


NEWBORN: Final = Standing(0, LEVEL_NONE)
