"""Cost and loss by message, category and reason (`trace.measures.BREAKDOWNS`), and traffic over time."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind
from roamcast.trace.measures import BREAKDOWNS, Breakdown


def breakdowns(trace: DataFrame) -> DataFrame:
    """In long form: `run_id`, `measure`, `key`, `value`."""
    parts = [_summed(trace, name, breakdown) for name, breakdown in BREAKDOWNS.items()]
    return reduce(DataFrame.unionByName, parts).select(RUN, "measure", "key", "value")


def frames_over_time(trace: DataFrame, bin_s: float) -> DataFrame:
    """Per run, time and category: frames and airtime."""
    binned = of_kind(trace, "frame").withColumn("t", f.floor(f.col("t") / bin_s) * bin_s)
    sums = binned.groupBy(RUN, "t", "category").agg(f.sum("count").alias("frames"), f.sum("value").alias("airtime_s"))
    return sums.select(RUN, "t", "category", "frames", "airtime_s")


def _summed(trace: DataFrame, name: str, breakdown: Breakdown) -> DataFrame:
    amount = f.lit(1) if breakdown.column is None else f.col(breakdown.column)
    by_key = of_kind(trace, breakdown.kind).groupBy(RUN, f.col(breakdown.key).alias("key"))
    sums = by_key.agg(f.sum(amount).cast("double").alias("value"))
    return sums.select(RUN, f.lit(name).alias("measure"), "key", "value")
