"""The exact contact plan, against a twin that only looks at sampled instants."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from roamcast.errors import ConfigurationError
from roamcast.world.contacts import RANGE_SLACK, ContactPlan, _contacts, _plan, contact_plan, scenario_contacts
from roamcast.world.mobility import Corner, Movements, scenario_movements
from roamcast.world.nearby import TOGETHER, Legs, near_pairs
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Faults, Mobility, Partition, Scenario

DURATION_S = 20.0
BLUR_M = 1e-6  # closer than this to the range or to a border, the twin cannot tell


def rows(plan: ContactPlan) -> list[tuple[int, int, float, float]]:
    return list(zip(plan.a.tolist(), plan.b.tolist(), plan.from_s.tolist(), plan.until_s.tolist(), strict=True))


@st.composite
def paths(draw: st.DrawFn) -> list[Corner]:
    """Whole numbers make parallel legs, shared corners, rests and touching the range exactly all likely."""
    coordinate = st.integers(0, 30).map(float)
    times = draw(st.lists(st.integers(1, 25), max_size=4, unique=True).map(sorted))
    return [(float(t_s), draw(coordinate), draw(coordinate)) for t_s in (0, *times)]


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    times, easts, norths = (
        sorted(draw(st.lists(st.integers(0, limit).map(float), min_size=2, max_size=2, unique=True)))
        for limit in (22, 30, 30)
    )
    (from_s, until_s), (west_m, east_m), (south_m, north_m) = times, easts, norths
    return Partition(
        from_s=from_s, until_s=until_s, west_m=west_m, south_m=south_m, east_m=east_m, north_m=north_m
    )


def held(plan: ContactPlan, t_s: float) -> NDArray[np.bool_]:
    matrix = np.zeros((plan.nodes, plan.nodes), dtype=np.bool_)
    a, b = plan.at(t_s)
    matrix[a, b] = matrix[b, a] = True
    return matrix


def sampled(
    where: Movements, range_m: float, walls: tuple[Partition, ...], t_s: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who hears whom at an instant, and for which pairs that can be told apart from rounding."""
    x_m, y_m = where.positions(t_s).T
    apart_m = np.hypot(x_m[:, None] - x_m, y_m[:, None] - y_m)
    hears, clear = apart_m <= range_m, np.abs(apart_m - range_m) > BLUR_M
    for wall in walls:
        if wall.from_s <= t_s < wall.until_s:
            margin_m = np.minimum.reduce([x_m - wall.west_m, wall.east_m - x_m, y_m - wall.south_m, wall.north_m - y_m])
            inside, plain = margin_m >= 0, np.abs(margin_m) > BLUR_M
            hears &= inside[:, None] == inside
            clear &= plain[:, None] & plain
    np.fill_diagonal(hears, False)
    return hears, clear


def instants_s(plan: ContactPlan) -> list[float]:
    """An even sample, and a moment just before and after every change that the plan claims."""
    changes = np.unique(np.concatenate((plan.from_s, plan.until_s)))
    near = np.concatenate((changes - 1e-4, changes + 1e-4))
    everywhere = np.concatenate((np.linspace(0.0137, DURATION_S - 0.0137, 80), near))
    within: list[float] = everywhere[(everywhere > 0) & (everywhere < DURATION_S)].tolist()
    return within


def assert_agrees(plan: ContactPlan, where: Movements, range_m: float, walls: tuple[Partition, ...] = ()) -> None:
    for t_s in instants_s(plan):
        hears, clear = sampled(where, range_m, walls, t_s)
        differing = np.argwhere((held(plan, t_s) != hears) & clear)
        assert not len(differing), (t_s, differing.tolist())
    assert rows(plan) == sorted(rows(plan), key=lambda row: (row[2], row[0], row[1]))
    by_pair = sorted(rows(plan))
    for (a, b, _, until_s), (next_a, next_b, from_s, _) in pairwise(by_pair):
        assert (a, b) != (next_a, next_b) or until_s < from_s
    assert all(a < b and 0 <= from_s < until_s <= DURATION_S for a, b, from_s, until_s in by_pair)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(paths(), min_size=1, max_size=6), st.sampled_from([1.0, 5.0, 10.0, 17.3]))
def test_the_plan_agrees_with_looking_at_every_instant(all_paths: list[list[Corner]], range_m: float) -> None:
    where = Movements(all_paths)
    assert_agrees(contact_plan(where, range_m, DURATION_S), where, range_m)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(paths(), min_size=2, max_size=5), st.lists(partitions(), min_size=1, max_size=3).map(tuple))
def test_partitions_cut_exactly_what_they_separate(all_paths: list[list[Corner]], walls: tuple[Partition, ...]) -> None:
    where = Movements(all_paths)
    plan = contact_plan(where, 12.0, DURATION_S).partitioned(where, walls)
    assert_agrees(plan, where, 12.0, walls)


