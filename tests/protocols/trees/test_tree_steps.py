"""The shared tree, step by step on hand-made links."""

from typing import Any

import pytest

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals, Topics
from roamcast.protocols.api import NOBODY, Message
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.protocols.trees.messages import JoinReply, Refresh
from roamcast.protocols.trees.metrics import ParentOffer, combination, publication_overhead, shortest_path
from roamcast.protocols.trees.standing import NEWBORN, Standing
from roamcast.testing import TinyNet, line, ring

LOW, HIGH, ALL = Intervals.of((0, 50)), Intervals.of((50, 100)), Intervals.of((0, 100))


def tree(links: list[tuple[int, int]], protocol: str = "ps-maodv", **parameters: Any) -> TinyNet[Any]:
    net: TinyNet[Any] = TinyNet(links, protocol, parameters)
    net.run(4.0)
    return net


def roots(net: TinyNet[Any]) -> set[int]:
    return {net.node(address).root for address in net.addresses if net.host(address).alive}


def test_standing_orders_by_newer_sequence_then_lower_level() -> None:
    assert Standing(2, 9).above(Standing(1, 0))
    assert Standing(1, 0).above(Standing(1, 1))
    assert not Standing(1, 1).above(Standing(1, 1))
    assert Standing(1, 50).above(NEWBORN)


def test_metrics_rank_by_level_overhead_and_their_product() -> None:
    near = ParentOffer(7, 0, Standing(1, 1), overhead=0.9)
    far = ParentOffer(3, 0, Standing(1, 4), overhead=0.1)
    root = ParentOffer(5, 5, Standing(1, 0), overhead=0.4)
    assert min([near, far, root], key=shortest_path) is root
    assert min([near, far, root], key=publication_overhead) is far
    assert min([near, far, root], key=combination) is root  # 1 x 0.4 against 5 x 0.1 and 2 x 0.9
    assert combination(root)[0] > 0  # a root does not win by being at level 0


@pytest.mark.parametrize("protocol", ["ps-maodv", "sp-combo", "dsapst"])
def test_one_tree_forms_over_all_nodes(protocol: str) -> None:
    for links in (line(7), ring(8), [(0, node) for node in range(1, 6)]):
        assert len(roots(tree(links, protocol))) == 1


def test_an_event_climbs_to_the_root_and_descends_only_where_it_is_wanted() -> None:
    net = tree([(0, 1), (1, 2), (1, 3), (3, 4)])
    net.subscribe(2, LOW)
    net.subscribe(4, HIGH)
    net.run(1.0)
    low, high = net.publish(0, 10), net.publish(0, 60)
    net.run(1.0)
    assert net.receivers(low) == [2]
    assert net.receivers(high) == [4]


def test_an_application_is_not_served_its_own_events() -> None:
    net = tree(line(3))
    net.subscribe(0, ALL)
    net.subscribe(2, ALL)
    net.run(1.0)
    event = net.publish(0, 10)
    net.run(1.0)
    assert net.receivers(event) == [2]


def test_a_subscription_climbs_until_it_is_covered_and_is_taken_back() -> None:
    net = tree(line(5))
    root = roots(net).pop()
    leaf = 0 if root > 2 else 4
    parent = net.node(leaf).parent
    net.subscribe(parent, ALL)
    net.run(1.0)
    before = net.frames["Subscription"]
    net.subscribe(leaf, LOW)
    net.run(1.0)
    assert net.frames["Subscription"] == before + 1  # the parent wants it all already
    net.unsubscribe(parent, ALL)
    net.run(1.0)
    assert net.node(root).effective_interest == LOW
    net.unsubscribe(leaf, LOW)
    net.run(1.0)
    assert net.node(root).effective_interest is None


def test_partial_overlap_loses_nothing() -> None:
    """Stopping at the first overlap, as the thesis words it, would leave 50 to 60 unknown to the root."""
    net = tree(line(4))
    net.subscribe(1, Intervals.of((0, 55)))
    net.subscribe(0, Intervals.of((40, 60)))
    net.subscribe(3, Intervals.of((45, 60)))
    net.run(1.0)
    event = net.publish(2, 58)
    net.run(1.0)
    assert net.receivers(event) == [0, 3]


