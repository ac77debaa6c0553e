"""Causal chains: events that were published because another event arrived.

A *chain* starts with a publication without a cause that caused at least one other, and holds every publication that
goes back to it. It is *complete* if every expected pair of every event in it arrived; its *time* is from the root's
publication to the last first arrival of its expected pairs. `chains` counts them, `chain_completion_ratio` is the share
that is complete, `chain_time_ms_mean` the mean time of the complete ones. A run without chains has 0, none and none.

The root of an event is found by jumping: each round replaces the known ancestor by that one's known ancestor, so rounds
double the reach and `ROUNDS` of them follow a chain of 2 ** ROUNDS events. An effect of an event that is not in the
trace has no root and belongs to no chain.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind, ratio

ROUNDS = 5


def roots(trace: DataFrame) -> DataFrame:
    """Each publication that has a cause, with the root of its chain."""
    caused = of_kind(trace, "published").where(f.col("cause_id").isNotNull()).select(RUN, "event_id", "cause_id")
    reached = caused.select(RUN, "event_id", f.col("cause_id").alias("ancestor"))
    for _ in range(ROUNDS):
        farther = reached.select(RUN, f.col("event_id").alias("ancestor"), f.col("ancestor").alias("beyond"))
        reached = reached.join(farther, [RUN, "ancestor"], "left").select(
            RUN, "event_id", f.coalesce("beyond", "ancestor").alias("ancestor")
        )
    return reached.select(RUN, "event_id", f.col("ancestor").alias("root_id"))


def chain_measures(met: DataFrame, trace: DataFrame) -> DataFrame:
    """Per run that has chains: how many, how many of them complete, and the mean time of these."""
    effects = roots(trace)
    begun = of_kind(trace, "published").where(f.col("cause_id").isNull()).select(
        RUN, f.col("event_id").alias("root_id"), f.col("t").alias("begun_s")
    )
    known = effects.join(begun, [RUN, "root_id"]).select(RUN, "root_id", "event_id", "begun_s")
    heads = known.select(RUN, "root_id", f.col("root_id").alias("event_id"), "begun_s").distinct()
    members = known.unionByName(heads)
    wanted = met.where(f.col("shortest").isNotNull()).select(RUN, "event_id", "arrivals", "first_t")
    by_chain = (
        members.join(wanted, [RUN, "event_id"], "left")
        .groupBy(RUN, "root_id", "begun_s")
        .agg(
            f.coalesce(f.min("arrivals") > 0, f.lit(True)).alias("complete"),
            f.max("first_t").alias("last_t"),
        )
    )
    time_ms = f.when(f.col("complete"), (f.col("last_t") - f.col("begun_s")) * 1000)
    counted = by_chain.groupBy(RUN).agg(
        f.count(f.lit(1)).alias("chains"),
        f.count_if("complete").alias("complete"),
        f.avg(time_ms).alias("chain_time_ms_mean"),
    )
    return counted.select(
        RUN, "chains", ratio(f.col("complete"), f.col("chains")).alias("chain_completion_ratio"), "chain_time_ms_mean"
    )


def no_chains(runs: DataFrame) -> DataFrame:
    """The same columns for runs that are known to have none."""
    nothing = f.lit(None).cast("double")
    return runs.select(
        RUN,
        f.lit(0).cast("long").alias("chains"),
        nothing.alias("chain_completion_ratio"),
        nothing.alias("chain_time_ms_mean"),
    )
