"""Checkers of soft state are shown a sound network, then one in which something was forgotten to be forgotten."""

from typing import Any

import pytest

from roamcast.checkers import InvariantError
from roamcast.checkers.floods import SentOnce
from roamcast.checkers.soft_state import (
    check_cursor_bounds,
    check_mesh_bounds,
    check_mesh_expiry,
    check_rendezvous,
    check_shelf_bounds,
    check_shelf_expiry,
)
from roamcast.checkers.trees_at_rest import check_one_tree, check_roots_exist
from roamcast.protocols.api import NOBODY
from roamcast.protocols.georendezvous.messages import SUBSCRIPTION, key_of
from roamcast.world.radio.medium import Frame
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation


def lived(protocol: str, **parameters: Any) -> Simulation:
    """Nine nodes in a grid, after twenty seconds."""
    scenario = Scenario(
        nodes=9,
        area_m=(450.0, 450.0),
        duration_s=60.0,
        mobility=Mobility(model="grid", spacing_m=150.0),
        radio=Ideal(range_m=200.0),
        workload=Workload(publisher_share=1.0, selectivity=1.0, rate_per_s=0.5),
    )
    simulation = Simulation(Run(scenario=scenario, protocol=protocol, parameters=parameters))
    simulation.run_until(20.0)
    return simulation


def nodes(simulation: Simulation) -> list[Any]:
    return list(simulation.protocols)


def test_a_mesh_that_keeps_a_route_or_a_member_too_long_is_found() -> None:
    simulation = lived("odmrp")
    check_mesh_bounds(simulation)
    check_mesh_expiry(simulation)
    mesh = next(node.mesh for node in nodes(simulation) if node.mesh.downstream)
    publisher = next(iter(mesh.downstream))
    member = next(iter(mesh.downstream[publisher].values()))
    member.expires_s = -100.0
    with pytest.raises(InvariantError, match="still forwards"):
        check_mesh_expiry(simulation)
    mesh.downstream.clear()
    next(iter(mesh.routes.values())).heard_s = -100.0
    with pytest.raises(InvariantError, match="has had a route"):
        check_mesh_expiry(simulation)


def test_a_mesh_that_is_too_large_is_found() -> None:
    simulation = lived("odmrp", publishers_max=3)
    check_mesh_bounds(simulation)
    mesh = nodes(simulation)[0].mesh
    mesh.routes.update({1000 + at: next(iter(mesh.routes.values())) for at in range(5)})
    with pytest.raises(InvariantError, match="routes"):
        check_mesh_bounds(simulation)


def test_a_shelf_that_keeps_an_entry_too_long_is_found() -> None:
    simulation = lived("georendezvous")
    check_shelf_bounds(simulation)
    check_shelf_expiry(simulation)
    store = next(node.table.store for node in nodes(simulation) if len(node.table.store))
    shelf = next(iter(store))
    kept = next(iter(shelf.kept.values()))
    kept.expires_s = -100.0
    with pytest.raises(InvariantError, match="keeps an entry"):
        check_shelf_expiry(simulation)


def test_a_subscriber_that_a_rendezvous_point_has_lost_is_found() -> None:
    simulation = lived("georendezvous")
    check_rendezvous(simulation)
    bucket, followed = next(iter(nodes(simulation)[4].subscriber.followed.items()))
    key = key_of(bucket, followed.points[0])
    for node in nodes(simulation):
        shelf = node.table.store.shelf(key)
        if shelf is not None and (4, SUBSCRIPTION) in shelf.kept:
            shelf.remove((4, SUBSCRIPTION))
    with pytest.raises(InvariantError, match=f"subscription of 4 at point {followed.points[0]} of {bucket}"):
        check_rendezvous(simulation)


def test_cursors_without_bounds_are_found() -> None:
    simulation = lived("overlays", broker_share=1.0, publishers_max=4)
    check_cursor_bounds(simulation)
    nodes(simulation)[0].member.reception.cursors.update({1000 + at: 1 for at in range(5)})
    with pytest.raises(InvariantError, match="publishers"):
        check_cursor_bounds(simulation)


def test_a_second_root_and_a_root_that_is_none_are_found() -> None:
    simulation = lived("ps-maodv")
    check_one_tree(simulation)
    check_roots_exist(simulation)
    member = next(node for node in nodes(simulation) if node.role == "member")
    before = member.place.root
    member.place.root = member.place.parent if member.place.parent != before else 0 if before else 1
    with pytest.raises(InvariantError, match=r"no root|different trees"):
        check_roots_exist(simulation)
    member.place.root, member.place.role, member.place.parent = member.host.address, "root", NOBODY
    with pytest.raises(InvariantError, match="are roots"):
        check_one_tree(simulation)


def test_an_event_that_is_sent_twice_is_found() -> None:
    simulation = lived("flooding")
    once = SentOnce(simulation, set())
    frames: list[Frame] = []
    simulation.watch_frames(frames.append)
    simulation.run_until(25.0)
    once(simulation)
    assert simulation.medium.on_start is not None
    simulation.medium.on_start(frames[0])
    with pytest.raises(InvariantError, match="twice"):
        once(simulation)
