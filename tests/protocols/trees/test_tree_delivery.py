"""In a static connected network with an ideal radio every subscriber gets every event, whatever the trees are up to."""

import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from roamcast.checkers import check_deliveries, check_served
from roamcast.interests import Interest, parse_interest
from roamcast.seeds import derive
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Causal, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

PROTOCOLS = ["ps-maodv", "sp-combo", "dsapst", "somer-plus"]
RANGE_M = 200.0

LESSONS = {
    "ps-maodv": [],
    "sp-combo": [206, 217, 235, 355, 555, 586],
    "dsapst": [203],
    "somer-plus": [226, 278, 283, 371, 405, 447, 583, 597, 633, 671, 702, 703, 713, 4090],
}
"""Networks in which something was lost once: trees that could not be absorbed because they had a newer sequence number,
new roots that knew too little, ways between roots that nobody had been told of, replies that were waited with."""

LARGE_LESSONS = [
    50_059, 61_007, 61_031, 61_815, 61_826, 62_350, 62_647, 62_707, 63_131, 64_027,
    64_263, 64_551, 72_425, 100_114, 104_886, 105_719, 102_175, 102_239, 102_495, 103_647,
    104_526, 105_490, 401_031,
]
"""The same, up to 100 nodes: a tree absorbed after the event had passed through the other, news that came too late or
not at all."""

SEEDS = {protocol: [*range(101, 161), *lessons] for protocol, lessons in LESSONS.items()}


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
        radio=Ideal(range_m=RANGE_M),
        workload=Workload(publisher_share=0.35, rate_per_s=0.2, tail_s=12.0, **workload),  # type: ignore[arg-type]
    )


def restless(protocol: str) -> dict[str, str | int | float | bool]:
    """Many roots, and where chance makes none at the start, soon another chance."""
    return {"root_density": 0.15, "out_period_s": 3.0} if protocol == "somer-plus" else {}


LARGER = [
    *[(protocol, seed) for protocol in PROTOCOLS for seed in range(1, 9)],
    *[("somer-plus", seed) for seed in LARGE_LESSONS],
]


@pytest.mark.parametrize(("protocol", "seed"), LARGER)
def test_delivery_is_complete(protocol: str, seed: int) -> None:
    """Publications begin at the default 5 s. SOMER restructures all along: merges, new roots, contention."""
    nodes = (12, 30, 60, 100)[seed % 4]
    causal = Causal(dependencies="a => b; a => c; b => d", node_share=0.2) if protocol == "somer-plus" else Causal()
    scenario = still(nodes, seed, 51.0, language="topics" if seed % 2 else "intervals", causal=causal)
    run = Run(scenario=scenario, protocol=protocol, parameters=restless(protocol), seed=seed)
    table = simulate(run).recorder.table()
    assert summarise(table)["delivery_ratio"] == 1.0
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=40.0) > 20


@pytest.mark.parametrize("seed", [200_036, 230_008, 230_050, 230_056, 230_078])
@pytest.mark.parametrize("is_restless", [True, False])
def test_delivery_is_complete_with_many_trees(seed: int, is_restless: bool) -> None:
    """SOMER with up to 250 nodes, many roots apart: what is news in one corner has a long way to the other."""
    causal = Causal(dependencies="a => b; a => c; b => d", node_share=0.2)
    scenario = still((150, 200, 250)[seed % 3], seed, 60.0, causal=causal)
    table = simulate(Run(scenario, "somer-plus", restless("somer-plus") if is_restless else {}, seed)).recorder.table()
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=55.0) > 1000


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("connected", [True, False])
def test_delivery_is_complete_with_any_seed(protocol: str, connected: bool) -> None:
    """Small networks, in one piece or in several: everybody whom the publisher can reach at all is served."""
    causal = Causal(dependencies="a => b; a => c; b => d", node_share=0.2) if protocol == "somer-plus" else Causal()
    pairs = 0
    for seed in SEEDS[protocol]:
        scenario = still((10, 20, 30, 40)[seed % 4], seed, 30.0, causal=causal)
        if not connected:
            scenario = msgspec.structs.replace(scenario, mobility=Mobility(model="static"))
        run = Run(scenario=scenario, protocol=protocol, parameters=restless(protocol), seed=seed)
        table = simulate(run).recorder.table()
        check_deliveries(table)
        pairs += check_served(table, 0.0, within_s=25.0)
    assert pairs > 1000


def test_somer_as_published_delivers_nearly_everything_at_rest() -> None:
    """It waits for the next period to tell other roots of a tree that has changed, so some events are too early."""
    ratios = []
    for seed in range(1, 9):
        scenario = still((12, 30, 60, 100)[seed % 4], seed, 60.0)
        table = simulate(Run(scenario, "somer", {"out_period_s": 3.0}, seed)).recorder.table()
        check_deliveries(table)
        ratios.append(summarise(table)["delivery_ratio"])
    assert sum(ratios) / len(ratios) > 0.9, ratios


def test_the_same_seed_gives_the_same_trace() -> None:
    for protocol in PROTOCOLS:
        run = Run(scenario=still(20, 3, 20.0), protocol=protocol, seed=3)
        assert simulate(run).recorder.trace_hash() == simulate(run).recorder.trace_hash()


NEWS_S = {"ps-maodv": 0.5, "sp-combo": 0.5, "dsapst": 0.5, "somer-plus": 3.0}
"""How long a new subscription takes to reach everybody who must know: up a tree, and for SOMER among all roots."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(5, 10))
def test_changing_subscriptions_are_followed(protocol: str, seed: int) -> None:
    """Nobody misses an event that was published `NEWS_S` or more after he subscribed, and some get it even earlier."""
    scenario = still(20, seed, 60.0, resubscribe_period_s=7.0)
    run = Run(scenario=scenario, protocol=protocol, parameters=restless(protocol), seed=seed)
    table = simulate(run).recorder.table()
    check_deliveries(table)
    delivered = {(row["event_id"], row["node"]) for row in rows(table, "delivered")}
    subscribed: dict[int, tuple[float, Interest]] = {}
    met = 0
    for row in rows(table, "subscribed", "published"):
        if row["kind"] == "subscribed":
            subscribed[row["node"]] = (row["t"], parse_interest(row["category"], row["detail"]))
            continue
        for node, (since_s, interest) in subscribed.items():
            if node != row["node"] and interest.contains(row["value"]) and row["t"] >= since_s + NEWS_S[protocol]:
                assert (row["event_id"], node) in delivered, f"{node} wants it since {since_s}: {row}"
                met += 1
    assert met > 20


def rows(table: pa.Table, *kinds: str) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["kind"] in kinds]
