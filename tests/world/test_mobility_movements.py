"""Piecewise linear movement, and the models that place nodes: static, lattices, groups."""

from math import hypot

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError
from roamcast.world.contacts import contact_plan
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.mobility.group import centres_and_offsets
from roamcast.world.scenario import Mobility, Scenario


def placed(scenario: Scenario, seed: int = 1) -> Movements:
    found = scenario_movements(scenario, seed)
    assert found is not None
    return found


def degrees(where: Movements, range_m: float) -> list[int]:
    plan = contact_plan(where, range_m, 1.0)
    found: list[int] = np.bincount(np.concatenate((plan.a, plan.b)), minlength=where.nodes).tolist()
    return found


def test_position_and_velocity_between_at_and_after_corners() -> None:
    where = Movements([[(0.0, 0.0, 0.0), (10.0, 20.0, 0.0), (15.0, 20.0, 0.0), (20.0, 20.0, -5.0)], [(0.0, 7.0, 8.0)]])
    assert where.nodes == 2
    assert where.position(0, 2.5) == (5.0, 0.0)
    assert where.velocity(0, 2.5) == (2.0, 0.0)
    assert where.position(0, 12.0) == (20.0, 0.0)
    assert where.velocity(0, 12.0) == (0.0, 0.0)
    assert where.velocity(0, 15.0) == (0.0, -1.0)
    assert where.position(0, 1e6) == (20.0, -5.0)
    assert where.velocity(0, 1e6) == (0.0, 0.0)
    assert where.positions(17.0).tolist() == [[20.0, -2.0], [7.0, 8.0]]
    assert where.corners(1) == ((0.0, 7.0, 8.0),)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ([], "path of node 1: must start with a corner at time 0"),
        ([(1.0, 0.0, 0.0)], "path of node 1: must start with a corner at time 0"),
        ([(0.0, 0.0, 0.0), (5.0, 1.0, 1.0), (5.0, 2.0, 2.0)], "corner at 5.0 s must be later than 5.0 s"),
        ([(0.0, 0.0, 0.0), (5.0, float("nan"), 1.0)], "node 1, corner 1"),
    ],
)
def test_paths_that_make_no_sense_are_refused(path: list[tuple[float, float, float]], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Movements([[(0.0, 0.0, 0.0)], path])


def test_static_nodes_are_uniform_or_as_given() -> None:
    drawn = placed(Scenario(nodes=4000, area_m=(1000.0, 200.0), mobility=Mobility(model="static"))).positions(50.0)
    counts, _, _ = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=4, range=((0, 1000), (0, 200)))
    assert counts.sum() == 4000
    assert counts.min() > 190  # 250 each; the standard deviation is 15
    given_m = ((1.0, 2.0), (3.0, 4.0))
    fixed = placed(Scenario(nodes=2, mobility=Mobility(model="static", positions_m=given_m)))
    assert fixed.positions(9.0).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("model", ["static", "waypoint", "group"])
def test_a_path_depends_on_the_seed_and_the_node_only(model: str) -> None:
    mobility = Mobility(model=model, groups=3)  # type: ignore[arg-type]
    few, many = Scenario(nodes=5, mobility=mobility), Scenario(nodes=50, mobility=mobility, duration_s=900.0)
    assert placed(few, 1).positions(80.0).tolist() == placed(many, 1).positions(80.0).tolist()[:5]
    assert placed(few, 1).positions(80.0).tolist() != placed(few, 2).positions(80.0).tolist()


