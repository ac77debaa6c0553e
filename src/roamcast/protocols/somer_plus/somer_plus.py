"""SOMER: several publish/subscribe trees whose roots form a network of their own.

Theory of operation
-------------------
Lower layer: every node is in one of several trees (`trees/tree.py`; shortest-path metric). Top layer: roots know what
every tree wants and pass events on between trees (`advertising.py`, `crossing.py`). Trees contend for nodes where
events depend on each other (`contention.py`). This module decides who is a root (thesis, section 4.3.1). Each mechanism
has its switch in the parameters.

- *Root selection.* At its start a node becomes a root with probability D_T.
- *Merging.* A border node whose tree's root is at most `merging_threshold` hops from the root of a tree it hears, asks
  its own root to absorb the other tree if its own address is the higher; that root agrees to one merge per refresh
  period, and is not absorbed itself until then, so that it can tell others whom it serves now. (The listing in the
  thesis has the comparison the wrong way round; the text is right.) A border node of the tree with the lower root just
  waits: the other side hears its refresh too. The threshold is 1, the lower end of the thesis' range. With 2 trees
  merge and split all the time: 150 moving nodes (4 seeds) send a fifth more frames, over ways a tenth longer, and an
  event takes 315 ms instead of 217.
- *New roots.* Once per refresh a member above level `new_root_threshold` becomes a root with probability alpha D_T; so
  does, after `out_period_s`, a node that has no tree, and with alpha times the last probability after each further one.
  (The thesis raises it once; two nodes that meet far from all others would wait for minutes.) The first refreshes of a
  new root invite: members of other trees that would stand higher under the sender come over, until the levels on both
  sides of the border meet.
- *No parent to be found.* A node whose neighbours are all in its own subtree tells its children to look for themselves
  (`Dissolve`); in a single tree it would lead its fragment instead, but here only chance makes roots.

Hand-over. Whoever changes to another tree by choice, and whoever becomes a root while in a tree, keeps the link to the
former parent for `linger_s`. Meanwhile events come down both ways, so none is lost while interests and routes settle.

In a static network without losses all trees stand within a second of their roots' start, and all roots know each other
within another two. Without any root at the start (small networks, small D_T) the first one takes `out_period_s` or a
multiple of it; events published until then wait at their publishers.
"""

from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.somer_plus.contention import ContendingTree
from roamcast.protocols.somer_plus.messages import Dissolve, SomerMessages
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.messages import Refresh, SequenceRequest

OUT: Final = ("out", 0)
"""Timer: without a tree for another `out_period_s`."""

INVITING_PERIODS: Final = 1.5
"""A new root's refreshes invite for so many refresh periods: the first one, and one more if the first got lost."""

ATTEMPTS_ALONE: Final = 2
"""After so many requests without a reply a node lets its children go."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SomerPlus(ContendingTree):
    name: ClassVar[str] = "somer-plus"
    summary: ClassVar[str] = "several trees that merge, split and contend, their roots an overlay (SOMER)"
    Parameters: ClassVar[type[api.Parameters]] = SomerPlusParameters
    messages: ClassVar[Any] = SomerMessages

    def __init__(self, host: Host, parameters: SomerPlusParameters) -> None:
        super().__init__(host, parameters)
        self._starts_as_root = host.random.random() < parameters.root_density
        self._merge_locked_until_s = 0.0
        self._invites_until_s = 0.0
        self._draws_outside = 0  # since this node has had no tree

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Dissolve:
            if sender == self.parent:
                self._lose_parent()
        else:
            super().on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        if timer == OUT:
            self._draw_outside()
        else:
            super().on_timer(timer)

    # -- roots ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._starts_as_root:
            self._become_root(self._newer_than_all())
        else:
            super()._begin()

    def _become_searching(self) -> None:
        super()._become_searching()
        if self.somer.new_roots:
            self._draws_outside = 0
            self.host.set_timer(self._stretched(self.somer.out_period_s), OUT)

    def _draw_outside(self) -> None:
        if self.role != "searching":
            return
        self._draws_outside += 1
        if self._draws(self._draws_outside):
            self._become_root(self._newer_than_all())
        else:
            self.host.set_timer(self._stretched(self.somer.out_period_s), OUT)

    def _on_refreshed(self) -> None:
        super()._on_refreshed()
        far = self.role == "member" and self.standing.level > self.somer.new_root_threshold
        if self.somer.new_roots and far and self._draws():
            self._branch_off()

    def _branch_off(self) -> None:
        """A member becomes the root of a new tree, with its subtree, and invites its neighbours."""
        self._keep_former()
        self._invites_until_s = self.host.now() + INVITING_PERIODS * self.parameters.refresh_period_s
        self._become_root(self._newer_than_all())

    def _draws(self, raised: int = 1) -> bool:
        """Chance makes a root, with a probability that alpha raises so often."""
        return self.host.random.random() < self.somer.root_density * self.somer.alpha**raised

    def _newer_than_all(self) -> int:
        """A sequence number above all that was heard of, so that everybody around may follow."""
        return max(self.standing.sequence, self.neighbours.newest_sequence) + 1

    def _refresh(self) -> Refresh:
        if self.role == "root" and self.host.now() < self._invites_until_s:
            self._invites = True
        return super()._refresh()

    def _follows(self, message: Refresh) -> bool:
        if message.absorbs == self.root:
            return self.role != "root" or self.host.now() >= self._merge_locked_until_s
        return message.invites and message.level + 1 < self.standing.level

    def _on_search_failed(self) -> None:
        if self._attempts >= ATTEMPTS_ALONE and len(self.children):
            self.host.broadcast(Dissolve())
            for child in list(self.children):
                self._forget_child(child)
        self._search()

    # -- merging -------------------------------------------------------------------------------------------------

    def _meet(self, neighbour: int, refresh: Refresh) -> None:
        super()._meet(neighbour, refresh)
        if self.somer.merging and refresh.root < self.root and self.role != "searching":
            distance = self.standing.level + refresh.level + 1
            if distance <= self.somer.merging_threshold:
                self._request_merge(refresh)

    def _agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        close = self.somer.merging and message.distance <= self.somer.merging_threshold
        if not close or message.absorb >= self.host.address or now < self._merge_locked_until_s:
            return False
        self._merge_locked_until_s = now + self.parameters.refresh_period_s
        self._absorbed[message.absorb] = now
        self.overlay.dismiss(message.absorb)
        return True
