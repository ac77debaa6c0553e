"""`spark.read.format("roamcast")`: traces as a Spark data source, for notebooks and queries of one's own.

    from roamcast.analysis.source import register

    register(spark)
    trace = spark.read.format("roamcast").load("out/quickstart")
    trace.where("kind = 'delivered'").groupBy("run_id").avg("value").show()

The path is a campaign's directory, its `trace`, or the trace directory of `roamcast simulate --trace` or a live node.
Every row is in the one schema (`roamcast.trace.schema`). A condition on `kind` or `run_id` is used while reading: files
of other kinds are not opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.errors import ConfigurationError
from roamcast.trace.schema import SCHEMA

NAME = "roamcast"
PARTITION_BYTES = 32 * 1024 * 1024  # small files are read together up to this size


def register(session: SparkSession) -> None:
    """Makes the format known to a session."""
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(TraceSource)


class TraceSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return TRACE_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        path = self.options.get("path")
        if path is None:
            raise ConfigurationError("path: is missing; write load(\"DIR\") with a campaign's or a trace's directory")
        return TraceReader(Path(path))


class Files(InputPartition):
    """Files that one task reads."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(tuple(paths))


class TraceReader(DataSourceReader):
    def __init__(self, directory: Path) -> None:
        self._files = trace_files(directory)
        self._kinds: set[str] | None = None  # None reads all
        self._runs: set[str] | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for condition in filters:
            column, values = _equality(condition)
            if column == "kind":
                self._kinds = values if self._kinds is None else self._kinds & values
            elif column == "run_id":
                self._runs = values if self._runs is None else self._runs & values
            else:
                yield condition

    def partitions(self) -> Sequence[InputPartition]:
        wanted = [file for file in self._files if self._kinds is None or _kind(file) in self._kinds]
        groups: list[list[str]] = [[]]
        size = 0
        for file in wanted:
            if groups[-1] and size + file.stat().st_size > PARTITION_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(str(file))
            size += file.stat().st_size
        return [Files(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for path in partition.value:
            table = _completed(pq.ParquetFile(path).read(), _kind(Path(path)))
            if self._runs is not None:
                table = table.filter(pc.is_in(table["run_id"], value_set=pa.array(sorted(self._runs))))
            yield from table.to_batches()


def trace_files(directory: Path) -> list[Path]:
    """The trace files below a campaign's directory, a campaign's `trace`, or a trace; staging is not looked at."""
    for pattern in ("trace/batch=*/kind=*/*.parquet", "batch=*/kind=*/*.parquet", "kind=*/*.parquet"):
        found = sorted(path for path in directory.glob(pattern) if not path.name.startswith((".", "_")))
        if found:
            return found
    raise ConfigurationError(f"path: {str(directory)!r} holds no trace; expected kind=.../*.parquet in it")


def _completed(table: pa.Table, kind: str) -> pa.Table:
    """All columns of the schema: the kind stands in the path, and an older trace may lack a later column."""
    for field in SCHEMA:
        if field.name not in table.column_names:
            value = pa.scalar(kind if field.name == "kind" else None, field.type)
            table = table.append_column(field, pa.repeat(value, table.num_rows))
    return table.select(SCHEMA.names).cast(SCHEMA)


def _kind(path: Path) -> str:
    return path.parent.name.partition("=")[2]


def _equality(condition: Filter) -> tuple[str, set[Any]]:
    """The column and the values that it may have, if the condition says just that."""
    if isinstance(condition, EqualTo) and len(condition.attribute) == 1:
        return condition.attribute[0], {condition.value}
    if isinstance(condition, In) and len(condition.attribute) == 1:
        return condition.attribute[0], set(condition.value)
    return "", set()
