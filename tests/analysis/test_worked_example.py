"""The example that the documentation points to runs as it stands, and its numbers are those of the simulator."""

import runpy
import sys
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.plan import decode_run
from roamcast.trace.summary import summarise
from roamcast.world.simulator import simulate

EXAMPLE = Path(__file__).parents[2] / "examples" / "traces_in_spark.py"
CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 1
[scenario]
area_m = 400
duration_s = 15
workload.selectivity = 0.8
[grid]
scenario.nodes = [10, 20]
"""


@pytest.mark.slow("runs the example as a user would, with a campaign")
def test_it_answers_its_questions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(file, tmp_path / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(tmp_path / "out")])
    found = runpy.run_path(str(EXAMPLE))
    runs = [
        row | {"trace": simulate(decode_run(row["run"])).recorder.table()} for row in conductor.store.plan().to_pylist()
    ]
    rows = [event | {"protocol": run["protocol"]} for run in runs for event in run["trace"].to_pylist()]
    assert len(runs) == 4

    kinds = {row["kind"]: row["count"] for row in found["kinds"].collect()}
    assert {kind: kinds[kind] for kind in ("published", "delivered", "end")} == {
        kind: sum(row["kind"] == kind for row in rows) for kind in ("published", "delivered", "end")
    }
    _check_latencies(found["latencies"].collect(), runs)
    deliveries = [row for row in rows if row["kind"] == "delivered"]
    by_hops = Counter((row["protocol"], row["hops"]) for row in deliveries)
    assert {(row["protocol"], row["hops"]): row["deliveries"] for row in found["by_hops"].collect()} == {
        key: count for key, count in by_hops.items() if count > 20
    }
    _check_loads(found["loads"].collect(), rows)
    _check_ratios(found["ratios"].collect(), runs)
    assert capfd.readouterr().out.count("gossip") >= 5  # and it shows them


def _check_latencies(found: list[Any], runs: list[dict[str, Any]]) -> None:
    assert [(row["nodes"], row["protocol"]) for row in found] == [
        (nodes, protocol) for nodes in ("10", "20") for protocol in ("flooding", "gossip")
    ]
    for row in found:
        [run] = [run for run in runs if (run["nodes"], run["protocol"]) == (row["nodes"], row["protocol"])]
        latencies = [event["value"] for event in run["trace"].to_pylist() if event["kind"] == "delivered"]
        assert row["deliveries"] == len(latencies) > 0
        assert row["latency_ms"] == pytest.approx(1000 * mean(latencies), abs=0.01)
        assert row["latency_ms_p99"] == pytest.approx(1000 * np.percentile(latencies, 99), abs=0.01)


def _check_loads(found: list[Any], rows: list[dict[str, Any]]) -> None:
    loads: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row["kind"] == "load":
            sums = loads.setdefault((row["protocol"], row["node"]), [])
            sums.append(row["value"])
    assert len(found) == 10
    for row in found:
        assert row["airtime_s"] == pytest.approx(mean(loads[row["protocol"], row["node"]]), abs=0.001)
    assert found[0]["airtime_s"] == pytest.approx(max(map(mean, loads.values())), abs=0.001)


def _check_ratios(found: list[Any], runs: list[dict[str, Any]]) -> None:
    assert [row["protocol"] for row in found] == ["flooding", "gossip"]
    for row in found:
        summaries = [summarise(run["trace"]) for run in runs if run["protocol"] == row["protocol"]]
        for measure in ("delivery_ratio", "stretch_mean"):
            assert row[f"avg({measure})"] == pytest.approx(mean(summary[measure] for summary in summaries))
