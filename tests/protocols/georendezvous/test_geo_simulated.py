"""GeoRendezvous in whole simulated networks: still ones, holed ones, moving ones, and such where nodes die."""

from typing import Any

import msgspec
import pytest

from roamcast.protocols.api import Site
from roamcast.protocols.georendezvous import GeoRendezvous
from roamcast.protocols.georendezvous.cells import CellGrid
from roamcast.seeds import derive
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Faults, Mobility, Partition, Run, Scenario, Workload
from roamcast.world.simulator import Simulation, simulate

IDEAL = Ideal(range_m=200.0)
GRAPHS = ("cells", "nodes")
LAYOUTS = {
    "hole": "##########/##########/##......##/##......##/##......##/##......##/##########/##########",
    "bay": "##########/##########/##......../##......../##......../##......../##########/##########",
    "spiral": "##########/#........./#.########/#.#......#/#.#.####.#/#.#....#.#/#.######.#/#........#/##########",
    "thin": "#.........#/.#.......#./..#.....#../...#...#.../....#.#..../.....#.....",
}


def placed(picture: str, seed: int) -> tuple[tuple[float, float], ...]:
    """One or two nodes at random places in each cell of the picture."""
    random = derive(seed, "layout")
    side_m = CellGrid(Site(1000.0, 1000.0, 200.0)).side_m
    cells = [(x, y) for y, line in enumerate(picture.split("/")) for x, sign in enumerate(line) if sign == "#"]
    return tuple(
        ((x + random.random()) * side_m, (y + random.random()) * side_m)
        for x, y in cells
        for _ in range(random.choice((1, 1, 2)))
    )


def run(scenario: Scenario, seed: int = 1, **parameters: Any) -> dict[str, Any]:
    result = simulate(Run(scenario=scenario, protocol="georendezvous", parameters=parameters, seed=seed))
    return summarise(result.recorder.table())


def layout_scenario(picture: str, seed: int, workload: Workload) -> Scenario:
    positions = placed(picture, seed)
    still = Mobility(model="static", positions_m=positions)
    return Scenario(nodes=len(positions), duration_s=16.0, mobility=still, radio=IDEAL, workload=workload)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("graph", "seed"), [("cells", 1), ("cells", 2), ("nodes", 1), ("nodes", 2)])
def test_from_every_node_a_key_reaches_the_one_home_cell(layout: str, graph: str, seed: int) -> None:
    scenario = layout_scenario(LAYOUTS[layout], seed, Workload(publishers=0, subscribers=0))
    parameters: dict[str, str | int | float | bool] = {"margin_cells": 0.0, "graph": graph}
    simulation = Simulation(Run(scenario=scenario, protocol="georendezvous", parameters=parameters, seed=seed))
    simulation.run_until(1.0)
    tables = [node.table for node in simulation.protocols if isinstance(node, GeoRendezvous)]
    keys = [f"key {number}" for number in range(6)]
    for table in tables:
        for key in keys:
            table.put(key, b"here")
    simulation.run_until(2.5)
    for key in keys:
        shelves = [(table, shelf) for table in tables if (shelf := table.store.shelf(key)) is not None]
        homes = {shelf.home for _, shelf in shelves}
        assert len(homes) == 1
        members = [shelf for table, shelf in shelves if table.router.cell in homes]
        assert members
        assert all(len(shelf.kept) == len(tables) for shelf in members)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_still_and_connected_everything_is_delivered_once(layout: str, graph: str) -> None:
    workload = Workload(language="topics", topic_depth=2, topic_fanout=2, selectivity=0.5, publishers=5, rate_per_s=1.0)
    summary = run(layout_scenario(LAYOUTS[layout], 3, workload), graph=graph)
    assert summary["expected"] > 100
    assert summary["delivery_ratio"] == 1.0
    assert summary["duplicates"] == summary["unexpected"] == 0
    assert "hops" not in summary["dropped"]
    assert "absent" not in summary["dropped"]


@pytest.mark.parametrize(
    ("graph", "seed", "filters"), [("cells", 1, False), ("cells", 2, True), ("nodes", 1, False), ("nodes", 3, True)]
)
def test_uniform_dense_networks_deliver_everything_in_the_language_of_intervals(
    graph: str, seed: int, filters: bool
) -> None:
    workload = Workload(publishers=4, subscribers=30, selectivity=0.1, rate_per_s=1.0)
    scenario = Scenario(
        nodes=300, duration_s=14.0, mobility=Mobility(model="static"), radio=IDEAL, workload=workload
    )
    summary = run(scenario, seed, graph=graph, filter_at_rendezvous=filters)
    assert summary["expected"] > 30
    assert summary["delivery_ratio"] == 1.0
    assert summary["duplicates"] == summary["unexpected"] == 0
    assert filters is not ("unwanted" in summary["dropped"]), "the filter leaves nothing for the subscriber to drop"


@pytest.mark.parametrize("seed", [1, 2])
def test_thin_networks_deliver_to_whoever_is_reachable_when_steered_by_nodes(seed: int) -> None:
    workload = Workload(publishers=5, subscribers=20, selectivity=0.2)
    scenario = Scenario(nodes=50, duration_s=16.0, mobility=Mobility(model="static"), radio=IDEAL, workload=workload)
    summary = run(scenario, seed, rendezvous_points=4)
    assert summary["expected_reachable"] > 30
    assert summary["delivery_ratio_reachable"] == 1.0
    assert summary["duplicates"] == 0