def test_topics_work_as_intervals_do() -> None:
    net = tree(line(4))
    net.subscribe(0, Topics.of("fire/**"))
    net.subscribe(3, Topics.of("*/north"))
    net.run(1.0)
    fire, flood = net.publish(1, "fire/north"), net.publish(1, "flood/north")
    net.run(1.0)
    assert net.receivers(fire) == [0, 3]
    assert net.receivers(flood) == [3]


def test_a_broken_link_is_noticed_by_the_next_event_which_then_takes_the_new_way() -> None:
    net = tree(ring(6))
    root = roots(net).pop()
    net.subscribe(root, ALL)
    net.run(1.0)
    child = next(a for a in net.addresses if net.node(a).parent == root)
    net.unlink(child, root)
    event = net.publish(child, 10)
    net.run(3.0)
    assert net.receivers(event) == [root]
    assert net.node(child).parent not in (root, NOBODY)


def test_children_come_along_when_their_parent_finds_another_one() -> None:
    net = tree([(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 2)])
    net.subscribe(4, ALL)
    net.run(1.0)
    for a, b in ((1, 2), (5, 2), (0, 1)):
        if net.node(2).parent in (a, b) or net.node(a).parent == b or net.node(b).parent == a:
            net.unlink(a, b)
            break
    net.publish(0, 1)
    net.run(8.0)
    event = net.publish(0, 10)
    net.run(1.0)
    assert net.receivers(event) == [4]


def test_a_fragment_without_its_root_elects_another() -> None:
    net = tree(line(6))
    root = roots(net).pop()
    net.crash(root)
    net.run(30.0)
    for side in (range(root), range(root + 1, 6)):
        found = {net.node(address).root for address in side}
        assert len(found) <= 1
        assert root not in found


def test_a_node_that_lost_its_memory_disowns_those_who_take_it_for_their_parent() -> None:
    net = tree(line(5))
    root = roots(net).pop()
    inner = next(a for a in (1, 2, 3) if a != root and len(net.node(a).children))
    net.restart(inner)
    net.run(20.0)
    assert len(roots(net)) == 1
    net.subscribe(0, ALL)
    net.subscribe(4, ALL)
    net.run(2.0)
    event = net.publish(2, 10)
    net.run(3.0)
    assert net.receivers(event) == [0, 4]


@pytest.mark.parametrize("word", [JoinReply(1, 50, 2), Refresh(1, 50, 2, parent=7)])
def test_a_root_that_returns_does_not_join_the_tree_it_left_behind(word: Message) -> None:
    """Node 0, from the depth of that tree, does not know yet that its root was gone."""
    net = tree(line(3))
    net.restart(1)
    net.run(0.2)
    net.node(1).on_message(0, word)
    for _ in range(40):
        net.run(0.05)
        assert net.node(1).role == "root" or net.node(1).root != 1


def test_a_node_that_leaves_says_so() -> None:
    net = tree(line(3))
    leaf = next(a for a in net.addresses if not len(net.node(a).children))
    parent = net.node(leaf).parent
    net.node(leaf).leave()
    net.run(0.1)
    assert leaf not in net.node(parent).children


def test_the_lower_root_yields_when_two_trees_meet() -> None:
    net = tree([*line(3), (4, 5)])
    (high,) = {net.node(a).root for a in (4, 5)}
    net.link(2, 4)
    net.run(15.0)
    assert roots(net) == {high}


