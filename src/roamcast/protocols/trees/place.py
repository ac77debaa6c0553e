"""Where a node is in the trees: its role, its root, its parent and its standing.

The one piece of state that all components of a tree node read. Only `Membership` changes role, root and parent, each
role in one `become_*`; `Membership` and `Petitions` raise the standing.
"""

from typing import Literal

from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY
from roamcast.protocols.trees.standing import LEVEL_MAX, NEWBORN, Standing

Role = Literal["searching", "member", "root"]


class Place:
    def __init__(self, address: int) -> None:
        self.address = address
        self.role: Role = "searching"
        self.root = NOBODY
        self.parent = NOBODY
        self.standing = NEWBORN
        self.former: dict[int, Interest | None] = {}  # former parents whose links still work -> what they were told

    def may_follow(self, root: int, offered: Standing) -> bool:
        """Whether a node with this standing may be the parent: above this node, and not in a tree whose root this node
        was before a crash. That tree has no root any more and does not know yet."""
        if root in (self.address, NOBODY):
            return False
        return offered.level < LEVEL_MAX and offered.above(self.standing)

    def upstream(self) -> list[int]:
        """The parent, if there is one, and the former parents whose links still work."""
        upstream = [neighbour for neighbour in self.former if neighbour != self.parent]
        return upstream if self.parent == NOBODY else [self.parent, *upstream]
