"""Several trees in one network: who is a root, which trees merge, where new trees begin (thesis, section 4.3.1).

- *Root selection.* At its start a node becomes a root with probability D_T.
- *Tree merging.* A border node whose root is at most `merging_threshold` hops from the root of a tree that it hears
  asks its own root to absorb that tree, if its own root has the higher address. The root agrees to one merge per
  refresh period. (The thesis' listing has the comparison the wrong way round; its text is right.) A border node of the
  tree with the lower root just waits: the other side hears its refresh too.
- *New root selection.* Once per refresh a member above level `new_root_threshold` becomes a root with probability
  alpha D_T. So does a node that has been in no tree for `out_period_s`, and again after each further one.
- *Cropping.* The first refreshes of a new root invite. Members of other trees that would stand higher under the sender
  come over, until the levels on both sides of the border meet.
- *No parent to be found.* A node whose requests for a parent stay unanswered lets its children go (`Dissolve`).

Both SOMERs build on this policy. Each adds what its other components need to know.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import Host, Timer
from roamcast.protocols.components import Inputs
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Dissolve, Refresh, SequenceRequest
from roamcast.protocols.trees.parameters import RootParameters
from roamcast.protocols.trees.petitions import Petitions
from roamcast.protocols.trees.policy import TreePolicy


class RootsTimer(StrEnum):
    OUT = "roots.out"  # this node has been in no tree for another `out_period_s`


OUT: Final[Timer] = (RootsTimer.OUT, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class RootPolicy(TreePolicy):
    """Decides about roots where there are several."""

    def __init__(
        self,
        host: Host,
        parameters: RootParameters,
        membership: Membership,
        petitions: Petitions,
        rising_odds: bool = False,
    ) -> None:
        """`rising_odds`: the probability of a node without a tree grows by the factor alpha with each draw."""
        super().__init__(host, membership.place)
        self._rules = parameters
        self._membership = membership
        self._petitions = petitions
        self._rising_odds = rising_odds
        self.is_drawn = host.random.random() < parameters.root_density  # as a root from the start
        self._merge_locked_until_s = 0.0
        self._invites_until_s = 0.0
        self._draws_outside = 0  # since this node has had no tree

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Dissolve, self._on_dissolve)
        inputs.on_timer(RootsTimer.OUT, self._draw_outside)

    def starts_as_root(self) -> bool:
        return self.is_drawn

    # -- merging -------------------------------------------------------------------------------------------------

    def consider_merging(self, refresh: Refresh) -> None:
        """A node of another tree was heard."""
        distance = self.place.standing.level + refresh.level + 1
        if self.place.role != "searching" and self._absorbs(refresh.root, distance):
            self._petitions.request_merge(refresh)

    def _absorbs(self, root: int, distance: int) -> bool:
        """The merge rule: whether this node's tree absorbs that of `root`, `distance` hops from root to root."""
        close = distance <= self._rules.merging_threshold
        return self._rules.merging and close and root < self.place.root

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        if not self._absorbs(message.absorb, message.distance) or now < self._merge_locked_until_s:
            return False
        self._merge_locked_until_s = now + self._rules.refresh_period_s
        return True

    def follows(self, message: Refresh) -> bool:
        """Whether to be absorbed, or cropped."""
        if message.absorbs == self.place.root:
            return True
        return message.invites and message.level + 1 < self.place.standing.level

    # -- new roots -----------------------------------------------------------------------------------------------

    def searching(self) -> None:
        if self._rules.new_roots:
            self._draws_outside = 0
            self._wait_outside()

    def _wait_outside(self) -> None:
        self.host.set_timer(self._membership.stretched(self._rules.out_period_s), OUT)

    def _draw_outside(self, key: int) -> None:
        if self.place.role != "searching":
            return
        self._draws_outside += 1
        if self._draws(self._draws_outside if self._rising_odds else 1):
            self._become_new_root()
        else:
            self._wait_outside()

    def draw_if_far(self) -> None:
        """Once per refresh: a member far from its root may become a root."""
        far = self.place.role == "member" and self.place.standing.level > self._rules.new_root_threshold
        if self._rules.new_roots and far and self._draws(1):
            self._membership.keep_former()
            self._become_new_root()

    def _draws(self, raised: int) -> bool:
        """True with probability D_T · alpha**raised."""
        return self.host.random.random() < self._rules.root_density * self._rules.alpha**raised

    def _become_new_root(self) -> None:
        self._invites_until_s = self.host.now() + self._rules.inviting_periods * self._rules.refresh_period_s
        self._membership.become_root(self._membership.newer_than_all())

    def invites(self) -> bool:
        return self.place.role == "root" and self.host.now() < self._invites_until_s

    # -- no parent to be found -----------------------------------------------------------------------------------

    def search_failed(self) -> bool:
        children = self._membership.children
        if self._membership.joining.attempts >= self._rules.dissolve_attempts and len(children):
            self.host.broadcast(Dissolve())
            for child in list(children):
                self._membership.forget_child(child)
        return True

    def _on_dissolve(self, sender: int, message: Dissolve) -> None:
        if sender == self.place.parent:
            self._membership.lose_parent()
