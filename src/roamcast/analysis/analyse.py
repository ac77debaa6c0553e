"""The analysis of a whole campaign, from its directory to small tables that a report or a notebook can hold.

The steps live in their own modules; here they are put in order. The measures per run, which everything else needs, are
computed once and kept in Spark's cache.
"""

from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.cost import breakdowns, frames_over_time
from roamcast.analysis.deliveries import delivery_over_time, pairs
from roamcast.analysis.measures import measure_runs
from roamcast.analysis.relations import contents
from roamcast.analysis.summaries import (
    in_long_form,
    mean_breakdowns,
    normalised,
    paired_differences,
    rivals,
    summarise_points,
    summarise_timeline,
)
from roamcast.analysis.traces import only_runs, read_traces
from roamcast.campaign.file import Stop
from roamcast.campaign.store import Store
from roamcast.trace.measures import RUN_MEASURES

TIMELINE_BINS = 40


class Analysis(NamedTuple):
    """What is said about a campaign. Every table but the first is small; `point` is that of the plan."""

    runs: pd.DataFrame  # one row a run: its place in the plan, the swept settings and every measure
    points: pd.DataFrame  # per point and measure: n, mean, confidence interval
    differences: pd.DataFrame  # the same of the paired differences to the baseline
    normalised: pd.DataFrame  # means as shares of the largest at the same place, and of the baseline's
    timeline: pd.DataFrame  # per point, bin of time and measure: mean and confidence interval
    breakdowns: pd.DataFrame  # per point, measure and key (message, category, reason): mean per run


def analyse(session: SparkSession, store: Store) -> Analysis:
    """Measures everything that is committed of the campaign's present plan."""
    planned = store.plan()
    plan = session.createDataFrame(planned.drop_columns("run"))
    against = session.createDataFrame(rivals(planned, store.manifest().campaign.baseline))
    trace = only_runs(read_traces(session, store.trace), plan)
    has = contents(trace)
    met = pairs(trace, has.languages).persist()
    measured = measure_runs(trace, has=has, met=met).persist()
    long = in_long_form(measured)
    points = summarise_points(plan, long).persist()
    try:
        return Analysis(
            runs=plan.join(measured.select("run_id", *RUN_MEASURES), "run_id").orderBy("point", "seed").toPandas(),
            points=points.toPandas(),
            differences=paired_differences(plan, long, against).toPandas(),
            normalised=normalised(plan, points, against).toPandas(),
            timeline=summarise_timeline(plan, _timeline(trace, met, measured)).toPandas(),
            breakdowns=mean_breakdowns(plan, measured, breakdowns(trace)).toPandas(),
        )
    finally:
        for kept in (points, measured, met):
            kept.unpersist()


def measured_runs(session: SparkSession, store: Store) -> DataFrame:
    """The plan's columns and every measure, one row per run that came to its end."""
    plan = session.createDataFrame(store.plan().drop_columns("run"))
    measured = _measured(only_runs(read_traces(session, store.trace), plan))
    return plan.join(measured.select("run_id", *RUN_MEASURES), "run_id").orderBy("point", "seed")


class Precision:
    """Says for a stopping rule which points are known precisely enough. Each run is measured once."""

    def __init__(self, session: SparkSession, store: Store) -> None:
        self._session = session
        self._store = store
        self._values: dict[str, float | None] = {}

    def __call__(self, stop: Stop, runs: list[str]) -> set[int]:
        plan = self._session.createDataFrame(self._store.plan().drop_columns("run"))
        fresh = [(name,) for name in runs if name not in self._values]
        if fresh:
            wanted = self._session.createDataFrame(fresh, "run_id string")
            measured = _measured(only_runs(read_traces(self._session, self._store.trace), wanted))
            rows = measured.select("run_id", f.col(stop.measure).cast("double").alias("value")).collect()
            found = {row["run_id"]: row["value"] for row in rows}
            self._values |= {name: found.get(name) for (name,) in fresh}
        known = [(name, stop.measure, self._values[name]) for name in runs if self._values[name] is not None]
        long = self._session.createDataFrame(known, "run_id string, measure string, value double")
        summary = summarise_points(plan, long).select("point", "mean", "half_width").collect()
        return {row.point for row in summary if row.half_width is not None and row.half_width <= stop.target(row.mean)}


def _measured(trace: DataFrame) -> DataFrame:
    return measure_runs(trace)


def _timeline(trace: DataFrame, met: DataFrame, measured: DataFrame) -> DataFrame:
    longest = measured.agg(f.max("duration_s")).first()
    bin_s = max(1.0, (longest[0] or 0.0) / TIMELINE_BINS) if longest else 1.0
    arrived = delivery_over_time(met, trace, bin_s)
    sent = frames_over_time(trace, bin_s).groupBy("run_id", "t").agg((f.sum("frames") / bin_s).alias("value"))
    ratios = arrived.select("run_id", "t", f.lit("delivery_ratio").alias("measure"), f.col("ratio").alias("value"))
    return ratios.unionByName(sent.select("run_id", "t", f.lit("frames_per_s").alias("measure"), "value"))
