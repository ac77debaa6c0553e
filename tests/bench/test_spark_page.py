"""The page of what Spark costs: goals are judged by the measurements, and it says when the machine was busy."""

from pathlib import Path

import msgspec
import pytest

from roamcast.bench.processes import Machine
from roamcast.bench.spark_cluster import Utilisation
from roamcast.bench.spark_measures import SparkMeasurement
from roamcast.bench.spark_overhead import Overhead
from roamcast.bench.spark_page import SparkBench, goals, store


def measured(deliveries: int, spark_s: float, duckdb_s: float) -> SparkMeasurement:
    return SparkMeasurement(deliveries, spark_s, 1.0, None, duckdb_s, 1.0, spark_s / duckdb_s, 1.5, 0.2)


BENCH = SparkBench(
    Machine("Abacus 9", 2, 16.0, "Linux x86_64", "CPython 3.11.7", "2020-02-02", 0.25),
    "compiled",
    Overhead(200, 0.2, 20.0, 21.0, 1.05, 1.1),
    Utilisation(32, 960, 1.0, 9.0, 4.0, 32.0, 0.94),
    (measured(2_000_000, 2.0, 1.0), measured(5_000_000, 6.0, 1.5), measured(20_000_000, 20.0, 8.0)),
)


def test_goals_are_judged_by_the_measurements() -> None:
    assert [goal.verdict for goal in goals(BENCH)] == ["held", "held", "not held", "held", "held", "held"]
    steep = msgspec.structs.replace(BENCH, cluster=None, measures=(BENCH.measures[0], measured(40_000_000, 60.0, 30.0)))
    assert [goal.verdict for goal in goals(steep)] == ["held", *["not measured"] * 3, "not held", "held"]


@pytest.mark.parametrize("load", [0.25, 8.0])
def test_the_page_says_when_the_machine_was_busy(tmp_path: Path, load: float) -> None:
    machine = msgspec.structs.replace(BENCH.machine, load_average=load)
    page = store(tmp_path, msgspec.structs.replace(BENCH, machine=machine)).read_text(encoding="utf-8")
    assert ("busy with other work" in page) == (load > 0.5)
    assert "| 20,000,000 | 20.0 | 1.0 | 8.0 | 1.0 | 2.5 | 1.5 | 0.20 |" in page
    assert "5 M deliveries | at most 3 times | 4 times | **not held** |" in page
