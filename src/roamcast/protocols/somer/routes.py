"""Section 4.3.2, inter-tree route establishment: how a tree reaches its neighbouring trees.

A node that hears the refresh of a node u in another tree knows a path to that tree's root: own level + u's level + 1
hops from root to root. It remembers u as a next hop, and reports the best distance to each foreign root to its parent,
which does the same. So the root ends up with the shortest path to each neighbouring tree (theorem 4.1), and each node
on it knows its next hop.

The thesis keeps the best next hop only, and replaces it only by a better one. Such an entry would outlive its path.
Therefore a report is complete and replaces the one before, and a next hop is forgotten when its refresh has not been
heard for `route_lifetime_periods` or a frame failed to reach it. The other next hops are remembered, so that the second
best is at hand then.
"""

from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.somer.messages import Distances, RouteReport
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Refresh
from roamcast.protocols.trees.standing import LEVEL_MAX


class RoutesTimer(StrEnum):
    REPORT = "routes.report"  # routes that changed are due at the parent


REPORT: Final[Timer] = (RoutesTimer.REPORT, 0)
NONE: Final[dict[int, int]] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class BorderRoutes(Component):
    def __init__(self, host: Host, parameters: SomerParameters, membership: Membership) -> None:
        super().__init__(host)
        self._membership = membership
        self._place = membership.place
        self._lifetime_s = parameters.route_lifetime_periods * parameters.refresh_period_s
        self._hold_s = parameters.route_hold_s
        self._distance_hold_s = parameters.distance_hold_s
        self._max = parameters.routes_max
        self._next_hops: dict[int, dict[int, int]] = {}  # foreign root -> next hop -> hops from root to root
        self._reported: Distances = ()  # what the parent was last told
        self._pending = False
        self._urgent = False  # and soon

    def declare(self, inputs: Inputs) -> None:
        inputs.on(RouteReport, self._on_report)
        inputs.on_any_failure(self._on_failure)
        inputs.on_timer(RoutesTimer.REPORT, self._report)

    def next_hop(self, root: int, besides: int = NOBODY) -> int:
        """The neighbour, other than `besides`, on the shortest known path to that root; of equal ones the one with the
        lowest address. `NOBODY` if there is none."""
        best, shortest = NOBODY, 0
        for next_hop, distance in self._next_hops.get(root, NONE).items():
            if next_hop != besides and (best == NOBODY or (distance, next_hop) < (shortest, best)):
                best, shortest = next_hop, distance
        return best

    def neighbouring_roots(self) -> list[int]:
        """The roots that can be reached, ascending."""
        return sorted(self._next_hops)

    def distances(self) -> Distances:
        """The roots that can be reached with their distances, ascending."""
        return tuple(sorted((root, min(next_hops.values())) for root, next_hops in self._next_hops.items()))

    # -- what is heard -------------------------------------------------------------------------------------------

    def meet(self, neighbour: int, refresh: Refresh) -> None:
        """A node of another tree is in range."""
        own = (self._place.root, self.host.address)  # the latter: a tree that was once this node's own
        foreign = refresh.root not in own and refresh.root != NOBODY and refresh.level < LEVEL_MAX
        if foreign and neighbour != self._place.parent and refresh.parent != self.host.address:
            self._learn(refresh.root, neighbour, self._place.standing.level + refresh.level + 1)

    def _on_report(self, sender: int, message: RouteReport) -> None:
        if sender in self._membership.children:
            self.drop(sender)
            for root, distance in message.routes:
                if root not in (self._place.root, self.host.address, NOBODY):
                    self._learn(root, sender, distance)

    def _learn(self, root: int, next_hop: int, distance: int) -> None:
        next_hops = self._next_hops.get(root)
        if next_hops is None:
            if len(self._next_hops) >= self._max:
                return
            next_hops = self._next_hops[root] = {}
        if next_hops.get(next_hop) != distance and (next_hop in next_hops or len(next_hops) < self._max):
            next_hops[next_hop] = distance
            self._report_soon()

    # -- what ends -----------------------------------------------------------------------------------------------

    def drop(self, next_hop: int) -> None:
        """This neighbour leads nowhere any more."""
        found = [root for root, next_hops in self._next_hops.items() if next_hop in next_hops]
        for root in found:
            del self._next_hops[root][next_hop]
            if not self._next_hops[root]:
                del self._next_hops[root]
        if found:
            self._report_soon()

    def _on_failure(self, neighbour: int, message: Message) -> None:
        self.drop(neighbour)

    def refresh_heard(self, sender: int, message: Refresh) -> None:
        """What this neighbour led to may have changed; a child reports by itself."""
        if message.parent != self.host.address:
            self.drop(sender)

    def tree_changed(self) -> None:
        """What is foreign, and how far, is different now."""
        self._next_hops.pop(self._place.root, None)
        for address, refresh, _ in self._membership.neighbours.present(self.host.now()):
            if refresh.parent != self.host.address:
                self.drop(address)
                self.meet(address, refresh)
        self._report_soon()

    def refreshed(self) -> None:
        """Once per period: neighbours that fell silent are no path to anywhere."""
        now = self.host.now()
        present = {n.address for n in self._membership.neighbours.present(now) if n.heard_s >= now - self._lifetime_s}
        next_hops = sorted({next_hop for found in self._next_hops.values() for next_hop in found})
        for next_hop in next_hops:
            if next_hop not in present and next_hop not in self._membership.children:
                self.drop(next_hop)

    # -- reports -------------------------------------------------------------------------------------------------

    def attached(self) -> None:
        """A new parent knows nothing yet."""
        self._reported = ()
        self._report_soon()

    def _report_soon(self) -> None:
        """That a tree can be reached, or no longer, is reported sooner than a distance that changed."""
        if not self._urgent and sorted(self._next_hops) != [root for root, _ in self._reported]:
            self._urgent = True
            self.host.set_timer(self._hold_s, REPORT)
        elif not self._pending:
            self.host.set_timer(self._distance_hold_s, REPORT)
        self._pending = True

    def _report(self, key: int) -> None:
        self._pending = self._urgent = False
        distances = self.distances()
        if self._place.role == "member" and distances != self._reported:
            self.host.send(self._place.parent, RouteReport(distances))
        self._reported = distances
