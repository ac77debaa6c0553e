"""PS-MAODV: one self-repairing tree over all nodes, derived from multicast AODV.

What is from where
------------------
From the papers: Mottola, Cugola and Picco's COMAN keeps a single tree over all nodes that repairs itself, with rules
derived from MAODV; Pei's thesis measures it as PS-MAODV with the shortest-path metric (sections 4.2.2 and 6.2.4).

From its kin, since COMAN's own rules are not at hand: the tree overlay of the same group's REDS middleware gives the
period of the group hello (4 s) and the number of losses (3); who may reply to a repair (at least as new a sequence
number and strictly fewer hops); that a node which finds no parent leads its fragment; that of two leaders which meet
the one with the higher address initiates the merge and survives; and that there is no ring of growing search ranges.

Our reconstruction: REDS starts with every node as the leader of itself. Two hundred such leaders merge in many rounds,
so a node first listens: it leads only after a random time without a reply, which leaves few leaders to merge. The
merge, and the rule for those whose neighbours all stand too low, are the ones of `tree.py`. The wait for replies is the
thesis's 0.5 s; REDS waits 1.5 s, which only makes every repair slower.

In a static connected network all nodes are in one tree within `LEAD_WITHIN_S`, plus about half a second per merge:
before 5 s with up to a few hundred nodes.
"""

from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.protocols import api
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.parameters import PsMaodvParameters, TreeParameters
from roamcast.protocols.trees.tree import TreeProtocol

LEAD_AFTER_S: Final = 0.6
LEAD_WITHIN_S: Final = 2.0
"""When a node that has found no tree at its start leads one: between these two."""

LATENESS: Final = 8
"""The random time is skewed toward its end by this power, so that the first leader is alone for long enough to reach
most nodes before the second one loses patience."""

MERGE_PATIENCE_S: Final = 0.5
"""A merge that was asked for, or agreed to, is not taken up again for so long."""

MERGE_TRIES: Final = 4
"""How often a merge is asked for after a node of the other tree was heard. It can fail: the other tree may have taken a
newer sequence number meanwhile, or swallowed a third one."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SingleTree(TreeProtocol):
    """A tree over all nodes: whoever finds no parent leads its fragment, and fragments that meet merge."""

    def __init__(self, host: api.Host, parameters: TreeParameters) -> None:
        super().__init__(host, parameters)
        self._leads_from_s = 0.0
        self._merged: dict[int, float] = {}  # root absorbed lately -> until when
        self._tries: dict[int, int] = {}  # foreign root -> merges asked for again, while that goes on
        self._met_as = api.NOBODY  # the root whose tree the neighbours' trees were last compared with

    def start(self) -> None:
        patience = self.host.random.random() ** (1 / LATENESS)
        self._leads_from_s = self.host.now() + LEAD_AFTER_S + (LEAD_WITHIN_S - LEAD_AFTER_S) * patience
        super().start()

    def _search(self) -> None:
        super()._search()
        patience_s = self._leads_from_s - self.host.now()
        if 0 < patience_s < self.parameters.join_wait_s:
            self.host.set_timer(patience_s, ("choice", 0))

    def _on_search_failed(self) -> None:
        late = self._attempts >= self.parameters.join_attempts or self.standing.sequence == 0
        if late and self.host.now() >= self._leads_from_s:
            self._become_root(max(self.standing.sequence, self.neighbours.newest_sequence) + 1)
        else:
            self._search()

    def on_timer(self, timer: api.Timer) -> None:
        if timer[0] == "meet":
            self._meet_again(timer[1])
        else:
            super().on_timer(timer)

    def _on_foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._meet(message)

    def _meet_again(self, root: int) -> None:
        tries = self._tries.pop(root, MERGE_TRIES) + 1
        since_s = self.host.now() - self.parameters.refresh_period_s
        for _, refresh, heard_s in self.neighbours.present(self.host.now()):
            if refresh.root == root < self.root and heard_s >= since_s and tries < MERGE_TRIES:
                self._request_merge(refresh)
                self._tries[root] = tries
                self.host.set_timer(self._stretched(MERGE_PATIENCE_S), ("meet", root))
                return

    def _on_tree_changed(self) -> None:
        if self.root != self._met_as:
            self._met_as = self.root
            self._tries.clear()
            self._meet_neighbours()

    def _meet_neighbours(self) -> None:
        """Looks at who is around; what was heard more than a period ago may be true no longer."""
        since_s = self.host.now() - self.parameters.refresh_period_s
        for _, refresh, heard_s in self.neighbours.present(self.host.now()):
            if heard_s >= since_s:
                self._meet(refresh)

    def _meet(self, refresh: Refresh) -> None:
        """Asks for the merge with a lesser tree, and again if that tree is still there a little later."""
        if refresh.root < self.root:
            self._request_merge(refresh)
            if refresh.root not in self._tries:
                self._tries[refresh.root] = 0
                self.host.set_timer(self._stretched(MERGE_PATIENCE_S), ("meet", refresh.root))

    def _agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        if message.absorb >= self.host.address or self._merged.get(message.absorb, 0.0) > now:
            return False
        self._merged[message.absorb] = now + MERGE_PATIENCE_S
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class PsMaodv(SingleTree):
    name: ClassVar[str] = "ps-maodv"
    summary: ClassVar[str] = "one self-repairing publish/subscribe tree after multicast AODV (COMAN)"
    Parameters: ClassVar[type[api.Parameters]] = PsMaodvParameters
