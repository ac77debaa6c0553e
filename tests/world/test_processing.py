"""Nodes that take time: for every match, for every root that is passed, and each at its own speed."""

from itertools import pairwise
from statistics import median
from typing import Any

import pytest

from roamcast.interests import Intervals
from roamcast.world.processing import factor
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Processing, Run, Scenario, Workload
from roamcast.world.simulator import simulate
from roamcast.world.workload import Action, Publish, Subscribe

MATCH_S = 0.1
AIR_S = 0.01  # generous: frames of the ideal radio take less
LINE = ((0.0, 0.0), (100.0, 0.0), (200.0, 0.0))


def deliveries(
    processing: Processing, actions: list[Action], protocol: str = "flooding", **parameters: bool | float
) -> list[dict[str, Any]]:
    scenario = Scenario(
        nodes=3,
        area_m=(300, 100),
        duration_s=30,
        mobility=Mobility(model="static", positions_m=LINE),
        radio=Ideal(range_m=150),
        processing=processing,
        workload=Workload(publishers=0, subscribers=0),
    )
    run = Run(scenario=scenario, protocol=protocol, parameters={**parameters})
    rows = simulate(run, actions=actions).recorder.table().to_pylist()
    return [row for row in rows if row["kind"] == "delivered"]


def line(*published_s: float) -> list[Action]:
    wanted: list[Action] = [Subscribe(0.5, node, Intervals.of((0, 10))) for node in (1, 2)]
    return wanted + [Publish(t_s, 0, 5, 64) for t_s in published_s]


def test_every_match_on_the_way_takes_its_time() -> None:
    found = {row["node"]: row["value"] for row in deliveries(Processing(match_s=MATCH_S), line(1.0))}
    assert 2 * MATCH_S <= found[1] <= 2 * MATCH_S + AIR_S  # that of the publisher and its own
    assert 3 * MATCH_S <= found[2] <= 3 * MATCH_S + 2 * AIR_S
    prompt = {row["node"]: row["value"] for row in deliveries(Processing(), line(1.0))}
    assert all(latency_s <= 2 * AIR_S for latency_s in prompt.values())


def test_a_node_handles_one_event_at_a_time_in_order() -> None:
    found = [row for row in deliveries(Processing(match_s=MATCH_S), line(1.0, 1.0, 1.0)) if row["node"] == 1]
    assert [row["event_id"] for row in found] == sorted(row["event_id"] for row in found)
    gaps = [after["t"] - before["t"] for before, after in pairwise(found)]
    assert gaps == pytest.approx([MATCH_S, MATCH_S], abs=2 * MATCH_S)
    assert all(gap >= MATCH_S - 1e-9 for gap in gaps)


@pytest.mark.parametrize("protocol", ["somer", "somer-plus"])
def test_roots_that_are_passed_take_their_time(protocol: str) -> None:
    each_a_root: dict[str, bool | float] = {"root_density": 1.0, "merging": False}
    mean_s = []
    for root_s in (1e-9, MATCH_S):
        found = deliveries(Processing(root_s=root_s), line(25.0, 26.0), protocol, **each_a_root)
        assert {row["node"] for row in found} == {1, 2}
        mean_s.append(sum(row["value"] for row in found) / len(found))
    assert mean_s[1] - mean_s[0] >= MATCH_S  # the publisher's own root, and for the last node the one between


def test_nodes_differ_by_the_seed_alone() -> None:
    spread = Processing(match_s=MATCH_S, spread=0.5)
    factors = [factor(spread, 1, node) for node in range(400)]
    assert factors == [factor(spread, 1, node) for node in range(400)]
    assert factors != [factor(spread, 2, node) for node in range(400)]
    assert 0.9 < median(factors) < 1.1
    assert max(factors) > 2
    assert factor(Processing(match_s=MATCH_S), 1, 3) == 1.0


@pytest.mark.parametrize("settings", [{"match_s": -1.0}, {"root_s": 61.0}, {"spread": -0.1}])
def test_times_that_make_no_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Processing(**settings)
