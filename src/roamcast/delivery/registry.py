"""What all nodes ask for, and how far publishers are: records that spread from neighbour to neighbour.

Every node says what its applications want in a record of its own (`Want`). Records are passed on, so each node knows
which events are worth keeping. Newer records replace older ones by life and version. A node refreshes its
record `refreshes` times within `away_max_s`; a record that has not been refreshed for that long is forgotten. So the
interests of a node that is down or out of range are served for `away_max_s`.

A change is broadcast soon (`beat_delay_s`). Broadcasts get lost, so every beat carries a digest of all records. A node
that hears a digest other than its own broadcasts its records, at most `share_bytes_max` of them per beat period, in
turn. Both tables are bounded in entries and bytes; overflow is dropped and counted.
"""

from collections.abc import Callable
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from roamcast.delivery.messages import RANGES_MAX, RECORDS_MAX, PublisherProgress, RecordUpdate, Want
from roamcast.delivery.settings import DeliverySettings
from roamcast.events import Event
from roamcast.interests import Interest, union_all
from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs

NODES_MAX: Final = 1024
"""Records of each kind."""

BYTES_MAX: Final = 4 << 20
"""Of all wants, encoded."""

WANT_BYTES_MAX: Final = 128 * 1024
"""Of one node's interests, encoded."""

Record = Want | PublisherProgress


class RegistryTimer(StrEnum):
    SHARE = "delivery.share"  # records have changed, or a neighbour has others
    REFRESH = "delivery.refresh"  # this node's own record gets a new version


class _Known:
    def __init__(self, record: Record, said_s: float, size_bytes: int) -> None:
        self.record = record
        self.said_s = said_s  # when the node said so, on this node's clock
        self.size_bytes = size_bytes


