"""What it cost: frames, bytes and airtime, how evenly the load is spread, and what was lost. See `trace.summary`."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind, ratio

CONTROL = "maintenance"
COLUMNS = {"frames": "count", "bytes": "bytes", "airtime_s": "value"}


def cost_measures(trace: DataFrame) -> DataFrame:
    """Per run: totals over all sent frames, and what share of them kept the structure together."""
    control = f.col("category") == CONTROL
    sums = (
        of_kind(trace, "frame")
        .groupBy(RUN)
        .agg(
            *(f.sum(column).alias(f"{name}_total") for name, column in COLUMNS.items()),
            *(
                f.coalesce(f.sum(f.when(control, f.col(column))), f.lit(0)).alias(f"{name}_control")
                for name, column in COLUMNS.items()
            ),
        )
    )
    return sums.select(
        RUN,
        *(f"{name}_total" for name in COLUMNS),
        *(
            ratio(f.col(f"{name}_control"), f.col(f"{name}_total")).alias(f"control_{name.removesuffix('_s')}_share")
            for name in COLUMNS
        ),
        (1000 * f.col("airtime_s_control")).alias("maintenance_ms"),
    )


def load_fairness(trace: DataFrame, ends: DataFrame) -> DataFrame:
    """Per run: Jain's index of the nodes' airtime; nodes that sent nothing count as 0."""
    by_node = of_kind(trace, "load").groupBy(RUN, "node").agg(f.sum("value").alias("airtime_s"))
    moments = by_node.groupBy(RUN).agg(
        f.sum("airtime_s").alias("sum"), f.sum(f.col("airtime_s") * f.col("airtime_s")).alias("squares")
    )
    index = ratio(f.col("sum") * f.col("sum"), f.col("nodes") * f.col("squares"))
    return moments.join(ends, RUN).select(RUN, index.alias("load_fairness"))


def run_ends(trace: DataFrame) -> DataFrame:
    """Per run: the number of nodes and the duration."""
    return of_kind(trace, "end").select(RUN, f.col("count").alias("nodes"), f.col("t").alias("duration_s"))


def breakdowns(trace: DataFrame) -> DataFrame:
    """In long form: frames, bytes and airtime by message and by category, receptions lost and drops by reason."""
    frames = of_kind(trace, "frame")
    parts = [
        _summed(frames, key, column, name + suffix)
        for name, column in COLUMNS.items()
        for key, suffix in (("detail", ""), ("category", "_by_category"))
    ]
    parts.append(_summed(of_kind(trace, "lost"), "detail", "count", "frames_lost"))
    dropped = of_kind(trace, "dropped").withColumn("count", f.lit(1))
    parts.append(_summed(dropped, "detail", "count", "dropped"))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole.select(RUN, "measure", "key", "value")


def frames_over_time(trace: DataFrame, bin_s: float) -> DataFrame:
    """Per run, time and category: frames and airtime."""
    binned = of_kind(trace, "frame").withColumn("t", f.floor(f.col("t") / bin_s) * bin_s)
    sums = binned.groupBy(RUN, "t", "category").agg(f.sum("count").alias("frames"), f.sum("value").alias("airtime_s"))
    return sums.select(RUN, "t", "category", "frames", "airtime_s")


def _summed(rows: DataFrame, key: str, column: str, measure: str) -> DataFrame:
    sums = rows.groupBy(RUN, f.col(key).alias("key")).agg(f.sum(column).cast("double").alias("value"))
    return sums.select(RUN, f.lit(measure).alias("measure"), "key", "value")
