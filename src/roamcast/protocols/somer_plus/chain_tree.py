"""The self-repairing tree: joining, refreshing, losing a parent, merging with another tree.

Theory of operation
-------------------
A node is *searching* (no tree), a *member* (it has a parent) or a *root*. Only `_become_*` changes that.

Joining (thesis, section 4.2). A searching node broadcasts a `JoinRequest`, collects replies of neighbours that are in a
tree for `join_wait_s` after the first one and takes the best by its metric. A refresh that comes by is an offer too; it
is answered after `offer_wait_s`, since the rest of its wave arrives together. With no reply it asks again; what happens
after `join_attempts` is the protocol's own matter.

Refresh. Each period the root broadcasts a `Refresh` with a new sequence number. A member that hears it from its parent
takes over root and sequence number, stands one level below the parent, and broadcasts it with its own standing. Nobody
else's refresh moves a member; it only shows who is around. A parent also learns from it that its child is alive, or
that it has gone to somebody else.

Losing a parent. A failed unicast to the parent or `refresh_losses_max` periods without a new sequence number make a
member search again. Its subtree stays with it. Only a neighbour that stands above it (see `standing.py`) may be its
next parent, which no node of its own subtree ever does. If the neighbours all stand too low as far as is known, and
from the second request on in any case, the request *insists*: they ask their root along their parents for a newer
sequence number (`SequenceRequest`), whose grant comes back along the same path and lifts them above the asker. A
request that climbs inside the asker's own subtree ends at the asker, and so cannot bring a loop about.

Newer sequence numbers and merging: `petitions.py`.

Changing the parent by choice (a merge, and what protocols add) keeps the former link alive for `linger_s`.

For those who watch (`roamcast.checkers`): `role`, `root`, `parent`, `former`, `standing`, `children` (with the interest
reported by each), `effective_interest`. Trace: `structure("parent", peer, value=level, detail=root)` at every change, a
root being its own root without a peer, a searching node without either.
"""

from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.somer_plus.chain_dissemination import SETTLE_S, SETTLED
from roamcast.protocols.somer_plus.chain_petitions import PetitioningTree
from roamcast.protocols.trees.messages import (
    Disown,
    EventMessage,
    JoinReply,
    JoinRequest,
    Leave,
    Publication,
    Refresh,
    SequenceGrant,
    SequenceRequest,
    Subscription,
    TreeMessages,
)
from roamcast.protocols.trees.metrics import Metric, Offer, shortest_path
from roamcast.protocols.trees.neighbours import Neighbours
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.standing import NEWBORN, Standing

START_WITHIN_S: Final = 0.1
"""Nodes that are switched on together do not all speak at once."""

# Timers, and what happens when they run out.
BEGIN: Final = ("begin", 0)  # first words
BEAT: Final = ("refresh", 0)  # the root starts the next refresh
FORWARD: Final = ("forward", 0)  # the refresh that was heard goes on
SILENCE: Final = ("silence", 0)  # no new refresh for too long: the parent is lost
CHOICE: Final = ("choice", 0)  # the wait for offers is over
# ("linger", address): the link to a former parent ends; ("parting", address): a child that left is forgotten

