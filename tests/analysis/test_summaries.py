"""Means, intervals and paired differences, by hand and against scipy."""

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats  # type: ignore[import-untyped]

from roamcast.analysis.intervals import mean_interval
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
def tables(plan: Any) -> Any:
    values = [
        (f"{label}{seed}", "latency_ms_mean", value)
        for label in LATENCY
        for seed, value in enumerate(LATENCY[label], 1)
    ]
    values.append(("b5", "latency_ms_mean", 100.0))
    long = pd.DataFrame(values, columns=["run_id", "measure", "value"])
    return plan.to_pandas(), long, rivals(plan, "a").to_pandas()


def test_a_point_has_the_mean_and_the_interval_of_its_runs(tables: Any) -> None:
    plan, long, _ = tables
    first = summarise_points(plan, long).query("point == 0").iloc[0]
    expected = mean_interval(LATENCY["a"])
    assert (first["n"], first["mean"], first["measure"]) == (4, 11.5, "latency_ms_mean")
    assert (first["low"], first["high"]) == (expected.low, expected.high)


def test_the_interval_of_a_share_stays_between_0_and_1() -> None:
    plan = pd.DataFrame({"run_id": list("abcd"), "point": 0})
    long = pd.DataFrame({"run_id": list("abcd"), "measure": "delivery_ratio", "value": [1.0, 0.9, 1.0, 1.0]})
    row = summarise_points(plan, long).iloc[0]
    assert 0 <= row["low"] < row["mean"] < row["high"] <= 1


def test_one_run_has_a_mean_and_no_interval() -> None:
    plan = pd.DataFrame({"run_id": ["r"], "point": [0]})
    long = pd.DataFrame({"run_id": ["r"], "measure": ["hops_mean"], "value": [3.0]})
    row = summarise_points(plan, long).iloc[0]
    assert (row["n"], row["mean"]) == (1, 3.0)
    assert pd.isna(row["half_width"])
    assert pd.isna(row["low"])


def test_differences_are_paired_by_seed(tables: Any) -> None:
    """5, 4, 5.5, 4: mean 4.625; the fifth seed of b has no partner and does not count."""
    row = paired_differences(*tables).iloc[0]
    differences = [b - a for a, b in zip(LATENCY["a"], LATENCY["b"], strict=True)]
    low, high = stats.t.interval(0.95, 3, pd.Series(differences).mean(), stats.sem(differences))
    assert (row["point"], row["baseline"], row["n"], row["mean"]) == (1, 0, 4, 4.625)
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["p"] == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert row["relative"] == pytest.approx(4.625 / 11.5)
    assert row["significant"]


def test_normalised_to_the_worst_and_to_the_baseline(tables: Any) -> None:
    plan, long, against = tables
    table = normalised(plan, summarise_points(plan, long), against)
    found = {(row.to, row.point): row.mean for row in table.itertuples()}
    mean_b = (sum(LATENCY["b"]) + 100) / 5
    assert found == pytest.approx({("worst", 0): 11.5 / mean_b, ("worst", 1): 1.0, ("baseline", 1): mean_b / 11.5})


def test_a_run_without_the_key_counts_as_zero() -> None:
    plan = pd.DataFrame({"run_id": ["r", "s"], "point": [0, 0]})
    parts = pd.DataFrame([("r", "frames", "Hello", 6.0)], columns=["run_id", "measure", "key", "value"])
    row = mean_breakdowns(plan, ["r", "s"], parts).iloc[0]
    assert (row["key"], row["mean"]) == ("Hello", 3.0)


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