def test_inner_nodes_of_a_grid_hear_four_and_of_a_beehive_six() -> None:
    # SOMER thesis, section 3.1: the only two evenly distributed plane networks.
    area_m = (1000.0, 1000.0)
    grid = placed(Scenario(nodes=49, area_m=area_m, mobility=Mobility(model="grid", spacing_m=100.0)))
    assert sorted(degrees(grid, 100.0)) == [2] * 4 + [3] * 20 + [4] * 25
    beehive = placed(Scenario(nodes=49, area_m=area_m, mobility=Mobility(model="beehive", spacing_m=100.0)))
    found = degrees(beehive, 100.0)
    assert degrees(beehive, 172.0) == found  # the second ring is √3 away
    inner = [row * 7 + column for row in range(1, 6) for column in range(1, 6)]
    assert {found[node] for node in inner} == {6}
    assert max(found) == 6


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    model=st.sampled_from(["grid", "beehive"]),
    nodes=st.integers(1, 80),
    width_m=st.floats(50, 3000),
    height_m=st.floats(50, 3000),
)
def test_a_fitted_lattice_fills_the_area(model: str, nodes: int, width_m: float, height_m: float) -> None:
    mobility = Mobility(model=model)  # type: ignore[arg-type]
    positions_m = placed(Scenario(nodes=nodes, area_m=(width_m, height_m), mobility=mobility)).positions(0.0)
    middle_m = (positions_m.min(axis=0) + positions_m.max(axis=0)) / 2
    assert middle_m.tolist() == pytest.approx([width_m / 2, height_m / 2])
    if nodes == 1:
        return
    # It reaches from side to side one way and stays inside the other way.
    used = np.ptp(positions_m, axis=0) / (width_m, height_m)
    assert max(used) == pytest.approx(1.0)
    assert (positions_m >= 0).all()
    assert (positions_m <= (width_m, height_m)).all()
    # All are at least one spacing apart, and all but the first have a neighbour at just that distance before them.
    apart_m = np.hypot(*(positions_m[:, None] - positions_m[None]).transpose(2, 0, 1))
    before_m = [apart_m[node, :node].min() for node in range(1, nodes)]
    assert before_m == pytest.approx([before_m[0]] * (nodes - 1))


def test_a_spacing_that_does_not_fit_is_refused() -> None:
    scenario = Scenario(nodes=100, mobility=Mobility(model="grid", spacing_m=112.0))
    with pytest.raises(ConfigurationError, match=r"mobility.spacing_m = 112.0: must be at most 111.111 for 100 nodes"):
        scenario_movements(scenario, 1)


def test_group_members_stay_near_their_centre_and_in_the_area() -> None:
    mobility = Mobility(model="group", groups=4, group_radius_m=80.0, speed_min_mps=2.0, pause_max_s=5.0)
    scenario = Scenario(nodes=42, area_m=(900.0, 400.0), duration_s=200.0, mobility=mobility)
    where, (centres, _) = placed(scenario, 7), centres_and_offsets(scenario, 7)
    farthest_m = 0.0
    for t_s in np.linspace(0.0, 200.0, 401).tolist():
        for node in range(42):
            (x_m, y_m), (centre_x_m, centre_y_m) = where.position(node, t_s), centres.position(node % 4, t_s)
            assert 0 <= x_m <= 900
            assert 0 <= y_m <= 400
            farthest_m = max(farthest_m, hypot(x_m - centre_x_m, y_m - centre_y_m))
    assert 70 < farthest_m <= 80 + 1e-9
    assert centres.position(0, 0.0) != centres.position(0, 200.0)


def test_a_group_that_needs_more_than_the_area_is_refused() -> None:
    scenario = Scenario(area_m=(1000.0, 150.0), mobility=Mobility(model="group", group_radius_m=100.0))
    with pytest.raises(ConfigurationError, match=r"group_radius_m = 100.0: must be below half .* \(75\)"):
        scenario_movements(scenario, 1)


def test_recorded_movements_are_taken_as_they_are_and_contacts_have_none() -> None:
    path = ((0.0, 0.0, 0.0), (10.0, 5.0, 0.0))
    recorded = placed(Scenario(nodes=1, mobility=Mobility(model="movements", paths=(path,))))
    assert recorded.corners(0) == path
    with pytest.raises(ConfigurationError, match=r"mobility\.paths"):
        scenario_movements(Scenario(mobility=Mobility(model="movements")), 1)
    assert scenario_movements(Scenario(mobility=Mobility(model="contacts")), 1) is None
