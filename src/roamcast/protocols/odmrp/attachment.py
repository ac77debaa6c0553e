"""The client's side: finding a broker, keeping subscriptions and advertisements there, publishing through it.

1. *Seek.* A node that is no broker looks for one in widening rings of 1, 3, 5, ... hops. Brokers answer by unicast; the
   nearest of those that answer within `OFFER_WAIT_S` becomes its home, the lowest address among equals.
2. *Attach.* It sends its subscriptions, and the types of events that it advertises, whenever they change, and repeats
   them every `client_refresh_s`. The broker confirms. Without confirmation by the next repetition, or if the broker
   proves unreachable, the client seeks anew; the next broker is told the same. A client whose broker has become
   farther away looks once whether another is nearer now, and moves there.
3. *Post.* Its events go to the broker by unicast; while there is none, the last `POSTS_MAX` wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.odmrp.messages import KINDS_MAX, Attach, Attached, Offer, Post, Seek
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.routing import Unicast

SEEK: Final = "client.seek"  # key 0; widen the search
OFFERS: Final = "client.offers"  # key 0; choose among the offers
REFRESH: Final = "client.refresh"  # key 0; repeat the subscriptions
CHANGED: Final = "client.changed"  # key 0; subscriptions changed

OFFER_WAIT_S: Final = 0.2
RINGS: Final = (1, 3, 5, 9, 17, 32)  # hops
RING_WAIT_S: Final = 0.3  # before a wider ring is tried, and RING_WAIT_PER_HOP_S for each hop
RING_WAIT_PER_HOP_S: Final = 0.05
SEARCH_AGAIN_S: Final = 5.0  # after a search without success
INTERESTS_PER_PART: Final = 6
POSTS_MAX: Final = 64

POST_LOST: Final = "post-lost"  # a client published more than it can keep while it has no broker


class Attachment:
    def __init__(
        self,
        host: Host,
        parameters: OdmrpParameters,
        unicast: Unicast,
        interests: Callable[[], list[Interest]],
    ) -> None:
        self.host = host
        self.parameters = parameters
        self.home = NOBODY
        self._home_hops = 0
        self._unicast = unicast
        self._interests = interests
        self._number = int(host.now() * 1000)  # of searches; a node that comes back begins above where it was
        self._version = self._number
        self._confirmed = -1  # version
        self._ring = 0
        self._offers: list[tuple[int, int]] = []  # hops, broker
        self._posts: list[Event] = []
        self._kinds: dict[int, None] = {}  # types of events that the application advertised

    def start(self) -> None:
        """Looks for a broker, after a moment, lest all nodes that were switched on together ask together."""
        self.host.set_timer(self.host.random.random() * OFFER_WAIT_S, (SEEK, 0))

    def on_timer(self, timer: Timer) -> bool:
        """True if the timer was the attachment's."""
        if timer[0] == SEEK:
            self._seek()
        elif timer[0] == OFFERS:
            self._choose()
        elif timer[0] == REFRESH:
            self._refresh()
        elif timer[0] == CHANGED:
            self._attach()
        else:
            return False
        return True

    def changed(self) -> None:
        """The application's subscriptions changed. Changes of one instant travel together."""
        self._version += 1
        if self.home != NOBODY:
            self.host.set_timer(0.0, (CHANGED, 0))

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
            return
        self._posts.append(event)
        if len(self._posts) > POSTS_MAX:
            self.host.dropped(POST_LOST, self._posts.pop(0).id)

    # -- Finding a broker ----------------------------------------------------------------------------------------

    def _seek(self) -> None:
        if self.home != NOBODY or self._offers:
            return
        ttl = RINGS[self._ring]
        self._number += 1
        self.host.broadcast(Seek(self.host.address, self._number, ttl, 1))
        self._ring = (self._ring + 1) % len(RINGS)
        wait_s = RING_WAIT_S + RING_WAIT_PER_HOP_S * ttl if self._ring else SEARCH_AGAIN_S
        self.host.set_timer(wait_s, (SEEK, 0))

    def on_offer(self, broker: int, offer: Offer) -> None:
        if self.home == NOBODY or offer.hops < self._home_hops:
            if not self._offers:
                self.host.set_timer(OFFER_WAIT_S, (OFFERS, 0))
            self._offers.append((offer.hops, broker))

    def _choose(self) -> None:
        hops, broker = min(self._offers)
        if self.home != NOBODY:
            self._unicast.send(self.home, Attach(self._version, 0, 1, ()))
        self._become_client_of(broker, hops)

    def _become_client_of(self, broker: int, hops: int) -> None:
        self.home = broker
        self._home_hops = hops
        self._offers.clear()
        self._ring = 0
        self.host.cancel_timer((SEEK, 0))
        self.host.structure("home", peer=broker)
        self._attach()
        posts, self._posts = self._posts, []
        for event in posts:
            self.post(event)

    def _become_homeless(self) -> None:
        if self.home != NOBODY:
            self.home = NOBODY
            self.host.structure("home")
            self.host.cancel_timer((REFRESH, 0))
            self.host.set_timer(0.0, (SEEK, 0))

    # -- Keeping it ----------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        if self.home == NOBODY:
            return
        interests = self._interests()
        parts = [tuple(interests[at : at + INTERESTS_PER_PART]) for at in range(0, len(interests), INTERESTS_PER_PART)]
        for number, part in enumerate(parts or [()]):
            kinds = () if number else tuple(self._kinds)
            self._unicast.send(self.home, Attach(self._version, number, max(1, len(parts)), part, kinds))
        self.host.set_timer(self.parameters.client_refresh_s, (REFRESH, 0))

    def _refresh(self) -> None:
        if self._confirmed != self._version:
            self._become_homeless()
        else:
            self._confirmed = -1
            self._attach()

    def on_attached(self, broker: int, message: Attached, hops: int) -> None:
        """The confirmation also tells how far away the broker is."""
        if broker == self.home:
            self._confirmed = message.version
            if hops > max(1, self._home_hops):
                self._number += 1
                self.host.broadcast(Seek(self.host.address, self._number, min(hops - 1, RINGS[-1]), 1))
            self._home_hops = hops

    def on_unreachable(self, broker: int, payload: Message) -> None:
        if isinstance(payload, Post):
            self._posts.append(payload.event)
        if broker == self.home:
            self._become_homeless()
