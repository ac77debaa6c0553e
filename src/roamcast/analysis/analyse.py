"""The analysis of a whole campaign, from its directory to small tables that a report or a notebook can hold.

The steps live in their own modules; here they are put in order. Measures per run were stored when the runs were
simulated (`stored`), so what is left is arithmetic over a few numbers per run. Spark is needed only for runs without
stored measures and for measures that compare several runs (`places`).
"""

from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.intervals import look_confidence, mean_interval
from roamcast.analysis.places import place_measures
from roamcast.analysis.stored import Spark, measure_table, wide
from roamcast.analysis.student import CONFIDENCE
from roamcast.analysis.summaries import (
    in_long_form,
    mean_breakdowns,
    most_of,
    normalised,
    paired_differences,
    rivals,
    summarise_points,
    summarise_timeline,
)
from roamcast.campaign.file import Campaign, Stop
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError
from roamcast.trace.measures import BREAKDOWNS, MEASURES, RUN_MEASURES

TIMELINE_BINS = 40


class Analysis(NamedTuple):
    """What is said about a campaign. Every table but the first is small; `point` is that of the plan."""

    runs: pd.DataFrame  # one row a run: its place in the plan, the swept settings and every measure
    points: pd.DataFrame  # per point and measure: n, mean, confidence interval
    differences: pd.DataFrame  # the same of the paired differences to the baseline
    normalised: pd.DataFrame  # means as shares of the largest at the same place, and of the baseline's
    timeline: pd.DataFrame  # per point, bin of time and measure: mean and confidence interval
    breakdowns: pd.DataFrame  # per point, measure and key (message, category, reason): mean per run


def analyse(spark: Spark, store: Store) -> Analysis:
    """Everything about the committed runs of the campaign's present plan. `spark` may start a session when needed."""
    planned = store.plan().drop_columns("run")
    campaign = store.manifest().campaign
    plan = planned.to_pandas()
    rows = measure_table(spark, store, plan["run_id"])
    if not rows.num_rows:
        raise ConfigurationError(
            f"directory: no run of {str(store.directory)!r} has come to its end; to simulate them: "
            f"{store.manifest().command}"
        )
    numbers = wide(rows)
    runs = _ordered(plan.merge(numbers.drop(columns=["nodes", "duration_s"]), on="run_id"))
    runs = runs.merge(place_measures(spark, store, runs), on="run_id", how="left")[[*plan.columns, *MEASURES]]
    long = in_long_form(runs)
    against = rivals(planned, campaign.baseline).to_pandas()
    level = confidence_of(campaign)
    points = summarise_points(plan, long, level)
    return Analysis(
        runs=runs,
        points=points,
        differences=paired_differences(plan, long, against, level),
        normalised=normalised(plan, points, against),
        timeline=summarise_timeline(plan, _timeline(rows, float(numbers["duration_s"].max())), level),
        breakdowns=mean_breakdowns(plan, numbers["run_id"], _breakdowns(rows)),
    )


def measured_runs(spark: Spark, store: Store) -> pd.DataFrame:
    """The plan's columns and every measure of a run by itself, one row per run that came to its end."""
    plan = store.plan().drop_columns("run").to_pandas()
    numbers = wide(measure_table(spark, store, plan["run_id"]))
    return _ordered(plan.merge(numbers[["run_id", *RUN_MEASURES]], on="run_id"))


def confidence_of(campaign: Campaign) -> float:
    """The level of a campaign's intervals: 95 %, or what each of the looks of its stopping rule needs for that."""
    return CONFIDENCE if campaign.stop is None else look_confidence(campaign.stop.looks)


class Precision:
    """Says for a stopping rule which points are known precisely enough. Each run is read once."""

    def __init__(self, spark: Spark, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._values: dict[str, float | None] = {}

    def __call__(self, stop: Stop, runs: list[str]) -> set[int]:
        fresh = [name for name in runs if name not in self._values]
        if fresh:
            numbers = wide(measure_table(self._spark, self._store, fresh)).set_index("run_id")[stop.measure].dropna()
            found = {str(name): float(value) for name, value in numbers.items()}
            self._values |= {name: found.get(name) for name in fresh}
        plan = self._store.plan()
        points: dict[int, list[float]] = {}
        for name, point in zip(plan["run_id"].to_pylist(), plan["point"].to_pylist(), strict=True):
            value = self._values.get(str(name))
            if value is not None and point is not None:
                points.setdefault(int(point), []).append(value)
        return {point for point, values in points.items() if is_precise(stop, values)}


def is_precise(stop: Stop, values: list[float]) -> bool:
    """Whether a point may stop: it has enough seeds, its values differ, and its interval is as narrow as requested."""
    if len(values) < stop.least or (min(values) == max(values) and most_of(stop.measure) is None):
        return False
    found = mean_interval(values, most=most_of(stop.measure), confidence=look_confidence(stop.looks))
    return found.half_width <= stop.target(found.mean)


def _ordered(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.sort_values(["point", "seed"], kind="stable", ignore_index=True)


def _breakdowns(rows: pa.Table) -> pd.DataFrame:
    parts = rows.filter(pc.is_in(rows["detail"], value_set=pa.array(list(BREAKDOWNS)))).to_pandas()
    return parts.rename(columns={"detail": "measure", "category": "key"})[["run_id", "measure", "key", "value"]]


def _timeline(rows: pa.Table, longest_s: float) -> pd.DataFrame:
    """Per run, bin and measure: the delivery ratio by time of publication, and frames per second."""
    bin_s = float(max(1, -(-longest_s // TIMELINE_BINS))) if longest_s == longest_s else 1.0
    names = ["expected_at", "delivered_at", "frames_at"]
    seconds = rows.filter(pc.is_in(rows["detail"], value_set=pa.array(names))).to_pandas()
    seconds["t"] = seconds["t"] // bin_s * bin_s
    binned = seconds.pivot_table(index=["run_id", "t"], columns="detail", values="value", aggfunc="sum")
    binned = binned.reindex(columns=names)
    ratios = (binned["delivered_at"].fillna(0) / binned["expected_at"]).dropna()
    sent = (binned["frames_at"] / bin_s).dropna()
    parts = [ratios.rename("value").reset_index().assign(measure="delivery_ratio")]
    parts.append(sent.rename("value").reset_index().assign(measure="frames_per_s"))
    return pd.concat(parts, ignore_index=True)
