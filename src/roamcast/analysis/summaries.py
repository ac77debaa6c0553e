"""From measures per run to statements: means with 95 % confidence intervals, and differences between contenders.

Seeds of a point are independent replicates, so the interval of a mean is Student's: mean ± t(n - 1) · s / sqrt(n). All
contenders of a place meet the same network and workload under the same seed; their difference is therefore taken seed
by seed, and its interval is that of the differences, which is much narrower than the two means would suggest.

Runs that failed are missing from the measures, and a measure that is undefined for a run (the latency of nothing) does
not count; `n` says how many did.
"""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from roamcast.analysis.student import quantile
from roamcast.analysis.traces import RUN, ratio
from roamcast.campaign.plan import SWEEPS
from roamcast.trace.measures import RUN_MEASURES

TABLE_DEGREES = 200
NORMAL = 1.959963984540054
_EXPANSION = (  # Abramowitz and Stegun 26.7.5; past 200 degrees of freedom right to nine digits
    (NORMAL**3 + NORMAL) / 4,
    (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / 96,
    (3 * NORMAL**7 + 19 * NORMAL**5 + 17 * NORMAL**3 - 15 * NORMAL) / 384,
)

STATISTICS = ("n", "mean", "half_width", "low", "high", "deviation")


def in_long_form(measured: DataFrame) -> DataFrame:
    """One row per run and measure; undefined ones are left out."""
    numbers = [f.col(name).cast("double").alias(name) for name in RUN_MEASURES]
    long = measured.select(RUN, *numbers).unpivot(RUN, list(RUN_MEASURES), "measure", "value")
    return long.where(f.col("value").isNotNull()).select(RUN, "measure", "value")


def summarise_points(plan: DataFrame, long: DataFrame) -> DataFrame:
    """Per point and measure: how many runs, their mean and its confidence interval."""
    values = plan.select(RUN, "point").join(long, RUN)
    return _with_interval(values, "point", "measure").select("point", "measure", *STATISTICS)


def paired_differences(plan: DataFrame, long: DataFrame, rivals: DataFrame) -> DataFrame:
    """Per pair of points in `rivals` (`point`, `baseline`) and measure: the mean of value minus baseline's value.

    `relative` is the mean difference as a share of the baseline's mean over the same seeds.
    """
    values = plan.select(RUN, "point", "seed").join(long, RUN).select("point", "seed", "measure", "value")
    theirs = values.select(f.col("point").alias("baseline"), "seed", "measure", f.col("value").alias("baseline_value"))
    both = values.join(f.broadcast(rivals), "point").join(theirs, ["baseline", "seed", "measure"])
    differences = both.withColumn("value", f.col("value") - f.col("baseline_value"))
    keys = ("point", "baseline", "measure")
    reference = differences.groupBy(*keys).agg(f.avg("baseline_value").alias("reference"))
    return (
        _with_interval(differences, *keys)
        .join(reference, list(keys))
        .withColumn("relative", ratio(f.col("mean"), f.abs("reference")))
        .withColumn("significant", (f.col("low") > 0) | (f.col("high") < 0))
        .select(*keys, *STATISTICS, "relative", "significant")
    )


def normalised(plan: DataFrame, summary: DataFrame, rivals: DataFrame) -> DataFrame:
    """Means and intervals as shares of a reference, as the papers' figures show them; `to` names the reference.

    `worst` is the largest mean at the same place, `baseline` the baseline's mean there.
    """
    places = plan.select("point", "place").distinct()
    largest = f.max("mean").over(Window.partitionBy("place", "measure"))
    to_worst = summary.join(f.broadcast(places), "point").withColumn("reference", largest)
    theirs = summary.select(f.col("point").alias("baseline"), "measure", f.col("mean").alias("reference"))
    to_baseline = summary.join(f.broadcast(rivals), "point").join(theirs, ["baseline", "measure"])
    shares = [ratio(f.col(name), f.col("reference")).alias(name) for name in ("mean", "low", "high")]
    return to_worst.select("point", "measure", f.lit("worst").alias("to"), "n", *shares).unionByName(
        to_baseline.select("point", "measure", f.lit("baseline").alias("to"), "n", *shares)
    )


def summarise_timeline(plan: DataFrame, timeline: DataFrame) -> DataFrame:
    """Per point, time and measure: the mean over seeds and its confidence interval."""
    values = plan.select(RUN, "point").join(timeline, RUN)
    return _with_interval(values, "point", "t", "measure").select("point", "t", "measure", *STATISTICS)


def mean_breakdowns(plan: DataFrame, measured: DataFrame, parts: DataFrame) -> DataFrame:
    """Per point, measure and key: the mean per run; a run without the key counts as 0."""
    counted = plan.select(RUN, "point").join(measured.select(RUN), RUN)
    runs = counted.groupBy("point").agg(f.count(f.lit(1)).alias("runs"))
    sums = counted.join(parts, RUN).groupBy("point", "measure", "key").agg(f.sum("value").alias("sum"))
    return sums.join(f.broadcast(runs), "point").select(
        "point", "measure", "key", (f.col("sum") / f.col("runs")).alias("mean")
    )


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


def _with_interval(values: DataFrame, *keys: str) -> DataFrame:
    sums = values.groupBy(*keys).agg(
        f.count("value").alias("n"), f.avg("value").alias("mean"), f.stddev_samp("value").alias("deviation")
    )
    half_width = f.col("quantile") * f.col("deviation") / f.sqrt("n")
    return (
        sums.withColumn("quantile", _quantile_of(f.col("n") - 1))
        .withColumn("half_width", f.when(f.col("n") > 1, half_width))
        .withColumn("low", f.col("mean") - f.col("half_width"))
        .withColumn("high", f.col("mean") + f.col("half_width"))
    )


def _quantile_of(degrees: Column) -> Column:
    """Student's quantile: from a table up to `TABLE_DEGREES`, above from its expansion around the normal one."""
    table = f.array(*(f.lit(quantile(df)) for df in range(1, TABLE_DEGREES + 1)))
    beyond = f.lit(NORMAL) + sum(f.lit(c) / f.pow(degrees, f.lit(power)) for power, c in enumerate(_EXPANSION, 1))
    return f.when(degrees <= TABLE_DEGREES, f.get(table, (degrees - 1).cast("int"))).otherwise(beyond)
