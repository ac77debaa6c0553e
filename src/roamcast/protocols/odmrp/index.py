"""Many summary entries at once: an index that finds all that match a digest without looking at each.

The entries are rows of a table whose columns are the bits of their filters. The table is kept by column, and a column
is one integer with a bit for each row. The rows that allow a token at a leaf are those that have all the token's bits,
or do not constrain the leaf: a few ANDs and one OR of integers, and that answer is kept until the table changes. A
digest's matches are the rows that allow all its tokens: one more AND per leaf. For ten thousand entries an integer is
1250 bytes, so a digest costs a few microseconds.

`matches` gives the same answer as asking `Family.matches` of each entry, its slow twin.

Free text is different: a string brings a token for each of its prefixes and suffixes, and they hardly ever repeat, so
kept answers do not help. A broker has the demands behind its own clients' entries (`summaries.py`). For rows that are
added with their demand, tokens of texts are looked up directly, which is also more exact than a filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roamcast.errors import CallerError
from roamcast.protocols.odmrp.bloom import positions
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.summaries import Demand, Family, SummaryEntry

_ANSWERS_MAX: Final = 4096  # per type: kept answers, so that strings, which rarely repeat, cannot fill the memory


class EntryIndex:
    """Rows of entries; a row is known by the number that `add` returned."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._entries: dict[int, tuple[SummaryEntry, Demand | None]] = {}
        self._types: dict[int, _TypeTable] = {}
        self._vacant: list[int] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: SummaryEntry, demand: Demand | None = None) -> int:
        row = self._vacant.pop() if self._vacant else len(self._entries)
        self._entries[row] = entry, demand
        self._types.setdefault(entry.type, _TypeTable(self._family)).change(entry, demand, 1 << row)
        return row

    def remove(self, row: int) -> None:
        if row not in self._entries:
            raise CallerError(f"remove: there is no row {row}")
        entry, demand = self._entries.pop(row)
        self._types[entry.type].change(entry, demand, 1 << row)
        self._vacant.append(row)

    def matches(self, digest: Digest) -> int:
        """The rows that match, as bits."""
        table = self._types.get(digest.type)
        return 0 if table is None else table.matches(digest)


def rows(bits: int) -> Iterator[int]:
    """The numbers of the rows in an answer, ascending."""
    for at, byte in enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little")):
        while byte:
            low = byte & -byte
            yield 8 * at + low.bit_length() - 1
            byte ^= low


class _TypeTable:
    """The rows of one event type. Columns are named by filter, leaf (of strings) and bit."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._rows = 0
        self._constrains: dict[int, int] = {}  # leaf -> rows
        self._columns: dict[tuple[str, int, int], int] = {}
        self._answers: dict[tuple[str, int, int], int] = {}  # filter, leaf, token -> rows that have all its bits
        self._open: dict[int, int] = {}  # leaf -> rows that do not constrain it
        self._tokens: dict[int, int] = {}  # token of a text -> rows that demand it
        self._filtered: dict[int, int] = {}  # leaf -> rows whose texts are known as filters only

    def change(self, entry: SummaryEntry, demand: Demand | None, row: int) -> None:
        """Adds the row, or takes it out: every column it has a bit in flips."""
        self._rows ^= row
        for leaf in rows(entry.leaves):
            self._constrains[leaf] = self._constrains.get(leaf, 0) ^ row
        filters = [("EC", 0, entry.enumerated), ("AC", 0, entry.arithmetic)]
        if entry.texts and demand is not None:
            for token in {token for leaf in demand for alternative in leaf for token in alternative}:
                self._tokens[token] = self._tokens.get(token, 0) ^ row
        for text in entry.texts if demand is None else ():
            self._filtered[text.leaf] = self._filtered.get(text.leaf, 0) ^ row
            filters += [("SL", text.leaf, text.left), ("SR", text.leaf, text.right), ("SX", text.leaf, text.exact)]
        for name, leaf, bits in filters:
            for bit in rows(bits):
                key = name, leaf, bit
                self._columns[key] = self._columns.get(key, 0) ^ row
        self._answers.clear()
        self._open = {leaf: self._rows & ~constrained for leaf, constrained in self._constrains.items()}

    def matches(self, digest: Digest) -> int:
        found = self._rows
        for name, part in (("EC", digest.enumerated), ("AC", digest.arithmetic)):
            for leaf, token in part:
                if leaf in self._open:
                    found &= self._having(name, 0, token) | self._open[leaf]
                    if not found:
                        return 0
        for leaf, whole, prefixes, suffixes in digest.texts:
            if leaf in self._open:
                allowed = self._open[leaf] | self._demanding(whole, prefixes, suffixes)
                if self._filtered.get(leaf, 0):
                    allowed |= self._filtered_texts(leaf, whole, prefixes, suffixes)
                found &= allowed
        return found

    def _demanding(self, whole: int, prefixes: tuple[int, ...], suffixes: tuple[int, ...]) -> int:
        """The rows that demand a text, by tokens."""
        tokens = self._tokens
        left = right = 0
        for prefix in prefixes:
            rows_of = tokens.get(prefix)
            if rows_of is not None:
                left |= rows_of
        if left:
            for suffix in suffixes:
                rows_of = tokens.get(suffix)
                if rows_of is not None:
                    right |= rows_of
        return (left & right) | tokens.get(whole, 0)

    def _filtered_texts(self, leaf: int, whole: int, prefixes: tuple[int, ...], suffixes: tuple[int, ...]) -> int:
        """The rows whose filters hold a text."""
        left = right = 0
        for prefix in prefixes:
            left |= self._having("SL", leaf, prefix)
        for suffix in suffixes:
            right |= self._having("SR", leaf, suffix)
        return (left & right) | self._having("SX", leaf, whole)

    def _having(self, name: str, leaf: int, token: int) -> int:
        key = name, leaf, token
        answer = self._answers.get(key)
        if answer is None:
            answer = self._rows
            for bit in positions(token, self._family.bits, self._family.hashes):
                answer &= self._columns.get((name, leaf, bit), 0)
                if not answer:
                    break
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            self._answers[key] = answer
        return answer
