"""The store of a producer's home broker: what the producer published, until all who want it have it.

Each event remembers which consumers have not yet *received* it (their site has not processed it: it is sent again) and
for whom it is not yet *settled* (the consumer itself has not acknowledged it: it is kept, because the consumer may have
to start over at another broker). The store has a bound and a lifetime; what leaves it early is counted as dropped.
"""

from collections.abc import Iterator

from roamcast.events import Event
from roamcast.protocols.overlays.intake import Intake
from roamcast.protocols.overlays.repeats import Attempt


class StoredEvent(Attempt):
    """An event in the store; it is sent again to the consumers that have not received it."""

    __slots__ = ("event", "hops", "stored_s", "unreceived", "unsettled")

    def __init__(self, event: Event, hops: int, now_s: float) -> None:
        super().__init__()
        self.event = event
        self.hops = hops  # from the producer to here
        self.stored_s = now_s
        self.unreceived: dict[int, None] = {}
        self.unsettled: dict[int, None] = {}


class ProducerLog:
    def __init__(self, publisher: int, held_until_s: float, intake_max: int) -> None:
        self.publisher = publisher
        self.held_until_s = held_until_s  # nothing is released before
        self.intake = Intake(intake_max)  # what comes from the producer itself
        self.entries: dict[int, StoredEvent] = {}  # by number, ascending
        self.released = 0  # everything up to here is settled or has expired
        self._tails: dict[int, int] = {}  # client -> the latest number it was sent
        self._received: dict[int, int] = {}  # client -> the latest number it has received

    def append(self, entry: StoredEvent, clients: list[int]) -> dict[int, int]:
        """Stores an event for these clients, and returns for each the previous one in its chain."""
        number = entry.event.number
        previous: dict[int, int] = {}
        for client in clients:
            tail = self._tails.get(client, 0)
            previous[client] = tail if tail > self._received.get(client, 0) and tail in self.entries else 0
            self.demand(entry, client)
        self.entries[number] = entry
        return previous

    def demand(self, entry: StoredEvent, client: int) -> None:
        """The client is to get this event."""
        entry.unreceived[client] = None
        entry.unsettled[client] = None
        self._tails[client] = max(entry.event.number, self._tails.get(client, 0))

    def previous(self, client: int, number: int) -> int:
        """The latest earlier event that the client has not received, or 0."""
        latest = 0
        for earlier, entry in self.entries.items():
            if earlier >= number:
                break
            if client in entry.unreceived:
                latest = earlier
        return latest

    def received(self, client: int) -> int:
        """The latest number that the client is known to have received."""
        return self._received.get(client, 0)

    def last_unreceived(self, client: int) -> int:
        return max((number for number, entry in self.entries.items() if client in entry.unreceived), default=0)

    def acknowledge(self, client: int, processed: int, settled: int) -> list[StoredEvent]:
        """Takes note of how far a client has got, and returns what it was now known to have received."""
        received: list[StoredEvent] = []
        self._received[client] = max(processed, self._received.get(client, 0))
        for number, entry in self.entries.items():
            if number > processed:
                break
            if client in entry.unreceived:
                del entry.unreceived[client]
                received.append(entry)
            if number <= settled:
                entry.unsettled.pop(client, None)
        return received

    def restart(self, client: int, cursor: int) -> None:
        """The client starts over behind `cursor`: nothing that was meant for it before is, unless demanded again."""
        self.forget(client)
        self._received[client] = cursor
        self._tails[client] = cursor

    def forget(self, client: int) -> None:
        for entry in self.entries.values():
            entry.unreceived.pop(client, None)
            entry.unsettled.pop(client, None)
        self._tails.pop(client, None)
        self._received.pop(client, None)

    def release(self, stored_before_s: float) -> bool:
        """Forgets the oldest events that are settled with all consumers and not too recent; true if there were any."""
        began = self.released
        for number, entry in list(self.entries.items()):
            if entry.unsettled or entry.stored_s > stored_before_s:
                break
            del self.entries[number]
            self.released = number
        return self.released > began

    def expire(self, stored_before_s: float, entries_max: int) -> Iterator[StoredEvent]:
        """Forgets what is too old or too much, and says what it was."""
        while self.entries:
            number = next(iter(self.entries))
            entry = self.entries[number]
            if len(self.entries) <= entries_max and entry.stored_s >= stored_before_s:
                return
            del self.entries[number]
            self.released = number
            yield entry
