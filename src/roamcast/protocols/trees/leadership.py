"""The policy of a single tree over all nodes: a node that finds no parent leads its fragment, and fragments merge.

At its start a node first listens, and leads only after a random time without a reply. The time is skewed toward its end
(`lead_lateness`), so that the first leader has reached most nodes before the second one loses patience. Two hundred
nodes that all led from the start would merge in many rounds.

A node that hears of a tree with a lower root asks its own root to absorb it, and asks again as long as the other tree
is still there: the merge can fail, because the other tree may have taken a newer sequence number meanwhile, or absorbed
a third one.
"""

from enum import StrEnum

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Inputs
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Refresh, SequenceRequest
from roamcast.protocols.trees.parameters import SingleTreeParameters
from roamcast.protocols.trees.petitions import Petitions
from roamcast.protocols.trees.policy import TreePolicy


class LeadershipTimer(StrEnum):
    MERGE_AGAIN = "leadership.merge"  # a tree that was to be absorbed may still be there; key: its root


@mypyc_attr(allow_interpreted_subclasses=True)
class Leadership(TreePolicy):
    def __init__(
        self, host: Host, parameters: SingleTreeParameters, membership: Membership, petitions: Petitions
    ) -> None:
        super().__init__(host, membership.place)
        self._parameters = parameters
        self._membership = membership
        self._petitions = petitions
        self._neighbours = membership.neighbours
        self._leads_from_s = 0.0
        self._merged: dict[int, float] = {}  # root absorbed lately -> until when
        self._tries: dict[int, int] = {}  # foreign root -> merges asked for again, while that goes on
        self._met_as = NOBODY  # the root whose tree the neighbours' trees were last compared with

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(LeadershipTimer.MERGE_AGAIN, self._meet_again)

    def start(self) -> None:
        parameters = self._parameters
        patience = self.host.random.random() ** (1 / parameters.lead_lateness)
        within_s = parameters.lead_within_s - parameters.lead_after_s
        self._leads_from_s = self.host.now() + parameters.lead_after_s + within_s * patience

    # -- leading -------------------------------------------------------------------------------------------------

    def requested(self) -> None:
        patience_s = self._leads_from_s - self.host.now()
        if 0 < patience_s < self._parameters.join_wait_s:
            self._membership.joining.wait_for_offers(patience_s)

    def search_failed(self) -> bool:
        attempts = self._membership.joining.attempts
        late = attempts >= self._parameters.join_attempts or self.place.standing.sequence == 0
        if late and self.host.now() >= self._leads_from_s:
            self._membership.become_root(self._membership.newer_than_all())
            return False
        return True

    # -- merging -------------------------------------------------------------------------------------------------

    def foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._meet(message)

    def tree_changed(self) -> None:
        if self.place.root != self._met_as:
            self._met_as = self.place.root
            self._tries.clear()
            self._meet_neighbours()

    def agrees_to_merge(self, message: SequenceRequest) -> bool:
        now = self.host.now()
        if message.absorb >= self.host.address or self._merged.get(message.absorb, 0.0) > now:
            return False
        if len(self._merged) >= self._parameters.neighbours_max:
            self._merged = {root: until_s for root, until_s in self._merged.items() if until_s > now}
        self._merged[message.absorb] = now + self._parameters.merge_patience_s
        return True

    def _meet_neighbours(self) -> None:
        """Looks at who is around; what was heard more than a period ago may be true no longer."""
        since_s = self.host.now() - self._parameters.refresh_period_s
        for _, refresh, heard_s in self._neighbours.present(self.host.now()):
            if heard_s >= since_s:
                self._meet(refresh)

    def _meet(self, refresh: Refresh) -> None:
        """Asks for the merge with a lesser tree, and again if that tree is still there a little later."""
        if refresh.root < self.place.root:
            self._petitions.request_merge(refresh)
            if refresh.root not in self._tries and len(self._tries) < self._parameters.neighbours_max:
                self._tries[refresh.root] = 0
                self._meet_later(refresh.root)

    def _meet_later(self, root: int) -> None:
        delay_s = self._membership.stretched(self._parameters.merge_patience_s)
        self.host.set_timer(delay_s, (LeadershipTimer.MERGE_AGAIN, root))

    def _meet_again(self, root: int) -> None:
        tries = self._tries.pop(root, self._parameters.merge_tries) + 1
        since_s = self.host.now() - self._parameters.refresh_period_s
        for _, refresh, heard_s in self._neighbours.present(self.host.now()):
            lesser = refresh.root == root < self.place.root
            if lesser and heard_s >= since_s and tries < self._parameters.merge_tries:
                self._petitions.request_merge(refresh)
                self._tries[root] = tries
                self._meet_later(root)
                return
