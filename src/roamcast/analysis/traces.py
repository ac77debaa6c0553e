"""Traces as Spark tables: a campaign's committed batches, or any other trace directory, in the one schema."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.source import read_traces

__all__ = ["RUN", "of_kind", "only_runs", "ratio", "read_traces"]

RUN = "run_id"


def of_kind(trace: DataFrame, *kinds: str) -> DataFrame:
    return trace.where(f.col("kind").isin(*kinds))


def only_runs(trace: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows of the runs in `runs`; a directory may hold others of an earlier version of its campaign file."""
    return trace.join(f.broadcast(runs.select(RUN).distinct()), RUN, "left_semi")


def ratio(part: Column, whole: Column) -> Column:
    """Their quotient; null where there is no whole."""
    return f.when(whole != 0, part / whole)
