"""In a static connected network with an ideal radio every subscriber gets every event, whatever the trees are up to."""

import math

import pytest

from roamcast.checkers import check_deliveries, check_served
from roamcast.seeds import derive
from roamcast.trace.summary import summarise
from roamcast.world.scenario import Causal, Mobility, Radio, Run, Scenario, Workload
from roamcast.world.simulator import simulate

PROTOCOLS = ["ps-maodv", "sp-combo", "dsapst", "somer"]
RANGE_M = 200.0


def connected_positions(nodes: int, seed: int) -> tuple[tuple[float, float], ...]:
    """Random places, each within range of an earlier one."""
    random = derive(seed, "places")
    side_m = 1000 * math.sqrt(nodes / 50)
    places: list[tuple[float, float]] = [(side_m / 2, side_m / 2)]
    while len(places) < nodes:
        place = (random.uniform(0, side_m), random.uniform(0, side_m))
        if any(math.dist(place, other) < RANGE_M for other in places):
            places.append(place)
    return tuple(places)


def still(nodes: int, seed: int, duration_s: float, **workload: object) -> Scenario:
    side_m = 1000 * math.sqrt(nodes / 50)
    return Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=duration_s,
        mobility=Mobility(model="static", positions_m=connected_positions(nodes, seed)),
        radio=Radio(model="ideal", range_m=RANGE_M),
        workload=Workload(publisher_share=0.35, rate_per_s=0.2, tail_s=6.0, **workload),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(1, 9))
def test_delivery_is_complete(protocol: str, seed: int) -> None:
    """Publications begin at the default 5 s. SOMER restructures all along: merges, new roots, contention."""
    nodes = (12, 30, 60, 100)[seed % 4]
    causal = Causal(dependencies="a => b; a => c; b => d", node_share=0.2) if protocol == "somer" else Causal()
    scenario = still(nodes, seed, 45.0, language="topics" if seed % 2 else "intervals", causal=causal)
    dense: dict[str, str | int | float | bool] = {"root_density": 0.15} if protocol == "somer" else {}
    table = simulate(Run(scenario=scenario, protocol=protocol, parameters=dense, seed=seed)).recorder.table()
    assert summarise(table)["delivery_ratio"] == 1.0
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=40.0) > 20


def test_the_same_seed_gives_the_same_trace() -> None:
    for protocol in PROTOCOLS:
        run = Run(scenario=still(20, 3, 20.0), protocol=protocol, seed=3)
        assert simulate(run).recorder.trace_hash() == simulate(run).recorder.trace_hash()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_changing_subscriptions_are_followed(protocol: str) -> None:
    """An event published a second after the last change meets all interests as they are."""
    scenario = still(20, 5, 40.0, resubscribe_period_s=7.0)
    table = simulate(Run(scenario=scenario, protocol=protocol, seed=5)).recorder.table()
    check_deliveries(table)
    assert summarise(table)["delivery_ratio"] > 0.98
