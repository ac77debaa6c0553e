"""In a static connected network with an ideal radio every subscriber gets every event, whatever the trees are up to."""

import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from roamcast.checkers import InvariantError, check_deliveries, check_served
from roamcast.interests import Interest, parse_interest
from roamcast.seeds import derive
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Causal, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

PROTOCOLS = ["ps-maodv", "sp-combo", "dsapst", "somer-plus"]
RANGE_M = 200.0

SEEDS = range(101, 161)
SEEDS_OF = {"sp-combo": (206, 217, 235, 355, 555, 586), "dsapst": (203,)}
"""Further networks, in which a tree could not be absorbed because it had a newer sequence number than was known."""

CAUSAL = Causal(dependencies="a => b; a => c; b => d", node_share=0.2)

LOSES_WITHOUT = {
    "early_news": (30, 72_425),  # a tree's new interest is known to others only after the period
    "salvage": (60, 100_114),  # copies meet routes that have ended while they were on their way
    "rest_rules": (100, 102_175),  # news reach the far side after the links that they replace have ended
    "heirs": (100, 63_131),  # copies for an absorbed tree do not find those who came from it
    "newcomers": (100, 63_131),  # an event has passed the absorbing tree before others came into it
}
"""Addition of SOMER-plus -> nodes and seed of a network in which events are lost without it, and why."""


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


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(1, 5))
def test_delivery_is_complete(protocol: str, seed: int) -> None:
    """Publications begin at the default 5 s. SOMER restructures all along: merges, new roots, contention."""
    nodes = (12, 30, 60, 100)[seed % 4]
    causal = CAUSAL if protocol == "somer-plus" else Causal()
    scenario = still(nodes, seed, 51.0, language="topics" if seed % 2 else "intervals", causal=causal)
    run = Run(scenario=scenario, protocol=protocol, parameters=restless(protocol), seed=seed)
    table = simulate(run).recorder.table()
    assert summarise(table)["delivery_ratio"] == 1.0
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=40.0) > 20


@pytest.mark.parametrize("addition", LOSES_WITHOUT)
def test_an_addition_of_somer_plus_saves_events(addition: str) -> None:
    nodes, seed = LOSES_WITHOUT[addition]
    scenario = still(nodes, seed, 51.0, language="topics" if seed % 2 else "intervals", causal=CAUSAL)
    ratios = []
    for switch in (True, False):
        settings = {**restless("somer-plus"), "recent_s": 0.0, addition: switch}  # recent events would make up for it
        run = Run(scenario, "somer-plus", settings, seed)
        ratios.append(summarise(simulate(run).recorder.table())["delivery_ratio"])
    assert ratios[0] == 1.0
    assert ratios[1] < 1.0


def test_maturity_serves_trees_that_a_new_root_had_not_heard_of() -> None:
    """Forty nodes in several pieces: in one of them an event is published at a root that is a second old."""
    scenario = msgspec.structs.replace(still(40, 371, 30.0, causal=CAUSAL), mobility=Mobility(model="static"))
    for maturity in (True, False):
        settings = {**restless("somer-plus"), "recent_s": 0.0, "maturity": maturity}
        run = Run(scenario, "somer-plus", settings, 371)
        table = simulate(run).recorder.table()
        if maturity:
            check_served(table, 0.0, within_s=25.0)
        else:
            with pytest.raises(InvariantError, match=r"reached .* never"):
                check_served(table, 0.0, within_s=25.0)


@pytest.mark.parametrize(("seed", "is_restless"), [(200_036, True), (230_008, False)])
def test_delivery_is_complete_with_many_trees(seed: int, is_restless: bool) -> None:
    """SOMER with up to 250 nodes, many roots apart: what is news in one corner has a long way to the other."""
    scenario = still((150, 200, 250)[seed % 3], seed, 60.0, causal=CAUSAL)
    table = simulate(Run(scenario, "somer-plus", restless("somer-plus") if is_restless else {}, seed)).recorder.table()
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=55.0) > 1000


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("connected", [True, False])
def test_delivery_is_complete_with_any_seed(protocol: str, connected: bool) -> None:
    """Small networks, in one piece or in several: every node that the publisher can reach is served."""
    causal = CAUSAL if protocol == "somer-plus" else Causal()
    pairs = 0
    for seed in (*SEEDS, *SEEDS_OF.get(protocol, ())):
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
"""How long a new subscription takes to reach all nodes that need it: up a tree, and for SOMER among all roots."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(5, 8))
def test_changing_subscriptions_are_followed(protocol: str, seed: int) -> None:
    """No node misses an event that was published `NEWS_S` or more after it subscribed; some get it even earlier."""
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
