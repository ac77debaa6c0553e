"""SP-COMBO: one tree in which a node weighs distance from the root against the events its interest would add.

What is from where
------------------
From the papers: Huang and Garcia-Molina's SHOPPARENT builds the tree greedily, each node picking the candidate that
scores best; Pei's thesis (sections 4.2.2 and 6.2.4) describes the combined metric as the candidate's level times the
predicted publication overhead, and notes that it must know the rates of publication beforehand.

Our reconstruction, since the paper's own formulas are not at hand:

- The overhead of node j under candidate p is what j's interest S_j adds to every node a on the path from p to the root:
  `receive_cost` for events that a did not receive before (outside its effective interest), and `transmit_cost` for
  events that a did not send down before (outside the union of its children's). With events spread evenly over a pool of
  `pool` contents that is `Interest.extra_share`: the known rates that the thesis speaks of.
- No node knows its ancestors' interests. The candidate therefore sends an `Appraisal` up its path; each node adds its
  share, and the first whose effective interest covers S_j (nobody above it would notice j) sends the sum back.
- Score: (level + 1) times overhead, lowest wins; without the added one the root would always win.
- A refresh that comes by says nothing about overhead, so a searching node answers it with a request of its own and
  waits `appraisal_wait_s`.

How roots arise, merge and die is as in PS-MAODV, and the refresh period is the same, so that the comparison is about
the choice of the parent. Joining takes up to `appraisal_wait_s` per level: a tree ten levels deep stands after about
4 s.
"""

from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message
from roamcast.protocols.trees.messages import Appraisal, Appraised, JoinReply, JoinRequest, TreeMessages
from roamcast.protocols.trees.metrics import Metric, Offer, combination
from roamcast.protocols.trees.parameters import SpComboParameters
from roamcast.protocols.trees.petitions import PATH_MAX
from roamcast.protocols.trees.ps_maodv import SingleTree


@mypyc_attr(allow_interpreted_subclasses=True)
class SpCombo(SingleTree):
    name: ClassVar[str] = "sp-combo"
    summary: ClassVar[str] = "one tree whose nodes weigh distance against publication overhead (SHOPPARENT)"
    Parameters: ClassVar[type[api.Parameters]] = SpComboParameters
    messages: ClassVar[Any] = TreeMessages | Appraisal | Appraised
    metric: ClassVar[Metric] = staticmethod(combination)

    def __init__(self, host: Host, parameters: SpComboParameters) -> None:
        super().__init__(host, parameters)
        self._receive_cost = parameters.receive_cost
        self._transmit_cost = parameters.transmit_cost
        self._pool = parameters.pool
        self._appraisal_wait_s = parameters.appraisal_wait_s
        self._asked_s = -1.0  # when the last request went out

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Appraisal:
            self._on_appraisal(sender, message)
        elif type(message) is Appraised:
            self._on_appraised(message)
        else:
            super().on_message(sender, message)

    # -- the joining node ----------------------------------------------------------------------------------------

    def _search(self) -> None:
        self._asked_s = self.host.now()
        super()._search()

    def _join_request(self) -> JoinRequest:
        return JoinRequest(*self.standing, self._insists(), self.effective_interest)

    def _on_passing_offer(self, offer: Offer) -> None:
        if self._offers or self.host.now() < self._asked_s + self._appraisal_wait_s:
            return
        self._asked_s = self.host.now()
        self.host.broadcast(self._join_request())
        self.host.set_timer(self._appraisal_wait_s, ("choice", 0))

    # -- candidates and their ancestors --------------------------------------------------------------------------

    def _reply(self, asker: int, request: JoinRequest) -> None:
        if request.interest is None:
            super()._reply(asker, request)
        else:
            self._appraise(Appraisal(asker, request.interest, 0.0, ()))

    def _on_appraisal(self, sender: int, message: Appraisal) -> None:
        self.children.heard(sender, self.host.now())
        if len(message.path) < PATH_MAX:
            path = (*message.path, sender)
            self._appraise(Appraisal(message.asker, message.interest, message.overhead, path))

    def _appraise(self, so_far: Appraisal) -> None:
        """Adds this node's share; `so_far.path` ends with the child that asked, or is empty at the candidate itself."""
        overhead = so_far.overhead + self._overhead(so_far.interest)
        effective = self.effective_interest
        settled = self.role == "root" or (effective is not None and effective.covers(so_far.interest))
        if settled:
            self._pass_back(so_far.asker, overhead, so_far.path)
        elif self.role == "member":
            self.host.send(self.parent, Appraisal(so_far.asker, so_far.interest, overhead, so_far.path))

    def _overhead(self, interest: Interest) -> float:
        received = interest.extra_share(self.effective_interest, self._pool)
        sent = interest.extra_share(self.children.proxied, self._pool)
        return self._receive_cost * received + self._transmit_cost * sent

    def _on_appraised(self, message: Appraised) -> None:
        self._pass_back(message.asker, message.overhead, message.path)

    def _pass_back(self, asker: int, overhead: float, path: tuple[int, ...]) -> None:
        if path:
            self.host.send(path[-1], Appraised(asker, overhead, path[:-1]))
        elif self.role != "searching":
            self.host.send(asker, JoinReply(self.root, *self.standing, overhead))
