"""Finding a parent (thesis, section 4.2).

A node without a tree broadcasts a `JoinRequest`. It collects replies of neighbours that are in a tree for `join_wait_s`
after the first one, and takes the best by its metric. A refresh that comes by is an offer too. It is taken up after
`offer_wait_s`, since the rest of its wave arrives together. With no reply the node asks again; what happens after
several attempts is the protocol's decision (`TreePolicy.search_failed`).

Only a neighbour that stands above this node (see `standing.py`) may be its next parent, which no node of its own
subtree ever does. If the neighbours all stand too low as far as is known, and from the second request on in any case,
the request *insists*: they ask their root for a newer sequence number (`petitions.py`).

A node that has a parent may ask one neighbour to take its place (`request_parent`); the reply makes the change.

No sequence number can be used up. A node that has searched for as long as any link is believed in, or that stands at
the highest number there is, forgets its standing and begins again as a new node would.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.api import NOBODY, Host, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.trees.messages import JoinReply, JoinRequest
from roamcast.protocols.trees.metrics import METRICS, Metric, ParentOffer
from roamcast.protocols.trees.neighbours import Neighbours
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.place import Place
from roamcast.protocols.trees.standing import NEWBORN, SEQUENCE_MAX, Standing


class JoiningTimer(StrEnum):
    CHOICE = "joining.choice"  # the wait for offers is over


CHOICE: Final[Timer] = (JoiningTimer.CHOICE, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Appraiser(Component):
    """Tells the metric what a parent would cost. This default knows no costs: only distances count."""

    def declare(self, inputs: Inputs) -> None:
        """Nothing to ask for."""

    def request(self, place: Place, insists: bool) -> JoinRequest:
        """The request of a node that looks for a parent."""
        return JoinRequest(place.standing.sequence, place.standing.level, insists)

    def reply(self, asker: int, request: JoinRequest, place: Place) -> None:
        """Offers to be the parent of a node that asked."""
        self.host.send(asker, JoinReply(place.root, place.standing.sequence, place.standing.level))

    def passing_offer_wait_s(self, has_offers: bool) -> float:
        """What to do about a refresh that came by. 0: it is a complete offer, as here. Above 0: send a request, whose
        replies are due within this time. Below 0: ignore it for now."""
        return 0.0


@mypyc_attr(allow_interpreted_subclasses=True)
class Joining(Component):
    def __init__(
        self, host: Host, parameters: TreeParameters, place: Place, neighbours: Neighbours, appraiser: Appraiser
    ) -> None:
        super().__init__(host)
        self.attempts = 0  # requests since the last parent was lost
        self.requested_parent = NOBODY  # neighbour that was asked to be the next parent
        self.offers: dict[int, ParentOffer] = {}
        self.appraiser = appraiser
        self._parameters = parameters
        self._place = place
        self._neighbours = neighbours
        self._metric: Metric = METRICS[parameters.metric]
        self._since_s = 0.0  # when the search began
        # (offer, whether the former parent is kept for a while)
        self.on_chosen: Callable[[ParentOffer, bool], None] = _ignore_choice
        self.on_failed: Callable[[], None] = _ignore_failure
        self.on_standing_useless: Callable[[], None] = _ignore_failure

    def declare(self, inputs: Inputs) -> None:
        inputs.on(JoinReply, self._on_reply)
        inputs.on_timer(JoiningTimer.CHOICE, self._choose)

    def search_anew(self) -> None:
        """The node has no parent any more."""
        self.attempts = 0
        self._since_s = self.host.now()
        self.search()

    def search(self) -> None:
        self.attempts += 1
        self.offers.clear()
        self.host.broadcast(self.appraiser.request(self._place, self.insists()))
        patience = min(self.attempts, self._parameters.search_slowdown_max)
        self.wait_for_offers(self._parameters.stretched(patience * self._parameters.join_wait_s, self.host.random))

    def wait_for_offers(self, wait_s: float) -> None:
        self.host.set_timer(wait_s, CHOICE)

    def stop(self) -> None:
        """There is a parent, or this node is a root."""
        self.requested_parent = NOBODY
        self.offers.clear()
        self.host.cancel_timer(CHOICE)

    def insists(self) -> bool:
        """Whether to ask even those that stand too low: no other node has replied, or is known to be around."""
        if self.attempts > 1 or self._place.standing == NEWBORN:  # every node stands above a newborn one
            return self.attempts > 1
        since_s = self.host.now() - (1 + self._parameters.jitter) * self._parameters.refresh_period_s
        for _, refresh, heard_s in self._neighbours.present(self.host.now()):
            offered = Standing(refresh.sequence, refresh.level)
            if heard_s >= since_s and self._place.may_follow(refresh.root, offered):
                return False
        return True

    def _on_reply(self, sender: int, message: JoinReply) -> None:
        offered = Standing(message.sequence, message.level)
        if self._place.role == "searching":
            first = not self.offers
            self._consider(ParentOffer(sender, message.root, offered, message.overhead))
            if first and self.offers:
                self.wait_for_offers(self._parameters.stretched(self._parameters.join_wait_s, self.host.random))
        elif sender == self.requested_parent and self._place.may_follow(message.root, offered):
            self.on_chosen(ParentOffer(sender, message.root, offered), True)

    def request_parent(self, neighbour: int) -> None:
        """Asks a neighbour to be the parent instead of the present one; its reply makes the change."""
        self.requested_parent = neighbour
        sequence, level = self._place.standing
        self.host.send(neighbour, JoinRequest(sequence, level, insists=True))

    def take_passing_offer(self, offer: ParentOffer) -> None:
        """A refresh came by while searching; the first of its wave shortens the wait."""
        wait_s = self.appraiser.passing_offer_wait_s(bool(self.offers))
        if wait_s > 0.0:
            self.host.broadcast(self.appraiser.request(self._place, self.insists()))
            self.wait_for_offers(wait_s)
        elif wait_s == 0.0:
            if not self.offers:
                self.wait_for_offers(self._parameters.offer_wait_s)
            self._consider(offer)

    def _consider(self, offer: ParentOffer) -> None:
        if self._place.may_follow(offer.root, offer.standing) and len(self.offers) < self._parameters.neighbours_max:
            self.offers[offer.parent] = offer

    def _choose(self, key: int) -> None:
        offers = [offer for offer in self.offers.values() if offer.standing.above(self._place.standing)]
        if offers:
            self.on_chosen(min(offers, key=self._metric), False)
            return
        searched_s = self.host.now() - self._since_s
        if self._place.standing.sequence >= SEQUENCE_MAX or searched_s > self._parameters.silence_s:
            self._since_s = self.host.now()
            self.on_standing_useless()
        self.on_failed()


def _ignore_choice(offer: ParentOffer, keeps_former: bool) -> None:
    """Until `Membership` is there."""


def _ignore_failure() -> None:
    """Until `Membership` is there."""
