"""Trees contend for nodes, for the sake of causal events (thesis, chapter 5).

As in SOMER, a root computes its tree's expansion potential EP at each refresh, which carries it to all members. A
node's local potential is LEP = EP / (level + eta). Once per refresh a leaf contends with the neighbour in another tree
that would win most clearly by the last refreshes: it sends its tree's EP and its own level and gets the neighbour's in
return. The loser asks the other one to be its parent. Only leaves lose: a tree shrinks from its border, one node at a
time, and no whole branch changes sides because of one comparison.

*Settled contention* (`settled_contention`). A leaf loses only if its LEP, as a child of the other one, would be greater
than now by more than the factor 1 + delta. So every change raises a node's LEP, and changes end as soon as potentials
do not change any more. The thesis compares the two as they stand. With equal potentials a leaf at level 2 between two
neighbours at level 1 then loses to one of them after the other for ever (3/2 > 1 + delta).

No node contends where the outcome would be undone at once: where the roots are so close that their trees merge, or the
loser would be so deep in its new tree that it draws to become a root.
"""

from mypy_extensions import mypyc_attr

from roamcast.causal import (
    Specification,
    causal_graphs,
    contention,
    expansion_potential,
    local_expansion_potential,
)
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.somer_plus.linkstate import LinkStates
from roamcast.protocols.somer_plus.messages import Contention
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.membership import Membership


@mypyc_attr(allow_interpreted_subclasses=True)
class Contentions(Component):
    def __init__(
        self,
        host: Host,
        parameters: SomerPlusParameters,
        membership: Membership,
        link_state: LinkStates,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._membership = membership
        self._place = membership.place
        self._link_state = link_state
        self._roles = link_state.borders.roles
        self._dissemination = dissemination
        self._fresh_s = parameters.route_lifetime_periods * parameters.refresh_period_s
        self._advertises: list[Interest] = []
        aware = parameters.causality and host.site is not None
        self._specification: Specification | None = host.site.dependencies if aware and host.site is not None else None

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Contention, self._on_contention)

    @property
    def potential(self) -> float:
        """EP of the own tree as of its last refresh. It is 0 as long as it is not known: it is never that low."""
        return self._membership.potential

    # -- roles and potential -------------------------------------------------------------------------------------

    def advertise(self, interest: Interest) -> None:
        self._advertises.append(interest)
        self.take_role()

    def take_role(self) -> None:
        """What the application publishes or subscribes to decides its causal role."""
        if self._specification is not None:
            role = self._specification.role(self._advertises, self._dissemination.subscriptions)
            self._roles.own = () if role.is_empty else ((self.host.address, role),)
            self._link_state.borders.changed()

    def compute_potential(self) -> None:
        """As a root, before each refresh."""
        if self._specification is not None:
            members = self._specification.known_roles(dict(self._roles.all()))
            others = self._specification.known_roles(self._link_state.overlay.roles())
            graphs = causal_graphs(self._specification, {**others, **members})
            self._membership.potential = expansion_potential(graphs.coverage(members), self._parameters.eta)

    def tree_changed(self) -> None:
        """The potential is another tree's now."""
        if self._place.role == "member":
            refresh = self._membership.neighbours.last(self._place.parent)
            known = refresh is not None and refresh.root == self._place.root
            self._membership.potential = refresh.potential if known and refresh is not None else 0.0

    # -- contention ----------------------------------------------------------------------------------------------

    def contend(self) -> None:
        """Once per refresh."""
        if self.potential == 0.0 or not self._is_leaf():
            return
        since_s = self.host.now() - self._fresh_s
        best, rival = 0.0, NOBODY
        for address, refresh, heard_s in self._membership.neighbours.present(self.host.now()):
            foreign = heard_s >= since_s and refresh.root != self._place.root
            if foreign and self._loses_to(refresh.potential, refresh.level):
                offered = self._local_potential(refresh.potential, refresh.level + 1)
                if offered > best:
                    best, rival = offered, address
        if rival != NOBODY:
            self.host.send(rival, Contention(self.potential, self._place.standing.level, answers=False))

    def _on_contention(self, sender: int, message: Contention) -> None:
        if self.potential == 0.0 or self._place.role != "member":
            return
        if not message.answers:
            self.host.send(sender, Contention(self.potential, self._place.standing.level, answers=True))
        if self._is_leaf() and sender != self._place.parent and self._loses_to(message.potential, message.level):
            mine = self._local_potential(self.potential, self._place.standing.level)
            theirs = self._local_potential(message.potential, message.level)
            self.host.structure("contention", sender, theirs / mine, "lost")
            self._membership.joining.request_parent(sender)

    def _loses_to(self, potential: float, level: int) -> bool:
        """Whether a node at that level of a tree with that potential takes this one, as its child."""
        if potential <= 0.0 or not self.may_contend(level):
            return False
        mine = self._local_potential(self.potential, self._place.standing.level)
        compared_level = level + 1 if self._parameters.settled_contention else level
        return contention(mine, self._local_potential(potential, compared_level), self._parameters.delta) == "loses"

    def _local_potential(self, potential: float, level: int) -> float:
        return local_expansion_potential(potential, level, self._parameters.eta)

    def _is_leaf(self) -> bool:
        return self._place.role == "member" and not len(self._membership.children)

    def may_contend(self, level: int) -> bool:
        """Whether neither threshold would be violated by becoming the child of a node at this level."""
        parameters = self._parameters
        apart = not parameters.merging or self._place.standing.level + level + 1 > parameters.merging_threshold
        shallow = not parameters.new_roots or level + 1 <= parameters.new_root_threshold
        return apart and shallow
