"""What should have arrived beside what did: the relation `pairs` of `roamcast.trace.relations`, with Spark.

Expected pairs and deliveries meet in one aggregation over their union instead of a join: both are grouped by event and
node once, which costs one shuffle and no sort. To find a pair's first delivery with aggregates that fit Spark's hash
tables, time and hops are packed into one integer: deliveries of the same event to the same node less than
1 / `INSTANTS_PER_S` (60 ns) apart count as simultaneous, and of these the one with the fewest hops is the first.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.expected import MATCHES, matches
from roamcast.analysis.traces import RUN, of_kind, ratio

INSTANTS_PER_S = 2**24
HOPS_MAX = 255  # of every protocol; beyond, hops do not decide which of two simultaneous deliveries is the first

PAIR = [RUN, "event_id", "node"]


def pairs(trace: DataFrame, languages: Iterable[str] = tuple(MATCHES)) -> DataFrame:
    """One row per pair that was expected or arrived: `expected`, `arrivals`, and of the first arrival t, latency, hops.

    `shortest` is null for pairs that were not expected, -1 for those without a path.
    """
    arrived = of_kind(trace, "delivered").select(
        *PAIR,
        "t",
        f.lit(1).cast("long").alias("arrivals"),
        "hops",
        f.col("value").alias("latency_s"),
        f.lit(None).cast("int").alias("shortest"),
    )
    wanted = matches(trace, languages).select(
        *PAIR,
        f.lit(None).cast("double").alias("t"),
        f.lit(0).cast("long").alias("arrivals"),
        f.lit(None).cast("int").alias("hops"),
        f.lit(None).cast("double").alias("latency_s"),
        "shortest",
    )
    order = f.floor(f.col("t") * INSTANTS_PER_S) * (HOPS_MAX + 1) + f.least("hops", f.lit(HOPS_MAX))
    met = (
        arrived.unionByName(wanted)
        .groupBy(*PAIR)
        .agg(
            f.max("shortest").alias("shortest"),
            f.sum("arrivals").alias("arrivals"),
            f.min("t").alias("first_t"),
            f.min_by("latency_s", order).alias("latency_s"),
            f.min_by("hops", order).alias("hops"),
        )
    )
    return met.select(*PAIR, "shortest", "arrivals", "first_t", "latency_s", "hops")


def delivery_over_time(met: DataFrame, trace: DataFrame, bin_s: float) -> DataFrame:
    """Per run and time of publication, in bins of `bin_s`: expected pairs, and those of them that arrived."""
    when = of_kind(trace, "published").select(RUN, "event_id", _bin(f.col("t"), bin_s).alias("t"))
    wanted = met.where(f.col("shortest").isNotNull()).join(when, [RUN, "event_id"])
    counted = wanted.groupBy(RUN, "t").agg(
        f.count(f.lit(1)).alias("expected"), f.count_if(f.col("arrivals") > 0).alias("delivered")
    )
    return counted.select(
        RUN, "t", "expected", "delivered", ratio(f.col("delivered"), f.col("expected")).alias("ratio")
    )


def _bin(t: Column, bin_s: float) -> Column:
    return f.floor(t / bin_s) * bin_s
