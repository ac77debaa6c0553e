"""The self-repairing tree: being in it, refreshing it, losing a parent, following another one.

Theory of operation
-------------------
A node is *searching* (no tree), a *member* (it has a parent) or a *root*. Only `become_*` changes that.

Refresh. Each period the root broadcasts a `Refresh` with a new sequence number. A member that hears it from its parent
takes over root and sequence number, stands one level below the parent, and broadcasts it with its own standing. Another
neighbour's refresh does not move a member; it only shows who is around. A parent also learns from it that its child is
alive, or that it has another parent now.

Losing a parent. A failed unicast to the parent or `refresh_losses_max` periods without a new sequence number make a
member search again (`joining.py`). Its subtree stays with it.

Changing the parent by choice (a merge, and what protocols add) keeps the former link alive for `linger_s`.

Newer sequence numbers and merging: `petitions.py`. What a protocol decides: `policy.py`.

Trace: `structure("parent", peer, value=level, detail=root)` at every change. A root is its own root without a peer, a
searching node has neither.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.joining import Joining
from roamcast.protocols.trees.messages import Disown, JoinRequest, Leave, Refresh, Subscription
from roamcast.protocols.trees.metrics import ParentOffer
from roamcast.protocols.trees.neighbours import Neighbours
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.place import Place
from roamcast.protocols.trees.policy import TreePolicy
from roamcast.protocols.trees.standing import NEWBORN, SEQUENCE_MAX, Standing


class MembershipTimer(StrEnum):
    BEGIN = "membership.begin"  # the node has been switched on and speaks for the first time
    REFRESH = "membership.refresh"  # the root starts the next refresh
    FORWARD = "membership.forward"  # the refresh that was heard goes on
    SILENCE = "membership.silence"  # no new refresh for too long: the parent is lost
    LINGER = "membership.linger"  # the link to a former parent ends; key: its address
    PARTING = "membership.parting"  # a child that has another parent is forgotten; key: its address


BEGIN: Final[Timer] = (MembershipTimer.BEGIN, 0)
REFRESH: Final[Timer] = (MembershipTimer.REFRESH, 0)
FORWARD: Final[Timer] = (MembershipTimer.FORWARD, 0)
SILENCE: Final[Timer] = (MembershipTimer.SILENCE, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Membership(Component):
    """A node's place in its tree, and how it changes."""

    def __init__(
        self,
        host: Host,
        parameters: TreeParameters,
        neighbours: Neighbours,
        joining: Joining,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self.place: Place = dissemination.place
        self.children = dissemination.children
        self.policy = TreePolicy(host, self.place)
        self.joining = joining
        self.invites = False  # the next refresh asks members of other trees to come over
        self.shows_interest = False  # refreshes say what the sender's subtree wants
        self.potential = 0.0  # of the own tree as of its last refresh, where trees contend for nodes
        self.on_insistent_request: Callable[[int, JoinRequest], None] = _ignore
        self.neighbours = neighbours
        self._dissemination = dissemination
        self._parameters = parameters
        self._silence_s = parameters.silence_s
        self._forward_jitter_s = parameters.forward_jitter_s
        self._absorbs = NOBODY  # to be named in the next refresh
        self._forwards = False  # a refresh is due
        self._report_again = parameters.report_again
        self._followed = 0  # new refreshes of the parent since the interest was repeated
        joining.on_chosen = self._take_offer
        joining.on_failed = self._search_again
        joining.on_standing_useless = self._forget_standing

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Refresh, self._on_refresh)
        inputs.on(JoinRequest, self._on_join_request)
        inputs.on(Subscription, self._on_subscription)
        inputs.on(Leave, self._on_leave)
        inputs.on(Disown, self._on_disown)
        inputs.on_any_failure(self._on_failure)
        inputs.on_timer(MembershipTimer.BEGIN, self._begin)
        inputs.on_timer(MembershipTimer.REFRESH, self._start_refresh)
        inputs.on_timer(MembershipTimer.FORWARD, self._forward)
        inputs.on_timer(MembershipTimer.SILENCE, self._on_silence)
        inputs.on_timer(MembershipTimer.LINGER, self._end_linger)
        inputs.on_timer(MembershipTimer.PARTING, self.forget_child)

    def start(self) -> None:
        self.host.set_timer(self.host.random.random() * self._parameters.start_within_s, BEGIN)

    def leave(self) -> None:
        for neighbour in self.place.upstream():
            self.host.send(neighbour, Leave())
        for child in self.children:
            self.host.send(child, Disown(NOBODY, 0, 0))

    def stretched(self, duration_s: float) -> float:
        return self._parameters.stretched(duration_s, self.host.random)

    def newer_than_all(self) -> int:
        """A sequence number above all that was heard of, so that every node around may follow."""
        return max(self.place.standing.sequence, self.neighbours.newest_sequence) + 1

    # -- roles ---------------------------------------------------------------------------------------------------

    def _begin(self, key: int) -> None:
        if self.policy.starts_as_root():
            self.become_root(self.newer_than_all())
        elif self.place.role == "searching" and not self.joining.offers:
            self.become_searching()

    def become_searching(self) -> None:
        self.place.role = "searching"
        self.place.parent = self.place.root = NOBODY
        self.host.cancel_timer(SILENCE)
        self.host.cancel_timer(FORWARD)
        self._forwards = False
        self.host.structure("parent", detail="searching")
        self.joining.search_anew()
        self.policy.requested()
        self.policy.searching()

    def become_member(self, parent: int, root: int, above: Standing, keeps_former: bool = False) -> None:
        """Takes a parent that stands above this node."""
        place = self.place
        assert above.above(place.standing), f"{self.host.address}: {parent} at {above} is not above {place.standing}"
        self.policy.becoming_member(parent)
        if keeps_former and place.parent not in (NOBODY, parent):
            self.keep_former()
        place.former.pop(parent, None)
        self.host.cancel_timer((MembershipTimer.LINGER, parent))
        if place.role == "root":
            self.host.cancel_timer(REFRESH)
        self.joining.stop()
        place.role = "member"
        place.parent = parent
        self.forget_child(parent)
        self.stand(root, Standing(above.sequence, above.level + 1))
        self._attach()
        self.forward_soon()

    def become_root(self, sequence: int) -> None:
        if sequence > SEQUENCE_MAX:
            self._forget_standing()
            sequence = 1
        self.policy.becoming_root()
        self.place.role = "root"
        self.place.parent = NOBODY
        self.joining.stop()
        self.host.cancel_timer(SILENCE)
        self.stand(self.host.address, Standing(sequence, 0))
        self.send_refresh()
        self._wait_for_refresh()
        self._dissemination.send_waiting()
        self.policy.became_root()

    def lose_parent(self) -> None:
        if self.place.role == "member":
            self.neighbours.forget(self.place.parent)
            self.become_searching()

    def stand(self, root: int, standing: Standing) -> None:
        """Rises to a new standing."""
        place = self.place
        moved = root != place.root or standing.level != place.standing.level or place.role == "root"
        newer = standing.sequence > place.standing.sequence
        if place.standing == NEWBORN:
            self._dissemination.settle_soon()
        place.root = root
        place.standing = standing
        if place.role == "member" and (newer or moved):
            self.host.set_timer(self._silence_s, SILENCE)
        if moved:
            self.host.structure("parent", place.parent, standing.level, str(root))
            self.policy.tree_changed()

    def _forget_standing(self) -> None:
        """Begins again as a new node would, without children: no node may take this one for its parent any more."""
        for child in list(self.children):
            self.forget_child(child)
        self.place.standing = NEWBORN
        self.neighbours.newest_sequence = 0

    # -- joining -------------------------------------------------------------------------------------------------

    def _take_offer(self, offer: ParentOffer, keeps_former: bool) -> None:
        self.become_member(offer.parent, offer.root, offer.standing, keeps_former)

    def _search_again(self) -> None:
        if self.policy.search_failed():
            self.joining.search()
            self.policy.requested()

    def _on_join_request(self, sender: int, message: JoinRequest) -> None:
        if sender == self.place.parent:
            if message.sequence == 0:  # it has lost its memory, and with it this child
                self.lose_parent()
            return
        self.forget_child(sender)
        if self.place.role == "searching":
            return
        if self.place.standing.above(Standing(message.sequence, message.level)):
            self.reply(sender, message)
        elif message.insists:
            self.on_insistent_request(sender, message)

    def reply(self, asker: int, request: JoinRequest) -> None:
        """Offers to be the parent of a node that asked."""
        self.joining.appraiser.reply(asker, request, self.place)

    # -- refreshing ----------------------------------------------------------------------------------------------

    def _wait_for_refresh(self) -> None:
        self.host.set_timer(self.stretched(self._parameters.refresh_period_s), REFRESH)

    def _start_refresh(self, key: int) -> None:
        if self.place.standing.sequence >= SEQUENCE_MAX:
            self._forget_standing()
            self.become_root(1)
            return
        self.policy.refresh_due()
        self.place.standing = Standing(self.place.standing.sequence + 1, 0)
        self.send_refresh()
        self._wait_for_refresh()
        self.policy.refreshed()

    def forward_soon(self) -> None:
        """Broadcasts this node's standing soon."""
        if not self._forwards:
            self._forwards = True
            self.host.set_timer(self.host.random.random() * self._forward_jitter_s, FORWARD)

    def _forward(self, key: int) -> None:
        self.send_refresh()

    def send_refresh(self) -> None:
        self.host.broadcast(self.refresh())
        self._forwards = False
        self._absorbs = NOBODY
        self.invites = False
        for child in self.children.silent_since(self.host.now() - self._silence_s):
            self.forget_child(child)

    def refresh(self) -> Refresh:
        place = self.place
        interest = self._dissemination.effective_interest if self.shows_interest else None
        return Refresh(
            root=place.root,
            sequence=place.standing.sequence,
            level=place.standing.level,
            parent=place.parent,
            absorbs=self._absorbs,
            invites=self.invites or self.policy.invites(),
            interest=interest,
            potential=self.potential,
        )

    def absorb(self, root: int) -> None:
        """Makes the members of that root's tree join this node."""
        self._absorbs = root
        self.send_refresh()

    def _on_refresh(self, sender: int, message: Refresh) -> None:
        place = self.place
        self.policy.refresh_heard(sender, message)
        self.neighbours.hear(sender, message, self.host.now())
        self._check_link(sender, message)
        offered = Standing(message.sequence, message.level)
        if sender == place.parent:
            self._follow(message, offered)
        elif place.role == "searching":
            if place.may_follow(message.root, offered):
                self.joining.take_passing_offer(ParentOffer(sender, message.root, offered))
        elif message.root != place.root:
            if place.may_follow(message.root, offered) and self.policy.follows(message):
                self._absorbs = message.absorbs
                self.invites = message.invites
                self.become_member(sender, message.root, offered, keeps_former=True)
            else:
                if message.absorbs == place.root:
                    self.forward_soon()  # this tree has a newer sequence number than was known there
                self.policy.foreign_refresh(sender, message)

    def _follow(self, message: Refresh, offered: Standing) -> None:
        """The parent's refresh."""
        place = self.place
        if not place.may_follow(message.root, offered):
            self.lose_parent()  # a parent never falls: this one has lost its memory
            return
        self.potential = message.potential
        standing = Standing(offered.sequence, offered.level + 1)
        if standing != place.standing or message.root != place.root:
            newer = standing.sequence > place.standing.sequence
            self._absorbs = message.absorbs
            self.invites = message.invites
            self.stand(message.root, standing)
            self.forward_soon()
            if newer:
                self._repeat_report()
                self.policy.refreshed()

    def _repeat_report(self) -> None:
        """A report that got lost in a full queue, or behind the link's acknowledgement, is made good in this way."""
        self._followed += 1
        if self._report_again and self._followed >= self._report_again:
            self._followed = 0
            self._dissemination.report_again()
            self.policy.report_again()

    def _on_silence(self, key: int) -> None:
        self.lose_parent()

    def _on_failure(self, neighbour: int, message: Message) -> None:
        self.neighbours.forget(neighbour)
        if neighbour in self.place.former:
            del self.place.former[neighbour]
            self.host.cancel_timer((MembershipTimer.LINGER, neighbour))
        if neighbour == self.place.parent:
            self.lose_parent()
        self.forget_child(neighbour)

    # -- links ---------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        self._dissemination.attach()
        self.policy.attached()

    def _check_link(self, sender: int, message: Refresh) -> None:
        """Whether the sender and this node agree on being child and parent."""
        if message.parent == self.host.address:
            if sender in self.children:
                self.children.heard(sender, self.host.now())
            else:
                self._disown(sender)
        elif sender in self.children:
            # It has another parent now and will say so when that link stands. If that gets lost, this timer tells.
            self.host.set_timer(self._parameters.refresh_period_s, (MembershipTimer.PARTING, sender))

    def _disown(self, neighbour: int) -> None:
        self.host.send(
            neighbour, Disown(self.place.root, self.place.standing.sequence, self.place.standing.level)
        )

    def _on_disown(self, sender: int, message: Disown) -> None:
        if sender != self.place.parent:
            return
        offered = Standing(message.sequence, message.level)
        if message.root != NOBODY and self.place.may_follow(message.root, offered):
            self._attach()  # it took the link for broken; it is not
        else:
            self.lose_parent()

    def _on_subscription(self, sender: int, message: Subscription) -> None:
        self.host.cancel_timer((MembershipTimer.PARTING, sender))
        self.place.former.pop(sender, None)  # a former parent that is a child now
        joins = sender not in self.children
        is_newborn = self.place.standing == NEWBORN  # the sender follows an offer of an earlier life
        if is_newborn or not self._dissemination.put_child(sender, message.interest):
            self.host.send(sender, Disown(NOBODY, 0, 0))
        elif joins:
            self.policy.child_joined(sender)

    def _on_leave(self, sender: int, message: Leave) -> None:
        self.forget_child(sender)

    def forget_child(self, child: int) -> None:
        if self.children.remove(child):
            self._dissemination.interest_changed()
            self.policy.child_lost(child)

    def keep_former(self) -> None:
        """The link to the parent goes on for a while, though another takes its place."""
        self.place.former[self.place.parent] = self._dissemination.reported
        self.host.set_timer(self._parameters.linger_s, (MembershipTimer.LINGER, self.place.parent))

    def _end_linger(self, neighbour: int) -> None:
        if neighbour in self.place.former:
            del self.place.former[neighbour]
            self.host.send(neighbour, Leave())


def _ignore(asker: int, request: JoinRequest) -> None:
    """Until `Petitions` is there."""
