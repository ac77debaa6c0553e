"""Whatever well-formed nonsense a neighbour sends, a node takes it or leaves it; what is not well formed is dropped."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.events import Event
from roamcast.protocols.api import NOBODY
from roamcast.protocols.somer.messages import (
    Advertisement,
    Contention,
    Crossing,
    Entry,
    Leg,
    RouteReport,
    SomerMessages,
)
from roamcast.protocols.trees.messages import Disown, JoinReply, JoinRequest, Refresh, SequenceGrant, SequenceRequest
from roamcast.testing import TinyNet, line

addresses = st.integers(NOBODY, 5)
few = st.integers(0, 4)
paths = st.lists(addresses, max_size=3).map(tuple)
distances = st.lists(st.tuples(addresses, few), max_size=3).map(tuple)
floats = st.floats()
legs = st.recursive(
    st.builds(Leg, addresses, st.booleans()),
    lambda onward: st.builds(Leg, addresses, st.booleans(), st.lists(onward, max_size=2).map(tuple)),
    max_leaves=4,
)
messages = st.one_of(
    st.builds(Refresh, addresses, few, few, addresses, addresses, st.booleans(), st.none(), floats),
    st.builds(JoinRequest, few, few, st.booleans()),
    st.builds(JoinReply, addresses, few, few, floats),
    st.builds(Disown, addresses, few, few),
    st.builds(SequenceRequest, few, addresses, few, paths),
    st.builds(SequenceGrant, addresses, few, few, addresses, paths),
    st.builds(RouteReport, distances),
    st.builds(
        Advertisement,
        addresses,
        addresses,
        few,
        st.booleans(),
        st.lists(st.builds(Entry, addresses, few, distances, st.none()), max_size=2).map(tuple),
        st.integers(-1, 4),
    ),
    st.builds(
        Crossing,
        few,
        st.booleans(),
        st.builds(Event, st.integers(0, 2**40), st.just(0.0), few),
        st.lists(legs, max_size=2).map(tuple),
        paths,
        st.integers(0, 255),
        st.booleans(),
    ),
    st.builds(Contention, floats, few, st.booleans()),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), messages), min_size=1, max_size=8))
def test_nonsense_of_any_kind_is_survived(said: list[tuple[int, int, Any]]) -> None:
    net: TinyNet[Any] = TinyNet(line(4), "somer", {"root_density": 0.5, "out_period_s": 1.0})
    net.run(3.0)
    for receiver, sender, message in said:
        net.node(receiver).on_message(sender, message)
    net.run(20.0)


def crossing(*ways: Leg) -> Crossing:
    return Crossing(1, True, Event(1 << 32, 0.0, 7), ways, ())


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(crossing(), tries=-1),
        msgspec.structs.replace(crossing(), hops=-1),
        Refresh(-2, 0, 0, NOBODY),
        JoinReply(0, -1, 0),
        JoinReply(0, 0, -1),
        RouteReport(((1, -1),)),
        Advertisement(0, 0, 1, True, (), -2),
    ],
)
def test_impossible_numbers_do_not_pass_the_codec(message: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=SomerMessages)
