"""Who is a root, which trees merge, where new trees begin (thesis, section 4.3.1).

As in SOMER, with two differences. A root that has agreed to absorb a tree is not absorbed itself for a refresh period,
so that it can tell others whom it serves now. *Rising odds* (`rising_odds`): the odds of a node without a tree grow by
the factor alpha with each draw. The thesis raises them once; two nodes that meet far from all others would wait for
minutes.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import Host, Timer
from roamcast.protocols.components import Inputs
from roamcast.protocols.somer_plus.borders import Borders
from roamcast.protocols.somer_plus.contention import Contentions
from roamcast.protocols.somer_plus.crossings import Crossings
from roamcast.protocols.somer_plus.linkstate import LinkState
from roamcast.protocols.somer_plus.messages import Dissolve
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.petitions import Petitions
from roamcast.protocols.trees.policy import TreePolicy


class RootsTimer(StrEnum):
    OUT = "roots.out"  # this node has been in no tree for another `out_period_s`


OUT: Final[Timer] = (RootsTimer.OUT, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Roots(TreePolicy):
    """Decides about roots, and tells the other parts what happens in the trees."""

    def __init__(
        self, host: Host, parameters: SomerPlusParameters, membership: Membership, petitions: Petitions
    ) -> None:
        super().__init__(host, membership.place)
        self._parameters = parameters
        self._membership = membership
        self._petitions = petitions
        self.is_drawn = host.random.random() < parameters.root_density  # as a root from the start
        self._merge_locked_until_s = 0.0
        self._invites_until_s = 0.0
        self._draws_outside = 0  # since this node has had no tree

    def connect(self, link_state: LinkState, crossings: Crossings, contentions: Contentions) -> None:
        """The parts that are told of changes in the trees."""
        self._link_state = link_state
        self._borders: Borders = link_state.borders
        self._crossings = crossings
        self._contentions = contentions
        self._borders.on_met = self._consider_merging

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Dissolve, self._on_dissolve)
        inputs.on_timer(RootsTimer.OUT, self._draw_outside)

    def starts_as_root(self) -> bool:
        return self.is_drawn

    # -- merging -------------------------------------------------------------------------------------------------

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._borders.meet(sender, message)

    def _consider_merging(self, refresh: Refresh) -> None:
        if self._parameters.merging and refresh.root < self.place.root and self.place.role != "searching":
            distance = self.place.standing.level + refresh.level + 1
            if distance <= self._parameters.merging_threshold:
                self._petitions.request_merge(refresh)

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        close = self._parameters.merging and message.distance <= self._parameters.merging_threshold
        if not close or message.absorb >= self.host.address or now < self._merge_locked_until_s:
            return False
        self._merge_locked_until_s = now + self._parameters.refresh_period_s
        self._link_state.agree_to_absorb(message.absorb)
        return True

    # -- new roots -----------------------------------------------------------------------------------------------

    def searching(self) -> None:
        if self._parameters.new_roots:
            self._draws_outside = 0
            self._wait_outside()

    def _wait_outside(self) -> None:
        self.host.set_timer(self._membership.stretched(self._parameters.out_period_s), OUT)

    def _draw_outside(self, key: int) -> None:
        if self.place.role != "searching":
            return
        self._draws_outside += 1
        if self._draws(self._draws_outside if self._parameters.rising_odds else 1):
            self._become_new_root()
        else:
            self._wait_outside()

    def refreshed(self) -> None:
        self._borders.refreshed()
        self._contentions.contend()
        far = self.place.role == "member" and self.place.standing.level > self._parameters.new_root_threshold
        if self._parameters.new_roots and far and self._draws(1):
            self._membership.keep_former()
            self._become_new_root()

    def _draws(self, raised: int) -> bool:
        """True with probability D_T · alpha**raised."""
        return self.host.random.random() < self._parameters.root_density * self._parameters.alpha**raised

    def _become_new_root(self) -> None:
        self._invites_until_s = self.host.now() + self._parameters.inviting_periods * self._parameters.refresh_period_s
        self._membership.become_root(self._membership.newer_than_all())

    def invites(self) -> bool:
        return self.place.role == "root" and self.host.now() < self._invites_until_s

    def follows(self, message: Refresh) -> bool:
        """Whether to be absorbed, or cropped."""
        if message.absorbs == self.place.root:
            return self.place.role != "root" or self.host.now() >= self._merge_locked_until_s
        return message.invites and message.level + 1 < self.place.standing.level

    # -- no parent to be found -----------------------------------------------------------------------------------

    def search_failed(self) -> bool:
        children = self._membership.children
        if self._membership.joining.attempts >= self._parameters.dissolve_attempts and len(children):
            self.host.broadcast(Dissolve())
            for child in list(children):
                self._membership.forget_child(child)
        return True

    def _on_dissolve(self, sender: int, message: Dissolve) -> None:
        if sender == self.place.parent:
            self._membership.lose_parent()

    # -- what the other parts have to know -----------------------------------------------------------------------

    def becoming_member(self, parent: int) -> None:
        self._crossings.becoming_member(parent)

    def becoming_root(self) -> None:
        self._link_state.becoming_root()

    def became_root(self) -> None:
        self._link_state.became_root()
        self._crossings.became_root()

    def refresh_due(self) -> None:
        self._contentions.compute_potential()

    def refresh_heard(self, sender: int, message: Refresh) -> None:
        self._borders.refresh_heard(sender, message)

    def tree_changed(self) -> None:
        self._borders.tree_changed()
        self._contentions.tree_changed()

    def attached(self) -> None:
        self._borders.attached()

    def child_joined(self, child: int) -> None:
        self._borders.drop(child)  # until now it was a path out of the tree

    def child_lost(self, child: int) -> None:
        self._borders.child_lost(child)
