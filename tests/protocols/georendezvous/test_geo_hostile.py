"""What a peer may send: nothing ends, swells or poisons a node."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import msgspec
import pytest

from roamcast.interests import Topics
from roamcast.live.codec import Codec, Datagram, DatagramKind, DropReason
from roamcast.protocols.api import NOBODY
from roamcast.protocols.georendezvous.clients import Following, encoded, following
from roamcast.protocols.georendezvous.messages import (
    Attract,
    Beacon,
    Entry,
    ForwardedNotification,
    Found,
    Leg,
    Messages,
    Packet,
    Put,
    Replica,
)
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.georendezvous.routing import COPIES_MAX, DROP_COPY

Build = Callable[..., Any]
CODEC = Codec("net", "georendezvous", Messages)
CARS = Topics.of("cars")
HEADER = CODEC.encode(Datagram(DatagramKind.BROADCAST, 1))


def decoded(*fields: Any) -> Datagram | DropReason:
    return CODEC.decode(HEADER + msgspec.msgpack.encode(fields))


@pytest.mark.parametrize("coordinate", [nan, inf, -inf, 1.5, 2**40, -(2**40), "1", None])
def test_a_beacon_tells_a_finite_place_or_is_refused(coordinate: Any) -> None:
    """A position that was not a number ended the node in the search for its cell."""
    assert isinstance(decoded(16, 10, 20, False, False), Datagram)
    assert decoded(16, coordinate, 20, False, False) is DropReason.MALFORMED_BODY
    assert decoded(16, 20, coordinate, False, False) is DropReason.MALFORMED_BODY


@pytest.mark.parametrize("lifetime_s", [nan, inf, -1.0, 1e9])
def test_an_entry_lives_for_a_bounded_time_or_is_refused(lifetime_s: float) -> None:
    fine, bad = ([18, [0, 0], "key", [[1, 0, 1, lives_s, b""]]] for lives_s in (5.0, lifetime_s))
    assert isinstance(decoded(*fine), Datagram)
    assert decoded(*bad) is DropReason.MALFORMED_BODY


def test_more_legs_than_a_packet_may_have_are_refused() -> None:
    payload = [9, "key"]
    assert isinstance(decoded(17, [[[0, 0], 5, 0, None]], 1, 9, payload), Datagram)
    assert decoded(17, [[[0, 0], 5, 0, None]] * 65, 1, 9, payload) is DropReason.MALFORMED_BODY
    assert decoded(17, [], 1, 9, payload) is DropReason.MALFORMED_BODY


def test_an_interest_that_makes_no_sense_is_no_subscription() -> None:
    assert following(encoded(Following((1, 1), (), CARS))) == Following((1, 1), (), CARS)
    assert following(msgspec.msgpack.encode([[1, 1], [], [1, [[5, 1]]]])) is None
    assert following(msgspec.msgpack.encode([[1, 1], [], [3, ["//"]]])) is None


@pytest.fixture
def pair(field: Build) -> Any:
    """Node 0 is ours, node 1 the hostile one."""
    network = field([(500.0, 500.0), (560.0, 500.0)], "georendezvous")
    network.net.run(1.0)
    return network


def test_invented_neighbours_do_not_fill_the_memory(pair: Any) -> None:
    node = pair.net.node(0)
    most = GeoRendezvousParameters().neighbours_max
    for address in range(10, 3 * most):
        node.on_message(address, Beacon(5000 + address, 5000))
    assert len(node.table.router.neighbourhood.nodes) <= most
    assert sum(map(len, node.table.router.neighbourhood.cells.values())) <= most


def test_invented_keys_and_entries_do_not_fill_the_memory(pair: Any) -> None:
    node = pair.net.node(0)
    home = node.table.router.cell
    parameters = GeoRendezvousParameters()
    for number in range(parameters.keys_max + 100):
        node.on_message(1, Replica(home, f"key {number}", (Entry(number, 0, 1, 60.0, b"x"),)))
    assert len(node.table.store) <= parameters.keys_max
    kept_before = len(node.table.store)
    for slot in range(3):
        for number in range(parameters.owner_entries_max):
            node.on_message(1, Replica(home, f"key {number}", (Entry(77, slot, 1, 60.0, b"x"),)))
    owned = [kept for shelf in node.table.store for kept in shelf.kept.values() if kept.owner == 77]
    assert len(owned) <= parameters.owner_entries_max
    assert len(node.table.store) == kept_before
    pair.net.run(90.0)
    assert len(node.table.store) == 0, "all of it expires"


def test_a_version_that_cannot_be_exceeded_is_forgotten_in_time(pair: Any) -> None:
    """An entry with the highest version shut its owner out for good."""
    node = pair.net.node(0)
    router = node.table.router
    forged = Entry(0, 0, 2**62 - 1, 86400.0, b"forged")
    leg = Leg(router.target("key"), NOBODY)
    node.on_message(1, Packet((leg,), 1, 9, Put("key", (forged,))))
    node.table.put("key", b"true")
    pair.net.run(1.0)
    shelf = node.table.store.shelf("key")
    assert [kept.value for kept in shelf.kept.values()] == [b"forged"]
    pair.net.run(GeoRendezvousParameters().lifetime_max_s + 20)
    node.table.put("key", b"true")
    pair.net.run(1.0)
    assert [kept.value for kept in node.table.store.shelf("key").kept.values()] == [b"true"]


def test_answers_that_were_not_asked_for_are_ignored(pair: Any) -> None:
    node = pair.net.node(0)
    leg = Leg(node.table.router.here, 0)
    for request in range(1000):
        node.on_message(1, Packet((leg,), 1, 9, Found("key", request, (Entry(1, 0, 1, 5.0, b""),))))
    assert node.table.found == {}


def test_events_of_invented_publishers_do_not_fill_the_memory(pair: Any) -> None:
    node = pair.net.node(0)
    pair.net.subscribe(0, CARS)
    pair.net.run(1.0)
    leg = Leg(node.table.router.here, 0)
    event = pair.net.publish(1, "cars")
    most = GeoRendezvousParameters().publishers_max
    for publisher in range(100, 100 + 2 * most):
        forged = msgspec.structs.replace(event, id=publisher << 32 | 1)
        node.on_message(1, Packet((leg,), 1, 9, ForwardedNotification("topic:cars", forged, (0, 0))))
    followed = node.subscriber.followed["topic:cars"]
    assert len(followed.trials) <= most
    pair.net.run(2.0)
    assert len(followed.chosen) <= most


def test_a_packet_that_comes_twice_is_a_copy_unless_hops_or_time_tell_otherwise(pair: Any) -> None:
    """A packet that walks by again, or is tried again, has used up hops; the same words may be said anew later."""
    router = pair.net.node(0).table.router
    copies: list[str] = []
    pair.net.host(0).dropped = lambda reason, event_id=0: copies.append(reason)
    leg = Leg(router.here, 0)
    packet = Packet((leg,), 1, 9, Attract("key"))
    for message in (packet, packet, Packet((leg,), 2, 8, Attract("key")), Packet((leg,), 1, 8, Attract("key"))):
        pair.net.node(0).on_message(1, message)
    assert copies == [DROP_COPY]
    pair.net.node(0).on_message(2, packet)
    pair.net.run(2 * GeoRendezvousParameters().copy_within_s)
    pair.net.node(0).on_message(1, packet)
    assert copies == [DROP_COPY]


def test_many_packets_at_once_do_not_fill_the_memory(pair: Any) -> None:
    router = pair.net.node(0).table.router
    for number in range(2 * COPIES_MAX):
        pair.net.node(0).on_message(1, Packet((Leg(router.here, 0),), 1, 9, Attract(f"key {number}")))
    assert len(router._recent) == COPIES_MAX
