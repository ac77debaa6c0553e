"""A broker's clients: whose subscriptions and advertisements it keeps, what it tells other brokers about them, whom an
event is for.

What it tells has a version, which goes up with every change, so that others can say which one they know. It begins
anywhere, so that a broker that comes back is hardly ever taken for what it was.

The broker's own application is a client like the others, but one that cannot get lost. Other clients repeat their
subscriptions; one that has been silent for too long is forgotten.

A constrained client sends Bloom filters instead of interests. Its broker then knows no more than the filters: it serves
the client what they match, and the client has the last word.
"""

from __future__ import annotations

from math import inf
from typing import Final

import msgspec

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.odmrp.context import ENTRIES_MAX
from roamcast.protocols.odmrp.encoding import Encoder, Summarised
from roamcast.protocols.odmrp.index import EntryIndex, rows
from roamcast.protocols.odmrp.packed import Digest, JoinQuestion, PackedEntry
from roamcast.protocols.odmrp.summaries import Demand, SummaryEntry, aggregated

VERSIONS: Final = 1 << 16
ANSWERS_MAX: Final = 1024  # to questions, that are remembered until the next change

_encode = msgspec.msgpack.Encoder().encode

Wanted = Interest | PackedEntry
"""What a client asks for: an interest, or a Bloom filter that it has made itself."""


class Told:
    """What a broker tells about itself."""

    def __init__(self, version: int, context: bytes) -> None:
        self.version = version
        self.context = context


class Clients:
    def __init__(self, encoder: Encoder, entries_max: int, context_bytes_max: int, version: int) -> None:
        self._encoder = encoder
        self._version = version
        self._entries_max = entries_max
        self._context_bytes_max = context_bytes_max
        self._index = EntryIndex(encoder.family)
        self._owner: dict[int, tuple[int, Wanted]] = {}  # row -> client, what it asks for
        self._entry: dict[int, SummaryEntry] = {}
        self._demand: dict[int, Demand] = {}
        self._rows: dict[int, dict[int, None]] = {}  # client -> its rows
        self._expires_s: dict[int, float] = {}
        self._told: Told | None = None  # since the last change
        self._answers: dict[JoinQuestion, bool] = {}
        self._kinds: dict[int, tuple[int, ...]] = {}  # client -> types of events that it advertises

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def addresses(self) -> list[int]:
        return list(self._rows)

    def __contains__(self, client: int) -> bool:
        return client in self._rows

    def add(self, client: int, wanted: Wanted, expires_s: float = inf) -> None:
        self._expires_s[client] = expires_s
        own = self._rows.setdefault(client, {})
        for entry, demand in self._summarised(wanted):
            row = self._index.add(entry, None if isinstance(wanted, PackedEntry) else demand)
            self._owner[row] = client, wanted
            self._entry[row] = entry
            self._demand[row] = demand
            own[row] = None
        self._changed()

    def _summarised(self, wanted: Wanted) -> list[Summarised]:
        if isinstance(wanted, PackedEntry):
            return [Summarised(self._encoder.family.unpacked(wanted), ())]
        return self._encoder.summarised(wanted)

    def remove(self, client: int, interest: Interest) -> None:
        """Takes back one `add` with an equal interest."""
        count = len(self._encoder.entries(interest))
        chosen = [row for row in self._rows.get(client, {}) if self._owner[row][1] == interest]
        for row in chosen[:count]:
            self._remove_row(client, row)

    def replace(self, client: int, wanted: tuple[Wanted, ...], expires_s: float) -> bool:
        """A client says all that it wants, mostly the same again; true if it is not."""
        known = [self._owner[row][1] for row in self._rows.get(client, {})]
        if client in self._rows and list(dict.fromkeys(known)) == list(dict.fromkeys(wanted)):
            self._expires_s[client] = expires_s
            return False
        self._remove_rows(client)
        self._rows[client] = {}
        self._expires_s[client] = expires_s
        for each in wanted:
            self.add(client, each, expires_s)
        return True

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
        del self._owner[row], self._entry[row], self._demand[row]
        self._rows.get(client, {}).pop(row, None)
        self._changed()

    def _changed(self) -> None:
        self._version = (self._version + 1) % VERSIONS
        self._told = None
        self._answers.clear()

    def want(self, digest: Digest) -> bool:
        """Whether some summary matches an event."""
        return self._index.matches(digest) != 0

    def would_want(self, question: JoinQuestion) -> bool:
        """Whether some subscription may match an event with this digest."""
        answer = self._answers.get(question)
        if answer is None:
            family = self._encoder.family
            answer = any(
                entry.type == question.type and family.satisfies(question, self._demand[row])
                for row, entry in self._entry.items()
            )
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = answer
        return answer

    def receivers(self, event: Event, digest: Digest | None) -> list[int]:
        """The clients whose own interest, or filter, matches an event, ascending; its publisher is not served."""
        if digest is None:
            return []
        found: set[int] = set()
        for row in rows(self._index.matches(digest)):
            client, wanted = self._owner[row]
            if client in found or client == event.publisher:
                continue
            if isinstance(wanted, PackedEntry) or wanted.matches(event):
                found.add(client)
        return sorted(found)

    def told(self) -> Told:
        """What this broker says about itself when it is asked: its summary, with as many entries as are allowed and fit
        a frame. It covers all types of events, because its one version does: a publisher that asks for another type
        later, and knows the version, is not told again."""
        told = self._told
        if told is None:
            kinds = len({entry.type for entry in self._entry.values()})
            context = b""
            for entries_max in range(self._entries_max, 0, -1):
                entries = aggregated(self._entry.values(), entries_max * kinds)[:ENTRIES_MAX]
                context = _encode(tuple([self._encoder.family.packed(each) for each in entries]))
                if len(context) <= self._context_bytes_max:
                    break
            told = self._told = Told(self._version, context)
        return told
