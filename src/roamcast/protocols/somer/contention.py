"""Section 5.2: trees contend for nodes, for the sake of causal events.

The operator tells every node which events cause which others (`Site.dependencies`). Roots know the roles of all causal
nodes from announcements and advertisements, and build the causal graphs of the whole network. At each refresh a root
computes its tree's expansion potential EP from what the tree covers of these graphs (`roamcast.causal`), and the
refresh carries it to all members. A node's local potential is LEP = EP / (level + eta).

Once per refresh a leaf asks its neighbours in other trees for a comparison (`Contention`). A neighbour whose LEP is
lower by more than the factor 1 + delta has lost: it joins the leaf, with its subtree, and the leaf's tree has expanded.
A neighbour whose LEP is higher by as much answers, and the leaf joins it. Roots answer too, but never lose: what
becomes of a root is merging's business.

No node contends where that would violate a threshold: where the roots are so close that their trees merge, or where the
loser would be so deep in its new tree that it draws to become a root.

With `equal_potentials` trees contend as if their potentials were all the same. What awareness gains is what it gains
over that: moving nodes towards their nearer root may pay by itself.

Without dependencies, or with `causality` switched off, none of this costs a frame.
"""

from mypy_extensions import mypyc_attr

from roamcast.causal import (
    Outcome,
    causal_graphs,
    contention,
    expansion_potential,
    local_expansion_potential,
)
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.somer.announcements import Announcements
from roamcast.protocols.somer.directory import Directory
from roamcast.protocols.somer.messages import Contention
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.membership import Membership


@mypyc_attr(allow_interpreted_subclasses=True)
class Contentions(Component):
    def __init__(
        self,
        host: Host,
        parameters: SomerParameters,
        membership: Membership,
        announcements: Announcements,
        directory: Directory,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._membership = membership
        self._place = membership.place
        self._announcements = announcements
        self._directory = directory
        self._fresh_s = parameters.refresh_period_s * (1 + parameters.jitter)
        self._has_lost = False  # since the last refresh

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Contention, self._on_contention)

    @property
    def potential(self) -> float:
        """EP of the own tree as of its last refresh. It is 0 as long as it is not known: it is never that low."""
        return self._membership.potential

    # -- potential -----------------------------------------------------------------------------------------------

    def compute_potential(self) -> None:
        """As a root, before each refresh."""
        specification = self._announcements.specification
        if specification is not None and self._parameters.equal_potentials:
            self._membership.potential = 1.0
        elif specification is not None:
            members = specification.known_roles(dict(self._announcements.roles))
            others = specification.known_roles(self._directory.roles())
            graphs = causal_graphs(specification, {**others, **members})
            self._membership.potential = expansion_potential(graphs.coverage(members), self._parameters.eta)

    def tree_changed(self) -> None:
        """The potential is another tree's now."""
        if self._place.role == "member":
            refresh = self._membership.neighbours.last(self._place.parent)
            known = refresh is not None and refresh.root == self._place.root
            self._membership.potential = refresh.potential if known and refresh is not None else 0.0

    # -- contention ----------------------------------------------------------------------------------------------

    def contend(self) -> None:
        """Once per refresh: a leaf asks for a comparison if that may end with a winner."""
        self._has_lost = False
        if self.potential == 0.0 or self._place.role != "member" or len(self._membership.children):
            return
        since_s = self.host.now() - self._fresh_s
        for _, refresh, heard_s in self._membership.neighbours.present(self.host.now()):
            foreign = heard_s >= since_s and refresh.root != self._place.root
            if foreign and self._outcome(refresh.potential, refresh.level) != "rests":
                own = self._place
                self.host.broadcast(Contention(own.root, self.potential, own.standing.level, answers=False))
                return

    def _on_contention(self, sender: int, message: Contention) -> None:
        known = self.potential != 0.0 and self._place.role != "searching"
        if not known or message.root == self._place.root or sender == self._place.parent:
            return
        outcome = self._outcome(message.potential, message.level)
        if outcome == "wins" and not message.answers:
            own = self._place
            self.host.send(sender, Contention(own.root, self.potential, own.standing.level, answers=True))
        elif outcome == "loses" and self._place.role == "member" and not self._has_lost:
            self._has_lost = True
            self.host.structure("contention", sender, self._ratio(message.potential, message.level), "lost")
            self._membership.joining.request_parent(sender)

    def _outcome(self, potential: float, level: int) -> Outcome:
        """How a contention with a node at that level of a tree with that potential ends for this one."""
        if potential <= 0.0 or not self.may_contend(level):
            return "rests"
        eta = self._parameters.eta
        mine = local_expansion_potential(self.potential, self._place.standing.level, eta)
        theirs = local_expansion_potential(potential, level, eta)
        outcome = contention(mine, theirs, self._parameters.delta)
        loser_level = level if outcome == "loses" else self._place.standing.level
        too_deep = self._parameters.new_roots and loser_level + 1 > self._parameters.new_root_threshold
        return "rests" if too_deep else outcome

    def _ratio(self, potential: float, level: int) -> float:
        eta = self._parameters.eta
        mine = local_expansion_potential(self.potential, self._place.standing.level, eta)
        return local_expansion_potential(potential, level, eta) / mine

    def may_contend(self, level: int) -> bool:
        """Whether the roots are too far apart for their trees to merge."""
        apart = self._place.standing.level + level + 1 > self._parameters.merging_threshold
        return apart or not self._parameters.merging
