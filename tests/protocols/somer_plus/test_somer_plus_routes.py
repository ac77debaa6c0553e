"""Paths between trees when nodes on them die and return."""

import msgspec
import pytest

from roamcast.events import Event, event_id
from roamcast.interests import Intervals
from roamcast.live.codec import DATAGRAM_BYTES_MAX
from roamcast.protocols.api import Host
from roamcast.protocols.catalogue import build_protocol, protocol_parameters
from roamcast.protocols.somer_plus import SomerPlus
from roamcast.protocols.somer_plus.messages import Advertisement, Crossing, Leg
from roamcast.testing import TinyNet, line, ring

ALL = Intervals.of((0, 1000))
NODES = 12
ROOTS = (0, 6)
RECOVERY_S = 2.0
"""A failed frame tells of a death at once; a join, a report and a stranded event's next try follow."""


def somer(host: Host) -> SomerPlus:
    return rooted(host, ROOTS)


def rooted(
    host: Host,
    roots: tuple[int, ...],
    advertisement_period_s: float = 1.0,
    newcomers: bool = True,
    recent_s: float = 6.0,
) -> SomerPlus:
    settings = {
        "refresh_period_s": 1.0,
        "join_wait_s": 0.2,
        "advertisement_period_s": advertisement_period_s,
        "newcomers": newcomers,
        "recent_s": recent_s,
        "root_density": float(host.address in roots),
    }
    protocol = build_protocol("somer-plus", host, protocol_parameters("somer-plus", settings))
    assert isinstance(protocol, SomerPlus)
    return protocol


def two_trees(seed: int) -> TinyNet[SomerPlus]:
    """A ring with the roots opposite each other; nodes 3 and 9 are as near to the one as to the other."""
    net = TinyNet(ring(NODES), somer, seed=seed)
    for address in net.addresses:
        net.subscribe(address, ALL)
    net.run(5.0)
    assert {net.node(address).root for address in net.addresses} == set(ROOTS)
    return net


@pytest.mark.parametrize("seed", range(1, 13))
@pytest.mark.parametrize("victim", [3, 4])
def test_events_take_the_other_way_round_once_a_border_node_is_dead(victim: int, seed: int) -> None:
    """With seed 5, node 3 is in the tree of 6 until 4 dies, and then becomes a child of 2, which had a route through
    it. Its ancestors must drop that route."""
    net = two_trees(seed)
    publisher = victim - 1
    net.crash(victim)
    net.publish(publisher, 1)
    net.run(RECOVERY_S)
    event = net.publish(publisher, 2)
    net.run(0.1)
    assert net.receivers(event) == [a for a in net.addresses if a not in (victim, publisher)]
    net.restart(victim)
    net.subscribe(victim, ALL)
    net.run(RECOVERY_S)
    event = net.publish(9, 3)
    net.run(0.1)
    assert net.receivers(event) == [a for a in net.addresses if a != 9]


def test_a_route_that_is_not_there_is_reported_away() -> None:
    net = TinyNet([*line(4), (3, 6)], somer)
    net.run(5.0)
    net.node(0).borders.routes.put(1, 99, 5)  # as if a report that takes it back had been lost
    net.node(1).borders.routes.put(2, 99, 5)
    net.host(0).send(1, Advertisement(99, 0, 1, climbs=False, entries=(), heard=-1))
    net.run(0.5)
    assert net.node(1).borders.routes.next_hop(99) is None  # 2 told it, and sent the advertisement back
    assert net.node(0).borders.routes.next_hop(99) is None  # which it repeated, so that 1 told it too


def three_in_a_row() -> TinyNet[SomerPlus]:
    """Roots 0, 6 and 9, six hops from end to end, that speak only of news."""
    links = [(0, 1), (1, 2), (2, 6), (6, 3), (3, 4), (4, 9)]
    net: TinyNet[SomerPlus] = TinyNet(
        links, lambda host: rooted(host, (0, 6, 9), advertisement_period_s=100.0), seed=1
    )
    net.run(20.0)
    return net


@pytest.mark.parametrize(("told", "heard"), [((6,), True), ((0, 6), False)])
def test_news_go_on_to_those_whom_the_teller_has_not_told(told: tuple[int, ...], heard: bool) -> None:
    """9 once said that 0 was its neighbour, but what counts is whom it told."""
    net = three_in_a_row()
    between = net.node(6)
    entry = between.link_state.overlay.entries[9]
    news = msgspec.structs.replace(entry, sequence=entry.sequence + 1, near=((0, 4), (6, 3)), interest=ALL)
    between.on_message(3, Advertisement(6, 9, 3, True, (news,), entry.sequence, told))
    net.run(4.0)
    assert net.node(0).link_state.overlay.sequence(9) == entry.sequence + heard


