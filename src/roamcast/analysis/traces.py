"""Traces as Spark tables: a campaign's committed batches, or any other trace directory, in the one schema."""

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.errors import ConfigurationError

RUN = "run_id"


def read_traces(session: SparkSession, directory: Path) -> DataFrame:
    """The trace rows of every committed run below `directory` (a campaign's `trace`, or one trace alone)."""
    if not any(directory.glob("**/kind=*/*.parquet")):
        raise ConfigurationError(f"trace: {str(directory)!r} holds no trace; expected kind=.../*.parquet in it")
    return session.read.schema(TRACE_SCHEMA).parquet(str(directory.resolve())).select(*TRACE_SCHEMA.names)


def of_kind(trace: DataFrame, *kinds: str) -> DataFrame:
    return trace.where(f.col("kind").isin(*kinds))


def only_runs(trace: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows of the runs in `runs`; a directory may hold others of an earlier version of its campaign file."""
    return trace.join(f.broadcast(runs.select(RUN).distinct()), RUN, "left_semi")


def ratio(part: Column, whole: Column) -> Column:
    """Their quotient; null where there is no whole."""
    return f.when(whole != 0, part / whole)
