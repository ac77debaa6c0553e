"""Campaigns of several grids: their points are united."""

from pathlib import Path

import pytest

from roamcast.analysis.summaries import rivals
from roamcast.campaign.file import Campaign, load_campaign
from roamcast.campaign.plan import Point, plan_table, points, replicates
from roamcast.errors import ConfigurationError

STAR = """
protocols = ["flooding", "gossip"]
seeds = 2
[scenario]
nodes = 50
area_m = 1000
[[grid]]
size = [{ scenario.nodes = 25, scenario.area_m = 707 }, { scenario.nodes = 50, scenario.area_m = 1000 }]
[[grid]]
scenario.mobility.speed_max_mps = [1, 10]
[[grid]]
gossip.probability = [0.5, 0.7]
"""


@pytest.fixture
def star(tmp_path: Path) -> Campaign:
    return loaded(tmp_path, STAR)


def loaded(directory: Path, text: str) -> Campaign:
    path = directory / "star.toml"
    path.write_text(text, encoding="utf-8")
    return load_campaign(path)


def of(campaign: Campaign, label: str) -> list[Point]:
    return [point for point in points(campaign) if point.label == label]


def test_a_point_that_several_grids_share_is_there_once(star: Campaign) -> None:
    """10 m/s and a probability of 0.7 are the defaults: written out or not, that is the base point."""
    assert [point.settings for point in of(star, "flooding")] == [
        {"nodes": "25", "area_m": "707", "speed_max_mps": "10"},
        {"nodes": "50", "area_m": "1000", "speed_max_mps": "10"},
        {"nodes": "50", "area_m": "1000", "speed_max_mps": "1"},
    ]
    assert [point.settings["probability"] for point in of(star, "gossip")] == ["0.7", "0.7", "0.7", "0.5"]
    assert [point.sweeps for point in of(star, "gossip")] == [(0,), (0, 1, 2), (1,), (2,)]
    assert [point.sweeps for point in of(star, "flooding")] == [(0,), (0, 1, 2), (1,)]


def test_all_contenders_of_a_place_are_compared(star: Campaign) -> None:
    plan = plan_table(star, replicates(points(star), star.seeds))
    assert set(plan["sweeps"].to_pylist()) == {"0", "0 1 2", "1", "2"}
    assert len(set(plan["run_id"].to_pylist())) == 2 * 7
    pairs = rivals(plan, "flooding").to_pylist()
    assert len(pairs) == 4  # gossip's four points, each with flooding at its place


def test_a_single_grid_has_no_column_for_it(tmp_path: Path) -> None:
    campaign = loaded(tmp_path, 'protocols = ["flooding"]\nseeds = 1\n[grid]\nscenario.nodes = [5, 6]\n')
    assert "sweeps" not in plan_table(campaign, replicates(points(campaign), (1,))).column_names


def test_a_wrong_grid_among_several_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"star\.toml: grid\.gossip\.luck: is not a parameter"):
        loaded(tmp_path, STAR.replace("gossip.probability", "gossip.luck"))