@pytest.mark.parametrize("speed_max_mps", [5.0, 20.0])
def test_thin_networks_that_move_under_dcf_are_served_without_filling_the_channel(speed_max_mps: float) -> None:
    """About ten neighbours per node: most cells are empty, and would hand over what nobody can keep. Single runs differ
    widely in what their handovers take, so several are judged together."""
    scenario = Scenario(
        nodes=30,
        area_m=(775.0, 775.0),
        duration_s=24.0,
        mobility=Mobility(model="waypoint", speed_min_mps=1.0, speed_max_mps=speed_max_mps),
        radio=Wifi80211b(range_m=250.0),
        workload=Workload(publishers=4, start_s=8.0),
    )
    handovers_s = total_s = 0.0
    seeds = range(1, 5)
    for seed in seeds:
        summary = run(scenario, seed)
        assert summary["expected"] > 50
        assert summary["delivery_ratio_reachable"] > 0.95
        assert summary["duplicates"] == summary["unexpected"] == 0
        handovers_s += summary["airtime_s"].get("Handover", 0.0)
        total_s += summary["airtime_s_total"]
    assert handovers_s < 0.4 * total_s
    assert total_s < 0.5 * scenario.duration_s * len(seeds)  # over all places: some are busy at the same time


def moving(**changes: Any) -> Scenario:
    workload = Workload(language="topics", topic_depth=1, topic_fanout=2, selectivity=0.5, publishers=4, subscribers=10)
    return Scenario(
        nodes=120,
        area_m=(600.0, 600.0),
        duration_s=20.0,
        mobility=Mobility(model="waypoint", speed_max_mps=10.0),
        radio=Wifi80211b(range_m=200.0),
        workload=workload,
        **changes,
    )


@pytest.mark.parametrize("graph", GRAPHS)
def test_moving_at_up_to_10_mps_under_dcf_it_keeps_working(graph: str) -> None:
    summary = run(moving(), graph=graph)
    assert summary["expected"] > 100
    assert summary["delivery_ratio"] > 0.95
    assert summary["duplicates"] == summary["unexpected"] == 0


def test_faults_cause_no_duplicates_and_what_is_lost_is_bounded() -> None:
    faults = Faults(crash_share=0.15, return_share=0.1, return_after_s=5.0, join_share=0.1, leave_share=0.1)
    summary = run(moving(faults=faults), seed=2)
    assert summary["duplicates"] == summary["unexpected"] == 0
    assert summary["delivery_ratio_reachable"] > 0.8


@pytest.mark.parametrize(
    ("radio", "faults"),
    [
        (Ideal(range_m=200.0, loss=0.2), Faults()),
        (IDEAL, Faults(crash_share=0.3)),
        (IDEAL, Faults(partitions=(Partition(from_s=8, until_s=12, west_m=0, south_m=0, east_m=300, north_m=600),))),
    ],
    ids=["loss", "crashes", "partition"],
)
def test_whatever_breaks_nothing_comes_twice_or_unasked(radio: Radio, faults: Faults) -> None:
    summary = run(msgspec.structs.replace(moving(faults=faults), radio=radio), seed=5)
    assert summary["duplicates"] == summary["unexpected"] == 0
    assert summary["delivery_ratio_reachable"] > 0.8


@pytest.mark.parametrize("graph", GRAPHS)
def test_keys_survive_while_nodes_move_and_die(graph: str) -> None:
    faults = Faults(crash_share=0.2)
    scenario = Scenario(
        nodes=120,
        area_m=(600.0, 600.0),
        duration_s=40.0,
        mobility=Mobility(model="waypoint", speed_max_mps=10.0),
        radio=IDEAL,
        workload=Workload(publishers=0, subscribers=0),
        faults=faults,
    )
    simulation = Simulation(Run(scenario=scenario, protocol="georendezvous", parameters={"graph": graph}, seed=4))
    simulation.run_until(2.0)
    putter = next(node for node in simulation.protocols if isinstance(node, GeoRendezvous))
    keys = [f"key {number}" for number in range(20)]
    for key in keys:
        putter.table.put(key, key.encode())
    simulation.run_until(38.0)
    asker = next(node for node in reversed(simulation.protocols) if isinstance(node, GeoRendezvous))
    requests = {asker.table.get(key): key for key in keys}
    simulation.run_until(40.0)
    found = [request for request in requests if asker.table.found[request]]
    assert len(found) >= 18, "a moment of hand-over may hide a key, but none may be gone for good"
    kept = {shelf.key for node in simulation.protocols if isinstance(node, GeoRendezvous) for shelf in node.table.store}
    assert kept == set(keys)


def test_the_same_run_leaves_the_same_trace() -> None:
    scenario = msgspec.structs.replace(moving(), duration_s=8.0)
    hashes = {
        simulate(Run(scenario=scenario, protocol="georendezvous", seed=7)).recorder.trace_hash() for _ in range(2)
    }
    assert len(hashes) == 1
