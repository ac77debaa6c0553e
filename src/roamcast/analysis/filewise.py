"""Measures of whole files: where all rows of a run lie in the same few files, no row needs to move.

A task of a campaign writes the rows of its runs together, one file per kind. So one executor reads such a group of
files and measures its runs with `roamcast.trace.summary`; nothing is shuffled. Only the kinds and columns that measures
are made of are read.

Everything here is importable on executors and needs no Spark.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.garbage import settle_memory
from roamcast.campaign.location import StoreLocation
from roamcast.trace.arrow import SCHEMA, rows_of_table
from roamcast.trace.columns import Rows
from roamcast.trace.expressions import Aggregate, Column, Combined, Expression, Inverted, Present, aggregates
from roamcast.trace.measures import BREAKDOWNS, RUN_FACTS, RUN_MEASURES
from roamcast.trace.relations import COLUMNS, TraceRelations
from roamcast.trace.summary import stored_rows

TraceFile = tuple[str, str]
"""The kind of the rows, and the path or URI."""


def measure_files(files: Iterable[TraceFile], only: frozenset[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Rows of kind `measure` for every run in a group of files, or for those in `only`."""
    runs: dict[str, dict[str, list[pa.Table]]] = {}  # run -> kind -> parts
    for kind, path in files:
        if kind in needed_columns():
            for run_id, rows in _by_run(_read(kind, path)):
                if only is None or run_id in only:
                    runs.setdefault(run_id, {}).setdefault(kind, []).append(rows)
    for run_id in sorted(runs):
        yield from stored_rows(run_id, TraceRelations(_Kinds(runs[run_id]))).batches()


def measured_files(files: list[TraceFile], only: frozenset[str] | None = None) -> bytes:
    """The same rows as an Arrow stream: the task of an executor."""
    settle_memory()
    rows = pa.Table.from_batches(list(measure_files(files, only)), SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()


@cache
def needed_columns() -> dict[str, list[str]]:
    """Kind -> columns that some measure or breakdown looks at, in the order of the schema."""
    found: dict[str, set[str]] = {}
    for expression in (*RUN_FACTS.values(), *(measure.value for measure in RUN_MEASURES.values())):
        for asked in aggregates(expression):
            for kind, columns in COLUMNS.get(asked.relation, {asked.relation: ()}).items():
                found.setdefault(kind, set()).update(columns)
            if asked.relation not in COLUMNS:
                found[asked.relation] |= _columns_of(asked)
    for breakdown in BREAKDOWNS.values():
        found.setdefault(breakdown.kind, set()).update({breakdown.key, breakdown.column or "t", "t"})
    return {kind: [name for name in SCHEMA.names if name in names] for kind, names in found.items()}


class _Kinds:
    """The rows of one run by kind."""

    def __init__(self, parts: Mapping[str, list[pa.Table]]) -> None:
        self._parts = parts

    def __call__(self, kinds: tuple[str, ...]) -> Rows:
        tables = [
            table.append_column(SCHEMA.field("kind"), pa.repeat(kind, table.num_rows))
            for kind in kinds
            for table in self._parts.get(kind, [])
        ]
        return rows_of_table(pa.concat_tables(tables, promote_options="default") if tables else SCHEMA.empty_table())


def _read(kind: str, path: str) -> pa.Table:
    """The needed columns; those that an older file lacks are null."""
    with StoreLocation(path).opened() as opened:
        file = pq.ParquetFile(opened, page_checksum_verification=True)
        there = set(file.schema_arrow.names)
        wanted = ["run_id", *needed_columns()[kind]]
        table = file.read([name for name in wanted if name in there])
    for name in wanted:
        if name not in there:
            table = table.append_column(SCHEMA.field(name), pa.nulls(table.num_rows, SCHEMA.field(name).type))
    return table


def _by_run(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each run, in their order."""
    encoded = table["run_id"].combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    rows = table.drop_columns("run_id")
    if len(names) <= 1:
        yield from ((str(name), rows) for name in names)
        return
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    rows = rows.take(order)
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for place, name in enumerate(names):
        yield str(name), rows.slice(int(starts[place]), int(starts[place + 1] - starts[place]))


def _columns_of(expression: Expression | None) -> set[str]:
    if isinstance(expression, Column):
        return {expression.name}
    if isinstance(expression, Combined):
        return _columns_of(expression.left) | _columns_of(expression.right)
    if isinstance(expression, Inverted):
        return _columns_of(expression.condition)
    if isinstance(expression, Present):
        return _columns_of(expression.of)
    if isinstance(expression, Aggregate):
        return _columns_of(expression.of) | _columns_of(expression.where)
    return set()
