"""Collecting a trace: rows in, packed rows and a hash out.

A row is packed at once (`roamcast.trace.packed`), so no Python object outlives its batch, and numpy reads the columns
directly (`roamcast.trace.columns`). Arrow is loaded only by those who ask for its tables.
"""

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final

import msgspec

from roamcast.events import NO_EVENT, NUMBER_BITS, Event
from roamcast.trace.packed import LAYOUT, PackedRows
from roamcast.trace.schema import FIELDS

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 8192  # small enough that columns reuse memory that was freed before

ELEMENTS_KNOWN_MAX: Final = 1_000_000  # of lists that are kept with their packed form

_LAYOUT: Final[str] = LAYOUT
_packed: Final = Struct(f"<{_LAYOUT}").pack


def _mask(*names: str) -> int:
    """The bits of the fields that a row has."""
    return sum(1 << place for place, field in enumerate(FIELDS) if field.name in names)


def _layout_of(*names: str) -> str:
    """The layout of rows that have these fields only; the others are zeros."""
    codes = zip(FIELDS, _LAYOUT[1:], strict=True)
    return "<I" + "".join(code if field.name in names else f"{Struct(f'<{code}').size}x" for field, code in codes)


# Fast paths for the most frequent rows. Their masks and layouts follow from the schema and the names of their fields.
_OF_DROPPED: Final = ("t", "kind", "node", "detail")
_DROPPED: Final = _mask(*_OF_DROPPED)
_DROPPED_EVENT: Final = _mask(*_OF_DROPPED, "event_id")
_packed_dropped: Final = Struct(_layout_of(*_OF_DROPPED, "event_id")).pack
_OF_STRUCTURE: Final = ("t", "kind", "node", "value", "category", "detail")
_STRUCTURE: Final = _mask(*_OF_STRUCTURE)
_STRUCTURE_PEER: Final = _mask(*_OF_STRUCTURE, "peer")
_packed_structure: Final = Struct(_layout_of(*_OF_STRUCTURE, "peer")).pack
_OF_ENERGY: Final = ("t", "kind", "node", "value", "count", "category")
_ENERGY: Final = _mask(*_OF_ENERGY)
_packed_energy: Final = Struct(_layout_of(*_OF_ENERGY)).pack
_OF_BATTERY: Final = ("t", "kind", "node", "value")
_BATTERY: Final = _mask(*_OF_BATTERY)
_packed_battery: Final = Struct(_layout_of(*_OF_BATTERY)).pack

_OF_PUBLISHED: Final = ("t", "kind", "node", "event_id", "bytes", "category", "shortest_hops")
_PUBLISHED: Final = _mask(*_OF_PUBLISHED)
_WITH_CAUSE: Final = _mask("cause_id")
_WITH_VALUE: Final = _mask("value")
_WITH_COUNT: Final = _mask("count")
_WITH_DETAIL: Final = _mask("detail")
_WITH_UTILITY: Final = _mask("utility")
_packed_published: Final = Struct(
    _layout_of(*_OF_PUBLISHED, "cause_id", "value", "count", "detail", "utility")
).pack

# What all deliveries of an event share (publisher, event, cause, size) is packed once.
_DELIVERED: Final = "delivered"
_OF_DELIVERED: Final = _mask("t", "kind", "node", "peer", "event_id", "value", "hops", "bytes")
_OF_CAUSED: Final = _OF_DELIVERED | _mask("cause_id")
_packed_event: Final = Struct(f"<{_LAYOUT[4:7]}").pack
_packed_size: Final = Struct(f"<{_LAYOUT[9:10]}{Struct(f'<{_LAYOUT[10:]}').size}x").pack
_packed_delivered: Final = Struct(
    f"<{_LAYOUT[:4]}{len(_packed_event(0, 0, 0))}s{_LAYOUT[7:9]}{len(_packed_size(0))}s"
).pack


class _Delivered:
    """The part of the row that all deliveries of an event share."""

    __slots__ = ("event", "packed_event", "packed_size", "present", "time_s")

    def __init__(self, event: Event) -> None:
        number, cause = event.id, event.cause
        self.event = event
        self.time_s = event.time_s
        self.present: Any = _OF_CAUSED if cause else _OF_DELIVERED  # an object, made once
        self.packed_event = _packed_event(number >> NUMBER_BITS, number, cause)  # `publisher` is not compiled
        self.packed_size = _packed_size(len(event.payload))


class _PackedList:
    """A list and its packed form."""

    __slots__ = ("elements", "packed")

    def __init__(self, elements: list[int], packed: bytes) -> None:
        self.elements = elements
        self.packed = packed


