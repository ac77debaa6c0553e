"""Traces as Arrow tables, the form in which they are kept in files and given to users.

Arrow is half of what Roamcast would weigh, so a plain installation simulates, measures and runs nodes without it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "pyarrow is not installed; traces as tables and files need it: pip install 'roamcast[trace]'", name="pyarrow"
    ) from None

from roamcast.trace.columns import ColumnValues, Rows, lists_of
from roamcast.trace.packed import ELEMENT, ROW, PackedRows
from roamcast.trace.schema import FIELDS

_TYPES: dict[str, Any] = {
    "float64": pa.float64(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "text": pa.string(),
    "list": pa.list_(pa.int16()),
}

SCHEMA = pa.schema([
    pa.field("run_id", pa.string(), nullable=False),
    *(pa.field(field.name, _TYPES[field.type], nullable=field.optional) for field in FIELDS),
])  # fmt: skip
"""Of every trace; `roamcast.trace.schema` says what the columns mean."""


_LIST = next(field.name for field in FIELDS if field.type == "list")
_PARTS_TOGETHER = 64  # parts of a recorder that are divided at a time: a copy of some 50 MB at most


def batches_of(packed: PackedRows) -> Iterator[pa.RecordBatch]:
    texts = pa.array(list(packed.texts), pa.string())
    for rows, lists in packed.parts:
        if rows:
            yield _batch(np.frombuffer(rows, ROW), np.frombuffer(lists, ELEMENT), texts, packed.run_id)


def batches_by_kind(packed: PackedRows) -> Iterator[pa.RecordBatch]:
    """The same rows, each batch of one kind, as files need them. Rows of a kind keep their order."""
    texts = pa.array(list(packed.texts), pa.string())
    for at in range(0, len(packed.parts), _PARTS_TOGETHER):
        some = packed.parts[at : at + _PARTS_TOGETHER]
        rows = np.frombuffer(b"".join(rows for rows, _ in some), ROW)
        lists = np.frombuffer(b"".join(lists for _, lists in some), ELEMENT)
        kinds = rows["kind"].copy()  # side by side in memory
        for kind in np.flatnonzero(np.bincount(kinds)):
            chosen = kinds == kind
            taken = rows.take(np.flatnonzero(chosen))  # numpy is 30 times slower at `rows[chosen]`
            yield _batch(taken, lists_of(rows[_LIST], chosen, lists), texts, packed.run_id)


def table_of(packed: PackedRows) -> pa.Table:
    return pa.Table.from_batches(list(batches_of(packed)), schema=SCHEMA)


def _batch(rows: Any, lists: Any, texts: Any, run_id: str) -> pa.RecordBatch:
    present = rows["present"]
    somewhere, everywhere = int(np.bitwise_or.reduce(present)), int(np.bitwise_and.reduce(present))
    columns: list[Any] = [pa.repeat(run_id, len(rows))]
    for place, field in enumerate(FIELDS):
        bit = 1 << place
        absent = None if everywhere & bit else present & bit == 0
        values = rows[field.name]
        if not somewhere & bit:
            columns.append(pa.nulls(len(rows), _TYPES[field.type]))
        elif field.type == "text":
            columns.append(texts.take(pa.array(values, mask=absent)))
        elif field.type == "list":
            ends: Any = np.concatenate(([0], np.cumsum(values))).astype(np.int32)
            mask: Any = None if absent is None else pa.array(absent)
            columns.append(pa.ListArray.from_arrays(ends, pa.array(lists), mask=mask))
        else:
            columns.append(pa.array(values, _TYPES[field.type], mask=absent))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def rows_of_table(table: pa.Table) -> Rows:
    """A table with columns of a trace, for measures."""
    return Rows(table.num_rows, lambda name: _column(table[name]))


def table_of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table["kind"], pa.scalar(kind)))


def _column(chunks: Any) -> ColumnValues:
    array = chunks.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunks, or more than fit into one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    present = None if array.null_count == 0 else np.asarray(pc.is_valid(array))
    if pa.types.is_list(array.type):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0))
        return ColumnValues(lengths, present, elements=np.asarray(pc.list_flatten(array)))
    if pa.types.is_string(array.type):
        encoded: Any = array.dictionary_encode()
        texts = tuple(map(str, encoded.dictionary.to_pylist())) or ("",)  # absent texts have place 0
        return ColumnValues(np.asarray(pc.fill_null(encoded.indices, 0)), present, texts)
    if present is not None:
        array = pc.fill_null(array, pa.scalar(0).cast(array.type))
    return ColumnValues(np.asarray(array), present)
