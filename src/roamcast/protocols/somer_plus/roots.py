"""Who is a root, which trees merge, where new trees begin: the rules of `trees/roots.py`, with two differences.

A root that has agreed to absorb a tree is not absorbed itself for a refresh period, so that it can tell others whom it
serves now. *Rising odds* (`rising_odds`): the probability of a node without a tree grows by the factor alpha with each
draw. The thesis raises it once; two nodes that meet far from all others would wait for minutes.
"""

from mypy_extensions import mypyc_attr

from roamcast.protocols.somer_plus.borders import Borders
from roamcast.protocols.somer_plus.contention import Contentions
from roamcast.protocols.somer_plus.crossings import Crossings
from roamcast.protocols.somer_plus.linkstate import LinkStates
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.roots import RootPolicy


@mypyc_attr(allow_interpreted_subclasses=True)
class Roots(RootPolicy):
    def connect(self, link_state: LinkStates, crossings: Crossings, contentions: Contentions) -> None:
        """The parts that are told of changes in the trees."""
        self._link_state = link_state
        self._borders: Borders = link_state.borders
        self._crossings = crossings
        self._contentions = contentions
        self._borders.on_met = self.consider_merging

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._borders.meet(sender, message)

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        if not super().agrees_to_merge(message):
            return False
        self._link_state.agree_to_absorb(message.absorb)
        return True

    def follows(self, message: Refresh) -> bool:
        if message.absorbs == self.place.root and self.place.role == "root":
            return self.host.now() >= self._merge_locked_until_s
        return super().follows(message)

    def refreshed(self) -> None:
        self._borders.refreshed()
        self._contentions.contend()
        self.draw_if_far()

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

    def report_again(self) -> None:
        self._borders.attached()

    def child_joined(self, child: int) -> None:
        self._borders.drop(child)  # until now it was a path out of the tree

    def child_lost(self, child: int) -> None:
        self._borders.child_lost(child)
