"""Causal chains and causal graphs of all runs, as `roamcast.trace.chains` defines them for one.

The initiation of an event is found by pointer jumping: each round replaces the known ancestor by that ancestor's known
ancestor. Every round doubles the reach, so `ROUNDS` of them follow a chain of 2 ** ROUNDS events.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind

ROUNDS = 5

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
    """Per initiation: how many chains it should set off, how many completed, and their times since the initiation."""
    published = of_kind(trace, "published")
    begun = published.where(f.col("cause_id").isNull() & (f.col("count") > 0)).select(
        RUN, f.col("event_id").alias("root_id"), f.col("t").alias("begun_s"), f.col("count").alias("expected")
    )
    waited = of_kind(trace, "waited").select(RUN, "event_id", f.col("value").alias("waited_s"))
    ends = published.where(f.col("cause_id").isNotNull() & (f.col("count") == 0)).select(RUN, "event_id", "t")
    took_s = f.col("t") - f.col("begun_s") - f.coalesce("waited_s", f.lit(0.0))
    ended = (
        ends.join(waited, [RUN, "event_id"], "left").join(roots(trace), [RUN, "event_id"]).join(begun, [RUN, "root_id"])
    )
    by_root = ended.groupBy(RUN, "root_id").agg(
        f.count(f.lit(1)).alias("complete"),
        f.sum(took_s).alias("times_s"),
        f.max(took_s).alias("last_s"),
    )
    return (
        begun.join(by_root, [RUN, "root_id"], "left")
        .fillna(0, ["complete", "times_s"])
        .select(RUN, "root_id", "expected", "complete", "times_s", "last_s")
    )


def no_graphs(trace: DataFrame) -> DataFrame:
    """The same columns without a row, for traces that are known to have no causal events."""
    empty = trace.where(f.lit(False))
    whole, number = f.lit(None).cast("long"), f.lit(None).cast("double")
    return empty.select(
        RUN,
        whole.alias("root_id"),
        whole.alias("expected"),
        whole.alias("complete"),
        number.alias("times_s"),
        number.alias("last_s"),
    )
