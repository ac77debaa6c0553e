"""The oracle delivers everything that can be delivered, over shortest paths."""

import pytest

from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate


@pytest.mark.parametrize("language", ["intervals", "topics"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_reachable_subscriber_is_served_over_a_shortest_path(language: str, seed: int) -> None:
    scenario = Scenario(
        nodes=40,
        area_m=(900.0, 900.0),
        duration_s=20.0,
        mobility=Mobility(model="static"),
        radio=Ideal(),
        workload=Workload(language=language),  # type: ignore[arg-type]
    )
    summary = summarise(simulate(Run(scenario=scenario, protocol="oracle", seed=seed)).recorder.table())
    assert summary["expected_reachable"] > 100
    assert summary["delivery_ratio_reachable"] == 1.0
    assert summary["stretch_mean"] == 1.0
    assert summary["duplicates"] == summary["unexpected"] == 0
    assert summary["expected"] - summary["delivered"] == summary["dropped"].get("no-path", 0)


def test_it_routes_around_links_that_break_while_nodes_move() -> None:
    scenario = Scenario(nodes=40, area_m=(700.0, 700.0), duration_s=60.0, mobility=Mobility(speed_max_mps=30.0))
    summary = summarise(simulate(Run(scenario=scenario, protocol="oracle")).recorder.table())
    assert summary["delivery_ratio_reachable"] > 0.99
    assert summary["duplicates"] == 0