@pytest.mark.parametrize("model", ["waypoint", "group", "static"])
def test_the_plan_of_a_scenario_agrees_too(model: str) -> None:
    wall = Partition(from_s=4.0, until_s=15.0, west_m=100.0, south_m=-50.0, east_m=320.0, north_m=250.0)
    scenario = Scenario(
        nodes=30,
        area_m=(500.0, 300.0),
        duration_s=DURATION_S,
        mobility=Mobility(model=model, speed_min_mps=5.0, speed_max_mps=40.0, pause_max_s=3.0),  # type: ignore[arg-type]
        radio=Wifi80211b(range_m=90.0),
        faults=Faults(partitions=(wall,)),
    )
    where = scenario_movements(scenario, 4)
    assert where is not None
    assert_agrees(scenario_contacts(scenario, where), where, 90.0, (wall,))


def test_a_passage_begins_and_ends_at_the_roots() -> None:
    where = Movements([[(0.0, 0.0, 0.0)], [(0.0, -10.0, 3.0), (20.0, 10.0, 3.0)]])
    [contact] = rows(contact_plan(where, 5.0, DURATION_S))
    assert contact == pytest.approx((0, 1, 6.0, 14.0))


def test_nodes_exactly_at_range_are_in_contact_and_a_tangent_is_not() -> None:
    beside = Movements([[(0.0, 0.1, 0.0)], [(0.0, 0.1 + 0.2, 0.0)]])  # 0.30000000000000004 - 0.1 > 0.2
    assert rows(contact_plan(beside, 0.2, 5.0)) == [(0, 1, 0.0, 5.0)]
    tangent = Movements([[(0.0, 0.0, 0.0)], [(0.0, -10.0, 5.01), (20.0, 10.0, 5.01)]])
    assert rows(contact_plan(tangent, 5.0, DURATION_S)) == []


def test_many_corners_in_range_make_one_contact() -> None:
    zigzag = [(0.1 * step, 1.0 + (step % 2), 0.3 * (step % 3)) for step in range(200)]
    where = Movements([zigzag, [(0.0, 0.0, 0.0), (7.7, 0.5, 0.5), (13.1, 0.0, 0.0)]])
    assert rows(contact_plan(where, 5.0, DURATION_S)) == [(0, 1, 0.0, DURATION_S)]


def test_a_single_node_and_far_nodes_have_no_contacts() -> None:
    assert len(contact_plan(Movements([[(0.0, 1.0, 1.0)]]), 5.0, 10.0)) == 0
    assert len(contact_plan(Movements([[(0.0, 1.0, 1.0)], [(0.0, 9.0, 1.0)]]), 5.0, 10.0)) == 0


def test_a_list_is_put_in_order_merged_and_clipped() -> None:
    overlapping = [(0, 1, 2.0, 4.0), (1, 0, 2.5, 3.0), (0, 1, 3.5, 30.0)]
    touching, too_late = [(3, 1, 5.0, 9.0), (1, 3, 9.0, 9.5)], [(2, 0, 25.0, 26.0)]
    plan = ContactPlan.from_list([*touching, *overlapping, *too_late], nodes=4, duration_s=20.0)
    assert rows(plan) == [(0, 1, 2.0, 20.0), (1, 3, 5.0, 9.5)]


def test_a_contact_that_spans_many_absorbs_them_all() -> None:
    listed = [(0, 1, float(start), start + 0.5) for start in range(1, 9)] + [(0, 1, 0.0, 10.0)]
    assert rows(ContactPlan.from_list(listed, nodes=2, duration_s=20.0)) == [(0, 1, 0.0, 10.0)]


@pytest.mark.parametrize("contact", [(0, 4, 1.0, 2.0), (-1, 2, 1.0, 2.0), (2, 2, 1.0, 2.0), (0, 1, 2.0, 2.0)])
def test_contacts_that_make_no_sense_are_refused(contact: tuple[int, int, float, float]) -> None:
    with pytest.raises(ConfigurationError, match="contact"):
        ContactPlan.from_list([contact], nodes=4, duration_s=20.0)


def test_partitions_need_places() -> None:
    wall = Partition(from_s=0.0, until_s=5.0, west_m=0.0, south_m=0.0, east_m=1.0, north_m=1.0)
    mobility = Mobility(model="contacts", contacts=((0, 1, 0.0, 9.0),))
    scenario = Scenario(nodes=2, mobility=mobility, faults=Faults(partitions=(wall,)))
    with pytest.raises(ConfigurationError, match=r"faults\.partitions"):
        scenario_contacts(scenario, None)
    assert len(scenario_contacts(Scenario(nodes=2, mobility=mobility), None)) == 1


