"""Means, intervals and paired differences, by hand and against scipy."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from scipy import stats  # type: ignore[import-untyped]

from roamcast.analysis.summaries import (
    mean_breakdowns,
    normalised,
    paired_differences,
    rivals,
    summarise_points,
)

LATENCY = {"a": [10.0, 12.0, 11.0, 13.0], "b": [15.0, 16.0, 16.5, 17.0]}


@pytest.fixture(scope="module")
def plan() -> Any:
    rows = [
        {
            "run_id": f"{label}{seed}",
            "place": 0,
            "point": point,
            "protocol": label,
            "seed": seed,
            "run": "",
            "speed": None,
        }
        for point, label in enumerate(LATENCY)
        for seed in range(1, 5)
    ]
    rows.append({**rows[-1], "run_id": "b5", "seed": 5})  # a seed without its partner
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, plan: Any) -> Any:
    values = [
        (f"{label}{seed}", "latency_ms_mean", value)
        for label in LATENCY
        for seed, value in enumerate(LATENCY[label], 1)
    ]
    values.append(("b5", "latency_ms_mean", 100.0))
    long = spark.createDataFrame(values, "run_id string, measure string, value double")
    against = spark.createDataFrame(rivals(plan, "a"))
    return spark.createDataFrame(plan.drop_columns(["run", "speed"])), long, against


def test_mean_and_interval_by_hand(tables: Any) -> None:
    """10, 12, 11, 13: mean 11.5, s = 1.291, t(3) = 3.1824, so the half-width is 2.054."""
    plan, long, _ = tables
    first = summarise_points(plan, long).where("point = 0").collect()[0]
    assert (first.n, first.mean) == (4, 11.5)
    assert first.half_width == pytest.approx(2.0543, abs=1e-4)
    assert (first.low, first.high) == pytest.approx((11.5 - 2.0543, 11.5 + 2.0543), abs=1e-4)


def test_intervals_agree_with_scipy_for_few_and_many_runs(spark: SparkSession) -> None:
    import numpy as np

    counts = (2, 3, 20, 201, 202, 600)
    random = np.random.default_rng(1)
    samples = {count: random.normal(5, 2, count) for count in counts}
    names = [(f"{count}-{place}", count, value) for count in counts for place, value in enumerate(samples[count])]
    plan = spark.createDataFrame([(name, count) for name, count, _ in names], "run_id string, point int")
    long = spark.createDataFrame(
        [(name, "m", float(value)) for name, _, value in names], "run_id string, measure string, value double"
    )
    for row in summarise_points(plan, long).collect():
        low, high = stats.t.interval(0.95, row.n - 1, samples[row.point].mean(), stats.sem(samples[row.point]))
        assert (row.low, row.high) == pytest.approx((low, high), rel=1e-8)


def test_one_run_has_a_mean_and_no_interval(spark: SparkSession) -> None:
    plan = spark.createDataFrame([("r", 0)], "run_id string, point int")
    long = spark.createDataFrame([("r", "m", 3.0)], "run_id string, measure string, value double")
    row = summarise_points(plan, long).collect()[0]
    assert (row.n, row.mean, row.half_width, row.low) == (1, 3.0, None, None)


def test_differences_are_paired_by_seed(tables: Any) -> None:
    """5, 4, 5.5, 4: mean 4.625; the fifth seed of b has no partner and does not count."""
    row = paired_differences(*tables).collect()[0]
    differences = [b - a for a, b in zip(LATENCY["a"], LATENCY["b"], strict=True)]
    low, high = stats.t.interval(0.95, 3, pd.Series(differences).mean(), stats.sem(differences))
    assert (row.point, row.baseline, row.n, row.mean) == (1, 0, 4, 4.625)
    assert (row.low, row.high) == pytest.approx((low, high))
    assert row.relative == pytest.approx(4.625 / 11.5)
    assert row.significant


def test_normalised_to_the_worst_and_to_the_baseline(tables: Any) -> None:
    plan, long, against = tables
    found = {(row.to, row.point): row.mean for row in normalised(plan, summarise_points(plan, long), against).collect()}
    mean_b = (sum(LATENCY["b"]) + 100) / 5
    assert found == pytest.approx({("worst", 0): 11.5 / mean_b, ("worst", 1): 1.0, ("baseline", 1): mean_b / 11.5})


def test_a_run_without_the_key_counts_as_zero(spark: SparkSession) -> None:
    plan = spark.createDataFrame([("r", 0), ("s", 0)], "run_id string, point int")
    parts = spark.createDataFrame(
        [("r", "frames", "Hello", 6.0)], "run_id string, measure string, key string, value double"
    )
    row = mean_breakdowns(plan, plan.select("run_id"), parts).collect()[0]
    assert (row.key, row.mean) == ("Hello", 3.0)


def test_rivals_share_place_and_parameters() -> None:
    columns = {"run_id": "", "seed": 1, "run": ""}
    plan = pa.Table.from_pylist(
        [
            columns | {"point": 0, "place": 0, "protocol": "base", "jitter": "1", "p": None},
            columns | {"point": 1, "place": 0, "protocol": "base", "jitter": "2", "p": None},
            columns | {"point": 2, "place": 0, "protocol": "rival", "jitter": "2", "p": "0.5"},
            columns | {"point": 3, "place": 1, "protocol": "rival", "jitter": "1", "p": "0.5"},
            columns | {"point": 4, "place": 0, "protocol": "third", "jitter": None, "p": None},
        ]
    )
    assert [(row["point"], row["baseline"]) for row in rivals(plan, "base").to_pylist()] == [(2, 1), (4, 0), (4, 1)]
