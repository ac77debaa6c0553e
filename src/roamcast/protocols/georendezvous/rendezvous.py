"""The rendezvous cell's part: bring subscriptions and advertisements together, pass notifications on.

Its whole memory is the hash table's shelf of the point's key: advertisements and subscriptions, kept by all members of
the cell. Whoever of them happens to take a packet does what is due, so no member matters.

- A subscription that makes a publisher wanted here is forwarded to it, as `Attract`; later ones need not be (the
  first-subscriber rule of section 2.2).
- A prune, an unsubscription or an expiry after which nobody here wants a publisher any more is forwarded to it, as
  `Repel` (section 2.3); so is an event that nobody here wants.
- An advertisement that comes with a wrong belief is corrected; so are all when the cell becomes the home of the point,
  except those that this member has corrected itself: a home that moves about must not repeat it everywhere.
- A notification is sent on to each subscriber that has not pruned its publisher.
"""

from typing import Final

from roamcast.protocols.api import Host
from roamcast.protocols.georendezvous.cells import Vertex
from roamcast.protocols.georendezvous.clients import following, publishing
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import (
    ADVERTISEMENT,
    SUBSCRIPTION,
    Attract,
    Entry,
    ForwardedNotification,
    Notification,
    Repel,
)
from roamcast.protocols.georendezvous.store import Kept, Shelf

DROP_NO_RENDEZVOUS: Final = "no rendezvous"  # an event came to a point where nothing is kept
TOLD_MAX: Final = 4096  # answers to advertisements that a member remembers


class Rendezvous:
    def __init__(self, host: Host, table: CellHashTable) -> None:
        self.host = host
        self._table = table
        self._told: dict[tuple[str, int], tuple[int, bool]] = {}  # by key, publisher: to which advertisement, what

    def on_stored(self, shelf: Shelf, entry: Entry, before: Kept | None) -> None:
        if entry.slot == ADVERTISEMENT:
            self._correct(shelf, entry.owner, entry.version, entry.value)
        elif entry.slot == SUBSCRIPTION:
            self._pass_on_change(shelf, entry.owner, None if before is None else before.value, entry.value)

    def on_claimed(self, shelf: Shelf) -> None:
        for kept in shelf.present(ADVERTISEMENT):
            self._correct(shelf, kept.owner, kept.version, kept.value)

    def on_expired(self, shelf: Shelf, kept: Kept) -> None:
        if kept.slot == SUBSCRIPTION:
            self._pass_on_change(shelf, kept.owner, kept.value, None)

    def on_notification(self, message: Notification, hops: int) -> None:
        shelf = self._table.store.shelf(message.key)
        publisher = message.event.publisher
        if shelf is None:
            self.host.dropped(DROP_NO_RENDEZVOUS, message.event.id)
            return
        onward = ForwardedNotification(message.key, message.event, message.publisher_at)
        wanted = False
        for kept in shelf.present(SUBSCRIPTION):
            client = following(kept.value)
            if client is not None and kept.owner != publisher and publisher not in client.pruned:
                wanted = True
                self._table.router.send_to_node(kept.owner, client.at, onward, hops)
        if not wanted:
            self._table.router.send_to_node(publisher, message.publisher_at, Repel(message.key))

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
        if len(self._told) > TOLD_MAX:
            del self._told[next(iter(self._told))]
        message = Attract(shelf.key) if wanted else Repel(shelf.key)
        self._table.router.send_to_node(publisher, at, message)

    def _pass_on_change(self, shelf: Shelf, subscriber: int, before: bytes | None, after: bytes | None) -> None:
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