def test_an_advertisement_that_could_not_go_on_is_told_again() -> None:
    """When the root 6 tells 9 what it wants, node 3 has lost the way there for a moment."""
    net = three_in_a_row()
    net.subscribe(6, ALL)
    assert net.node(3).borders.routes.drop(4)
    before = len(net.records)
    net.node(6).link_state._advertise(0)
    net.run(0.1)
    assert [r for r in net.records[before:] if r.kind == "send" and r.node == 3 and "Advertisement" in r.text]  # back
    assert net.node(9).link_state.overlay.entries[6].interest is None
    net.run(3.0)
    assert net.node(9).link_state.overlay.entries[6].interest == ALL


@pytest.mark.parametrize("address", [0, 2])
@pytest.mark.parametrize("climbs", [False, True])
@pytest.mark.parametrize("root", [0, 6, 77])
def test_the_deepest_nest_of_legs_that_fits_a_datagram_does_no_harm(address: int, climbs: bool, root: int) -> None:
    net = two_trees(1)
    event = Event(event_id(5, 1), net.now_s, 1)
    leg = Leg(root)
    while len(msgspec.msgpack.encode(Crossing(1, climbs, event, (leg,), ()))) < DATAGRAM_BYTES_MAX:
        leg = Leg(root, False, (leg,))
    net.node(address).on_message(1, Crossing(1, climbs, event, (leg,), ()))
    net.run(5.0)
    after = net.publish(9, 3)
    net.run(0.1)
    assert net.receivers(after) == [a for a in net.addresses if a != 9]


def test_an_event_does_not_wait_for_a_parent_where_another_tree_is_near() -> None:
    """Node 2 finds out that its parent 1 is dead when its event fails; 3, 4 and 5 lead to the root 6, from where the
    event comes back to the rest of 2's own tree, which has another path to 6 through 7 and 8."""
    net = TinyNet([(0, 1), (1, 2), (2, 3), (3, 4), (4, 6), (6, 8), (8, 7), (7, 0)], somer, seed=1)
    for subscriber in (0, 7, 8):
        net.subscribe(subscriber, ALL)
    net.run(5.0)
    assert (net.node(2).root, net.node(3).root) == (0, 6)
    net.crash(1)
    event = net.publish(2, 1)
    net.run(0.1)
    assert net.node(2).role == "searching"
    assert net.receivers(event) == [0, 7, 8]


def test_who_is_taken_for_a_node_of_another_tree_sets_it_right() -> None:
    net = TinyNet([(0, 1), (0, 2), (1, 2), (0, 3), (3, 4), (4, 6)], somer, seed=1)
    net.subscribe(6, ALL)
    net.run(5.0)
    net.node(2).borders.routes.put(1, 6, 1)  # as if 2 had not heard that 1 left the tree of 6
    net.node(0).borders.routes.put(2, 6, 1)
    before = net.frames["Crossing"]
    event = net.publish(0, 1)
    net.run(0.02)
    assert net.node(2).borders.routes.next_hop(6) is None
    net.run(1.0)
    assert net.receivers(event) == [6]
    assert net.frames["Crossing"] - before < 12


@pytest.mark.parametrize("newcomers", [True, False])
def test_those_who_came_with_an_absorbed_tree_get_what_the_other_had_before(newcomers: bool) -> None:
    """Node 3 stands for them: when the event went through its tree, it did not get it. A copy for the tree of 77, which
    the root 0 has absorbed, makes it go down again, through nodes that have it already."""
    net = TinyNet(line(4), lambda host: rooted(host, ROOTS, newcomers=newcomers, recent_s=0.0), seed=1)
    net.subscribe(1, ALL)
    net.subscribe(2, ALL)
    net.run(5.0)
    event = net.publish(0, 1)
    net.run(0.1)
    net.subscribe(3, ALL)
    net.run(1.0)
    assert net.receivers(event) == [1, 2]
    copy = Crossing(1, True, event, (Leg(77),), ())
    net.node(0).link_state.absorbed[77] = net.now_s
    net.node(0).on_message(1, copy)
    net.run(0.1)
    assert net.receivers(event) == ([1, 2, 3] if newcomers else [1, 2])


@pytest.mark.parametrize("at_rest", [True, False])
def test_news_are_told_at_once_where_nobody_has_gone_lately(at_rest: bool) -> None:
    net = three_in_a_row()
    if not at_rest:
        for root in (0, 6, 9):
            net.node(root).borders.missed_s = net.now_s
    net.subscribe(9, ALL)
    net.run(0.5)
    assert (net.node(0).link_state.overlay.entries[9].interest == ALL) == at_rest
    net.run(5.0)
    assert net.node(0).link_state.overlay.entries[9].interest == ALL
