"""Section 4.3.1: who is a root, which trees merge, where new trees begin.

- *Root selection.* At its start a node becomes a root with probability D_T.
- *Tree merging.* A border node whose root is at most `merging_threshold` hops from the root of a tree that it hears
  asks its own root to absorb that tree, if its own root has the higher address. The root agrees to one merge per
  refresh period. (The thesis' listing has the comparison the wrong way round; its text is right.) A border node of the
  tree with the lower root just waits: the other side hears its refresh too.
- *New root selection.* Once per refresh a member above level `new_root_threshold` becomes a root with probability
  alpha D_T. So does a node that has been in no tree for `out_period_s`, and again after each further one.
- *Cropping.* The first refreshes of a new root invite. Members of other trees that would stand higher under the sender
  come over, until the levels on both sides of the border meet.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import Host, Timer
from roamcast.protocols.components import Inputs
from roamcast.protocols.somer.announcements import Announcements
from roamcast.protocols.somer.contention import Contentions
from roamcast.protocols.somer.directory import Directory
from roamcast.protocols.somer.messages import Dissolve
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.routes import BorderRoutes
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.petitions import Petitions
from roamcast.protocols.trees.policy import TreePolicy


class RootsTimer(StrEnum):
    OUT = "roots.out"  # this node has been in no tree for another `out_period_s`


OUT: Final[Timer] = (RootsTimer.OUT, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Roots(TreePolicy):
    """Decides about roots, and tells SOMER's other parts what happens in the trees."""

    def __init__(self, host: Host, parameters: SomerParameters, membership: Membership, petitions: Petitions) -> None:
        super().__init__(host, membership.place)
        self._parameters = parameters
        self._membership = membership
        self._petitions = petitions
        self.is_drawn = host.random.random() < parameters.root_density  # as a root from the start
        self._merge_locked_until_s = 0.0
        self._invites_until_s = 0.0

    def connect(
        self, routes: BorderRoutes, announcements: Announcements, directory: Directory, contentions: Contentions
    ) -> None:
        """The parts that are told of changes in the trees."""
        self._routes = routes
        self._announcements = announcements
        self._directory = directory
        self._contentions = contentions

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Dissolve, self._on_dissolve)
        inputs.on_timer(RootsTimer.OUT, self._draw_outside)

    # -- root selection ------------------------------------------------------------------------------------------

    def starts_as_root(self) -> bool:
        return self.is_drawn

    # -- tree merging --------------------------------------------------------------------------------------------

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._meet(sender, message)

    def _meet(self, neighbour: int, refresh: Refresh) -> None:
        self._routes.meet(neighbour, refresh)
        distance = self.place.standing.level + refresh.level + 1
        if self.place.role != "searching" and self._absorbs(refresh.root, distance):
            self._petitions.request_merge(refresh)

    def _absorbs(self, root: int, distance: int) -> bool:
        """The merge rule: whether this node's tree absorbs that of `root`, `distance` hops from root to root."""
        close = distance <= self._parameters.merging_threshold
        return self._parameters.merging and close and root < self.place.root

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        if not self._absorbs(message.absorb, message.distance) or now < self._merge_locked_until_s:
            return False
        self._merge_locked_until_s = now + self._parameters.refresh_period_s
        return True

    # -- new root selection --------------------------------------------------------------------------------------

    def searching(self) -> None:
        if self._parameters.new_roots:
            self._wait_outside()

    def _wait_outside(self) -> None:
        self.host.set_timer(self._membership.stretched(self._parameters.out_period_s), OUT)

    def _draw_outside(self, key: int) -> None:
        if self.place.role != "searching":
            return
        if self._draws():
            self._become_new_root()
        else:
            self._wait_outside()

    def refreshed(self) -> None:
        self._routes.refreshed()
        self._contentions.contend()
        far = self.place.role == "member" and self.place.standing.level > self._parameters.new_root_threshold
        if self._parameters.new_roots and far and self._draws():
            self._membership.keep_former()
            self._become_new_root()

    def _draws(self) -> bool:
        """True with probability alpha D_T."""
        return self.host.random.random() < self._parameters.root_density * self._parameters.alpha

    def _become_new_root(self) -> None:
        self._invites_until_s = self.host.now() + self._parameters.inviting_periods * self._parameters.refresh_period_s
        self._membership.become_root(self._membership.newer_than_all())

    def refresh_due(self) -> None:
        self._contentions.compute_potential()

    def invites(self) -> bool:
        return self.place.role == "root" and self.host.now() < self._invites_until_s

    def follows(self, message: Refresh) -> bool:
        """Whether to be absorbed, or cropped."""
        if message.absorbs == self.place.root:
            return True
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

    # -- what SOMER's other parts have to know -------------------------------------------------------------------

    def refresh_heard(self, sender: int, message: Refresh) -> None:
        self._routes.refresh_heard(sender, message)

    def tree_changed(self) -> None:
        self._routes.tree_changed()
        self._contentions.tree_changed()

    def attached(self) -> None:
        self._routes.attached()
        self._announcements.attached()

    def became_root(self) -> None:
        self._directory.became_root()

    def child_joined(self, child: int) -> None:
        self._routes.drop(child)  # until now it was a path out of the tree

    def child_lost(self, child: int) -> None:
        self._routes.drop(child)
        refresh = self._membership.neighbours.last(child)
        if refresh is not None:
            self._routes.meet(child, refresh)  # it may be a path out of the tree now
        self._announcements.child_lost(child)
