"""Checkers find what they look for: each is shown a healthy network, then one with the fault planted."""

import pyarrow as pa
import pytest

from roamcast.checkers import (
    Agreement,
    CoverageChecker,
    InvariantError,
    check_coverage,
    check_deliveries,
    check_no_cycles,
    check_roles,
    check_served,
)
from roamcast.checkers.trees import links, tree_nodes
from roamcast.interests import Intervals
from roamcast.protocols.trees.standing import Standing
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation


@pytest.fixture
def simulation() -> Simulation:
    """Nine nodes in a grid, in one tree."""
    scenario = Scenario(
        nodes=9,
        area_m=(400.0, 400.0),
        duration_s=20.0,
        mobility=Mobility(model="grid", spacing_m=150.0),
        radio=Ideal(),
        workload=Workload(rate_per_s=0.0),
    )
    simulation = Simulation(Run(scenario=scenario, protocol="ps-maodv"))
    simulation.run_until(10.0)
    return simulation


def test_a_healthy_tree_passes(simulation: Simulation) -> None:
    check_no_cycles(simulation)
    check_roles(simulation)
    check_coverage(simulation)
    Agreement(0.0)(simulation)
    assert len(list(links(tree_nodes(simulation)))) == 8


def test_a_circle_is_found(simulation: Simulation) -> None:
    nodes = tree_nodes(simulation)
    child, parent = next((c, p) for c, p in links(nodes) if nodes[p].role == "member")
    nodes[parent].place.parent = child
    nodes[child].children.put(parent, None, 0.0)
    with pytest.raises(InvariantError, match="does not stand above"):
        check_no_cycles(simulation)
    nodes[child].place.standing = Standing(10**6, 0)  # even if the standings were wrong, the circle itself is seen
    nodes[parent].place.standing = Standing(10**6 + 1, 0)
    with pytest.raises(InvariantError, match=r"does not stand above|its own ancestor"):
        check_no_cycles(simulation)


def test_a_member_without_a_parent_is_found(simulation: Simulation) -> None:
    member = next(node for node in tree_nodes(simulation).values() if node.role == "member")
    member.place.parent = -1
    with pytest.raises(InvariantError, match="is member with parent -1"):
        check_roles(simulation)


def test_ends_that_do_not_agree_are_found_after_the_bound(simulation: Simulation) -> None:
    nodes = tree_nodes(simulation)
    child, parent = next(iter(links(nodes)))
    agreement = Agreement(bound_s=1.0)
    nodes[parent].children.remove(child)
    agreement(simulation)
    simulation.scheduler.now += 0.9
    agreement(simulation)
    simulation.scheduler.now += 0.2
    with pytest.raises(InvariantError, match=f"{child} has taken {parent} for its parent"):
        agreement(simulation)


def test_a_forgotten_interest_is_found(simulation: Simulation) -> None:
    nodes = tree_nodes(simulation)
    child, parent = next(iter(links(nodes)))
    nodes[parent].children.put(child, Intervals.of((1, 2)), 0.0)
    with pytest.raises(InvariantError, match=f"{parent} holds 1..2 for its child {child}"):
        check_coverage(simulation)
    coverage = CoverageChecker(bound_s=1.0, from_s=simulation.scheduler.now + 0.5)
    for _ in range(3):  # not yet, first seen, within the bound
        coverage(simulation)
        simulation.scheduler.now += 0.7
    with pytest.raises(InvariantError, match=f"{parent} holds 1..2 for its child {child}"):
        coverage(simulation)


def trace(*records: Record) -> pa.Table:
    recorder = Recorder("test")
    for record in records:
        recorder.add(record)
    return recorder.table()


SUBSCRIBED = Record(0.0, "subscribed", 1, category="intervals", detail="0..10")
PUBLISHED = Record(1.0, "published", 0, event_id=7, value=5.0, shortest_hops=[0, 1])
DELIVERED = Record(1.5, "delivered", 1, 0, 7, value=0.5, hops=1)


def test_deliveries_as_they_should_be() -> None:
    table = trace(SUBSCRIBED, PUBLISHED, DELIVERED)
    check_deliveries(table)
    assert check_served(table, 0.0, within_s=1.0) == 1
    assert check_served(table, 2.0, within_s=1.0) == 0


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ([SUBSCRIBED, PUBLISHED, DELIVERED, DELIVERED], "1 got event 7 twice"),
        ([SUBSCRIBED, DELIVERED], "which was never published"),
        ([PUBLISHED, DELIVERED], "does not want it"),
        ([SUBSCRIBED, PUBLISHED._replace(value=50.0), DELIVERED], "does not want it"),
        ([SUBSCRIBED, SUBSCRIBED._replace(kind="unsubscribed"), PUBLISHED, DELIVERED], "does not want it"),
        ([SUBSCRIBED, PUBLISHED._replace(node=1), DELIVERED._replace(peer=1)], "its own event"),
    ],
)
def test_wrong_deliveries_are_found(records: list[Record], complaint: str) -> None:
    with pytest.raises(InvariantError, match=complaint):
        check_deliveries(trace(*records))


def test_subscribers_left_out_are_found() -> None:
    with pytest.raises(InvariantError, match="reached 1 never"):
        check_served(trace(SUBSCRIBED, PUBLISHED), 0.0, within_s=1.0)
    with pytest.raises(InvariantError, match=r"reached 1 after 0\.500 s"):
        check_served(trace(SUBSCRIBED, PUBLISHED, DELIVERED), 0.0, within_s=0.1)
    cut_off = PUBLISHED._replace(shortest_hops=[0, -1])
    assert check_served(trace(SUBSCRIBED, cut_off), 0.0, within_s=1.0) == 0
