"""The client's side: finding a broker, keeping subscriptions and advertisements there, publishing through it.

1. *Seek.* A node that is no broker looks for one in widening rings (`search_rings_hops`). Brokers answer by unicast.
   The nearest of those that answer within `offer_wait_s` becomes its home; among equals, the lowest address.
2. *Attach.* It sends its subscriptions, and the types of events that it advertises, whenever they change, and repeats
   them every `client_refresh_s`. The broker confirms. Without confirmation by the next repetition, or if the broker
   proves unreachable, the client seeks again and tells the next broker the same. A client whose broker has become
   farther away looks once for a nearer one, and moves there.
3. *Post.* Its events go to the broker by unicast; while there is none, the last `posts_max` wait.

With `client_filters` the client is a *constrained* one, which knows neither XML nor XPath: it makes Bloom filters from
what its user has entered and sends those (section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.batches import batches_of
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.messages import FILTERS_MAX, KINDS_MAX, Attach, Attached, Offer, Post, Seek
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.summaries import aggregated
from roamcast.protocols.rings import parse_rings
from roamcast.protocols.routing import Unicast


class ClientTimer(StrEnum):
    SEEK = "odmrp.seek"  # key 0; widen the search for a broker
    OFFERS = "odmrp.offers"  # key 0; choose among the offers
    REFRESH = "odmrp.client-refresh"  # key 0; repeat the subscriptions
    CHANGED = "odmrp.changed"  # key 0; subscriptions have changed


POST_LOST: Final = "post-lost"  # a client published more than it can keep while it has no broker


class Attachment(Component):
    def __init__(
        self,
        host: Host,
        parameters: OdmrpParameters,
        encoder: Encoder,
        unicast: Unicast,
        interests: Callable[[], list[Interest]],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._encoder = encoder
        self.home = NOBODY
        self._home_hops = 0
        self._unicast = unicast
        self._interests = interests
        self._number = int(host.now() * 1000)  # of searches; a node that comes back begins above where it was
        self._version = self._number
        self._confirmed = -1  # version
        self._rings = parse_rings(parameters.search_rings_hops)
        self._ring = 0
        self._offers: list[tuple[int, int]] = []  # hops, broker
        self._posts: list[Event] = []
        self._kinds: dict[int, None] = {}  # types of events that the application advertised

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(ClientTimer.SEEK, self._seek)
        inputs.on_timer(ClientTimer.OFFERS, self._choose)
        inputs.on_timer(ClientTimer.REFRESH, self._refresh)
        inputs.on_timer(ClientTimer.CHANGED, self._attach)

    def start(self) -> None:
        """Looks for a broker, after a random moment: nodes that are switched on together must not ask together."""
        self._set(self.host.random.random() * self._parameters.offer_wait_s, ClientTimer.SEEK)

    def _set(self, delay_s: float, timer: ClientTimer) -> None:
        self.host.set_timer(delay_s, (timer.value, 0))

    def changed(self) -> None:
        """The application's subscriptions changed. Changes of one instant travel together."""
        self._version += 1
        if self.home != NOBODY:
            self._set(0.0, ClientTimer.CHANGED)

    def advertise(self, kinds: Iterable[int]) -> None:
        """The application is going to publish events of these types. Beyond `KINDS_MAX` the oldest are left out; the
        broker asks for them when an event comes."""
        for kind in kinds:
            self._kinds.pop(kind, None)
            self._kinds[kind] = None
        while len(self._kinds) > KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self.changed()

    def post(self, event: Event) -> None:
        if self.home != NOBODY:
            self._unicast.send(self.home, Post(event))
        else:
            self._keep(event)

    def _keep(self, event: Event) -> None:
        self._posts.append(event)
        if len(self._posts) > self._parameters.posts_max:
            self.host.dropped(POST_LOST, self._posts.pop(0).id)

    # -- Finding a broker ----------------------------------------------------------------------------------------

    def _seek(self, key: int) -> None:
        if self.home != NOBODY or self._offers:
            return
        ttl = self._rings[self._ring]
        self._number += 1
        self.host.broadcast(Seek(self.host.address, self._number, ttl, 1))
        self._ring = (self._ring + 1) % len(self._rings)
        parameters = self._parameters
        wait_s = parameters.ring_wait_s + parameters.ring_wait_per_hop_s * ttl
        self._set(wait_s if self._ring else parameters.search_pause_s, ClientTimer.SEEK)

    def on_offer(self, broker: int, offer: Offer) -> None:
        if self.home == NOBODY or offer.hops < self._home_hops:
            if not self._offers:
                self._set(self._parameters.offer_wait_s, ClientTimer.OFFERS)
            self._offers.append((offer.hops, broker))

    def _choose(self, key: int) -> None:
        hops, broker = min(self._offers)
        if self.home != NOBODY:
            self._unicast.send(self.home, Attach(self._version, 0, 1, ()))
        self._become_client_of(broker, hops)

    def _become_client_of(self, broker: int, hops: int) -> None:
        self.home = broker
        self._home_hops = hops
        self._offers.clear()
        self._ring = 0
        self.host.cancel_timer((ClientTimer.SEEK.value, 0))
        self.host.structure("home", peer=broker)
        self._attach(0)
        posts, self._posts = self._posts, []
        for event in posts:
            self.post(event)

    def _become_homeless(self) -> None:
        if self.home != NOBODY:
            self.home = NOBODY
            self.host.structure("home")
            self.host.cancel_timer((ClientTimer.REFRESH.value, 0))
            self._set(0.0, ClientTimer.SEEK)

    # -- Keeping it ----------------------------------------------------------------------------------------------

    def _attach(self, key: int) -> None:
        if self.home == NOBODY:
            return
        interests = self._interests()
        parts = batches_of(interests, self._parameters.interests_per_part) or [()]
        for number, part in enumerate(parts):
            kinds = () if number else tuple(self._kinds)
            if self._parameters.client_filters:
                family = self._encoder.family
                entries = [entry for interest in part for entry in self._encoder.entries(interest)]
                filters = tuple([family.packed(entry) for entry in aggregated(entries, FILTERS_MAX)])
                message = Attach(self._version, number, len(parts), (), kinds, filters=filters)
            else:
                message = Attach(self._version, number, len(parts), part, kinds)
            self._unicast.send(self.home, message)
        self._set(self._parameters.client_refresh_s, ClientTimer.REFRESH)

    def _refresh(self, key: int) -> None:
        if self._confirmed != self._version:
            self._become_homeless()
        else:
            self._confirmed = -1
            self._attach(0)

    def on_attached(self, broker: int, message: Attached, hops: int) -> None:
        """The confirmation also tells how far away the broker is."""
        if broker == self.home:
            self._confirmed = message.version
            if hops > max(1, self._home_hops):
                self._number += 1
                self.host.broadcast(Seek(self.host.address, self._number, min(hops - 1, self._rings[-1]), 1))
            self._home_hops = hops

    def on_unreachable(self, broker: int, payload: Message) -> None:
        if isinstance(payload, Post):
            self._keep(payload.event)
        if broker == self.home:
            self._become_homeless()
