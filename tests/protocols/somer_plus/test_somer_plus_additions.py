"""What the additions of SOMER-plus are for, step by step. Those that save events in a network at rest are tried in
`tests/protocols/trees/test_tree_delivery.py`."""

from typing import Any

import pytest

from roamcast.causal import parse_specification
from roamcast.interests import Intervals
from roamcast.protocols.api import NOBODY, Host, Site
from roamcast.protocols.somer_plus import SomerPlus
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.messages import Refresh
from roamcast.testing import TinyNet, line

SITE = Site(1000.0, 1000.0, 200.0, parse_specification("a: 0..10; b: 10..20; c: 20..30; a => b; b => c"))


def network(links: list[tuple[int, int]], roots: set[int], **parameters: Any) -> TinyNet[SomerPlus]:
    def make(host: Host) -> SomerPlus:
        node = SomerPlus(host, SomerPlusParameters(**parameters))
        node.roots.is_drawn = host.address in roots
        return node

    return TinyNet(links, make, site=SITE)


@pytest.mark.parametrize("settled", [True, False])
def test_with_settled_contention_a_leaf_between_equal_trees_stays_where_it_is(settled: bool) -> None:
    """Each neighbour in the other tree stands above leaf 2 by a level, and wins if the two are compared as they stand:
    1 / 2 > 1.325 / 3. As a child the leaf would be no better off than it is."""
    net = network(line(5), {0, 4}, merging=False, new_roots=False, settled_contention=settled)
    net.run(70.0)
    assert net.node(2).standing.level == 2
    assert (net.frames["Contention"] == 0) == settled


@pytest.mark.parametrize("rising", [True, False])
def test_with_rising_odds_two_nodes_far_from_all_others_soon_have_a_root(rising: bool) -> None:
    alone = []
    for seed in range(30):
        parameters = {"root_density": 0.01, "alpha": 3.0, "out_period_s": 1.0, "rising_odds": rising}
        net: TinyNet[Any] = TinyNet(line(2), "somer-plus", parameters, seed=seed)
        net.run(8.0)
        alone.append(net.node(0).role == "searching")
    assert (sum(alone) < 10) == rising


@pytest.mark.parametrize("ascends", [True, False])
def test_with_neighbour_ascent_an_event_does_not_wait_for_a_parent(ascends: bool) -> None:
    """Node 2 finds out that its parent 1 is dead when its event fails. 3, 4 and 5 lead to the root 6."""
    net = network([(0, 1), (1, 2), (2, 3), (3, 4), (4, 6)], {0, 6}, merging=False, neighbour_ascent=ascends)
    net.subscribe(6, Intervals.of((0, 100)))
    net.run(15.0)
    assert (net.node(2).root, net.node(3).root) == (0, 6)
    net.crash(1)
    event = net.publish(2, 1)
    net.run(0.1)
    assert net.receivers(event) == ([6] if ascends else [])


def test_a_root_that_absorbs_a_tree_is_not_absorbed_in_the_same_refresh_period() -> None:
    net = network(line(2), {0, 1}, merging_threshold=1)
    net.run(0.5)
    assert [net.node(node).root for node in (0, 1)] == [1, 1]
    call = Refresh(9, 100, 0, parent=NOBODY, absorbs=1)
    net.node(1).on_message(9, call)
    assert net.node(1).role == "root"
    net.run(11.0)
    net.node(1).on_message(9, call)
    assert net.node(1).root == 9


@pytest.mark.parametrize("subscriber", [0, 1])
def test_an_event_is_not_sent_toward_a_tree_that_was_absorbed(subscriber: int) -> None:
    """The root still knows the other tree's interest, but that tree is a branch of its own now."""
    net = network(line(4), {0, 3})
    net.subscribe(subscriber, Intervals.of((0, 100)))
    net.run(40.0)
    assert [net.node(node).root for node in range(4)] == [0, 0, 3, 3]
    net.link(0, 3)
    net.run(2.0)
    assert [net.node(node).root for node in range(4)] == [3, 3, 3, 3]
    crossings = net.frames["Crossing"]
    event = net.publish(3, 1)
    net.run(1.0)
    assert net.receivers(event) == [subscriber]
    assert net.frames["Crossing"] == crossings
