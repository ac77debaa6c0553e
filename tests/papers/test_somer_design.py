"""SOMER step by step: each test shows what a section of the thesis says."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.causal import parse_specification
from roamcast.interests import Intervals
from roamcast.protocols.api import NOBODY, Host, Site
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.somer import Somer
from roamcast.protocols.trees.messages import Refresh
from roamcast.testing import TinyNet, grid, line

ALL = Intervals.of((0, 100))
RESTFUL: dict[str, Any] = {"merging": False, "new_roots": False}


def network(links: list[tuple[int, int]], roots: set[int], site: Site | None = None, **more: Any) -> TinyNet[Somer]:
    """A network whose roots at the start are given, not drawn."""

    def make(host: Host) -> Somer:
        somer = Somer(host, SomerParameters(**more))
        somer._starts_as_root = host.address in roots
        return somer

    return TinyNet(links, make, site=site or Site(1000.0, 1000.0, 200.0))


def trees(net: TinyNet[Somer]) -> dict[int, int]:
    return {address: net.node(address).root for address in net.addresses}


def levels(net: TinyNet[Somer]) -> dict[int, int]:
    return {address: net.node(address).standing.level for address in net.addresses}


def test_4_2_a_joining_node_takes_the_neighbour_nearest_to_the_root() -> None:
    # 4 hears 3 (level 3), 2 (level 2) and 1 (level 1).
    net = network([(0, 1), (1, 2), (2, 3), (1, 4), (2, 4), (3, 4)], {0}, **RESTFUL)
    net.run(3.0)
    assert levels(net) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 2}
    assert net.node(4).parent == 1


def test_4_3_1_root_selection_follows_the_density() -> None:
    shares = []
    for density in (0.0, 0.3, 1.0):
        made = [TinyNet([], "somer", {"root_density": density}, nodes=1, seed=seed) for seed in range(200)]
        for net in made:
            net.run(1.0)
        shares.append(sum(net.node(0).role == "root" for net in made) / 200)  # type: ignore[attr-defined]
    assert shares[0] == 0.0
    assert 0.2 < shares[1] < 0.4
    assert shares[2] == 1.0


def test_4_3_1_trees_merge_if_their_roots_are_within_the_threshold_and_the_higher_address_survives() -> None:
    for first, second, hops in ((0, 2, 2), (2, 0, 2)):
        order = {0: first, 1: 1, 2: second}
        net = network([(order[0], 1), (1, order[2])], {0, 2}, merging_threshold=hops)
        net.run(25.0)
        assert set(trees(net).values()) == {2}
    apart = network(line(4), {0, 3}, merging_threshold=2)
    apart.run(25.0)
    assert set(trees(apart).values()) == {0, 3}
    off = network(line(3), {0, 2}, merging=False)
    off.run(25.0)
    assert set(trees(off).values()) == {0, 2}


def test_4_3_1_a_root_agrees_to_one_merge_per_refresh_period() -> None:
    # 4 is two hops from 0 and 2 alike; both trees meet it at once.
    net = network([(0, 1), (1, 4), (2, 3), (3, 4)], {0, 2, 4}, merging_threshold=2)
    net.run(9.0)
    assert sorted(set(trees(net).values())) in ([0, 4], [2, 4])
    net.run(30.0)
    assert set(trees(net).values()) == {4}


def test_4_3_1_a_root_that_absorbs_a_tree_is_not_absorbed_in_the_same_refresh_period() -> None:
    net = network(line(2), {0, 1}, merging_threshold=1)
    net.run(0.5)
    assert trees(net) == {0: 1, 1: 1}
    call = Refresh(9, 100, 0, parent=NOBODY, absorbs=1)
    net.node(1).on_message(9, call)
    assert net.node(1).role == "root"
    net.run(11.0)
    net.node(1).on_message(9, call)
    assert net.node(1).root == 9


def test_4_3_1_a_node_far_from_its_root_branches_off_and_crops_until_levels_meet() -> None:
    net = network(line(14), {0}, merging=False, root_density=0.5, alpha=2.0, new_root_threshold=7)
    net.run(8.0)
    assert set(trees(net).values()) == {0}
    assert levels(net)[13] == 13
    net.run(4.0)  # everybody above level 7 draws at the next refresh, and alpha D_T is 1
    assert len(set(trees(net).values())) > 1
    at = levels(net)
    for a, b in line(14):
        assert abs(at[a] - at[b]) <= 1, (trees(net), at)
    off = network(line(14), {0}, merging=False, new_roots=False, root_density=0.5, alpha=2.0)
    off.run(30.0)
    assert set(trees(off).values()) == {0}


def test_4_3_1_a_node_without_a_tree_draws_after_the_out_period() -> None:
    net = network(line(3), set(), root_density=0.5, alpha=2.0, out_period_s=5.0)
    net.run(4.9)
    assert {net.node(a).role for a in net.addresses} == {"searching"}
    net.run(3.0)
    assert len(set(trees(net).values())) == 1
    assert NOBODY not in trees(net).values()


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[tuple[int, int]], set[int]]:
    """A connected graph and some roots in it."""
    nodes = draw(st.integers(4, 16))
    links = {(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)}
    extra = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    links |= draw(st.sets(extra, max_size=nodes))
    return sorted(links), draw(st.sets(st.integers(0, nodes - 1), min_size=2, max_size=4))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(forests())
def test_4_3_2_theorem_4_1_route_reports_find_the_shortest_route_between_neighbouring_roots(
    forest: tuple[list[tuple[int, int]], set[int]],
) -> None:
    links, roots = forest
    net = network(links, roots, **RESTFUL)
    net.run(25.0)
    tree, level = trees(net), levels(net)
    shortest: dict[tuple[int, int], int] = {}
    for a, b in links:
        for here, there in ((a, b), (b, a)):
            if tree[here] != tree[there]:
                pair = (tree[here], tree[there])
                shortest[pair] = min(shortest.get(pair, 99), level[here] + level[there] + 1)
    reported = {(root, other): hops for root in roots for other, hops in net.node(root).routes.summary()}
    assert reported == shortest
    for (root, other), hops in shortest.items():
        here, walked = root, 0
        while tree[here] == root:
            next_hop = net.node(here).routes.next_hop(other)
            assert next_hop is not None
            here, walked = next_hop, walked + 1
        assert tree[here] == other
        assert walked + level[here] == hops


def test_4_3_2_an_event_takes_one_copy_per_shared_next_hop() -> None:
    # The roots 4 and 6 are both reached from root 0 through 1, then 2.
    links = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5), (5, 6)]
    net = network(links, {0, 4, 6}, **RESTFUL)
    for subscriber in (4, 6):
        net.subscribe(subscriber, ALL)
    net.run(15.0)
    before = net.frames["Crossing"]
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [4, 6]
    sent = [r for r in net.records if r.kind == "send" and "Crossing" in r.text and r.node == 0 and r.time_s >= 15.0]
    assert len(sent) == 1
    assert net.frames["Crossing"] - before == 6  # each link of the way to 4 and 6 once


def test_4_3_2_an_event_reaches_trees_that_are_not_neighbours() -> None:
    net = network(line(16), {0, 5, 10, 15}, **RESTFUL)
    net.subscribe(15, ALL)
    net.subscribe(7, Intervals.of((50, 60)))
    net.run(15.0)
    event, other = net.publish(1, 42), net.publish(1, 55)
    net.run(1.0)
    assert net.receivers(event) == [15]
    assert net.receivers(other) == [7, 15]


def test_4_3_2_a_tree_that_wants_nothing_is_spared() -> None:
    net = network(line(8), {0, 7}, **RESTFUL)
    net.subscribe(7, Intervals.of((50, 60)))
    net.run(15.0)
    before = net.frames["Crossing"]
    net.publish(0, 42)
    net.run(1.0)
    assert net.frames["Crossing"] == before


CAUSAL = Site(1000.0, 1000.0, 200.0, parse_specification("a: 0..10; b: 10..20; c: 20..30; a => b; b => c"))


def contended(**more: Any) -> TinyNet[Somer]:
    """A line of nine nodes between the roots 0 and 8; the causal nodes are all near 0."""
    net = network(line(9), {0, 8}, CAUSAL, **{**RESTFUL, **more})
    for node, publishes, subscribes in ((0, 0, None), (1, 10, 0), (2, 20, 10)):
        net.node(node).advertise(Intervals.of((publishes, publishes + 10)))
        if subscribes is not None:
            net.subscribe(node, Intervals.of((subscribes, subscribes + 10)))
    return net


def test_5_2_the_tree_with_more_potential_gains_leaves_until_the_local_potentials_are_close() -> None:
    net = contended()
    net.run(9.0)
    size = sum(root == 0 for root in trees(net).values())
    net.run(120.0)
    grown = sum(root == 0 for root in trees(net).values())
    assert grown > size
    settled = trees(net)
    net.run(60.0)
    assert trees(net) == settled
    border = max(node for node, root in settled.items() if root == 0)
    here, there = net.node(border), net.node(border + 1)
    offered, theirs = here.potential / (here.standing.level + 2), there.potential / (there.standing.level + 1)
    assert offered <= theirs * 1.325 or len(there.children) or there.role == "root"


def test_5_2_a_leaf_between_equal_trees_stays_where_it_is() -> None:
    """Each neighbour in the other tree stands above it by a level, and would win if the two were compared as they
    stand: 1 / 2 > 1.325 / 3. As a child it would be no better off than it is."""
    net = network([(0, 1), (1, 2), (2, 3), (3, 4)], {0, 4}, CAUSAL, **RESTFUL)
    net.run(9.0)
    before = trees(net)
    net.run(60.0)
    assert net.node(2).potential > 0
    assert net.node(2).standing.level == 2
    assert trees(net) == before
    assert net.frames["Contention"] == 0


def test_5_2_a_leaf_contends_with_the_one_that_would_win_most_clearly() -> None:
    """Node 3, a child of the root 2, hears node 4 of the tree of 0 and node 5 of that of 1. Both would win; the causal
    nodes of the latter stand higher in the graph."""
    net = network([(0, 4), (4, 3), (1, 5), (5, 3), (2, 3)], {0, 1, 2}, CAUSAL, **RESTFUL)
    for publisher, subscriber in ((0, 4), (1, 5)):
        net.node(publisher).advertise(Intervals.of((0, 10)))
        net.subscribe(subscriber, Intervals.of((0, 10)))
        net.node(subscriber).advertise(Intervals.of((10, 20)))
    net.subscribe(0, Intervals.of((10, 20)))
    net.node(0).advertise(Intervals.of((20, 30)))
    net.run(60.0)
    potentials = {node: net.node(node).potential for node in (2, 4, 5)}
    assert 0 < potentials[2] < potentials[4] < potentials[5]
    asked_s = [r.time_s for r in net.records if r.node == 3 and r.kind == "send" and "Contention" in r.text]
    assert 0 < len(asked_s) <= 2  # the first time before all potentials were known
    assert all(later_s - earlier_s > 9.0 for earlier_s, later_s in pairwise(asked_s))
    assert net.node(3).root == 1


def test_5_2_a_wide_delta_band_stops_contention() -> None:
    net = contended(delta=1000.0)
    net.run(9.0)
    before = trees(net)
    net.run(60.0)
    assert trees(net) == before


def test_5_2_contention_is_held_off_where_a_threshold_would_be_violated() -> None:
    net = contended(new_roots=True, new_root_threshold=4, root_density=0.0)
    net.run(120.0)
    assert max(node for node, root in trees(net).items() if root == 0) <= 4
    close = network(line(3), {0}, CAUSAL, merging_threshold=5)
    close.run(3.0)
    assert not close.node(2)._may_contend(2)  # 2 + 2 + 1 hops between the roots: these trees merge
    assert close.node(2)._may_contend(3)


def test_5_2_without_awareness_nobody_contends() -> None:
    net = contended(causality=False)
    net.run(60.0)
    assert net.frames["Contention"] == 0
    assert net.frames["RoleReport"] == 0


def test_trees_on_a_grid_cover_everybody_exactly_once() -> None:
    net = network(grid(6, 6), {0, 20, 35})
    net.run(40.0)
    assert NOBODY not in trees(net).values()
    for address in net.addresses:
        node = net.node(address)
        assert (node.role == "root") == (node.root == address)