class Recorder:
    """Takes records in the order in which they happened."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._texts: dict[str, int] = {_DELIVERED: 0}  # numbered in order of appearance
        self._rows: list[bytes] = []
        self._lists = bytearray()  # the elements of all list fields, 16 bits each; rows hold the lengths
        self._known: dict[int, _PackedList] = {}  # by the list's identity: it is kept, so no other list can have it
        self._elements_known = 0
        self._full: list[tuple[bytes, bytes]] = []  # rows and lists of batches that are complete
        self._latest = _Delivered(Event(NO_EVENT, 0.0, 0))  # of the last two events: deliveries come close together
        self._before = self._latest

    def add(self, record: tuple[Any, ...]) -> None:
        """A `Record`, or a plain tuple with the same fields, which is much cheaper to make. A list in it must not be
        changed afterwards."""
        present = 0
        bit = 1
        values: list[Any] = []
        for value in record:
            if value is None:
                values.append(0)
            else:
                present |= bit
                if isinstance(value, str):
                    values.append(self._index(value))
                elif isinstance(value, list):
                    self._lists += self._packed_list(value)
                    values.append(len(value))
                else:
                    values.append(value)
            bit += bit
        self._keep(_packed(present, *values))

    def _packed_list(self, elements: list[int]) -> bytes:
        """The list as 16-bit numbers. Paths in a network at rest stay the same, so their lists come again."""
        known = self._known.get(id(elements))
        if known is not None:
            return known.packed
        if self._elements_known > ELEMENTS_KNOWN_MAX:
            self._known.clear()
            self._elements_known = 0
        packed = pack(f"<{len(elements)}h", *elements)
        self._known[id(elements)] = _PackedList(elements, packed)
        self._elements_known += len(elements)
        return packed

    def delivered(self, t: float, node: int, event: Event, hops: int) -> None:
        """Fast path for a delivery."""
        of = self._latest
        if of.event is not event:
            of = self._before if self._before.event is event else _Delivered(event)
            self._latest, self._before = of, self._latest
        self._keep(_packed_delivered(of.present, t, 0, node, of.packed_event, t - of.time_s, hops, of.packed_size))

    def published(
        self, t: float, event: Event, language: str, chains: int | None, shortest_hops: list[int], utility: str
    ) -> None:
        """Fast path for a publication in a simulated run; `utility` is the event's in its canonical form."""
        number, content = event.id, event.content
        present = _PUBLISHED
        cause = event.cause
        if cause:
            present |= _WITH_CAUSE
        value, count, detail, worth = 0.0, 0, 0, 0
        if chains is not None:
            present |= _WITH_COUNT
            count = chains
        kind, category = self._index("published"), self._index(language)
        if isinstance(content, str):
            present |= _WITH_DETAIL
            detail = self._index(content)
        else:
            present |= _WITH_VALUE
            value = float(content)
        self._lists += self._packed_list(shortest_hops)
        if utility:
            present |= _WITH_UTILITY
            worth = self._index(utility)
        node, size, hops = number >> NUMBER_BITS, len(event.payload), len(shortest_hops)
        self._keep(
            _packed_published(
                present, t, kind, node, number, cause, value, size, count, category, detail, hops, worth
            )
        )

    def dropped(self, t: float, node: int, reason: str, event: int) -> None:
        """Fast path for an event, or `NO_EVENT`, that a protocol dropped."""
        present = _DROPPED_EVENT if event else _DROPPED
        self._keep(_packed_dropped(present, t, self._index("dropped"), node, event, self._index(reason)))

    def structure(self, t: float, node: int, aspect: str, peer: int, value: float, detail: str) -> None:
        """Fast path for what a protocol says about its structure; a negative peer is none."""
        present, known = (_STRUCTURE, 0) if peer < 0 else (_STRUCTURE_PEER, peer)
        kind, category = self._index("structure"), self._index(aspect)
        self._keep(_packed_structure(present, t, kind, node, known, value, category, self._index(detail)))

    def energy(self, t: float, node: int, state: str, energy_mj: float, spent_us: int) -> None:
        """Fast path for the energy that a node used in one state of its radio."""
        kind, category = self._index("energy"), self._index(state)
        self._keep(_packed_energy(_ENERGY, t, kind, node, energy_mj, spent_us, category))

    def battery(self, t: float, node: int, share: float) -> None:
        """Fast path for the share of its battery that a node used."""
        self._keep(_packed_battery(_BATTERY, t, self._index("battery"), node, share))

    def _index(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _keep(self, row: bytes) -> None:
        self._rows.append(row)
        if len(self._rows) == BATCH_ROWS:
            self._full.append(self._unfinished())
            self._rows.clear()
            self._lists.clear()

    def _unfinished(self) -> tuple[bytes, bytes]:
        return b"".join(self._rows), bytes(self._lists)

    def __len__(self) -> int:
        """Rows recorded so far."""
        return len(self._full) * BATCH_ROWS + len(self._rows)

    def packed(self) -> PackedRows:
        """Everything recorded so far."""
        return PackedRows(self.run_id, tuple(self._texts), [*self._full, self._unfinished()])

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Everything recorded so far, for Arrow."""
        from roamcast.trace.arrow import batches_of

        return batches_of(self.packed())

    def table(self) -> "pa.Table":
        from roamcast.trace.arrow import table_of

        return table_of(self.packed())

    def trace_hash(self) -> str:
        """Covers every field of every row, in order, so two runs with the same hash did the same."""
        _, texts, parts = self.packed()
        digest = blake2b(msgspec.msgpack.encode(texts), digest_size=16)
        for rows, _ in parts:
            digest.update(rows)
        for _, lists in parts:
            digest.update(lists)
        return digest.hexdigest()
