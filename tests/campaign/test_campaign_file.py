"""Campaign files: what they mean, and what is said about wrong ones."""

from pathlib import Path

import pytest

from roamcast.campaign.conduct import Conductor
from roamcast.campaign.file import load_campaign
from roamcast.campaign.plan import plan_table, points, replicates
from roamcast.errors import ConfigurationError
from roamcast.world.scenario import Run, run_id

SMALLEST = 'protocols = ["flooding"]\nseeds = 3\n'


def written(directory: Path, text: str) -> Path:
    path = directory / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_smallest_file_is_the_default_scenario(tmp_path: Path) -> None:
    campaign = load_campaign(written(tmp_path, SMALLEST))
    [point] = points(campaign)
    assert point.template == Run()
    assert campaign.seeds == (1, 2, 3)
    plan = plan_table(campaign, replicates([point], campaign.seeds))
    assert plan["run_id"].to_pylist() == [run_id(Run(seed=seed)) for seed in (1, 2, 3)]


def test_every_combination_is_a_point_and_scenarios_are_places(tmp_path: Path) -> None:
    text = """
protocols = ["flooding", { name = "gossip", label = "g", probability = 0.5 }]
seeds = [7, 9]
[scenario]
duration_s = 30
[grid]
scenario.mobility.speed_max_mps = [1, 10]
gossip.certain_hops = [1, 2, 3]
size = [
    { scenario.nodes = 10, scenario.area_m = 300 },
    { scenario.nodes = 20, scenario.area_m = [400, 500] },
]
"""
    campaign = load_campaign(written(tmp_path, text))
    found = points(campaign)
    assert len(found) == 4 + 4 * 3  # flooding has no certain_hops: its runs are not multiplied
    assert len({point.place for point in found}) == 4
    last = found[-1]
    assert last.template.scenario.area_m == (400, 500)
    assert last.template.scenario.nodes == 20
    assert last.template.parameters == {"certain_hops": 3, "probability": 0.5}
    plan = plan_table(campaign, replicates(found, campaign.seeds)).to_pylist()
    assert len({row["run_id"] for row in plan}) == len(plan) == 32
    assert {row["certain_hops"] for row in plan if row["protocol"] == "flooding"} == {None}
    assert {row["nodes"] for row in plan} == {"10", "20"}
    assert {row["seed"] for row in plan} == {7, 9}


def test_a_parameter_of_everybody_reaches_everybody_who_has_it(tmp_path: Path) -> None:
    text = 'protocols = ["flooding", "gossip"]\nseeds = 1\n[grid]\nparameters.jitter_s = [0, 0.5]\n'
    campaign = load_campaign(written(tmp_path, text))
    assert [point.template.parameters for point in points(campaign)] == [
        {"jitter_s": 0.0},
        {"jitter_s": 0.0},
        {"jitter_s": 0.5},
        {"jitter_s": 0.5},
    ]


def test_the_same_run_written_in_two_ways_has_one_name(tmp_path: Path) -> None:
    names = []
    for value in ("1", "1.0"):
        text = (
            f'protocols = [{{ name = "gossip", probability = {value} }}]\nseeds = 1\n[scenario]\nduration_s = {value}\n'
        )
        campaign = load_campaign(written(tmp_path, text))
        names.append(plan_table(campaign, replicates(points(campaign), [1]))["run_id"].to_pylist())
    assert names[0] == names[1]


def test_files_that_a_scenario_names_are_found_beside_the_campaign_file(tmp_path: Path) -> None:
    (tmp_path / "hall.txt").write_text("0 0\n100 0\n200 0\n", encoding="utf-8")
    text = SMALLEST + '[scenario.mobility]\npositions_file = "hall.txt"\n'
    [point] = points(load_campaign(written(tmp_path, text)))
    assert point.template.scenario.mobility.positions_m == ((0, 0), (100, 0), (200, 0))