def test_a_neighbour_that_stands_too_low_gets_a_newer_sequence_number_first() -> None:
    # 5's parent goes; its only other neighbour, 4, stands deeper than 5 does, and not below it.
    net = tree([(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (4, 5)])
    root = roots(net).pop()
    deep = [a for a in net.addresses if a != root and not len(net.node(a).children)]
    for child in deep:
        parent = net.node(child).parent
        other = next((n for n in net.neighbours(child) if n != parent), None)
        if other is not None and net.node(other).standing.level >= net.node(child).standing.level:
            net.unlink(child, parent)
            net.publish(child, 1)
            net.run(4.0)
            assert net.node(child).parent == other
            assert net.frames["SequenceGrant"] > 0
            return
    pytest.fail("no such node in this tree")


@pytest.mark.parametrize(
    ("protocol", "field", "value"),
    [
        ("ps-maodv", "refresh_period_s", 0),
        ("ps-maodv", "jitter", 1.5),
        ("sp-combo", "pool", 0),
        ("dsapst", "probe_period_s", -1),
        ("somer", "root_density", 1.2),
        ("somer", "alpha", 0.5),
        ("somer", "merging_threshold", 0),
    ],
)
def test_nonsense_parameters_are_refused(protocol: str, field: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=field):
        protocol_parameters(protocol, {field: value})


@pytest.mark.parametrize(("wanted", "parent"), [(LOW, 2), (HIGH, 1)])
def test_sp_combo_joins_the_branch_that_carries_its_events_already(wanted: Intervals, parent: int) -> None:
    # 3 may join under 1 or 2, both children of the root 4; 1 wants high numbers, 2 low ones.
    links = [(1, 4), (2, 4), (1, 3), (2, 3)]
    for seed in range(20):
        net: TinyNet[Any] = TinyNet(links, "sp-combo", seed=seed)
        net.crash(3)
        net.subscribe(1, HIGH)
        net.subscribe(2, LOW)
        net.run(6.0)
        if roots(net) == {4}:
            break
    assert roots(net) == {4}
    net.restart(3)
    net.subscribe(3, wanted)
    net.run(2.0)
    assert net.node(3).parent == parent
    assert net.frames["Appraisal"] > 0  # the branch that did not want it had to ask further up


def test_dsapst_moves_to_where_fewer_strangers_relay() -> None:
    # 5 hangs below 2, which wants other things; 4 is as near, and wants what 5 wants.
    links = [(1, 9), (1, 2), (2, 5), (3, 9), (3, 4), (4, 5)]
    moved = 0
    for seed in range(30):
        net: TinyNet[Any] = TinyNet(links, "dsapst", {"probe_period_s": 2.0}, seed=seed)
        for stranger in (1, 2):
            net.subscribe(stranger, HIGH)
        for friend in (3, 4, 5):
            net.subscribe(friend, LOW)
        net.run(26.0)
        if roots(net) == {9} and net.node(4).parent == 3:
            assert net.node(5).parent == 4
            moved += any(r.node == 5 and r.text.startswith("is parent peer=2") for r in net.records)
    assert moved > 0


def test_dsapst_the_root_and_its_children_do_not_probe() -> None:
    net: TinyNet[Any] = TinyNet([(0, 1), (0, 2), (1, 2)], "dsapst", {"probe_period_s": 1.0})
    for node in (0, 1, 2):
        net.subscribe(node, ALL)
    net.run(10.0)
    assert net.frames["Probe"] == 0


def test_a_tree_that_has_a_newer_sequence_number_than_is_known_merges_all_the_same() -> None:
    """Without another word from it the two would stay apart until its next refresh, here a minute."""
    net = tree([(0, 1), (2, 3)], refresh_period_s=60.0)
    lower = min(roots(net))
    for address in net.addresses:
        node = net.node(address)
        if node.root == lower:
            node.place.standing = Standing(50, node.standing.level)
    net.link(1, 2)
    inside, outside = (1, 2) if net.node(1).root == lower else (2, 1)
    stale = Refresh(lower, 1, net.node(inside).standing.level, net.node(inside).parent)
    net.node(outside).on_message(inside, stale)
    net.run(2.0)
    assert len(roots(net)) == 1


@pytest.mark.parametrize(("recent_s", "receivers"), [(30.0, [2]), (0.0, [])])
def test_a_branch_that_moved_gets_what_it_missed_from_its_new_parent(recent_s: float, receivers: list[int]) -> None:
    """The tree is 3 - 1 - 0 - 2. Node 2 moves from 0 to 1 while 0 publishes; 1 saw the event on its way to the root."""
    net = tree([(0, 1), (0, 2), (1, 3)], recent_s=recent_s)
    assert [net.node(address).parent for address in (1, 0, 2)] == [3, 1, 0]
    net.subscribe(2, ALL)
    net.run(1.0)
    net.unlink(0, 2)
    event = net.publish(0, 10)
    net.run(0.5)
    assert net.receivers(event) == []
    net.link(1, 2)
    net.run(20.0)  # it finds out by three missed refreshes
    assert net.node(2).parent == 1
    assert net.receivers(event) == receivers


def test_recent_events_are_off_as_published() -> None:
    for setting in ("table", "published"):
        assert protocol_parameters("dsapst", {"setting": setting}).recent_s == 0  # type: ignore[attr-defined]
    assert protocol_parameters("somer", {}).recent_s == 0  # type: ignore[attr-defined]
