"""Traces as Spark tables: a campaign's committed batches, or any other trace directory, in the one schema."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.errors import ConfigurationError

RUN = "run_id"


def read_traces(session: SparkSession, directory: Path) -> DataFrame:
    """The trace rows of every committed run below `directory` (a campaign's `trace`, or one trace alone)."""
    layout = "batch=*/kind=*" if any(directory.glob("batch=*")) else "kind=*"
    if not any(directory.glob(f"{layout}/*.parquet")):
        raise ConfigurationError(f"trace: {str(directory)!r} holds no trace; expected kind=.../*.parquet in it")
    path = str(directory.resolve())
    reader = session.read.schema(TRACE_SCHEMA).option("basePath", path)
    return reader.parquet(path).select(*TRACE_SCHEMA.names)


def of_kind(trace: DataFrame, *kinds: str) -> DataFrame:
    return trace.where(f.col("kind").isin(*kinds))


def only_runs(trace: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows of the runs in `runs`; a directory may hold others of an earlier version of its campaign file."""
    return trace.join(f.broadcast(runs.select(RUN).distinct()), RUN, "left_semi")


def ratio(part: Column, whole: Column) -> Column:
    """Their quotient; null where there is no whole."""
    return f.when(whole != 0, part / whole)


def arrow_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """A small table of the driver's as a DataFrame."""
    return session.createDataFrame(table)
