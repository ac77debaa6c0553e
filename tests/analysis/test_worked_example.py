"""The example that the documentation points to runs as it stands."""

import runpy
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision
from roamcast.campaign.conduct import Conductor

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


def test_it_answers_its_questions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(file, tmp_path / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(tmp_path / "out")])
    runpy.run_path(str(EXAMPLE))
    said = capfd.readouterr().out
    for heading in ("latency_ms_p99", "hops", "airtime_s", "avg(delivery_ratio)"):
        assert heading in said
    assert said.count("gossip") >= 5
