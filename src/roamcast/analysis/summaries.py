"""From measures per run to statements: means with confidence intervals, and differences between contenders.

Seeds of a point are independent replicates. All contenders of a place meet the same network and workload under the same
seed; their difference is therefore taken seed by seed, and its interval is that of the differences, which is much
narrower than the two means would suggest. `intervals` makes every interval.

Runs that failed are missing from the measures, and a measure that is undefined for a run (the latency of nothing) does
not count; `n` says how many did.

Tables are small here (one row per run and measure), so they are pandas frames. Inputs: `plan` has one row per run
(`run_id`, `point`, `place`, `seed`, ...), `long` has `run_id`, `measure`, `value`.
"""

from collections.abc import Iterable

import pandas as pd
import pyarrow as pa

from roamcast.analysis.intervals import Interval, interval, mean_interval
from roamcast.analysis.student import CONFIDENCE
from roamcast.campaign.plan import SWEEPS
from roamcast.trace.measures import MEASURES

STATISTICS = ("n", "mean", "half_width", "low", "high", "deviation")


def in_long_form(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run and measure; undefined ones are left out."""
    measures = [name for name in MEASURES if name in runs]
    numbers = runs[["run_id", *measures]].drop_duplicates("run_id")
    long = numbers.melt("run_id", measures, "measure", "value").dropna(subset=["value"])
    return long.assign(value=long["value"].astype(float))


def summarise_points(plan: pd.DataFrame, long: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """Per point and measure: how many runs, their mean and its confidence interval."""
    values = plan[["run_id", "point"]].merge(long, on="run_id")
    rows = []
    for (point, measure), group in values.groupby(["point", "measure"], sort=True):
        found = mean_interval(group["value"], most=most_of(str(measure)), confidence=confidence)
        rows.append((point, measure, *_statistics(found, group["value"])))
    return pd.DataFrame(rows, columns=["point", "measure", *STATISTICS])


def paired_differences(
    plan: pd.DataFrame, long: pd.DataFrame, rivals: pd.DataFrame, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Per pair of points in `rivals` (`point`, `baseline`) and measure: the mean of value minus baseline's value.

    `relative` is the mean difference as a share of the baseline's mean over the same seeds. `p` is that of the paired
    t-test, uncorrected; correct for their number (`intervals.holm`) where several are shown together. `significant`
    says whether the interval of this one difference excludes 0.
    """
    values = plan[["run_id", "point", "seed"]].merge(long, on="run_id").drop(columns="run_id")
    theirs = values.rename(columns={"point": "baseline", "value": "baseline_value"})
    both = values.merge(rivals, on="point").merge(theirs, on=["baseline", "seed", "measure"])
    rows = []
    for (point, baseline, measure), group in both.groupby(["point", "baseline", "measure"], sort=True):
        gaps = group["value"] - group["baseline_value"]
        found = interval(gaps, confidence)
        reference = abs(group["baseline_value"].mean())
        relative = found.mean / reference if reference else None
        significant = found.n > 1 and (found.low > 0 or found.high < 0)
        rows.append((point, baseline, measure, *_statistics(found, gaps), relative, found.p, significant))
    return pd.DataFrame(rows, columns=["point", "baseline", "measure", *STATISTICS, "relative", "p", "significant"])


def normalised(plan: pd.DataFrame, summary: pd.DataFrame, rivals: pd.DataFrame) -> pd.DataFrame:
    """Means and intervals as shares of a reference, as the papers' figures show them; `to` names the reference.

    `worst` is the largest mean at the same place, `baseline` the baseline's mean there.
    """
    places = plan[["point", "place"]].drop_duplicates()
    to_worst = summary.merge(places, on="point")
    to_worst["reference"] = to_worst.groupby(["place", "measure"])["mean"].transform("max")
    theirs = summary[["point", "measure", "mean"]].rename(columns={"point": "baseline", "mean": "reference"})
    to_baseline = summary.merge(rivals, on="point").merge(theirs, on=["baseline", "measure"])
    parts = []
    for name, table in (("worst", to_worst), ("baseline", to_baseline)):
        reference = table["reference"].where(table["reference"] != 0)
        shares = {column: table[column].astype(float) / reference for column in ("mean", "low", "high")}
        parts.append(table[["point", "measure"]].assign(to=name, n=table["n"], **shares))
    return pd.concat(parts, ignore_index=True)


def summarise_timeline(plan: pd.DataFrame, timeline: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """Per point, time and measure: the mean over seeds and its confidence interval."""
    values = plan[["run_id", "point"]].merge(timeline, on="run_id")
    rows = []
    for (point, t, measure), group in values.groupby(["point", "t", "measure"], sort=True):
        found = mean_interval(group["value"], most=most_of(str(measure)), confidence=confidence)
        rows.append((point, t, measure, *_statistics(found, group["value"])))
    return pd.DataFrame(rows, columns=["point", "t", "measure", *STATISTICS])


def mean_breakdowns(plan: pd.DataFrame, measured: Iterable[str], parts: pd.DataFrame) -> pd.DataFrame:
    """Per point, measure and key: the mean over the measured runs; a run without the key counts as 0."""
    counted = plan.loc[plan["run_id"].isin(list(measured)), ["run_id", "point"]]
    runs = counted.groupby("point").size().rename("runs")
    sums = counted.merge(parts, on="run_id").groupby(["point", "measure", "key"])["value"].sum().reset_index()
    means = sums["value"] / sums["point"].map(runs)
    return sums.assign(mean=means)[["point", "measure", "key", "mean"]]


def rivals(plan: pa.Table, baseline: str) -> pa.Table:
    """Which points are compared with which of the baseline's: same place, and same value of every shared parameter."""
    settings = [name for name in plan.column_names if name not in ("run_id", "seed", "run", SWEEPS)]
    distinct = {row["point"]: row for row in plan.select(settings).to_pylist()}
    swept = [name for name in settings if name not in ("point", "place", "protocol")]
    found = [
        {"point": mine["point"], "baseline": theirs["point"]}
        for mine in distinct.values()
        for theirs in distinct.values()
        if mine["protocol"] != baseline == theirs["protocol"]
        and mine["place"] == theirs["place"]
        and all(mine[name] == theirs[name] for name in swept if None not in (mine[name], theirs[name]))
    ]
    return pa.Table.from_pylist(found, schema=pa.schema([("point", pa.int32()), ("baseline", pa.int32())]))


def most_of(measure: str) -> float | None:
    """The upper bound of a measure that is a share."""
    return MEASURES[measure].most if measure in MEASURES else None


def _statistics(found: Interval, values: "pd.Series[float]") -> tuple[object, ...]:
    """As in `STATISTICS`; one run alone has a mean and no interval."""
    if found.n < 2:
        return found.n, found.mean, None, None, None, None
    return found.n, found.mean, found.half_width, found.low, found.high, float(values.std())
