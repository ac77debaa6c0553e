"""A broker's clients: whose subscriptions and advertisements it keeps, what it tells other brokers about them, whom an
event is for.

What it tells has a version, which goes up with every change, so that others can say which one they know. It begins
anywhere, so that a broker that comes back is hardly ever taken for what it was.

The broker's own application is a client like the others, but one that cannot get lost. Other clients repeat their
subscriptions; one that has been silent for `CLIENT_REFRESHES` of its intervals is forgotten.
"""

from __future__ import annotations

from math import inf
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.index import EntryIndex, rows
from roamcast.protocols.odmrp.messages import Member
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.sizes import TABLE_BYTES_MAX, member_bytes
from roamcast.protocols.odmrp.summaries import Entry, aggregated

CLIENT_REFRESHES: Final = 3
VERSIONS: Final = 1 << 16


class Clients:
    def __init__(self, encoder: Encoder, entries_max: int, version: int) -> None:
        self._encoder = encoder
        self._version = version
        self._entries_max = entries_max
        self._index = EntryIndex(encoder.family)
        self._owner: dict[int, tuple[int, Interest]] = {}  # row -> client, interest
        self._entry: dict[int, Entry] = {}
        self._rows: dict[int, dict[int, None]] = {}  # client -> its rows
        self._expires_s: dict[int, float] = {}
        self._members: dict[int, Member] = {}  # by type: what was told since the last change
        self._kinds: dict[int, tuple[int, ...]] = {}  # client -> types of events that it advertises

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def addresses(self) -> list[int]:
        return list(self._rows)

    def add(self, client: int, interest: Interest, expires_s: float = inf) -> None:
        self._expires_s[client] = expires_s
        own = self._rows.setdefault(client, {})
        for entry in self._encoder.entries(interest):
            row = self._index.add(entry)
            self._owner[row] = client, interest
            self._entry[row] = entry
            own[row] = None
        self._changed()

    def remove(self, client: int, interest: Interest) -> None:
        """Takes back one `add` with an equal interest."""
        count = len(self._encoder.entries(interest))
        chosen = [row for row in self._rows.get(client, {}) if self._owner[row][1] == interest]
        for row in chosen[:count]:
            self._remove_row(client, row)

    def replace(self, client: int, interests: tuple[Interest, ...], expires_s: float) -> None:
        """A client says all that it wants; mostly the same again."""
        known = [self._owner[row][1] for row in self._rows.get(client, {})]
        if client in self._rows and list(dict.fromkeys(known)) == list(dict.fromkeys(interests)):
            self._expires_s[client] = expires_s
            return
        self._remove_rows(client)
        self._rows[client] = {}
        self._expires_s[client] = expires_s
        for interest in interests:
            self.add(client, interest, expires_s)

    def announce(self, client: int, kinds: tuple[int, ...]) -> list[int]:
        """A client says which types of events it is going to publish; names those that it had not said before."""
        known = self._kinds.get(client, ())
        self._kinds[client] = kinds
        return [kind for kind in kinds if kind not in known]

    def forget(self, client: int) -> None:
        self._remove_rows(client)
        self._expires_s.pop(client, None)
        self._kinds.pop(client, None)

    def expire(self, now_s: float) -> list[int]:
        """Forgets the clients that have not been heard of, and names them."""
        gone = [client for client, expires_s in self._expires_s.items() if expires_s <= now_s]
        for client in gone:
            self.forget(client)
        return gone

    def _remove_rows(self, client: int) -> None:
        for row in list(self._rows.pop(client, {})):
            self._remove_row(client, row)

    def _remove_row(self, client: int, row: int) -> None:
        self._index.remove(row)
        del self._owner[row], self._entry[row]
        self._rows.get(client, {}).pop(row, None)
        self._changed()

    def _changed(self) -> None:
        self._version = (self._version + 1) % VERSIONS
        self._members.clear()

    def want(self, digest: Digest) -> bool:
        """Whether some summary matches."""
        return self._index.matches(digest) != 0

    def receivers(self, event: Event, digest: Digest | None) -> list[int]:
        """The clients whose own interest matches an event, ascending; its publisher is not served."""
        if digest is None:
            return []
        found: set[int] = set()
        for row in rows(self._index.matches(digest)):
            client, interest = self._owner[row]
            if client not in found and client != event.publisher and interest.matches(event):
                found.add(client)
        return sorted(found)

    def member(self, address: int, digest: Digest) -> Member:
        """What this broker says about itself in answer to a question: its summary for that type of events, with as many
        entries as are allowed and fit a frame."""
        if digest.type not in self._members:
            of_type = [entry for entry in self._entry.values() if entry.type == digest.type]
            for entries_max in range(self._entries_max, 0, -1):
                entries = tuple(self._encoder.family.packed(each) for each in aggregated(of_type, entries_max))
                member = Member(address, self._version, entries)
                if member_bytes(member) <= TABLE_BYTES_MAX:
                    break
            self._members[digest.type] = member
        return self._members[digest.type]