class Registry(Component):
    def __init__(self, host: Host, settings: DeliverySettings, on_change: Callable[[bool], None]) -> None:
        super().__init__(host)
        self._settings = settings
        self._on_change = on_change  # told true if what is wanted has changed, false if a record is newer
        self._wants: dict[int, _Known] = {}
        self._progress: dict[int, _Known] = {}
        self._version = 0
        self._life = host.life
        self._bytes = 0
        self._changed: dict[tuple[bool, int], None] = {}  # (is a want, node): to be told soon
        self._turn: list[tuple[bool, int]] = []  # to be told again because a neighbour has others
        self._shared_s = float("-inf")
        self._union: Interest | None = None
        self._own: Interest | None = None
        self._is_ordered = False
        self._ranges: tuple[tuple[int, int], ...] = ()
        self._union_is_stale = False
        self._digest: int | None = None  # None: to be computed
        self.refused = 0

    def declare(self, inputs: Inputs) -> None:
        inputs.on(RecordUpdate, self._on_records)
        inputs.on_timer(RegistryTimer.SHARE, self._share)
        inputs.on_timer(RegistryTimer.REFRESH, self._refresh)

    def start(self) -> None:
        self.host.set_timer(self._settings.away_max_s / self._settings.refreshes, (RegistryTimer.REFRESH, 0))

    def wanted(self, event: Event) -> bool:
        """Whether some node, including this one, is known to want the event."""
        if self._union_is_stale:
            self._union_is_stale = False
            wants = [known.record for known in self._wants.values() if type(known.record) is Want]
            self._union = union_all([want.interest for want in wants if want.interest is not None])
        return self._union is not None and self._union.matches(event)

    @property
    def digest(self) -> int:
        """Of all records: who knows the same has the same."""
        if self._digest is None:
            versions = sorted(
                (node, known.record.life, known.record.version, kind)
                for kind, table in enumerate((self._wants, self._progress))
                for node, known in table.items()
            )
            found = blake2b(repr(versions).encode(), digest_size=8).digest()
            self._digest = int.from_bytes(found, "big") >> 2
        return self._digest

    @property
    def order_is_wanted(self) -> bool:
        """Whether some node wants events in order, so that publishers have to announce their progress."""
        return any(type(known.record) is Want and known.record.is_ordered for known in self._wants.values())

    def want(self, interest: Interest | None, is_ordered: bool) -> None:
        """This node's applications want this from now on."""
        if (interest, is_ordered) != (self._own, self._is_ordered):
            self._own, self._is_ordered = interest, is_ordered
            self._say_want()

    def offer(self, ranges: list[tuple[int, int]]) -> None:
        """This node offers events with these numbers, ascending."""
        newest = tuple(ranges[-RANGES_MAX:])
        if newest != self._ranges:
            self._ranges = newest
            self._version += 1
            self._enter(PublisherProgress(self.host.address, self._life, self._version, newest, 0.0), 0)

    def progress(self, publisher: int) -> tuple[tuple[int, int], ...] | None:
        """Which numbers the publisher says it offers; None if it has not said so."""
        known = self._progress.get(publisher)
        return known.record.ranges if known is not None and type(known.record) is PublisherProgress else None

    def compare(self, digest: int) -> None:
        """A neighbour has said which records it knows."""
        if digest == self.digest or self.host.now() - self._shared_s < self._settings.beat_period_s:
            return
        self._shared_s = self.host.now()
        if not self._turn:
            self._turn = [(True, node) for node in self._wants] + [(False, node) for node in self._progress]
        self._share_soon()

    def expire(self) -> None:
        oldest_s = self.host.now() - self._settings.away_max_s
        for table in (self._wants, self._progress):
            for node in [node for node, known in table.items() if known.said_s < oldest_s]:
                if node != self.host.address:
                    self._bytes -= table.pop(node).size_bytes
                    self._update(table is self._wants)

    def _on_records(self, sender: int, message: RecordUpdate) -> None:
        for want in message.wants:
            self._learn(want)
        for progress in message.progress:
            self._learn(progress)

    def _learn(self, record: Record) -> None:
        table = self._wants if type(record) is Want else self._progress
        known = table.get(record.node)
        if record.node == self.host.address:
            self._outdo(record)
            return
        if known is not None and (known.record.life, known.record.version) >= (record.life, record.version):
            return
        size_bytes = encoded_bytes(record) if type(record) is Want else 0
        full = known is None and len(table) >= NODES_MAX
        before_bytes = 0 if known is None else known.size_bytes
        too_large = size_bytes > WANT_BYTES_MAX or self._bytes - before_bytes + size_bytes > BYTES_MAX
        if full or too_large or record.age_s > self._settings.away_max_s:
            self.refused += 1
            return
        self._enter(record, size_bytes)

    def _outdo(self, record: Record) -> None:
        """A record of this node from an earlier life that counts as newer, because the clock has gone back."""
        if (record.life, record.version) > (self._life, self._version):
            self._life, self._version = max(record.life, self._life), record.version
            self._say_want()
            if self._ranges:
                ranges, self._ranges = self._ranges, ()
                self.offer(list(ranges))

    def _enter(self, record: Record, size_bytes: int) -> None:
        table = self._wants if type(record) is Want else self._progress
        before = table.pop(record.node, None)
        self._bytes += size_bytes - (0 if before is None else before.size_bytes)
        table[record.node] = _Known(record, self.host.now() - record.age_s, size_bytes)
        self._changed[type(record) is Want, record.node] = None
        self._update(type(record) is Want and (before is None or not _says_the_same(before.record, record)))
        self._share_soon()

    def _update(self, of_interest: bool) -> None:
        """A record is new or gone; `of_interest`: it changes what is wanted."""
        self._digest = None
        if of_interest:
            self._union_is_stale = True
        self._on_change(of_interest)

    def _say_want(self) -> None:
        self._version += 1
        want = Want(
            self.host.address, self._life, self._version, self._own, is_ordered=self._is_ordered, age_s=0.0
        )
        self._enter(want, encoded_bytes(want))

    def _refresh(self, key: int) -> None:
        self.start()
        if self._own is not None or self.host.address in self._wants:
            self._say_want()

    def _share_soon(self) -> None:
        delay_s = self._settings.beat_delay_s * (0.5 + 0.5 * self.host.random.random())
        self.host.set_timer(delay_s, (RegistryTimer.SHARE, 0))

    def _share(self, key: int) -> None:
        """Tells what changed, and as much of the rest as may be told now."""
        told = list(self._changed)
        self._changed.clear()
        left_bytes = self._settings.share_bytes_max
        while self._turn and left_bytes > 0:
            which = self._turn.pop(0)
            if which not in told:
                told.append(which)
                left_bytes -= sum(encoded_bytes(record) for record in self._records([which]))
        room = room_bytes(self.host, RecordUpdate((), ()))
        for batch in batches(self._records(told), encoded_bytes, room, RECORDS_MAX):
            wants = tuple([record for record in batch if type(record) is Want])
            progress = tuple([record for record in batch if type(record) is PublisherProgress])
            self.host.broadcast(RecordUpdate(wants, progress))

    def _records(self, which: list[tuple[bool, int]]) -> list[Record]:
        found: list[Record] = []
        for is_want, node in which:
            known = (self._wants if is_want else self._progress).get(node)
            if known is not None:
                found.append(_aged(known.record, max(0.0, self.host.now() - known.said_s)))
        return found


def _says_the_same(before: Record, after: Record) -> bool:
    return type(before) is Want and type(after) is Want and before.interest == after.interest


def _aged(record: Record, age_s: float) -> Record:
    if type(record) is Want:
        return Want(
            record.node,
            record.life,
            record.version,
            record.interest,
            is_ordered=record.is_ordered,
            age_s=age_s,
            signature=record.signature,
        )
    assert type(record) is PublisherProgress
    return PublisherProgress(
        record.node, record.life, record.version, record.ranges, age_s=age_s, signature=record.signature
    )
