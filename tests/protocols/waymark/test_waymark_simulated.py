"""Waymark in simulated networks that move: against flooding, with and without positions, under faults and loss."""

from typing import Any

import pytest

from roamcast.checkers import check_deliveries
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Faults, Mobility, Positioning, Run, Scenario, Workload
from roamcast.world.simulator import simulate

AREA_M = (700.0, 700.0)


def summary(protocol: str, scenario: Scenario, seed: int = 7) -> dict[str, Any]:
    table = simulate(Run(scenario=scenario, protocol=protocol, seed=seed)).recorder.table()
    check_deliveries(table)
    return summarise(table)


def scenario(**changes: Any) -> Scenario:
    settings: dict[str, Any] = {
        "nodes": 25,
        "area_m": AREA_M,
        "duration_s": 40.0,
        "mobility": Mobility(speed_min_mps=1.0, speed_max_mps=5.0),
        "radio": Wifi80211b(range_m=250.0),
        "workload": Workload(publishers=5, start_s=10.0, tail_s=10.0),
    }
    return Scenario(**(settings | changes))


@pytest.mark.parametrize(("source", "share"), [("exact", 0.35), ("none", 0.7)])
def test_it_delivers_as_much_as_flooding_for_a_fraction_of_the_airtime(source: Any, share: float) -> None:
    world = scenario(positioning=Positioning(source=source))
    flooding, waymark = summary("flooding", world), summary("waymark", world)
    assert flooding["expected"] > 100
    assert waymark["delivery_ratio"] >= flooding["delivery_ratio"]
    assert waymark["airtime_per_delivery_ms"] < share * flooding["airtime_per_delivery_ms"]


@pytest.mark.parametrize("source", ["exact", "none"])
def test_lost_frames_are_made_good(source: Any) -> None:
    world = scenario(radio=Wifi80211b(range_m=250.0, loss=0.1), positioning=Positioning(source=source))
    flooding, waymark = summary("flooding", world), summary("waymark", world)
    assert waymark["delivery_ratio"] >= flooding["delivery_ratio"]
    assert waymark["airtime_per_delivery_ms"] < 0.7 * flooding["airtime_per_delivery_ms"]


def test_wrong_positions_do_not_mislead_it() -> None:
    world = scenario(positioning=Positioning(bias_m=20.0))
    flooding, waymark = summary("flooding", world), summary("waymark", world)
    assert waymark["delivery_ratio"] >= flooding["delivery_ratio"] - 0.02


def test_nodes_that_crash_and_return_are_served() -> None:
    world = scenario(faults=Faults(return_share=0.3, return_after_s=10.0))
    flooding, waymark = summary("flooding", world), summary("waymark", world)
    assert waymark["delivery_ratio_reachable"] >= flooding["delivery_ratio_reachable"] - 0.02
