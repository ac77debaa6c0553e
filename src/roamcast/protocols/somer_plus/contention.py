"""Trees contend for nodes, for the sake of causal events (thesis, chapter 5).

Theory of operation
-------------------
The operator tells every node which events cause which others (`Site.dependencies`). From what its application
advertises and subscribes to, a node knows its role in that; roles climb to the root (`RoleReport`) and travel on in the
root's advertisements, so every root knows all causal nodes and builds the causal graphs of the whole network.

At each refresh a root computes its tree's expansion potential, EP, from what the tree covers of these graphs
(`roamcast.causal`), and the refresh carries it to all members. A node's local potential is LEP = EP / (level + eta).

Once per refresh a leaf contends with the neighbour in another tree that would win most clearly by the last refreshes:
it sends its tree's EP and its own level and gets the neighbour's in return. Who loses asks the other one to be its
parent. Only leaves lose: a tree is eaten from its border, one node at a time, and no whole branch changes sides because
of one comparison.

A leaf loses if its LEP, as a child of the other one, would be greater than now by more than the factor 1 + delta. So
every change raises a node's LEP, and ends as soon as potentials do not change any more. The thesis compares the two as
they stand. With equal potentials a leaf at level 2 between two neighbours at level 1 would then lose to one of them
after the other for ever (3/2 > 1 + delta), and asking one neighbour in each tree it could do so several times per
refresh: of 250 moving nodes (2 seeds, 120 s) 3.4 a second lost, now 1.7 do.

Nobody contends where its outcome would be undone at once: the roots so close that their trees merge, or the loser so
deep in its new tree that it draws to become a root.

Without dependencies, or with `causality` switched off, none of this costs a frame.
"""

from mypy_extensions import mypyc_attr

from roamcast.causal import Specification, causal_graphs, contention, expansion_potential, local_expansion_potential
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.somer_plus.advertising import ROUTE_PERIODS
from roamcast.protocols.somer_plus.crossing import CrossingTree
from roamcast.protocols.somer_plus.messages import Contention
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.messages import Refresh
from roamcast.protocols.trees.standing import Standing


@mypyc_attr(allow_interpreted_subclasses=True)
class ContendingTree(CrossingTree):
    def __init__(self, host: Host, parameters: SomerPlusParameters) -> None:
        super().__init__(host, parameters)
        self.potential = 0.0  # EP of the own tree as of its last refresh; 0: not known yet, it is never that low
        self._advertises: list[Interest] = []
        known = parameters.causality and host.site is not None
        self._specification: Specification | None = host.site.dependencies if known and host.site else None

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Contention:
            self._on_contention(sender, message)
        else:
            super().on_message(sender, message)

    # -- roles ---------------------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        super().subscribe(interest)
        self._take_role()

    def unsubscribe(self, interest: Interest) -> None:
        super().unsubscribe(interest)
        self._take_role()

    def advertise(self, interest: Interest) -> None:
        super().advertise(interest)
        self._advertises.append(interest)
        self._take_role()

    def _take_role(self) -> None:
        if self._specification is not None:
            role = self._specification.role(self._advertises, self.subscriptions)
            self.roles.own = () if role.is_empty else ((self.host.address, role),)
            self._routes_changed()

    # -- potential -----------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        if self._specification is not None:
            members = dict(self.roles.all())
            graphs = causal_graphs(self._specification, {**self.overlay.roles(), **members})
            self.potential = expansion_potential(graphs.coverage(members), self.somer.eta)
        super()._beat()

    def _refresh(self) -> Refresh:
        return Refresh(
            self.root, *self.standing, self.parent, self._absorbs, self._invites, potential=self.potential
        )

    def _follow(self, message: Refresh, offered: Standing) -> None:
        self.potential = message.potential
        super()._follow(message, offered)

    def _on_tree_changed(self) -> None:
        super()._on_tree_changed()
        if self.role == "member":
            refresh = self.neighbours.last(self.parent)
            self.potential = refresh.potential if refresh is not None and refresh.root == self.root else 0.0

    # -- contention ----------------------------------------------------------------------------------------------

    def _on_refreshed(self) -> None:
        super()._on_refreshed()
        if self.potential == 0.0 or not self._is_leaf():
            return
        since_s = self.host.now() - ROUTE_PERIODS * self.parameters.refresh_period_s
        best, rival = 0.0, NOBODY
        for address, refresh, heard_s in self.neighbours.present(self.host.now()):
            if heard_s >= since_s and refresh.root != self.root and self._loses_to(refresh.potential, refresh.level):
                offered = self._local_potential(refresh.potential, refresh.level + 1)
                if offered > best:
                    best, rival = offered, address
        if rival != NOBODY:
            self.host.send(rival, Contention(self.potential, self.standing.level, answers=False))

    def _on_contention(self, sender: int, message: Contention) -> None:
        if self.potential == 0.0 or self.role != "member":
            return
        if not message.answers:
            self.host.send(sender, Contention(self.potential, self.standing.level, answers=True))
        if self._is_leaf() and sender != self.parent and self._loses_to(message.potential, message.level):
            mine = self._local_potential(self.potential, self.standing.level)
            theirs = self._local_potential(message.potential, message.level)
            self.host.structure("contention", sender, theirs / mine, "lost")
            self._court(sender)

    def _loses_to(self, potential: float, level: int) -> bool:
        """Whether a node at that level of a tree with that potential takes this one, as its child."""
        if potential <= 0.0 or not self._may_contend(level):
            return False
        mine = self._local_potential(self.potential, self.standing.level)
        theirs = self._local_potential(potential, level + 1)
        return contention(mine, theirs, self.somer.delta) == "loses"

    def _local_potential(self, potential: float, level: int) -> float:
        return local_expansion_potential(potential, level, self.somer.eta)

    def _is_leaf(self) -> bool:
        return self.role == "member" and not len(self.children)

    def _may_contend(self, level: int) -> bool:
        """Whether neither threshold would be violated by becoming the child of a node at this level."""
        apart = not self.somer.merging or self.standing.level + level + 1 > self.somer.merging_threshold
        shallow = not self.somer.new_roots or level + 1 <= self.somer.new_root_threshold
        return apart and shallow
