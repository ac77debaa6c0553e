"""A campaign from Python."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import roamcast
from roamcast.campaign.conduct import Progress

FILE = """
protocols = ["flooding", "gossip"]
seeds = 3
[scenario]
nodes = 10
area_m = 300
duration_s = 15
"""


def test_a_campaign_returns_what_it_measured_and_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(FILE)
    told: list[Progress] = []
    result = roamcast.run_campaign(file, tmp_path / "out", on_progress=told.append)
    assert len(result.runs) == 6
    assert set(result.runs["protocol"]) == {"flooding", "gossip"}
    assert result.failed == []
    assert result.report is not None
    assert Path(result.report).is_file()
    assert told[-1].done == told[-1].planned == 6
    delivery = result.points[result.points["measure"] == "delivery_ratio"]
    assert list(delivery["n"]) == [3, 3]
    again = roamcast.run_campaign(file, tmp_path / "out", report=False)
    assert again.report is None
    assert again.runs.equals(result.runs)


def test_a_wrong_file_is_refused_before_spark_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text("protocols = []\nwheels = 4\n")
    with pytest.raises(roamcast.ConfigurationError, match="wheels"):
        roamcast.run_campaign(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()
