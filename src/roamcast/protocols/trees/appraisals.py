"""What a parent would cost: the overhead that the metrics PM and CM weigh (thesis, section 4.2.2).

- The overhead of node j under candidate p is what j's interest S_j adds to every node a on the path from p to the root:
  `receive_cost` for events that a did not receive before (outside its effective interest), and `transmit_cost` for
  events that a did not send down before (outside the union of its children's). With events spread evenly over a pool of
  `pool` contents that is `Interest.extra_share`: the rates that the thesis says must be known beforehand.
- No node knows its ancestors' interests. The candidate therefore sends an `Appraisal` up its path. Each node adds its
  share, and the first whose effective interest covers S_j (no node above it would notice j) sends the sum back.
- A refresh that comes by says nothing about overhead, so a searching node answers it with a request of its own and
  collects replies for `appraisal_wait_s`.
"""

from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import Inputs
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.joining import Appraiser
from roamcast.protocols.trees.messages import Appraisal, Appraised, JoinReply, JoinRequest
from roamcast.protocols.trees.parameters import AppraisalParameters
from roamcast.protocols.trees.place import Place


@mypyc_attr(allow_interpreted_subclasses=True)
class Appraisals(Appraiser):
    def __init__(self, host: Host, parameters: AppraisalParameters, dissemination: Dissemination) -> None:
        super().__init__(host)
        self._place = dissemination.place
        self._dissemination = dissemination
        self._receive_cost = parameters.receive_cost
        self._transmit_cost = parameters.transmit_cost
        self._pool = parameters.pool
        self._wait_s = parameters.appraisal_wait_s
        self._path_max = parameters.path_max
        self._asked_s = -1.0  # when the last request went out

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Appraisal, self._on_appraisal)
        inputs.on(Appraised, self._on_appraised)

    # -- the joining node ----------------------------------------------------------------------------------------

    def request(self, place: Place, insists: bool) -> JoinRequest:
        self._asked_s = self.host.now()
        interest = self._dissemination.effective_interest
        return JoinRequest(place.standing.sequence, place.standing.level, insists, interest)

    def passing_offer_wait_s(self, has_offers: bool) -> float:
        return -1.0 if has_offers or self.host.now() < self._asked_s + self._wait_s else self._wait_s

    # -- candidates and their ancestors --------------------------------------------------------------------------

    def reply(self, asker: int, request: JoinRequest, place: Place) -> None:
        if request.interest is None:
            super().reply(asker, request, place)
        else:
            self._appraise(Appraisal(asker, request.interest, 0.0, ()))

    def _on_appraisal(self, sender: int, message: Appraisal) -> None:
        self._dissemination.children.heard(sender, self.host.now())
        if len(message.path) < self._path_max:
            path = (*message.path, sender)
            self._appraise(Appraisal(message.asker, message.interest, message.overhead, path))

    def _appraise(self, so_far: Appraisal) -> None:
        """Adds this node's share; `so_far.path` ends with the child that asked, or is empty at the candidate itself."""
        overhead = so_far.overhead + self._overhead(so_far.interest)
        effective = self._dissemination.effective_interest
        settled = self._place.role == "root" or (effective is not None and effective.covers(so_far.interest))
        if settled:
            self._pass_back(so_far.asker, overhead, so_far.path)
        elif self._place.role == "member":
            self.host.send(self._place.parent, Appraisal(so_far.asker, so_far.interest, overhead, so_far.path))

    def _overhead(self, interest: Interest) -> float:
        received = interest.extra_share(self._dissemination.effective_interest, self._pool)
        sent = interest.extra_share(self._dissemination.children.proxied, self._pool)
        return self._receive_cost * received + self._transmit_cost * sent

    def _on_appraised(self, sender: int, message: Appraised) -> None:
        self._pass_back(message.asker, message.overhead, message.path)

    def _pass_back(self, asker: int, overhead: float, path: tuple[int, ...]) -> None:
        if path:
            self.host.send(path[-1], Appraised(asker, overhead, path[:-1]))
        elif self._place.role != "searching":
            place = self._place
            self.host.send(asker, JoinReply(place.root, place.standing.sequence, place.standing.level, overhead))
