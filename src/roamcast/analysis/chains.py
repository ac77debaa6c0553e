"""Causal chains and causal graphs of all runs, as `roamcast.trace.chains` defines them for one.

The initiation of an event is found by jumping: each round replaces the known ancestor by that one's known ancestor, so
rounds double the reach and `ROUNDS` of them follow a chain of 2 ** ROUNDS events.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind, ratio

ROUNDS = 5

COLUMNS = (
    "chains",
    "chain_completion_ratio",
    "chain_time_ms_mean",
    "causal_graphs",
    "causal_graph_completion_ratio",
    "causal_graph_time_ms_mean",
)


def roots(trace: DataFrame) -> DataFrame:
    """Each publication that has a cause, with the farthest ancestor that its causes lead to."""
    caused = of_kind(trace, "published").where(f.col("cause_id").isNotNull()).select(RUN, "event_id", "cause_id")
    reached = caused.select(RUN, "event_id", f.col("cause_id").alias("ancestor"))
    for _ in range(ROUNDS):
        farther = reached.select(RUN, f.col("event_id").alias("ancestor"), f.col("ancestor").alias("beyond"))
        reached = reached.join(farther, [RUN, "ancestor"], "left").select(
            RUN, "event_id", f.coalesce("beyond", "ancestor").alias("ancestor")
        )
    return reached.select(RUN, "event_id", f.col("ancestor").alias("root_id"))


def causal_graphs(trace: DataFrame) -> DataFrame:
    """Per initiation: how many chains it should set off, how many came to their end, and when they did since then."""
    published = of_kind(trace, "published")
    begun = published.where(f.col("cause_id").isNull() & (f.col("count") > 0)).select(
        RUN, f.col("event_id").alias("root_id"), f.col("t").alias("begun_s"), f.col("count").alias("expected")
    )
    ends = published.where(f.col("cause_id").isNotNull() & (f.col("count") == 0)).select(RUN, "event_id", "t")
    ended = ends.join(roots(trace), [RUN, "event_id"]).join(begun, [RUN, "root_id"])
    by_root = ended.groupBy(RUN, "root_id").agg(
        f.count(f.lit(1)).alias("complete"),
        f.sum(f.col("t") - f.col("begun_s")).alias("times_s"),
        f.max(f.col("t") - f.col("begun_s")).alias("last_s"),
    )
    return (
        begun.join(by_root, [RUN, "root_id"], "left")
        .fillna(0, ["complete", "times_s"])
        .select(RUN, "root_id", "expected", "complete", "times_s", "last_s")
    )


def chain_measures(trace: DataFrame) -> DataFrame:
    """Per run that has initiations: completion and time of its chains and of its causal graphs."""
    whole = f.col("complete") == f.col("expected")
    sums = (
        causal_graphs(trace)
        .groupBy(RUN)
        .agg(
            f.sum("expected").alias("chains"),
            f.sum("complete").alias("complete"),
            f.sum("times_s").alias("times_s"),
            f.count(f.lit(1)).alias("causal_graphs"),
            f.count_if(whole).alias("whole"),
            f.avg(f.when(whole, 1000 * f.col("last_s"))).alias("causal_graph_time_ms_mean"),
        )
    )
    return (
        sums.withColumn("chain_completion_ratio", ratio(f.col("complete"), f.col("chains")))
        .withColumn("chain_time_ms_mean", ratio(1000 * f.col("times_s"), f.col("complete")))
        .withColumn("causal_graph_completion_ratio", ratio(f.col("whole"), f.col("causal_graphs")))
        .select(RUN, *COLUMNS)
    )


def no_chains(runs: DataFrame) -> DataFrame:
    """The same columns for runs that are known to have none."""
    nothing, none = f.lit(None).cast("double"), f.lit(0).cast("long")
    counts = ("chains", "causal_graphs")
    return runs.select(RUN, *((none if name in counts else nothing).alias(name) for name in COLUMNS))
