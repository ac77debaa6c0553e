"""Rows of a trace as numpy columns: what the measures of one run are computed from.

`rows_of_packed` reads them from what a recorder keeps, `roamcast.trace.arrow.rows_of_table` from an Arrow table. A
column is built on first use, so columns that no measure reads cost nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roamcast.trace.packed import ELEMENT, ROW, PackedRows
from roamcast.trace.schema import FIELDS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

_BITS = {field.name: 1 << place for place, field in enumerate(FIELDS)}
_TYPES = {field.name: field.type for field in FIELDS}


class ColumnValues(NamedTuple):
    """A value per row. What stands where none is present means nothing."""

    values: npt.NDArray[Any]  # numbers or truth values; of texts the places in `texts`; of lists the lengths
    present: Booleans | None = None  # None: all are
    texts: tuple[str, ...] | None = None
    elements: npt.NDArray[Any] | None = None  # of all lists, one after the other; an absent list has length 0

    def taken(self, places: Integers) -> "ColumnValues":
        assert self.elements is None, "lists are read in whole columns"
        return ColumnValues(self.values[places], None if self.present is None else self.present[places], self.texts)

    @property
    def is_present(self) -> Booleans:
        return np.ones(len(self.values), np.bool_) if self.present is None else self.present

    def to_list(self) -> list[Any]:
        """Python's values; None where there is none."""
        values: list[Any] = self.values.tolist()
        if self.texts is not None:
            values = [self.texts[place] for place in values]
        if self.present is None:
            return values
        return [value if there else None for value, there in zip(values, self.present.tolist(), strict=True)]


class Rows:
    """Some rows, by column."""

    def __init__(self, count: int, made: Callable[[str], ColumnValues]) -> None:
        self._count = count
        self._made = made
        self._columns: dict[str, ColumnValues] = {}

    @classmethod
    def of(cls, columns: Mapping[str, ColumnValues]) -> "Rows":
        return cls(len(next(iter(columns.values())).values), columns.__getitem__)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, name: str) -> ColumnValues:
        if name not in self._columns:
            self._columns[name] = self._made(name)
        return self._columns[name]

    def taken(self, places: Integers) -> "Rows":
        """The rows at these places."""
        return Rows(len(places), lambda name: self[name].taken(places))

    def numbers_once(self, name: str) -> Any:
        """The same as `numbers`, for a column that nobody will ask for again: it is not kept."""
        return self._columns[name].values if name in self._columns else self._made(name).values

    def numbers(self, name: str) -> Any:
        """The values of a column whose rows all have one."""
        return self[name].values


def rows_of_packed(packed: PackedRows, kinds: tuple[str, ...]) -> Rows:
    """The rows of these kinds."""
    texts = packed.texts
    wanted = np.array([text in kinds for text in texts], dtype=np.bool_)  # by the place of the kind
    everywhere = -1  # the fields that all rows have, as bits
    parts = []  # rows of one batch, which of them are wanted, what these have, and the batch's lists
    for content, lists in packed.parts:
        rows = np.frombuffer(content, ROW)
        chosen = wanted[rows["kind"]]
        if chosen.any():
            present = rows["present"][chosen]
            parts.append((rows, chosen, present, lists))
            everywhere &= int(np.bitwise_and.reduce(present))

    def made(name: str) -> ColumnValues:
        values = _joined([rows[name][chosen] for rows, chosen, _, _ in parts], ROW[name])
        there = None
        if not everywhere & _BITS[name]:
            there = _joined([present & _BITS[name] != 0 for _, _, present, _ in parts], np.bool_)
        if _TYPES[name] == "text":
            return ColumnValues(values, there, texts)
        if _TYPES[name] != "list":
            return ColumnValues(values, there)
        elements = [lists_of(rows[name], chosen, np.frombuffer(lists, ELEMENT)) for rows, chosen, _, lists in parts]
        return ColumnValues(values, there, elements=_joined(elements, ELEMENT))

    return Rows(sum(len(present) for _, _, present, _ in parts), made)


def _joined(parts: list[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def lists_of(lengths: npt.NDArray[Any], chosen: Booleans, elements: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of the chosen rows' lists."""
    with_lists = chosen[lengths > 0]
    if with_lists.all():
        return elements
    return elements[np.repeat(chosen, lengths)] if with_lists.any() else elements[:0]
