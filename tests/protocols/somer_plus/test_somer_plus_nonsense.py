"""Whatever well-formed nonsense a stranger sends to SOMER-plus: the trees' invariants hold at every step, and once the
stranger is silent all nodes are served again."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.causal import Role
from roamcast.checkers.trees import check_no_cycles_among, check_roles_among
from roamcast.events import Event
from roamcast.interests import Intervals, Topics
from roamcast.protocols.api import NOBODY
from roamcast.protocols.somer_plus.messages import (
    Advertisement,
    Contention,
    Crossing,
    Entry,
    Leg,
    RoleReport,
    RouteReport,
)
from roamcast.protocols.trees.messages import Dissolve, JoinRequest, Refresh, SequenceRequest, Subscription
from roamcast.protocols.trees.standing import SEQUENCE_MAX
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 100))
NODES = 4
STRANGER = 5
addresses = st.integers(NOBODY, 5)
members = st.integers(0, 5)
few = st.integers(0, 4)
sequences = st.one_of(few, st.sampled_from([SEQUENCE_MAX - 1, SEQUENCE_MAX]))
levels = st.one_of(few, st.just(2**31 - 1))
paths = st.lists(st.integers(0, 5), max_size=3).map(tuple)
types = st.lists(few, max_size=3).map(tuple)
distances = st.lists(st.tuples(members, levels), max_size=3).map(tuple)
floats = st.floats(0, 1e9)
interests = st.sampled_from([None, ALL, Topics.of("fire/**")])
roles = st.lists(st.tuples(members, st.builds(Role, types, types)), max_size=2).map(tuple)
legs = st.recursive(
    st.builds(Leg, addresses, st.booleans()),
    lambda onward: st.builds(Leg, addresses, st.booleans(), st.lists(onward, max_size=2).map(tuple)),
    max_leaves=4,
)
messages = st.one_of(
    st.builds(Refresh, members, sequences, levels, addresses, addresses, st.booleans(), interests, floats),
    st.builds(JoinRequest, sequences, levels, st.booleans(), interests),
    st.builds(Subscription, interests),
    st.builds(SequenceRequest, sequences, addresses, levels, paths),
    st.builds(RouteReport, distances),
    st.builds(RoleReport, roles),
    st.builds(
        Advertisement,
        members,
        members,
        few,
        st.booleans(),
        st.lists(st.builds(Entry, members, sequences, distances, interests, roles, paths), max_size=2).map(tuple),
        st.integers(-1, 4),
    ),
    st.builds(
        Crossing,
        levels,
        st.booleans(),
        st.builds(Event, st.integers(2**50, 2**50 + 9), st.just(0.0), few),
        st.lists(legs, max_size=2).map(tuple),
        paths,
        st.integers(0, 15),
        st.booleans(),
    ),
    st.builds(Dissolve),
    st.builds(Contention, floats, levels, st.booleans()),
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, NODES - 1), messages), min_size=1, max_size=8))
def test_nonsense_breaks_no_invariant_and_its_effect_ends(said: list[tuple[int, Any]]) -> None:
    quick = {"refresh_period_s": 1.0, "advertisement_period_s": 1.0, "out_period_s": 1.0, "root_density": 0.5}
    net: TinyNet[Any] = TinyNet(line(NODES), "somer-plus", quick)
    for node in range(NODES):
        net.subscribe(node, ALL)
    net.run(3.0)
    nodes = {node: net.node(node) for node in range(NODES)}
    for receiver, message in said:
        net.node(receiver).on_message(STRANGER, message)
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
