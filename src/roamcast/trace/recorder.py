"""Collecting a trace: rows in, Arrow batches and a hash out."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from roamcast.trace.schema import SCHEMA

BATCH_ROWS: Final = 8192  # rows are packed into Arrow at this size: 10 times smaller than as Python objects

_WIDTH: Final = len(SCHEMA) - 1  # without the run
_FULL: Final = BATCH_ROWS * _WIDTH


class Recorder:
    """Takes records in the order in which they happened."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._values: list[Any] = []  # row after row: every `_WIDTH`th belongs to the same column
        self._batches: list[pa.RecordBatch] = []

    def add(self, record: tuple[Any, ...]) -> None:
        """A `Record`, or a tuple like one, which takes a fraction of the time to make."""
        self._values.extend(record)
        if len(self._values) >= _FULL:
            self._pack()

    def _pack(self) -> None:
        if not self._values:
            return
        columns: list[pa.Array[Any]] = [pa.repeat(self.run_id, len(self._values) // _WIDTH)]
        for place, field in enumerate(islice(SCHEMA, 1, None)):
            columns.append(pa.array(self._values[place::_WIDTH], field.type))
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        self._values = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Everything recorded so far."""
        self._pack()
        return iter(self._batches)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.batches()), schema=SCHEMA)

    def trace_hash(self) -> str:
        """Covers every field of every row, in order, so two runs with the same hash did the same."""
        digest = blake2b(digest_size=16)
        for batch in self.batches():
            digest.update(str(batch.num_rows).encode())
            for column in batch.columns[1:]:
                for part in _parts(column):
                    digest.update(part)
        return digest.hexdigest()


def _parts(column: Any) -> Iterator[Any]:
    """What two columns of a length differ in if they differ: which values are there, and these, in numbers."""
    if column.null_count == len(column):
        yield b"nothing"
        return
    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_list(column.type):
        yield column.value_lengths().fill_null(0).to_numpy()
        column = column.flatten()
    elif pa.types.is_string(column.type):
        column = column.dictionary_encode()
        yield msgspec.msgpack.encode(column.dictionary.to_pylist())
        column = column.indices
    yield column.fill_null(0).to_numpy()
