"""All measures of all runs: one wide row per run, named as in `roamcast.trace.measures`."""

from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.chains import chain_measures, no_chains
from roamcast.analysis.cost import cost_measures, load_fairness, run_ends
from roamcast.analysis.deliveries import delivery_measures
from roamcast.analysis.expected import MATCHES
from roamcast.analysis.traces import RUN, of_kind, ratio
from roamcast.trace.measures import MEASURES

COUNTS = (
    "publications",
    "expected",
    "delivered",
    "expected_reachable",
    "delivered_reachable",
    "duplicates",
    "unexpected",
    "frames_total",
    "bytes_total",
    "airtime_s_total",
    "chains",
    "causal_graphs",
)
"""Measures of which a run that has none has 0, not nothing."""


class Contents(NamedTuple):
    """What occurs in a trace, so that steps that would find nothing are left out of Spark's plan."""

    languages: tuple[str, ...]
    causal: bool


def contents(trace: DataFrame) -> Contents:
    """Looks through the publications once."""
    seen = of_kind(trace, "published").agg(
        f.collect_set("category").alias("languages"), f.max(f.col("count").isNotNull()).alias("causal")
    )
    found = seen.first()
    assert found is not None  # an aggregate over everything has one row
    return Contents(tuple(sorted(set(found["languages"]) & MATCHES.keys())) or ("intervals",), bool(found["causal"]))


def measure_runs(trace: DataFrame, met: DataFrame, *, causal: bool = True) -> DataFrame:
    """Per run that came to its end, every measure; null where it is undefined. `met` is `pairs(trace)`."""
    ends = run_ends(trace)
    published = of_kind(trace, "published").groupBy(RUN).agg(f.count(f.lit(1)).alias("publications"))
    parts = [published, delivery_measures(met), cost_measures(trace), load_fairness(trace, ends)]
    parts.append(chain_measures(trace) if causal else no_chains(ends))
    whole = reduce(lambda left, right: left.join(right, RUN, "left"), parts, ends).fillna(0, list(COUNTS))
    delivered = f.col("delivered")
    return (
        whole.withColumn("deliveries_per_event", ratio(delivered, f.col("publications")))
        .withColumn("frames_per_delivery", ratio(f.col("frames_total"), delivered))
        .withColumn("bytes_per_delivery", ratio(f.col("bytes_total"), delivered))
        .withColumn("airtime_per_delivery_ms", ratio(1000 * f.col("airtime_s_total"), delivered))
        .withColumn(
            "maintenance_ms_per_node_s",
            ratio(f.coalesce("maintenance_ms", f.lit(0.0)), f.col("nodes") * f.col("duration_s")),
        )
        .select(RUN, "nodes", "duration_s", *MEASURES)
    )