SEARCH_SLOWDOWN_MAX: Final = 4
"""The n-th request in a row waits n times as long for a first reply, up to this."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TreeProtocol(PetitioningTree):
    """A node of a publish/subscribe tree. Subclasses say who becomes a root and which trees merge."""

    messages: ClassVar[Any] = TreeMessages
    metric: ClassVar[Metric] = staticmethod(shortest_path)

    def __init__(self, host: Host, parameters: TreeParameters) -> None:
        super().__init__(host, parameters)
        self.parameters = parameters
        self.neighbours = Neighbours(parameters.silence_s)
        self._offers: dict[int, Offer] = {}
        self._attempts = 0
        self._suitor = NOBODY  # neighbour that was asked to be the next parent
        self._invites = False
        self._forwards = False  # a refresh is due

    # -- the protocol's own decisions ----------------------------------------------------------------------------

    def _on_search_failed(self) -> None:
        """Nobody replied to the last request."""
        self._search()

    def _on_foreign_refresh(self, sender: int, message: Refresh) -> None:
        """A node of another tree is in range."""

    def _follows(self, message: Refresh) -> bool:
        """Whether this node leaves its parent for the sender of another tree's refresh."""
        return message.absorbs == self.root

    def _on_tree_changed(self) -> None:
        """This node is in another tree than before, or another level of it."""

    def _on_refreshed(self) -> None:
        """The period's refresh has come from the parent."""

    # -- inputs --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.host.set_timer(self.host.random.random() * START_WITHIN_S, BEGIN)

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Publication:
            self._on_publication(sender, message)
        elif type(message) is Refresh:
            self._on_refresh(sender, message)
        elif type(message) is JoinRequest:
            self._on_join_request(sender, message)
        elif type(message) is JoinReply:
            self._on_join_reply(sender, message)
        elif type(message) is Subscription:
            self.host.cancel_timer(("parting", sender))
            self.former.pop(sender, None)  # a former parent that is a child now
            self._on_subscription(sender, message)
        elif type(message) is Leave:
            self._forget_child(sender)
        elif type(message) is Disown:
            self._on_disown(sender, message)
        elif type(message) is SequenceRequest:
            self._on_sequence_request(sender, message)
        elif type(message) is SequenceGrant:
            self._on_sequence_grant(sender, message)

    def on_timer(self, timer: Timer) -> None:
        match timer[0]:
            case "begin":
                self._begin()
            case "refresh":
                self._beat()
            case "forward":
                self._send_refresh()
            case "silence":
                self._lose_parent()
            case "choice":
                self._choose()
            case "report":
                self._report()
            case "linger":
                self._end_linger(timer[1])
            case "parting":
                self._forget_child(timer[1])
            case "settled":
                self._settle()

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self.neighbours.forget(neighbour)
        if neighbour in self.former:
            del self.former[neighbour]
            self.host.cancel_timer(("linger", neighbour))
        if neighbour == self.parent:
            self._lose_parent()
        self._forget_child(neighbour)
        if isinstance(message, EventMessage):
            self._publication_failed(neighbour, message)

    def leave(self) -> None:
        for neighbour in self._upstream():
            self.host.send(neighbour, Leave())
        for child in self.children:
            self.host.send(child, Disown(NOBODY, 0, 0))

    def _begin(self) -> None:
        if self.role == "searching" and not self._offers:
            self._become_searching()

    # -- roles ---------------------------------------------------------------------------------------------------

    def _become_searching(self) -> None:
        self.role = "searching"
        self.parent = self.root = NOBODY
        self._attempts = 0
        self.host.cancel_timer(SILENCE)
        self.host.cancel_timer(FORWARD)
        self._forwards = False
        self.host.structure("parent", detail="searching")
        self._search()

    def _become_member(self, parent: int, root: int, above: Standing, keeps_former: bool = False) -> None:
        """Takes a parent that stands above this node."""
        assert above.above(self.standing), f"{self.host.address}: {parent} at {above} is not above {self.standing}"
        if keeps_former and self.parent not in (NOBODY, parent):
            self._keep_former()
        self.former.pop(parent, None)
        self.host.cancel_timer(("linger", parent))
        if self.role == "root":
            self.host.cancel_timer(BEAT)
        self.host.cancel_timer(CHOICE)
        self.role = "member"
        self.parent = parent
        self._suitor = NOBODY
        self._offers.clear()
        self._forget_child(parent)
        self._stand(root, Standing(above.sequence, above.level + 1))
        self._attach()
        self._pass_on()

    def _become_root(self, sequence: int) -> None:
        self.role = "root"
        self.parent = NOBODY
        self._offers.clear()
        self.host.cancel_timer(CHOICE)
        self.host.cancel_timer(SILENCE)
        self._stand(self.host.address, Standing(sequence, 0))
        self._send_refresh()
        self._wait_for_beat()
        self._send_waiting()

    def _lose_parent(self) -> None:
        if self.role == "member":
            self.neighbours.forget(self.parent)
            self._become_searching()

    def _stand(self, root: int, standing: Standing) -> None:
        """Rises to a new standing."""
        moved = root != self.root or standing.level != self.standing.level or self.role == "root"
        newer = standing.sequence > self.standing.sequence
        if self.standing == NEWBORN:
            self.host.set_timer(SETTLE_S, SETTLED)
        self.root = root
        self.standing = standing
        if self.role == "member" and (newer or moved):
            self.host.set_timer(self.parameters.silence_s, SILENCE)
        if moved:
            self.host.structure("parent", self.parent, standing.level, str(root))
            self._on_tree_changed()

    # -- joining -------------------------------------------------------------------------------------------------

    def _search(self) -> None:
        self._attempts += 1
        self._offers.clear()
        self.host.broadcast(self._join_request())
        patience = min(self._attempts, SEARCH_SLOWDOWN_MAX)
        self.host.set_timer(self._stretched(patience * self.parameters.join_wait_s), CHOICE)

    def _join_request(self) -> JoinRequest:
        return JoinRequest(self.standing.sequence, self.standing.level, self._insists())

    def _insists(self) -> bool:
        """Whether to ask even those who stand too low: nobody else has replied, or is known to be around."""
        if self._attempts > 1 or self.standing == NEWBORN:  # of whom everybody stands above
            return self._attempts > 1
        since_s = self.host.now() - (1 + self.parameters.jitter) * self.parameters.refresh_period_s
        for _, refresh, heard_s in self.neighbours.present(self.host.now()):
            if heard_s >= since_s and self._may_follow(refresh.root, Standing(refresh.sequence, refresh.level)):
                return False
        return True

    def _on_join_reply(self, sender: int, message: JoinReply) -> None:
        offered = Standing(message.sequence, message.level)
        if self.role == "searching":
            first = not self._offers
            self._consider(Offer(sender, message.root, offered, message.overhead))
            if first and self._offers:
                self.host.set_timer(self._stretched(self.parameters.join_wait_s), CHOICE)
        elif sender == self._suitor and self._may_follow(message.root, offered):
            self._become_member(sender, message.root, offered, keeps_former=True)

    def _court(self, neighbour: int) -> None:
        """Asks a neighbour to be the parent instead of the present one; its reply makes the change."""
        self._suitor = neighbour
        self.host.send(neighbour, JoinRequest(*self.standing, insists=True))

    def _consider(self, offer: Offer) -> None:
        if self.role == "searching" and self._may_follow(offer.root, offer.standing):
            self._offers[offer.parent] = offer

    def _choose(self) -> None:
        offers = [offer for offer in self._offers.values() if offer.standing.above(self.standing)]
        if offers:
            best = min(offers, key=type(self).metric)
            self._become_member(best.parent, best.root, best.standing)
        else:
            self._on_search_failed()

    def _on_join_request(self, sender: int, message: JoinRequest) -> None:
        if sender == self.parent:
            if message.sequence == 0:  # it has lost its memory, and with it this child
                self._lose_parent()
            return
        self._forget_child(sender)
        if self.role == "searching":
            return
        if self.standing.above(Standing(message.sequence, message.level)):
            self._reply(sender, message)
        elif message.insists:
            self._askers[sender] = message
            self._request_sequence(SequenceRequest(message.sequence + 1))

    def _reply(self, asker: int, request: JoinRequest) -> None:
        self.host.send(asker, JoinReply(self.root, self.standing.sequence, self.standing.level))

    # -- refreshing ----------------------------------------------------------------------------------------------

    def _wait_for_beat(self) -> None:
        self.host.set_timer(self._stretched(self.parameters.refresh_period_s), BEAT)

    def _beat(self) -> None:
        self.standing = Standing(self.standing.sequence + 1, 0)
        self._send_refresh()
        self._wait_for_beat()

    def _pass_on(self) -> None:
        if not self._forwards:
            self._forwards = True
            self.host.set_timer(self.host.random.random() * self.parameters.forward_jitter_s, FORWARD)

    def _send_refresh(self) -> None:
        self.host.broadcast(self._refresh())
        self._forwards = False
        self._absorbs = NOBODY
        self._invites = False
        for child in self.children.silent_since(self.host.now() - self.parameters.silence_s):
            self._forget_child(child)

    def _refresh(self) -> Refresh:
        return Refresh(self.root, *self.standing, self.parent, self._absorbs, self._invites)

    def _on_refresh(self, sender: int, message: Refresh) -> None:
        self.neighbours.hear(sender, message, self.host.now())
        self._check_link(sender, message)
        offered = Standing(message.sequence, message.level)
        if sender == self.parent:
            self._follow(message, offered)
        elif self.role == "searching":
            if self._may_follow(message.root, offered):
                self._on_passing_offer(Offer(sender, message.root, offered))
        elif message.root != self.root:
            if self._may_follow(message.root, offered) and self._follows(message):
                self._absorbs = message.absorbs
                self._invites = message.invites
                self._become_member(sender, message.root, offered, keeps_former=True)
            else:
                if message.absorbs == self.root:
                    self._pass_on()  # this tree has a newer sequence number than was known there
                self._on_foreign_refresh(sender, message)

    def _on_passing_offer(self, offer: Offer) -> None:
        """A refresh came by while searching; the first of its wave shortens the wait."""
        if not self._offers:
            self.host.set_timer(self.parameters.offer_wait_s, CHOICE)
        self._consider(offer)

    def _follow(self, message: Refresh, offered: Standing) -> None:
        """The parent's refresh."""
        if not self._may_follow(message.root, offered):
            self._lose_parent()  # a parent never falls: this one has lost its memory
            return
        standing = Standing(offered.sequence, offered.level + 1)
        if standing != self.standing or message.root != self.root:
            newer = standing.sequence > self.standing.sequence
            self._absorbs = message.absorbs
            self._invites = message.invites
            self._stand(message.root, standing)
            self._pass_on()
            if newer:
                self._on_refreshed()

    def _check_link(self, sender: int, message: Refresh) -> None:
        """Whether the sender and this node agree on being child and parent."""
        if message.parent == self.host.address:
            if sender in self.children:
                self.children.heard(sender, self.host.now())
            else:
                self.host.send(sender, Disown(self.root, self.standing.sequence, self.standing.level))
        elif sender in self.children:
            # It has another parent now and will say so when its link to that one is settled; if that gets lost, this.
            self.host.set_timer(self.parameters.refresh_period_s, ("parting", sender))

    def _on_disown(self, sender: int, message: Disown) -> None:
        if sender != self.parent:
            return
        if message.root != NOBODY and self._may_follow(message.root, Standing(message.sequence, message.level)):
            self._attach()  # it took the link for broken; it is not
        else:
            self._lose_parent()

    def _keep_former(self) -> None:
        """The link to the parent goes on for a while, though another takes its place."""
        self.former[self.parent] = self._reported
        self.host.set_timer(self.parameters.linger_s, ("linger", self.parent))

    def _end_linger(self, neighbour: int) -> None:
        if neighbour in self.former:
            del self.former[neighbour]
            self.host.send(neighbour, Leave())

    def _stretched(self, duration_s: float) -> float:
        return duration_s * (1 + self.parameters.jitter * self.host.random.random())
