"""The rendezvous cell's part: match subscriptions and advertisements, forward notifications.

Its whole memory is the hash table's shelf of the point's key: advertisements and subscriptions, kept by the members of
the cell. Any member that takes a packet does what is due, so no single member matters.

- A subscription that makes a publisher wanted here is forwarded to it, as `Attract`; later ones need not be (the
  first-subscriber rule of section 2.2).
- A prune, an unsubscription or an expiry after which there are no subscribers for a publisher any more is forwarded to
  it, as `Repel` (section 2.3). An event of a publisher that is not wanted here is answered in the same way.
- An advertisement that comes with a wrong belief is corrected. So are all of them when the cell becomes the home of the
  point, except those that this member has corrected already: a home that moves about must not repeat them everywhere.
- A notification is forwarded to each subscriber that has not pruned its publisher and, if subscriptions carry
  interests, whose interest it matches: as one tree, or as a packet to each.
"""

from typing import Final

from roamcast.interests.matching import matches
from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches_of
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.georendezvous.cells import Vertex
from roamcast.protocols.georendezvous.clients import following, publishing
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import (
    ADVERTISEMENT,
    SUBSCRIPTION,
    Attract,
    Entry,
    ForwardedNotification,
    Leg,
    Notification,
    Repel,
    key_of,
)
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.georendezvous.store import Shelf, StoredEntry

DROP_NO_RENDEZVOUS: Final = "no rendezvous"  # an event came to a point where nothing is kept


class Rendezvous(Component):
    def __init__(self, host: Host, parameters: GeoRendezvousParameters, table: CellHashTable) -> None:
        super().__init__(host)
        self._table = table
        self._legs_max = parameters.legs_max if parameters.notification_tree else 1
        self._answers_max = parameters.answers_max
        self._told: dict[tuple[str, int], tuple[int, bool]] = {}  # by key, publisher: to which advertisement, what
        table.receive(Notification, self._on_notification)
        table.watch(self._on_stored, self._on_claimed, self._on_expired)

    def declare(self, inputs: Inputs) -> None:
        """All its inputs come through the hash table."""

    def _on_stored(self, shelf: Shelf, entry: Entry, before: StoredEntry | None) -> None:
        if entry.slot == ADVERTISEMENT:
            self._correct(shelf, entry.owner, entry.version, entry.value)
        elif entry.slot == SUBSCRIPTION:
            self._forward_change(shelf, entry.owner, None if before is None else before.value, entry.value)

    def _on_claimed(self, shelf: Shelf) -> None:
        for kept in shelf.present(ADVERTISEMENT):
            self._correct(shelf, kept.owner, kept.version, kept.value)

    def _on_expired(self, shelf: Shelf, kept: StoredEntry) -> None:
        if kept.slot == SUBSCRIPTION:
            self._forward_change(shelf, kept.owner, kept.value, None)

    def _on_notification(self, message: Notification, point: int, hops: int) -> None:
        event, publisher = message.event, message.event.publisher
        key = key_of(message.bucket, point)
        shelf = self._table.store.shelf(key)
        if shelf is None:
            self.host.dropped(DROP_NO_RENDEZVOUS, event.id)
            return
        legs: list[Leg] = []
        wanted = False
        for kept in shelf.present(SUBSCRIPTION):
            client = following(kept.value)
            if client is not None and kept.owner != publisher and publisher not in client.pruned:
                wanted = True
                if client.interest is None or matches(client.interest, event):
                    legs.append(Leg(client.at, kept.owner, point))
        router = self._table.router
        if not wanted:
            router.send_to_node(publisher, message.publisher_at, Repel(key))
            return
        onward = ForwardedNotification(message.bucket, event, message.publisher_at)
        for some in batches_of(legs, self._legs_max):
            router.send(some, onward, hops)

    def _correct(self, shelf: Shelf, publisher: int, version: int, advertisement: bytes | None) -> None:
        client = publishing(advertisement)
        if client is None:
            return
        wanted = self._is_wanted(shelf, publisher)
        believed = bool(client.wanted)
        told = self._told.get((shelf.key, publisher))
        if told is not None and told[0] == version:
            believed = told[1]
        if wanted != believed:
            self._tell(shelf, publisher, version, client.at, wanted)

    def _tell(self, shelf: Shelf, publisher: int, version: int, at: Vertex, wanted: bool) -> None:
        """Answers an advertisement, or changes the answer."""
        self._told.pop((shelf.key, publisher), None)
        self._told[shelf.key, publisher] = version, wanted
        if len(self._told) > self._answers_max:
            del self._told[next(iter(self._told))]
        message = Attract(shelf.key) if wanted else Repel(shelf.key)
        self._table.router.send_to_node(publisher, at, message)

    def _forward_change(self, shelf: Shelf, subscriber: int, before: bytes | None, after: bytes | None) -> None:
        for kept in shelf.present(ADVERTISEMENT):
            publisher, client = kept.owner, publishing(kept.value)
            wanted_before, wanted_after = _wants(before, publisher), _wants(after, publisher)
            changed = client is not None and publisher != subscriber and wanted_before != wanted_after
            if client is not None and changed and not self._is_wanted(shelf, publisher, except_for=subscriber):
                self._tell(shelf, publisher, kept.version, client.at, wanted_after)

    def _is_wanted(self, shelf: Shelf, publisher: int, except_for: int | None = None) -> bool:
        return any(
            kept.owner not in (publisher, except_for) and _wants(kept.value, publisher)
            for kept in shelf.present(SUBSCRIPTION)
        )


def _wants(subscription: bytes | None, publisher: int) -> bool:
    client = following(subscription)
    return client is not None and publisher not in client.pruned
