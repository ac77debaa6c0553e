"""Whatever well-formed nonsense a stranger sends: a node takes it or leaves it, the trees' invariants hold at every
step, and once the stranger is silent all nodes are served again. Malformed messages do not pass the codec."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.causal import Role
from roamcast.checkers.trees import check_no_cycles_among, check_roles_among
from roamcast.events import Event
from roamcast.interests import Intervals, Topics
from roamcast.protocols.api import NOBODY
from roamcast.protocols.somer.messages import (
    Advertisement,
    Announcement,
    Contention,
    Crossing,
    Entry,
    Leg,
    RouteReport,
    SomerMessages,
)
from roamcast.protocols.trees.messages import (
    Appraisal,
    Appraised,
    Disown,
    Dissolve,
    JoinReply,
    JoinRequest,
    Leave,
    Publication,
    Refresh,
    SequenceGrant,
    SequenceRequest,
    Subscription,
)
from roamcast.protocols.trees.standing import SEQUENCE_MAX
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 100))
NODES = 4
STRANGER = 5
addresses = st.integers(NOBODY, 5)
few = st.integers(0, 4)
sequences = st.one_of(few, st.sampled_from([SEQUENCE_MAX - 1, SEQUENCE_MAX]))
levels = st.one_of(few, st.just(2**31 - 1))
paths = st.lists(st.integers(0, 5), max_size=3).map(tuple)
types = st.lists(few, max_size=3).map(tuple)
distances = st.lists(st.tuples(addresses, levels), max_size=3).map(tuple)
floats = st.floats(allow_nan=False, allow_infinity=False)
interests = st.sampled_from([None, ALL, Topics.of("fire/**")])
roles = st.lists(st.tuples(addresses, st.builds(Role, types, types)), max_size=2).map(tuple)
events = st.builds(Event, st.integers(2**50, 2**50 + 9), st.just(0.0), few)
entries = st.builds(Entry, addresses, sequences, interests, interests, roles)
DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(SomerMessages)


def passes_the_codec(message: Any) -> bool:
    try:
        DECODER.decode(msgspec.msgpack.encode(message))
    except msgspec.ValidationError:
        return False
    return True


messages = st.one_of(
    st.builds(
        Refresh, addresses, sequences, levels, addresses, addresses, st.booleans(), interests, floats
    ),
    st.builds(JoinRequest, sequences, levels, st.booleans(), interests),
    st.builds(JoinReply, addresses, sequences, levels, floats),
    st.builds(Subscription, interests),
    st.builds(Leave),
    st.builds(Disown, addresses, sequences, levels),
    st.builds(SequenceRequest, sequences, addresses, levels, paths),
    st.builds(SequenceGrant, addresses, sequences, levels, addresses, paths),
    st.builds(Publication, levels, st.booleans(), events),
    st.builds(Appraisal, st.integers(0, 5), st.just(ALL), floats, paths),
    st.builds(Appraised, st.integers(0, 5), floats, paths),
    st.builds(RouteReport, distances),
    st.builds(Announcement, interests, roles),
    st.builds(
        Advertisement,
        addresses,
        addresses,
        st.booleans(),
        few,
        st.lists(st.tuples(entries, levels), max_size=2).map(tuple),
    ),
    st.builds(
        Crossing, levels, st.booleans(), events, st.lists(st.builds(Leg, addresses, paths), max_size=2).map(tuple)
    ),
    st.builds(Dissolve),
    st.builds(Contention, addresses, floats, levels, st.booleans()),
).filter(passes_the_codec)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, NODES - 1), messages), min_size=1, max_size=8))
def test_nonsense_breaks_no_invariant_and_its_effect_ends(said: list[tuple[int, Any]]) -> None:
    quick = {"refresh_period_s": 1.0, "advertisement_period_s": 1.0, "out_period_s": 1.0}  # so that lies expire soon
    net: TinyNet[Any] = TinyNet(line(NODES), "somer", {"root_density": 0.5, "alpha": 2.0, **quick})
    for node in range(NODES):
        net.subscribe(node, ALL)
    net.run(3.0)
    for receiver, message in said:
        net.node(receiver).on_message(STRANGER, message)
        nodes = {node: net.node(node) for node in range(NODES)}
        check_no_cycles_among(nodes)
        check_roles_among(nodes)
    for _ in range(8):
        net.run(5.0)
        check_no_cycles_among(nodes)
        check_roles_among(nodes)
    for publisher in range(NODES):
        event = net.publish(publisher, 7)
        net.run(2.0)
        assert net.receivers(event) == [node for node in range(NODES) if node != publisher]


@pytest.mark.parametrize("protocol", ["ps-maodv", "somer"])
def test_the_highest_sequence_number_ends_no_tree(protocol: str) -> None:
    """All nodes follow the stranger 9, whose refresh leaves no higher number. When it is gone they start over."""
    net: TinyNet[Any] = TinyNet(line(NODES), protocol, {"refresh_period_s": 1.0})
    for node in range(NODES):
        net.subscribe(node, ALL)
    net.run(4.0)
    for node in range(NODES):
        net.node(node).on_message(9, Refresh(9, SEQUENCE_MAX, 0, parent=NOBODY, absorbs=net.node(node).root))
    net.run(30.0 if protocol == "ps-maodv" else 90.0)
    event = net.publish(0, 7)
    net.run(5.0)
    assert net.receivers(event) == [1, 2, 3]
    assert max(net.node(node).standing.sequence for node in range(NODES)) < 1000


def test_a_neighbour_cannot_make_a_node_remember_without_bound() -> None:
    limits = {"neighbours_max": 20, "children_max": 10, "routes_max": 20, "entries_max": 20, "root_density": 1.0}
    net: TinyNet[Any] = TinyNet([], "somer", limits, nodes=1)
    net.run(2.0)
    node = net.node(0)
    for stranger in range(100, 400):
        node.on_message(stranger, Refresh(stranger, 1, 0, parent=NOBODY))
        node.on_message(stranger, Subscription(ALL))
        node.on_message(stranger, Announcement(ALL, ()))
        entry = Entry(stranger, 1, ALL, ALL)
        node.on_message(stranger, Advertisement(0, stranger, True, 1, ((entry, 0),)))
    assert len(list(node.neighbours.present(net.now_s))) <= 20
    assert len(node.children) <= 10
    assert len(node.routes.neighbouring_roots()) <= 20
    assert len(node.directory.roots()) <= 20


def test_long_chains_of_roots_and_targets_do_no_harm() -> None:
    net: TinyNet[Any] = TinyNet(line(NODES), "somer", {"root_density": 1.0, "merging": False})
    net.run(3.0)
    node = net.node(0)
    chain = tuple((Entry(root, 1, ALL, None), root) for root in range(100, 3000))
    node.on_message(1, Advertisement(0, 1, True, 1, chain))
    node.on_message(1, Crossing(1, True, Event(1 << 32, 0.0, 7), (Leg(0, tuple(range(100, 3000))),)))
    net.run(15.0)
    net.subscribe(3, ALL)
    net.run(45.0)
    event = net.publish(0, 7)
    net.run(2.0)
    assert net.receivers(event) == [3]


def crossing(*legs: Leg) -> Crossing:
    return Crossing(1, True, Event(1 << 32, 0.0, 7), legs)


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(crossing(), hops=-1),
        crossing(Leg(-2, ())),
        Refresh(-2, 0, 0, NOBODY),
        Refresh(0, 2**62, 0, NOBODY),
        JoinReply(0, -1, 0),
        JoinReply(0, 0, -1),
        RouteReport(((1, -1),)),
        Advertisement(0, 0, True, -1, ()),
    ],
)
def test_impossible_numbers_do_not_pass_the_codec(message: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=SomerMessages)
