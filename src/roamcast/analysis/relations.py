"""The relations of `roamcast.trace.relations` for many runs, with Spark: the same columns, and `run_id`."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.chains import causal_graphs, no_graphs
from roamcast.analysis.deliveries import pairs
from roamcast.analysis.expected import MATCHES
from roamcast.analysis.traces import RUN, of_kind
from roamcast.trace.relations import LOAD_COLUMNS


class TraceContents(NamedTuple):
    """What occurs in a trace, so that steps that would find nothing are left out of Spark's plan."""

    languages: tuple[str, ...] = tuple(MATCHES)
    causal: bool = True
    utility: bool = True


def contents(trace: DataFrame) -> TraceContents:
    """Looks through the publications once."""
    seen = of_kind(trace, "published").agg(
        f.collect_set("category").alias("languages"),
        f.max(f.col("count").isNotNull()).alias("causal"),
        f.max(f.col("utility").isNotNull()).alias("utility"),
    )
    found = seen.first()
    assert found is not None  # an aggregate over everything has one row
    languages = tuple(sorted(set(found["languages"]) & MATCHES.keys())) or ("intervals",)
    return TraceContents(languages, bool(found["causal"]), bool(found["utility"]))


class SparkRelations:
    """The relations of all runs in a trace, by name."""

    def __init__(self, trace: DataFrame, has: TraceContents | None = None, met: DataFrame | None = None) -> None:
        self._trace = trace
        self._has = contents(trace) if has is None else has
        self._met = met

    def __call__(self, name: str) -> DataFrame:
        derived = {"pairs": self.pairs, "loads": self._loads, "graphs": self._graphs, "startup": self._startup}
        return derived[name]() if name in derived else of_kind(self._trace, name)

    def pairs(self) -> DataFrame:
        met = pairs(self._trace, self._has.languages) if self._met is None else self._met
        whole = met.withColumn("expected", f.col("shortest").isNotNull())
        if not self._has.utility:
            nothing = f.lit(None).cast("double")
            return whole.withColumn("utility", nothing).withColumn("utility_max", nothing)
        curves = (
            of_kind(self._trace, "published")
            .where(f.col("utility").isNotNull() & (f.col("utility") != ""))
            .select(RUN, "event_id", _points(f.col("utility")).alias("points"))
        )
        worth = f.when(f.col("arrivals") > 0, _worth(f.col("points"), f.col("latency_s"))).otherwise(0.0)
        carries = f.col("expected") & f.col("points").isNotNull()
        most = f.array_max(f.transform("points", lambda point: point["worth"]))
        return (
            whole.join(curves, [RUN, "event_id"], "left")
            .withColumn("utility", f.when(carries, worth))
            .withColumn("utility_max", f.when(carries, most))
            .drop("points")
        )

    def _loads(self) -> DataFrame:
        by_node = of_kind(self._trace, "load").groupBy(RUN, "node")
        return by_node.agg(*(f.sum(column).alias(name) for name, column in LOAD_COLUMNS.items()))

    def _startup(self) -> DataFrame:
        first = of_kind(self._trace, "published").groupBy(RUN).agg(f.floor(f.min("t")).alias("first_s"))
        return of_kind(self._trace, "frame").join(first, RUN).where(f.col("t") < f.col("first_s"))

    def _graphs(self) -> DataFrame:
        return causal_graphs(self._trace) if self._has.causal else no_graphs(self._trace)


def _points(text: Column) -> Column:
    """A curve in its canonical form as an array of (age_s, worth)."""
    return f.transform(
        f.split(text, " "),
        lambda word: f.struct(
            f.split(word, ":")[0].cast("double").alias("age_s"), f.split(word, ":")[1].cast("double").alias("worth")
        ),
    )


def _worth(points: Column, age_s: Column) -> Column:
    """What a receipt at this age is worth: as `trace.utility.worth`."""
    younger = f.size(f.filter(points, lambda point: point["age_s"] < age_s))
    before = f.element_at(points, f.greatest(younger, f.lit(1)))
    at = f.element_at(points, f.least(younger + 1, f.size(points)))
    share = (age_s - before["age_s"]) / (at["age_s"] - before["age_s"])
    inside = before["worth"] + share * (at["worth"] - before["worth"])
    return (
        f.when(younger == 0, f.element_at(points, f.lit(1))["worth"])
        .when(younger == f.size(points), f.element_at(points, f.lit(-1))["worth"])
        .otherwise(inside)
    )
