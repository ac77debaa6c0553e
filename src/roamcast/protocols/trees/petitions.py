"""Asking the root for a newer sequence number: how a node gets a parent when its neighbours all stand too low, and how
two trees become one.

Theory of operation
-------------------
A `SequenceRequest` climbs to the root, or to the first ancestor whose sequence number is new enough. A `SequenceGrant`
comes back along the same path and lifts every node on it. A node that asked on behalf of others then replies to them. A
request that climbs inside the asker's own subtree ends at the asker, so it cannot cause a loop.

Merging. A node that hears of a tree with a lower root address asks its own root to absorb it. If the root agrees, the
grant makes the node that asked broadcast a `Refresh` that names the tree to be absorbed, under a sequence number newer
than both. Members of that tree take the sender as their parent and pass it on, until their old root has become a member
too. A member whose number has risen meanwhile cannot follow; it broadcasts its own refresh, and the merge is asked for
again with a number above that one. This is MAODV's partition merge, in which the higher address initiates and survives.
The difference: not only the path between the roots is reversed; every node takes the shortest path to the tree
that absorbs it.
"""

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import JoinRequest, Refresh, SequenceGrant, SequenceRequest
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.standing import LEVEL_MAX, SEQUENCE_MAX, Standing


@mypyc_attr(allow_interpreted_subclasses=True)
class Petitions(Component):
    """The part of a tree node that asks its root, or answers as one."""

    def __init__(self, host: Host, parameters: TreeParameters, membership: Membership) -> None:
        super().__init__(host)
        self._membership = membership
        self._place = membership.place
        self._children = membership.children
        self._patience_s = parameters.request_patience_s
        self._path_max = parameters.path_max
        self._peers_max = parameters.neighbours_max
        self._askers: dict[int, JoinRequest] = {}  # neighbours that wait for a newer sequence number
        self._asked_until_s: dict[int, float] = {}  # tree to absorb, or NOBODY -> when the root may be asked again
        self._asked_sequence = 0  # the sequence number that was last asked for
        membership.on_insistent_request = self.ask_for

    def declare(self, inputs: Inputs) -> None:
        inputs.on(SequenceRequest, self._on_request)
        inputs.on(SequenceGrant, self._on_grant)

    def ask_for(self, asker: int, message: JoinRequest) -> None:
        """A neighbour needs a parent, and this node stands too low to be one."""
        if message.sequence < SEQUENCE_MAX and (asker in self._askers or len(self._askers) < self._peers_max):
            self._askers[asker] = message
            self._ask(SequenceRequest(message.sequence + 1))

    def request_merge(self, refresh: Refresh) -> None:
        """Asks the own root to absorb another tree, one of whose nodes was heard."""
        needed = max(refresh.sequence, self._place.standing.sequence) + 1
        distance = self._place.standing.level + refresh.level + 1
        if needed <= SEQUENCE_MAX and refresh.level < LEVEL_MAX:
            self._ask(SequenceRequest(needed, refresh.root, distance))

    def _ask(self, message: SequenceRequest) -> None:
        """Asks the root, which may be this node. Equal requests within `request_patience_s` are merged into one."""
        now = self.host.now()
        again = now < self._asked_until_s.get(message.absorb, 0.0)
        if again and (message.absorb != NOBODY or message.needed <= self._asked_sequence):
            return
        if len(self._asked_until_s) >= self._peers_max:
            self._asked_until_s = {tree: until_s for tree, until_s in self._asked_until_s.items() if until_s > now}
        self._asked_until_s[message.absorb] = now + self._patience_s
        if message.absorb == NOBODY:
            self._asked_sequence = message.needed
        if self._place.role == "root":
            self._grant(NOBODY, message)
        elif self._place.role == "member":
            self.host.send(self._place.parent, message)

    def _on_request(self, sender: int, message: SequenceRequest) -> None:
        self._children.heard(sender, self.host.now())
        place = self._place
        enough = message.absorb == NOBODY and place.standing.sequence >= message.needed
        if place.role == "root" or (place.role == "member" and enough):
            self._grant(sender, message)
        elif message.absorb == NOBODY and len(message.path) < self._path_max and place.role == "member":
            path = (*message.path, sender)
            self.host.send(place.parent, SequenceRequest(message.needed, path=path))
        elif len(message.path) < self._path_max:
            path = (*message.path, sender)
            self._ask(SequenceRequest(message.needed, message.absorb, message.distance, path))

    def _grant(self, asker: int, message: SequenceRequest) -> None:
        """Answers a request, as the root or as a node whose sequence number is new enough already."""
        if message.absorb != NOBODY and not self._membership.policy.agrees_to_merge(message):
            return
        place = self._place
        if message.needed > place.standing.sequence:
            place.standing = Standing(message.needed, place.standing.level)
        sequence, level = place.standing
        if asker == NOBODY:
            self._use_grant(message.absorb)
        else:
            self.host.send(asker, SequenceGrant(place.root, sequence, level, message.absorb, message.path))

    def _on_grant(self, sender: int, message: SequenceGrant) -> None:
        place = self._place
        offered = Standing(message.sequence, message.level)
        if sender != place.parent or not place.may_follow(message.root, offered):
            return
        moved = message.root != place.root or offered.level + 1 != place.standing.level
        self._membership.stand(message.root, Standing(offered.sequence, offered.level + 1))
        if message.path:
            sequence, level = place.standing
            onward = SequenceGrant(place.root, sequence, level, message.absorb, message.path[:-1])
            self.host.send(message.path[-1], onward)
        else:
            self._use_grant(message.absorb)
        if moved:
            self._membership.forward_soon()

    def _use_grant(self, absorb: int) -> None:
        """The newer sequence number is here: absorb the tree that was met, or reply to those who wait."""
        if absorb != NOBODY:
            self._membership.absorb(absorb)
            return
        askers, self._askers = self._askers, {}
        for asker, request in askers.items():
            if self._place.standing.above(Standing(request.sequence, request.level)):
                self._membership.reply(asker, request)
