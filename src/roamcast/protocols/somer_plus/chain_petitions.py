"""Asking the root for a newer sequence number: how those get a parent whose neighbours all stand too low, and how two
trees become one.

Theory of operation
-------------------
A `SequenceRequest` climbs to the root, or to the first ancestor whose sequence number is new enough, and a
`SequenceGrant` comes back along the same path, lifting everybody on it. Who asked for the sake of others then replies
to them. A request that climbs inside the asker's own subtree ends at the asker, and so cannot bring a loop about.

Merging. Who hears of a tree with a lower root address asks its own root to absorb it; if the root agrees, the grant
makes the one who asked broadcast a `Refresh` that names the tree to be absorbed, under a sequence number newer than
both. Members of that tree take the sender as their parent and pass it on, until their old root has become a member too.
A member whose number has risen meanwhile cannot follow; it broadcasts its own refresh, and the merge is asked for again
with a number above that one.
This is MAODV's partition merge, in which the higher address initiates and survives; the difference is that not only the
path between the roots is turned round but everybody takes the shortest way to the tree that absorbs him.
"""

from abc import abstractmethod
from typing import Final, Literal

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.somer_plus.chain_dissemination import Disseminator
from roamcast.protocols.trees.messages import JoinRequest, Refresh, SequenceGrant, SequenceRequest
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.standing import NEWBORN, Standing

Role = Literal["searching", "member", "root"]

REQUEST_PATIENCE_S: Final = 0.4
"""A node does not ask its root for the same thing twice within this time."""

PATH_MAX: Final = 64
"""A request that has climbed this far is going astray."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PetitioningTree(Disseminator):
    """The part of a tree node that asks its root, or answers as one."""

    def __init__(self, host: Host, parameters: TreeParameters) -> None:
        super().__init__(host, parameters.report_hold_s, parameters.waiting_max, parameters.waiting_max_s)
        self.role: Role = "searching"
        self.root = NOBODY
        self.standing = NEWBORN
        self._absorbs = NOBODY  # to be named in the next refresh
        self._askers: dict[int, JoinRequest] = {}  # neighbours that wait for a newer sequence number
        self._asked_until_s: dict[int, float] = {}  # tree to absorb, or NOBODY -> when the root may be asked again
        self._asked_sequence = 0  # the sequence number that was last asked for

    @property
    def is_root(self) -> bool:
        return self.role == "root"

    def _may_follow(self, root: int, offered: Standing) -> bool:
        """Whether who stands there may be the parent: above this node, and not in a tree whose root this node was
        before a crash. That tree has no root any more and does not know yet."""
        return root != self.host.address and offered.above(self.standing)

    def _agrees_to_merge(self, message: SequenceRequest) -> bool:
        """The root decides whether to absorb the tree of `message.absorb`."""
        return False

    @abstractmethod
    def _stand(self, root: int, standing: Standing) -> None:
        """Rises to a new standing."""

    @abstractmethod
    def _send_refresh(self) -> None:
        """Broadcasts the own standing, and which tree shall be absorbed."""

    @abstractmethod
    def _pass_on(self) -> None:
        """The same soon."""

    @abstractmethod
    def _reply(self, asker: int, request: JoinRequest) -> None:
        """Offers to be the parent of a node that asked."""

    def _request_sequence(self, message: SequenceRequest) -> None:
        """Asks the root, which may be this node. Of several that ask for the same in a while, one is enough."""
        now = self.host.now()
        again = now < self._asked_until_s.get(message.absorb, 0.0)
        if again and (message.absorb != NOBODY or message.needed <= self._asked_sequence):
            return
        self._asked_until_s[message.absorb] = now + REQUEST_PATIENCE_S
        if message.absorb == NOBODY:
            self._asked_sequence = message.needed
        if self.role == "root":
            self._grant(NOBODY, message)
        elif self.role == "member":
            self.host.send(self.parent, message)

    def _request_merge(self, refresh: Refresh) -> None:
        """Asks the own root to absorb another tree, one of whose nodes was heard."""
        needed = max(refresh.sequence, self.standing.sequence) + 1
        distance = self.standing.level + refresh.level + 1
        self._request_sequence(SequenceRequest(needed, refresh.root, distance))

    def _on_sequence_request(self, sender: int, message: SequenceRequest) -> None:
        self.children.heard(sender, self.host.now())
        enough = message.absorb == NOBODY and self.standing.sequence >= message.needed
        if self.role == "root" or (self.role == "member" and enough):
            self._grant(sender, message)
        elif message.absorb == NOBODY and len(message.path) < PATH_MAX and self.role == "member":
            path = (*message.path, sender)
            self.host.send(self.parent, SequenceRequest(message.needed, path=path))
        elif len(message.path) < PATH_MAX:
            path = (*message.path, sender)
            self._request_sequence(SequenceRequest(message.needed, message.absorb, message.distance, path))

    def _grant(self, asker: int, message: SequenceRequest) -> None:
        """Answers a request, as the root or as one whose sequence number is new enough already."""
        if message.absorb != NOBODY and not self._agrees_to_merge(message):
            return
        if message.needed > self.standing.sequence:
            self.standing = Standing(message.needed, self.standing.level)
        sequence, level = self.standing
        if asker == NOBODY:
            self._use_grant(message.absorb)
        else:
            self.host.send(asker, SequenceGrant(self.root, sequence, level, message.absorb, message.path))

    def _on_sequence_grant(self, sender: int, message: SequenceGrant) -> None:
        offered = Standing(message.sequence, message.level)
        if sender != self.parent or not self._may_follow(message.root, offered):
            return
        moved = message.root != self.root or offered.level + 1 != self.standing.level
        self._stand(message.root, Standing(offered.sequence, offered.level + 1))
        if message.path:
            sequence, level = self.standing
            onward = SequenceGrant(self.root, sequence, level, message.absorb, message.path[:-1])
            self.host.send(message.path[-1], onward)
        else:
            self._use_grant(message.absorb)
        if moved:
            self._pass_on()

    def _use_grant(self, absorb: int) -> None:
        """The newer sequence number is here: absorb the tree that was met, or reply to those who wait."""
        if absorb != NOBODY:
            self._absorbs = absorb
            self._send_refresh()
            return
        askers, self._askers = self._askers, {}
        for asker, request in askers.items():
            if self.standing.above(Standing(request.sequence, request.level)):
                self._reply(asker, request)
