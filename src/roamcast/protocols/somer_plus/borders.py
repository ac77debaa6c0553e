"""Routes to neighbouring trees, and the causal roles of the own one (thesis, sections 4.3.2 and 5.1).

A node that hears the refresh of a node u in another tree knows a path to that tree's root: level + u's level + 1 hops
from root to root. Each node reports the best distance per foreign root to its parent whenever it changed, so the root
ends up with the shortest path to each neighbouring tree, hop by hop (theorem 4.1). That a tree is within reach at all
is reported sooner than a distance that changed. A report is complete and replaces the one before. A neighbour whose
last refresh was missed, or that a unicast failed to reach, is no next hop any more: with three periods, as for parents,
a moving network keeps many dead routes, and each costs an event a failed frame. A node that is sent something along a
route that it does not have reports again.

The causal roles in a node's subtree climb in the same way.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.somer_plus.messages import Distances, RoleReport, RouteReport
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.somer_plus.roles import Roles
from roamcast.protocols.somer_plus.routes import Routes
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Refresh
from roamcast.protocols.trees.standing import LEVEL_MAX


class BordersTimer(StrEnum):
    REPORT = "borders.report"  # changed routes or roles are due at the parent


REPORT: Final[Timer] = (BordersTimer.REPORT, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Borders(Component):
    def __init__(self, host: Host, parameters: SomerPlusParameters, membership: Membership) -> None:
        super().__init__(host)
        self.routes = Routes()
        self.roles = Roles()
        self.missed_s = -math.inf  # when a neighbour was last found to be silent or gone
        self.on_near: Callable[[Distances], None] = _ignore_near  # as a root: the neighbouring roots are these now
        self.on_met: Callable[[Refresh], None] = _ignore_refresh  # a node of another tree is in range
        self._membership = membership
        self._place = membership.place
        self._children = membership.children
        self._lifetime_s = parameters.route_lifetime_periods * parameters.refresh_period_s
        self._hold_s = parameters.route_hold_s
        self._distance_hold_s = parameters.distance_hold_s
        self._max = parameters.neighbours_max
        self._pending = False
        self._urgent = False  # and soon
        self._reported: Distances | None = ()  # what the parent was last told; None: it got that wrong

    def declare(self, inputs: Inputs) -> None:
        inputs.on(RouteReport, self._on_route_report)
        inputs.on(RoleReport, self._on_role_report)
        inputs.on_any_failure(self._on_failure)
        inputs.on_timer(BordersTimer.REPORT, self._on_report_due)

    # -- what is heard -------------------------------------------------------------------------------------------

    def meet(self, neighbour: int, refresh: Refresh) -> None:
        place = self._place
        own = (place.root, self.host.address, NOBODY)  # the second: a tree that was once this node's own
        foreign = refresh.root not in own and neighbour != place.parent and refresh.parent != self.host.address
        if foreign and refresh.level < LEVEL_MAX and self.routes.has_room(refresh.root, self._max):
            distance = place.standing.level + refresh.level + 1
            if self.routes.put(neighbour, refresh.root, distance):
                self.changed()
        self.on_met(refresh)

    def _on_route_report(self, sender: int, message: RouteReport) -> None:
        if sender in self._children:
            self.routes.drop(sender)
            for root, distance in message.routes:
                if root not in (self._place.root, self.host.address) and self.routes.has_room(root, self._max):
                    self.routes.put(sender, root, distance)
            self.changed()

    def _on_role_report(self, sender: int, message: RoleReport) -> None:
        if sender in self._children and self.roles.put(sender, message.roles):
            self.changed()

    # -- what ends -----------------------------------------------------------------------------------------------

    def drop(self, next_hop: int) -> None:
        if self.routes.drop(next_hop):
            self.changed()

    def _on_failure(self, neighbour: int, message: Message) -> None:
        self.missed_s = self.host.now()
        self.drop(neighbour)

    def refresh_heard(self, sender: int, message: Refresh) -> None:
        if message.parent != self.host.address:
            self.drop(sender)

    def tree_changed(self) -> None:
        """Distances and what counts as foreign are different now."""
        self.routes.drop_root(self._place.root)
        for address, refresh, _ in self._membership.neighbours.present(self.host.now()):
            if refresh.parent != self.host.address:
                self.routes.drop(address)
                self.meet(address, refresh)
        self.changed()

    def refreshed(self) -> None:
        """Once per period: neighbours that fell silent are no path to anywhere."""
        since_s = self.host.now() - self._lifetime_s
        present = {n.address: n.heard_s >= since_s for n in self._membership.neighbours.present(self.host.now())}
        if not all(present.values()):
            self.missed_s = self.host.now()
        for next_hop in self.routes.next_hops():
            if not present.get(next_hop) and next_hop not in self._children:
                self.drop(next_hop)

    def child_lost(self, child: int) -> None:
        self.routes.drop(child)
        self.roles.drop(child)
        self.changed()
        for address, refresh, _ in self._membership.neighbours.present(self.host.now()):
            if address == child:  # it may be a path out of the tree now
                self.meet(child, refresh)

    # -- reports -------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        reported = self._reported
        urgent = reported is None or self.routes.roots() != [root for root, _ in reported]
        if urgent and not self._urgent:
            self._urgent = True
            self.host.set_timer(self._hold_s, REPORT)
        elif not self._pending:
            self.host.set_timer(self._distance_hold_s, REPORT)
        self._pending = True

    def _on_report_due(self, key: int) -> None:
        self.report()

    def report(self) -> None:
        """Tells the parent, or as a root looks who is near."""
        self._pending = self._urgent = False
        summary = self.routes.summary()
        if self._place.role == "root":
            self._reported = summary
            self.on_near(summary)
        elif self._place.role == "member" and summary != self._reported:
            self._reported = summary
            self.host.send(self._place.parent, RouteReport(summary))
        roles = self.roles.all()
        if self._place.role == "member" and roles != self.roles.reported:
            self.roles.reported = roles
            self.host.send(self._place.parent, RoleReport(roles))

    def look_around(self) -> None:
        """As a root: which others are near, if that has changed a moment ago."""
        if self._pending:
            self.report()

    def attached(self) -> None:
        """A new parent knows nothing yet; the old one may have missed a report."""
        self._reported = ()
        self.roles.reported = ()
        self.changed()

    def deny_route(self, sender: int) -> None:
        """A node that sent something along a route that is not there has to be told which ones are; so has the parent,
        even if it is a former one."""
        if sender not in (self._place.parent, NOBODY):
            self.host.send(sender, RouteReport(self.routes.summary()))
        self._reported = None
        self.report()


def _ignore_near(near: Distances) -> None:
    """Until `LinkStates` is there."""


def _ignore_refresh(refresh: Refresh) -> None:
    """Until `Roots` is there."""
