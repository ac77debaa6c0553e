"""Section 4.3.1: roots. The rules are those of `trees/roots.py`; here SOMER's other parts are told what happens."""

from mypy_extensions import mypyc_attr

from roamcast.protocols.somer.announcements import Announcements
from roamcast.protocols.somer.contention import Contentions
from roamcast.protocols.somer.directory import Directory
from roamcast.protocols.somer.routes import BorderRoutes
from roamcast.protocols.trees.messages import Refresh
from roamcast.protocols.trees.roots import RootPolicy


@mypyc_attr(allow_interpreted_subclasses=True)
class Roots(RootPolicy):
    def connect(
        self, routes: BorderRoutes, announcements: Announcements, directory: Directory, contentions: Contentions
    ) -> None:
        """The parts that are told of changes in the trees."""
        self._routes = routes
        self._announcements = announcements
        self._directory = directory
        self._contentions = contentions

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._routes.meet(sender, message)
        self.consider_merging(message)

    def refreshed(self) -> None:
        self._routes.refreshed()
        self._contentions.contend()
        self.draw_if_far()

    def refresh_due(self) -> None:
        self._contentions.compute_potential()

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
