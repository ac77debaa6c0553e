"""The campaign files of the arena: every protocol runs at every place, or the file says why it is left out."""

from pathlib import Path

import msgspec
import pytest

from roamcast.campaign.file import load_campaign
from roamcast.campaign.plan import Point, points
from roamcast.errors import ConfigurationError
from roamcast.world.scenario import Run
from roamcast.world.simulator import simulate

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
HARD = points(load_campaign(CAMPAIGNS / "arena-hard.toml"))
LAST = {point.sweeps[-1]: point.place for point in HARD}  # sweep -> its last place


def shortened(run: Run) -> Run:
    """A few nodes, a few seconds, and events at once."""
    replace = msgspec.structs.replace
    scenario = run.scenario
    few = scenario.nodes if scenario.mobility.paths else min(scenario.nodes, 10)
    workload = replace(scenario.workload, publishers=2, rate_per_s=1.0, start_s=1.0, tail_s=0.0)
    faults = replace(scenario.faults, split_s=min(scenario.faults.split_s, 1.0))
    small = replace(scenario, nodes=few, area_m=(400.0, 400.0), duration_s=3.0, workload=workload, faults=faults)
    return replace(run, scenario=small)


@pytest.mark.parametrize("sweep", sorted(LAST))
def test_every_contender_runs_at_the_end_of_every_sweep(sweep: int) -> None:
    here = [point for point in HARD if point.place == LAST[sweep]]
    for point in here:
        result = simulate(shortened(point.run(1)))
        assert result.events > 0, point.label


def test_only_the_excluded_are_missing() -> None:
    campaign = load_campaign(CAMPAIGNS / "arena-hard.toml")
    labels = {contender.label for contender in campaign.contenders}
    missing: dict[int, set[str]] = {}
    for point in HARD:
        missing.setdefault(point.place, set(labels)).discard(point.label)
    assert sorted(filter(None, map(sorted, missing.values()))) == [["georendezvous", "georendezvous-chr"]]
    (exclusion,) = campaign.exclusions
    assert "positions" in exclusion.because


def test_an_excluded_contender_could_not_run() -> None:
    def without_positions(point: Point) -> Run:
        scenario = shortened(point.run(1)).scenario
        positioning = msgspec.structs.replace(scenario.positioning, source="none")
        lost = msgspec.structs.replace(scenario, positioning=positioning)
        return msgspec.structs.replace(point.run(1), scenario=lost)

    lost = next(point for point in HARD if point.label == "georendezvous")
    with pytest.raises(ConfigurationError, match="position"):
        simulate(without_positions(lost))


def test_the_file_of_a_movement_is_found_from_the_campaign_file() -> None:
    town = next(point for point in HARD if point.template.scenario.mobility.model == "movements")
    assert len(town.template.scenario.mobility.paths) == 50


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('protocols = ["gossip"]\nwhere = { scenario.nodes = 9 }\nbecause = "x"', "exclude.protocols = 'gossip'"),
        ('protocols = ["flooding"]\nwhere = { flooding.jitter_s = 9 }\nbecause = "x"', "exclude.where"),
        ('protocols = ["flooding"]\nwhere = {}\nbecause = "x"', "exclude"),
    ],
)
def test_an_exclusion_that_makes_no_sense_is_refused(tmp_path: Path, entry: str, says: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'protocols = ["flooding"]\nseeds = 1\n[[exclude]]\n{entry}\n')
    with pytest.raises(ConfigurationError, match=says):
        load_campaign(file)
