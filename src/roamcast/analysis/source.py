"""Traces as Spark tables, for the analysis and for queries of your own.

    from roamcast.analysis.source import read_traces

    trace = read_traces(spark, "results/quickstart")
    trace.where("kind = 'delivered'").groupBy("run_id").avg("value").show()

The place is a campaign (a directory or a URI), its `trace`, or the trace directory of `roamcast simulate --trace` or of
a live node. Every row has the one schema (`roamcast.trace.schema`). Of a campaign, only committed files are read.

`read_traces` gives a plain Parquet table. Spark reads only the columns that a query uses, and a condition on `kind`
skips the files of other kinds, in every scan of a query by itself. Page checksums are verified, so a damaged page is
an error and never a wrong row. Where Spark has no driver for the file system (S3 without `hadoop-aws`, say), executors
read the files with Arrow instead: the rows are the same, but whole rows are read.

`spark.read.format("roamcast")` is the same table for tools that can only name a format; call `register` first. Spark
tells a Python data source nothing about columns, and mixes up the filters of two scans of one source (seen in Spark
4.3). So this one takes no filters from Spark: all rows pass through Python, unless a query says itself what it needs:

    spark.read.format("roamcast").option("kind", "published,end").schema("run_id string, t double").load(place)
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from roamcast.analysis.stream import TraceStream
from roamcast.campaign.commits import TraceFiles, trace_files
from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.campaign.location import StoreLocation
from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA

NAME = "roamcast"
PARTITION_BYTES = 32 * 1024 * 1024  # small files are read together up to this size
TASK_BYTES = 4 * 1024 * 1024  # where Spark has no driver and Python reads: several tasks wait for the storage at a time
_KIND = "kind"


def read_traces(session: SparkSession, place: str | Path | StoreLocation) -> DataFrame:
    """The trace rows of every committed run at `place`."""
    found = trace_files(place)
    if not found.files:
        return session.createDataFrame([], TRACE_SCHEMA)
    if not knows_file_system(session, found.root):
        return _read_with_arrow(session, found)
    reader = session.read.schema(TRACE_SCHEMA).option("basePath", found.root.for_spark())
    reader = reader.option("parquet.page.verify-checksum.enabled", "true")
    return reader.parquet(*(found.root.for_spark(file.path) for file in found.files)).select(*TRACE_SCHEMA.names)


def knows_file_system(session: SparkSession, location: StoreLocation) -> bool:
    """Whether Spark can read there itself. A remote session cannot be asked, so it is assumed to."""
    if location.is_local or not hasattr(session, "_jsparkSession"):
        return True
    jvm: Any = session._jvm
    scheme = location.for_spark().partition(":")[0]
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, session._jsc.hadoopConfiguration())
    except Exception:  # Py4J wraps whatever Hadoop throws: no class for this scheme
        return False
    return True


def _read_with_arrow(session: SparkSession, found: TraceFiles) -> DataFrame:
    """Kind by kind, so that Spark leaves out the kinds that a query does not want."""
    whole: DataFrame | None = None
    fields = StructType([field for field in TRACE_SCHEMA.fields if field.name != _KIND])
    for kind in found.kinds():
        files = [file for file in found.files if file.kind == kind]
        tasks = min(len(files), 1 + sum(file.bytes for file in files) // TASK_BYTES)
        rows = session.createDataFrame([(file.path,) for file in files], "name string").repartition(tasks)
        part = rows.mapInArrow(_arrow_reader(found.root.absolute, SCHEMA), fields).withColumn(_KIND, f.lit(kind))
        part = part.select(*TRACE_SCHEMA.names)
        whole = part if whole is None else whole.unionAll(part)
    return session.createDataFrame([], TRACE_SCHEMA) if whole is None else whole


def _arrow_reader(root: str, schema: pa.Schema) -> Any:
    """A function for executors. It is local, so it travels by value and needs no Roamcast there."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        import pyarrow.parquet
        from pyarrow import fs

        try:
            system, base = fs.FileSystem.from_uri(root)
        except ValueError:  # a scheme that Arrow does not know, see `StoreLocation`
            import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]

            other, base = fsspec.core.url_to_fs(root)
            handler: Any = fs.FSSpecHandler
            system = fs.PyFileSystem(handler(other))
        wanted = [field for field in schema if field.name != "kind"]
        for batch in batches:
            for name in batch["name"].to_pylist():
                path = f"{base.rstrip('/')}/{name}"
                table = pyarrow.parquet.read_table(
                    path, filesystem=system, partitioning=None, page_checksum_verification=True
                )
                for field in wanted:
                    if field.name not in table.column_names:
                        table = table.append_column(field, pyarrow.nulls(table.num_rows, field.type))
                yield from table.select([field.name for field in wanted]).cast(pyarrow.schema(wanted)).to_batches()

    return read


def register(session: SparkSession) -> None:
    """Makes the format known to a session."""
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
        unknown = [name for name in schema.names if name not in SCHEMA.names]
        if unknown:
            raise ConfigurationError(f"schema: {unknown[0]!r} is not a column; allowed: {', '.join(SCHEMA.names)}")
        kinds = self.options.get("kind")
        wanted = to_arrow_schema(schema)
        return TraceReader(path, wanted, None if kinds is None else {kind.strip() for kind in kinds.split(",")})

    def streamReader(self, schema: StructType) -> TraceStream:  # noqa: N802 - Spark's name
        return TraceStream(self.options.get("path", ""))


class Files(InputPartition):
    """Files that one task reads."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        super().__init__(tuple(files))  # kind and name


class TraceReader(DataSourceReader):
    """Has no `pushFilters` on purpose: see the module's text."""

    def __init__(self, place: str, wanted: pa.Schema, kinds: set[str] | None) -> None:
        found = trace_files(place)
        self._root = found.root
        self._wanted = wanted
        self._files = [file for file in found.files if kinds is None or file.kind in kinds]

    def partitions(self) -> Sequence[InputPartition]:
        groups: list[list[tuple[str, str]]] = [[]]
        size = 0
        for file in self._files:
            if groups[-1] and size + file.bytes > PARTITION_BYTES:
                groups.append([])
                size = 0
            groups[-1].append((file.kind, file.path))
            size += file.bytes
        return [Files(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for kind, name in partition.value:
            with self._root.arrow.open_input_file(self._root.arrow_path(name)) as opened:
                file = pq.ParquetFile(opened, page_checksum_verification=True)
                table = file.read([name for name in self._wanted.names if name in file.schema_arrow.names])
                yield from _completed(table, kind, self._wanted, file.metadata.num_rows).to_batches()


def _completed(table: pa.Table, kind: str, wanted: pa.Schema, rows: int) -> pa.Table:
    """All wanted columns: the kind is part of the path, and an older trace may lack a later column."""
    arrays: list[Any] = []
    for field in wanted:
        if field.name in table.column_names:
            arrays.append(table[field.name].cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(kind if field.name == _KIND else None, field.type), rows))
    return pa.table(arrays, schema=wanted)
