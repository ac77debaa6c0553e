"""Sequence numbers, the routing table, rings, buffers, limits: AODV's data structures one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols.api import NOBODY, Message
from roamcast.protocols.routing.discovery import Discovery, RateLimit, SeenRequests, repair_ring, widening_rings
from roamcast.protocols.routing.messages import Routed
from roamcast.protocols.routing.parameters import NS2, AodvParameters
from roamcast.protocols.routing.routes import RouteTable
from roamcast.protocols.routing.sequence import MODULUS, newer, newest, successor
from roamcast.testing import Note

numbers = st.integers(0, MODULUS - 1)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(numbers, st.integers(1, 2**31 - 1))
def test_ahead_by_less_than_half_the_circle_is_newer(number: int, lead: int) -> None:
    ahead = (number + lead) % MODULUS
    assert newer(ahead, number)
    assert not newer(number, ahead)
    assert newest(number, ahead) == newest(ahead, number) == ahead


@settings(deadline=None, derandomize=True, max_examples=200)
@given(numbers, numbers)
def test_newer_is_the_sign_of_the_32_bit_difference(one: int, other: int) -> None:
    difference = (one - other) & 0xFFFFFFFF
    signed = difference - 2**32 if difference >= 2**31 else difference
    assert newer(one, other) == (signed > 0)


def test_numbers_wrap_around() -> None:
    assert successor(MODULUS - 1) == 0
    assert newer(0, MODULUS - 1)
    assert not newer(5, 5)
    assert newest(None, 3) == newest(3, None) == 3
    assert newest(None, None) is None


def table() -> RouteTable:
    routes = RouteTable(delete_period_s=5.0)
    routes.learn(9, sequence=10, hops=4, next_hop=1, until_s=1.0, now_s=0.0)
    return routes


def test_newer_news_wins_however_long_the_way() -> None:
    routes = table()
    assert routes.learn(9, 11, 8, 2, 1.0, 0.0)
    assert routes.next_hop(9, 0.0) == 2
    assert not routes.learn(9, 10, 1, 3, 1.0, 0.0)
    assert routes.next_hop(9, 0.0) == 2


def test_equally_new_news_wins_if_shorter_or_if_the_entry_is_invalid() -> None:
    routes = table()
    assert not routes.learn(9, 10, 4, 2, 1.0, 0.0)
    assert routes.learn(9, 10, 3, 2, 1.0, 0.0)
    route = routes.usable(9, 0.0)
    assert route is not None
    routes.lose(route, None, 0.0)
    assert route.sequence == 11
    assert not routes.learn(9, 10, 1, 3, 1.0, 0.0)
    assert routes.learn(9, 11, 30, 3, 1.0, 0.0)


def test_the_same_news_again_extends_the_route() -> None:
    routes = table()
    assert routes.learn(9, 10, 4, 1, 3.0, 0.5)
    assert routes.next_hop(9, 2.9) == 1


def test_a_neighbour_that_was_heard_keeps_its_number() -> None:
    routes = table()
    assert routes.learn(9, None, 1, 9, 1.0, 0.0)
    route = routes.usable(9, 0.0)
    assert route is not None
    assert (route.next_hop, route.hops, route.sequence) == (9, 1, 10)


def test_a_known_neighbour_that_was_heard_lives_longer_and_nobody_else_does() -> None:
    table = RouteTable(delete_period_s=50.0)
    table.learn(1, 7, 1, 1, 10.0, 0.0)
    table.learn(2, 7, 2, 1, 10.0, 0.0)
    assert table.is_neighbour(1, 15.0, 5.0)
    assert table.next_hop(1, 12.0) == 1
    assert not table.is_neighbour(1, 30.0, 16.0)  # expired meanwhile
    assert not table.is_neighbour(2, 15.0, 5.0)
    assert not table.is_neighbour(3, 15.0, 5.0)
    assert table.next_hop(2, 12.0) == NOBODY


def test_an_unnumbered_route_yields_to_any_number() -> None:
    routes = RouteTable(5.0)
    routes.learn(9, None, 1, 9, 1.0, 0.0)
    assert routes.learn(9, 3, 6, 2, 1.0, 0.0)
    assert routes.next_hop(9, 0.0) == 2


def test_expiry_raises_the_number_and_deletion_forgets_it() -> None:
    routes = table()
    assert routes.next_hop(9, 0.999) == 1
    assert routes.next_hop(9, 1.0) == NOBODY
    assert routes.usable(9, 1.0) is None
    expired = routes.find(9, 1.0)
    assert expired is not None
    assert (expired.sequence, expired.hops) == (11, 4)
    assert routes.find(9, 5.999) is expired
    routes.sweep(6.0)
    assert len(routes) == 0


def test_use_extends_only_what_is_valid() -> None:
    routes = table()
    routes.refresh(9, 2.0, 0.9)
    assert routes.next_hop(9, 1.5) == 1
    routes.refresh(9, 9.0, 2.5)
    assert routes.next_hop(9, 2.5) == NOBODY


def test_routes_through_a_neighbour_come_by_destination() -> None:
    routes = RouteTable(5.0)
    for destination, next_hop in ((8, 1), (3, 1), (5, 2)):
        routes.learn(destination, 1, 2, next_hop, 1.0, 0.0)
    assert [route.destination for route in routes.through(1, 0.0)] == [3, 8]
    assert routes.through(1, 1.0) == []


def test_rings_widen_as_in_the_draft() -> None:
    rings = [(ttl, round(wait_s, 6)) for ttl, wait_s in widening_rings(AodvParameters(), None)]
    assert rings == [(1, 0.24), (3, 0.4), (5, 0.56), (7, 0.72), (35, 2.8), (35, 5.6), (35, 11.2)]


def test_a_lost_destination_is_sought_where_it_was() -> None:
    assert [ttl for ttl, _ in widening_rings(AodvParameters(), 3)] == [5, 7, 35, 35, 35]
    assert [ttl for ttl, _ in widening_rings(AodvParameters(), 12)] == [35, 35, 35]


def test_rings_of_ns2() -> None:
    rings = [(ttl, round(wait_s, 6)) for ttl, wait_s in widening_rings(NS2, None)]
    assert rings == [(5, 0.3), (7, 0.42), (30, 1.0), (30, 2.0), (30, 4.0), (30, 8.0)]


def test_a_repair_looks_once_and_not_far() -> None:
    assert [ttl for ttl, _ in repair_ring(AodvParameters(), 2, 3)] == [4]
    assert [ttl for ttl, _ in repair_ring(AodvParameters(), 2, 12)] == [8]


def packet(source: int, text: str) -> Routed[Message]:
    return Routed(source, 9, 1, 1, Note(text))


def test_packets_wait_in_order() -> None:
    discovery = Discovery(9, iter([]))
    for deadline_s, waiting in enumerate((packet(0, "a"), packet(4, "b"), packet(0, "c"))):
        discovery.add(waiting, deadline_s)
    assert discovery.pop_overdue(0.0) == [packet(0, "a")]
    assert discovery.next_deadline_s() == 1.0
    assert discovery.pop_foreign(0) == [packet(4, "b")]
    assert discovery.pop_all() == [packet(0, "c")]
    assert discovery.next_deadline_s() is None


def test_requests_are_recognised_for_a_while() -> None:
    seen = SeenRequests(memory_s=1.0, capacity=2)
    assert seen.add(1, 1, 0.0)
    assert not seen.add(1, 1, 0.9)
    assert seen.add(1, 1, 1.0)
    assert seen.add(2, 1, 1.0)
    assert seen.add(3, 1, 1.0)  # pushes the oldest out
    assert seen.add(1, 1, 1.0)


def test_rates_are_kept_within_any_second() -> None:
    limit = RateLimit(2)
    for now_s in (0.0, 0.4):
        assert limit.wait_s(now_s) == 0.0
        limit.note(now_s)
    assert round(limit.wait_s(0.5), 6) == 0.5
    assert limit.wait_s(1.0) == 0.0
    limit.note(1.0)
    assert round(limit.wait_s(1.0), 6) == 0.4
