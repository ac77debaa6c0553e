"""GeoRendezvous: publish/subscribe through several rendezvous points of a position-based hash table.

After N. Carvalho, F. Araujo and L. Rodrigues, "Reducing Latency in Rendezvous-Based Publish-Subscribe Systems for
Wireless Ad Hoc Networks".

Theory of operation
-------------------
Goal: decouple publishers from subscribers by letting them meet at places that both can compute, and still bring events
along ways that are hardly longer than the direct one.

- Each topic has n rendezvous points, the hashes of (topic, 0) ... (topic, n - 1). The cell that is at home there keeps
  advertisements and subscriptions (`hashtable.py`, `rendezvous.py`).
- A publisher advertises at all n points and sends its events to those where somebody wants them (`publisher.py`).
- A subscriber subscribes at the m nearest points, compares the ways by the first event of each publisher, keeps the
  shortest and prunes the others (`subscriber.py`).
- Languages other than plain topics are mapped onto topics (`buckets.py`).
- Everything is soft state: repeated each `refresh_period_s` or `advertisement_period_s`, forgotten when it is not.

How the layers lie on each other: `cells.py` and `steering.py` are pure geometry; `routing.py` moves packets;
`hashtable.py` keeps keys alive while nodes come, go and die; the three roles above it never see a cell.

Where this goes beyond the paper, which stops at static networks:
- The state of a point is handed over as nodes move and die (`hashtable.py`), and subscribers choose again.
- A prune is per publisher: each pair of publisher and subscriber has its own best point.
- "Reaching the same node twice" ends a tour when the same edge is taken twice in the same direction, since the member
  of a cell that carries a packet is a random one (`steering.py`); one face is toured, none is changed.
- A cell that keeps a key already knows that it is the home and does not tour again (the paper's footnote 1 allows early
  detection without saying how).
- Keys keep a margin from the border of the area by default: a tour around an empty cell there is one around the whole
  network. The figures use the whole area, as the paper does.
- By default packets are steered by nodes: the home of a point is the node nearest to it, as in GHT, and what it keeps
  is kept by its cell. `graph = "cells"` is the paper's Cell Hash Routing, which needs a dense network (`cells.py`); the
  figures use it.

Timer: `geo.refresh` repeats subscriptions; the other timers are the parts' own.
"""

from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Host, Message, Protocol, Timer
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import (
    AnyPayload,
    Attract,
    Entry,
    ForwardedNotification,
    Messages,
    Notification,
    Probe,
    Repel,
)
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.georendezvous.publisher import Publisher
from roamcast.protocols.georendezvous.rendezvous import Rendezvous
from roamcast.protocols.georendezvous.store import Kept, Shelf
from roamcast.protocols.georendezvous.subscriber import Subscriber

REFRESH: Final[Timer] = ("geo.refresh", 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class GeoRendezvous(Protocol):
    name: ClassVar[str] = "georendezvous"
    summary: ClassVar[str] = (
        "events meet interests at hashed places, kept by the cells there (GeoRendezvous)"
    )
    Parameters: ClassVar[type[api.Parameters]] = GeoRendezvousParameters
    messages: ClassVar[Any] = Messages

    def __init__(self, host: Host, parameters: GeoRendezvousParameters) -> None:
        super().__init__(host)
        self.parameters = parameters
        self.table = CellHashTable(host, self, parameters)
        self.found: dict[int, tuple[Entry, ...]] = {}  # answers to `table.get`, for whoever uses the table as it is
        buckets = Buckets(parameters)
        self.publisher = Publisher(host, self.table, buckets, parameters)
        self.subscriber = Subscriber(host, self.table, buckets, parameters)
        self.rendezvous = Rendezvous(host, self.table)

    # -- The application -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self.table.start()
        self._refresh_later()

    def subscribe(self, interest: Interest) -> None:
        self.subscriber.subscribe(interest)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriber.unsubscribe(interest)

    def advertise(self, interest: Interest) -> None:
        self.publisher.advertise(interest)

    def publish(self, event: Event) -> None:
        self.publisher.publish(event)

    def leave(self) -> None:
        self.table.leave()

    # -- The host ------------------------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> None:
        self.table.on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        if timer == REFRESH:
            self.subscriber.refresh()
            self._refresh_later()
        elif not self.subscriber.on_timer(timer):
            self.table.on_timer(timer)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self.table.on_send_failed(neighbour, message)

    def _refresh_later(self) -> None:
        self.host.set_timer(self.parameters.refresh_period_s * (0.75 + 0.5 * self.host.random.random()), REFRESH)

    # -- The hash table ------------------------------------------------------------------------------------------

    def on_payload(self, payload: AnyPayload, hops: int) -> None:
        if isinstance(payload, ForwardedNotification):
            self.subscriber.on_notification(payload, hops)
        elif isinstance(payload, Notification):
            self.rendezvous.on_notification(payload, hops)
        elif isinstance(payload, Attract):
            self.publisher.on_attract(payload)
        elif isinstance(payload, Repel):
            self.publisher.on_repel(payload)
        elif isinstance(payload, Probe):
            self.publisher.on_probe(payload, hops)

    def on_stored(self, shelf: Shelf, entry: Entry, before: Kept | None) -> None:
        self.rendezvous.on_stored(shelf, entry, before)

    def on_claimed(self, shelf: Shelf) -> None:
        self.rendezvous.on_claimed(shelf)

    def on_expired(self, shelf: Shelf, kept: Kept) -> None:
        self.rendezvous.on_expired(shelf, kept)

    def on_found(self, key: str, request: int, entries: tuple[Entry, ...]) -> None:
        self.found[request] = self.found.get(request, ()) + entries

    def on_beat(self) -> None:
        self.publisher.on_beat()
        self.subscriber.on_beat()
