"""`spark.readStream.format("roamcast")`: the traces of live or emulated nodes as a stream.

    from roamcast.analysis.source import register

    register(spark)
    rows = spark.readStream.format("roamcast").load("results/live")
    late = rows.where("kind = 'delivered'").withColumn("at", f.timestamp_seconds("t")).withWatermark("at", "10 seconds")

The path is a node's trace directory, or a directory with several below it; several paths are joined by commas. Nodes
may come later. An offset is a position in all traces (`roamcast.trace.tail`). Files never change, so a query that
restarts from its checkpoint reads the same rows between the same offsets again: every row counts exactly once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.tail import files_between, latest, require_places

TASKS_MAX = 32


class TraceStream(DataSourceStreamReader):
    def __init__(self, path: str) -> None:
        self._places = require_places(part.strip() for part in path.split(",") if part.strip())

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return dict(latest(self._places))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = [(kind, str(path)) for kind, path in files_between(start, end)]
        size = -(-len(files) // TASKS_MAX) or 1
        return [InputPartition(tuple(files[at : at + size])) for at in range(0, len(files), size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for kind, path in partition.value:
            yield from trace_rows(kind, path).to_batches()

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept here: files stay where they are."""


def trace_rows(kind: str, path: str) -> pa.Table:
    """A trace file in the one schema; columns that an older file lacks are null."""
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"trace: {path!r} cannot be read: {str(error).partition(chr(10))[0]}") from None
    arrays: list[Any] = []
    for field in SCHEMA:
        if field.name in table.column_names:
            arrays.append(table[field.name].cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(kind if field.name == "kind" else None, field.type), table.num_rows))
    return pa.table(arrays, schema=SCHEMA)
