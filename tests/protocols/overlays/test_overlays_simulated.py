"""Opportunistic overlays in the simulator: roaming nodes, real routing, loss, crashes and partitions."""

from typing import Any

import pytest

from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Faults, Mobility, Partition, Run, Scenario, Workload
from roamcast.world.simulator import Result, simulate

ROAMING = Mobility(speed_min_mps=1.0, speed_max_mps=20.0, pause_min_s=5.0, pause_max_s=5.0)
IDEAL = Ideal(range_m=250.0)
EVENTS = Workload(publishers=4, subscribers=12, selectivity=0.5, rate_per_s=0.5, start_s=10.0, tail_s=20.0)


def run(seed: int = 1, parameters: dict[str, Any] | None = None, **scenario: Any) -> Result:
    base: dict[str, Any] = {
        "nodes": 30,
        "area_m": (600.0, 600.0),
        "duration_s": 90.0,
        "mobility": ROAMING,
        "radio": IDEAL,
        "workload": EVENTS,
    }
    settings: dict[str, Any] = {"unicast": "oracle", "brokers": "0-9", "discovery_period_s": 5.0} | (parameters or {})
    return simulate(Run(scenario=Scenario(**(base | scenario)), protocol="overlays", parameters=settings, seed=seed))


def rows(result: Result, kind: str, **fields: Any) -> list[dict[str, Any]]:
    return [
        row
        for row in result.recorder.table().to_pylist()
        if row["kind"] == kind and all(row[name] == value for name, value in fields.items())
    ]


def out_of_order(result: Result) -> list[tuple[int, int]]:
    """Deliveries at which a subscriber got an event of a publisher after a later one, or twice."""
    newest: dict[tuple[int, int], int] = {}
    wrong = []
    for row in rows(result, "delivered"):
        pair = (row["node"], row["peer"])
        if row["event_id"] <= newest.get(pair, 0):
            wrong.append((row["node"], row["event_id"]))
        newest[pair] = max(row["event_id"], newest.get(pair, 0))
    return wrong


@pytest.mark.parametrize("unicast", ["oracle", "aodv"])
def test_roaming_clients_get_everything_once_and_in_order(unicast: str) -> None:
    result = run(parameters={"unicast": unicast, "hysteresis_hops": 0.0})  # many relocations, by the paper's rule
    summary = summarise(result.recorder.table())
    assert summary["delivery_ratio_reachable"] == 1.0
    assert (summary["duplicates"], summary["unexpected"]) == (0, 0)
    assert out_of_order(result) == []
    assert len(rows(result, "structure", category="home")) > 40  # clients did change their home brokers


def test_the_same_run_leaves_the_same_trace() -> None:
    first, second = (run(duration_s=40.0).recorder.trace_hash() for _ in range(2))
    assert first == second


def test_it_works_over_802_11_with_collisions() -> None:
    result = run(radio=Wifi80211b(range_m=250.0), parameters={"unicast": "aodv"}, duration_s=60.0)
    summary = summarise(result.recorder.table())
    assert summary["delivery_ratio_reachable"] > 0.97
    assert (summary["duplicates"], summary["unexpected"]) == (0, 0)
    assert out_of_order(result) == []


@pytest.mark.parametrize("seed", range(1, 6))
def test_with_loss_and_brokers_that_crash_and_return_only_crashed_nodes_miss_events(seed: int) -> None:
    result = run(
        seed,
        radio=Ideal(range_m=250.0, loss=0.1),
        faults=Faults(return_share=0.1, return_after_s=8.0),
        duration_s=150.0,
        workload=Workload(publishers=4, subscribers=12, selectivity=0.5, rate_per_s=0.5, start_s=10.0, tail_s=70.0),
        parameters={"home_timeout_s": 12.0, "broker_share": 0.4, "brokers": ""},
    )
    assert out_of_order(result) == []
    crashed = {row["node"] for row in rows(result, "fault")}
    got = {(row["node"], row["event_id"]) for row in rows(result, "delivered")}
    missed = []
    for wish in rows(result, "subscribed"):
        ranges = [tuple(map(float, part.split(".."))) for part in wish["detail"].split()]
        for event in rows(result, "published"):
            wanted = any(low <= event["value"] < high for low, high in ranges)
            if wanted and wish["node"] != event["node"] and not {wish["node"], event["node"]} & crashed:
                missed += [(wish["node"], event["event_id"])] * ((wish["node"], event["event_id"]) not in got)
    assert missed == []


def test_events_of_the_other_side_arrive_in_order_once_a_partition_ends() -> None:
    wall = Partition(from_s=20.0, until_s=60.0, west_m=0.0, south_m=0.0, east_m=300.0, north_m=600.0)
    result = run(
        duration_s=150.0,
        mobility=Mobility(model="static"),
        faults=Faults(partitions=(wall,)),
        workload=Workload(publishers=4, subscribers=12, selectivity=0.5, rate_per_s=0.5, start_s=10.0, tail_s=70.0),
    )
    summary = summarise(result.recorder.table())
    assert summary["delivery_ratio"] == 1.0
    assert (summary["duplicates"], summary["unexpected"]) == (0, 0)
    assert out_of_order(result) == []
    assert summary["latency_ms_p99"] > 10_000


def test_changing_overlay_and_homes_shortens_paths() -> None:
    """Section 4.1, figure 10, small."""
    hops = {
        adaptors: summarise(run(parameters={"adaptors": adaptors}).recorder.table())["hops_mean"]
        for adaptors in ("", "home-broker", "topology,home-broker")
    }
    assert hops["topology,home-broker"] < hops["home-broker"] < hops[""]


def test_each_node_decides_by_itself_whether_it_is_a_broker() -> None:
    result = run(parameters={"brokers": "", "broker_share": 0.5}, duration_s=20.0)
    brokers = {row["node"] for row in rows(result, "structure", category="broker")}
    assert 8 <= len(brokers) <= 22
    assert brokers == {
        row["node"]
        for row in rows(run(parameters={"brokers": "", "broker_share": 0.5}, duration_s=5.0), "structure")
        if row["category"] == "broker"
    }


def test_a_replay_can_draw_brokers_links_and_homes() -> None:
    result = run(duration_s=40.0)
    aspects = {row["category"] for row in rows(result, "structure")}
    assert {"broker", "link", "home"} <= aspects


def test_probes_measure_the_paths_that_brokers_believe_in() -> None:
    quiet = Workload(publishers=0, subscribers=0)
    straight, routed = (
        run(
            workload=quiet,
            parameters={"probe_period_s": 10.0, "source_routing": source_routing, "adaptors": "topology"},
        )
        for source_routing in (False, True)
    )
    lengths = [[row["value"] for row in rows(result, "structure", category="path")] for result in (straight, routed)]
    means = [sum(values) / len(values) for values in lengths]
    assert means[0] < means[1]