WRONG = {
    'protocols = ["flooding"\n': ["TOML"],
    "seeds = 3\n": ["protocols", "missing"],
    SMALLEST + "colour = 3\n": ["colour", "allowed", "scenario"],
    "protocols = []\nseeds = 1\n": ["protocols", "[]", "at least one"],
    'protocols = ["flodding"]\nseeds = 1\n': ["flodding", "flooding"],
    'protocols = [{ name = "gossip", probabilty = 1 }]\nseeds = 1\n': ["probabilty", "probability"],
    'protocols = [{ name = "gossip", probability = 2 }]\nseeds = 1\n': ["probability", "2", "between 0 and 1"],
    'protocols = ["gossip", "gossip"]\nseeds = 1\n': ["protocols", "label"],
    'protocols = ["flooding"]\n': ["seeds", "stop", "neither"],
    SMALLEST + '[stop]\nmeasure = "delivery_ratio"\nhalf_width = 1\n': ["seeds", "stop", "both"],
    'protocols = ["flooding"]\nseeds = 0\n': ["seeds", "0", "between 1"],
    'protocols = ["flooding"]\nseeds = [1, 1]\n': ["seeds", "[1, 1]", "each once"],
    'protocols = ["flooding"]\nseeds = "x"\n': ["seeds", "'x'"],
    SMALLEST + 'baseline = "gossip"\n': ["baseline", "gossip", "flooding"],
    SMALLEST + 'measures = ["speed"]\n': ["measures", "speed", "delivery_ratio"],
    SMALLEST + "[scenario]\nnodes = -1\n": ["nodes", "-1", "between 1"],
    SMALLEST + "[scenario.radio]\nmodel = 'wifi'\n": ["scenario.radio.model", "wifi", "ideal"],
    SMALLEST + "[grid]\nscenario.nods = [1]\n": ["nods", "nodes"],
    SMALLEST + "[grid]\nscenario.nodes = [0]\n": ["nodes", "0", "between 1"],
    SMALLEST + "[grid]\nscenario.nodes = []\n": ["grid.scenario.nodes", "[]", "at least one"],
    SMALLEST + "[grid]\nscenario.nodes = 5\n": ["grid.scenario.nodes", "5", "list"],
    SMALLEST + "[grid]\nscenario.nodes = [5, 5]\n": ["grid.scenario.nodes", "5", "once"],
    SMALLEST + "[grid]\nweather = [1]\n": ["grid.weather", "scenario"],
    SMALLEST + "[grid]\ngossip.probability = [1]\n": ["grid.gossip.probability", "flooding"],
    SMALLEST + "[grid]\nflooding.speed = [1]\n": ["grid.flooding.speed", "jitter_s"],
    SMALLEST + "[grid]\na = [{ scenario.nodes = 5 }, { scenario.area_m = 3 }]\n": ["grid.a", "scenario.nodes"],
    'protocols = ["flooding"]\n[stop]\nmeasure = "x"\nhalf_width = 1\n': ["stop.measure", "'x'", "delivery_ratio"],
    'protocols = ["flooding"]\n[stop]\nmeasure = "expected"\n': ["half_width", "relative"],
    'protocols = ["flooding"]\n[stop]\nmeasure = "expected"\nrelative = 0\n': ["relative", "0", "above 0"],
    'protocols = ["flooding"]\n[stop]\nmeasure = "expected"\nrelative = 1\nbatch = 0\n': ["batch", "0", "at least 1"],
    'protocols = ["flooding"]\n[stop]\nmeasure = "expected"\nrelative = 1\ncap = 1\n': ["cap", "1", "between 2 and"],
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text.splitlines()[-1])
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Conductor(written(tmp_path, text), tmp_path / "out", master="local[*]")
    line = str(refused.value)
    assert "\n" not in line
    assert "campaign.toml" in line
    assert [word for word in WRONG[text] if word in line] == WRONG[text], line
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml.*cannot be read"):
        load_campaign(tmp_path / "none.toml")