def test_components_are_named_after_their_lowest_node() -> None:
    listed = [(4, 5, 0.0, 10.0), (3, 4, 0.0, 10.0), (0, 2, 0.0, 10.0), (2, 5, 5.0, 10.0)]
    plan = ContactPlan.from_list(listed, nodes=7, duration_s=10.0)
    assert plan.components(1.0).tolist() == [0, 1, 0, 3, 3, 3, 6]
    assert plan.components(5.0).tolist() == [0, 1, 0, 0, 0, 0, 6]


def test_more_pairs_of_legs_than_are_computed_at_once_make_the_plan_of_each_pair_alone() -> None:
    random = np.random.default_rng(1)
    walks = [
        [(float(t_s), *random.uniform(0, 60, 2).tolist()) for t_s in range(0, 400, 2)] for _ in range(30)
    ]
    overlaps = sum(2 * len(walk) - 1 for node, walk in enumerate(walks) for _ in range(node))
    assert overlaps > TOGETHER
    alone = []
    for b, walk in enumerate(walks):
        for a in range(b):
            pair = contact_plan(Movements([walks[a], walk]), 20.0, 400.0)
            alone += [(a, b, from_s, until_s) for _, _, from_s, until_s in rows(pair)]
    plan = contact_plan(Movements(walks), 20.0, 400.0)
    assert sorted(rows(plan)) == sorted(alone)


def plan_of_all_pairs(where: Movements, range_m: float, duration_s: float) -> ContactPlan:
    """The slow twin of `contact_plan`: looks at every pair of legs."""
    legs, reach_m = Legs(where, duration_s), range_m * (1 + RANGE_SLACK)
    one, other = np.meshgrid(np.arange(len(legs)), np.arange(len(legs)), indexing="ij")
    chosen = (legs.order[legs.node[one]] < legs.order[legs.node[other]]) & (
        np.maximum(legs.start_s[one], legs.start_s[other]) < np.minimum(legs.end_s[one], legs.end_s[other])
    )
    return _plan(where.nodes, duration_s, *_contacts(one[chosen], other[chosen], legs, reach_m))


def assert_same(plan: ContactPlan, twin: ContactPlan) -> None:
    for column in ("a", "b", "from_s", "until_s"):
        assert getattr(plan, column).tobytes() == getattr(twin, column).tobytes()


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(paths(), min_size=1, max_size=9), st.sampled_from([0.5, 1.0, 5.0, 17.3, 500.0]))
def test_cells_and_windows_find_what_looking_at_all_pairs_finds(all_paths: list[list[Corner]], range_m: float) -> None:
    where = Movements(all_paths)
    assert_same(contact_plan(where, range_m, DURATION_S), plan_of_all_pairs(where, range_m, DURATION_S))


@pytest.mark.parametrize("model", ["waypoint", "group", "static", "gauss-markov", "roads"])
def test_the_search_is_exact_to_the_bit_for_every_model(model: str) -> None:
    mobility = Mobility(model=model, speed_min_mps=2.0, speed_max_mps=40.0, pause_max_s=3.0)  # type: ignore[arg-type]
    scenario = Scenario(nodes=60, area_m=(2000.0, 1500.0), duration_s=40.0, mobility=mobility)
    where = scenario_movements(scenario, 5)
    assert where is not None
    plan = contact_plan(where, 150.0, 40.0)
    assert len(plan) > 20
    assert_same(plan, plan_of_all_pairs(where, 150.0, 40.0))


def test_a_node_far_out_and_a_fast_one_do_not_disturb() -> None:
    where = Movements([[(0.0, 0.0, 0.0)], [(0.0, 1e9, 1e9)], [(0.0, -1e6, 0.0), (20.0, 1e6, 0.0)], [(0.0, 3.0, 4.0)]])
    assert_same(contact_plan(where, 10.0, DURATION_S), plan_of_all_pairs(where, 10.0, DURATION_S))
    assert len(contact_plan(where, 10.0, DURATION_S)) == 3


def test_only_what_is_near_is_looked_at() -> None:
    """At constant density, four times the nodes make about four times the pairs of legs, not sixteen times."""
    pairs = []
    for nodes, side_m in ((500, 3162.0), (2000, 6324.0)):
        mobility = Mobility(speed_min_mps=5.0, speed_max_mps=20.0)
        scenario = Scenario(nodes=nodes, area_m=(side_m, side_m), duration_s=60.0, mobility=mobility)
        where = scenario_movements(scenario, 1)
        assert where is not None
        pairs.append(sum(len(one) for one, _ in near_pairs(Legs(where, 60.0), 200.0)))
    assert pairs[1] < 5 * pairs[0]
