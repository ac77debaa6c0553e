"""Silent droppers and the split: scenario settings that make a network hostile."""

import pytest

from roamcast.errors import ConfigurationError
from roamcast.trace.summary import summarise
from roamcast.world.droppers import REASON, droppers
from roamcast.world.scenario import Faults, Run, Scenario
from roamcast.world.scenario_file import run_from_tables
from roamcast.world.simulator import simulate


def run(protocol: str = "flooding", **faults: float) -> Run:
    """A chain of five nodes, 200 m apart; the first publishes, all subscribe to everything."""
    return run_from_tables({
        "protocol": protocol,
        "scenario": {
            "nodes": 5,
            "area_m": [1000, 100],
            "duration_s": 20,
            "mobility": {"model": "static", "positions_m": [[100 + 200 * at, 50] for at in range(5)]},
            "radio": {"range_m": 250},
            "workload": {"publishers": 5, "rate_per_s": 0.5, "selectivity": 1.0},
            "faults": faults,
        },
    })  # fmt: skip


def delivery(asked: Run) -> float:
    return float(summarise(simulate(asked).recorder.table())["delivery_ratio"])


def test_droppers_get_and_publish_events_but_forward_none() -> None:
    result = simulate(run(dropper_share=1.0))
    assert result.medium.lost[REASON] > 0
    summary = summarise(result.recorder.table())
    assert summary["hops_mean"] == 1.0  # neighbours still get what a node publishes itself
    assert delivery(run()) > 0.99


def test_a_larger_share_contains_the_smaller() -> None:
    few, more = (droppers(Scenario(nodes=40, faults=Faults(dropper_share=share)), 7) for share in (0.1, 0.2))
    assert len(few) == 4
    assert len(more) == 8
    assert few < more


def test_a_split_separates_west_from_east_in_the_middle_of_the_run() -> None:
    asked = run(split_s=10.0)
    (split,) = asked.scenario.partitions()
    assert (split.from_s, split.until_s, split.east_m) == (5.0, 15.0, 500.0)
    assert delivery(asked) < 0.8


def test_a_split_longer_than_the_run_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"faults\.split_s"):
        run(split_s=30.0)
