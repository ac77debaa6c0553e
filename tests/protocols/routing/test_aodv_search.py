"""Finding routes: rings, answers, buffers, limits (draft sections 6.3 to 6.7)."""

import pytest

from roamcast.protocols.api import NOBODY
from roamcast.protocols.routing import NS2, Aodv, AodvParameters
from roamcast.protocols.routing.routes import Route, RouteTable
from roamcast.testing import Courier, Link, Note, TinyNet, grid, line


def aodv_net(links: list[Link], parameters: AodvParameters | None = None, nodes: int = 0) -> TinyNet[Courier]:
    return TinyNet(links, Courier.maker(parameters or AodvParameters(broadcast_jitter_s=0.0)), nodes=nodes)


def routes(net: TinyNet[Courier], address: int) -> RouteTable:
    service = net.node(address).unicast
    assert isinstance(service, Aodv)
    return service.routes


def route(net: TinyNet[Courier], address: int, destination: int) -> Route:
    found = routes(net, address).usable(destination, net.now_s)
    assert found is not None
    return found


def requests(net: TinyNet[Courier], address: int) -> list[tuple[float, int]]:
    """When a node asked, and how far."""
    own = [r for r in net.records if r.node == address and r.text.startswith("-> *  Rreq") and " hops=0 " in r.text]
    return [(round(r.time_s, 3), int(r.text.split("ttl=")[1].split()[0])) for r in own]


def test_golden_discovery_over_three_hops() -> None:
    net = aodv_net(line(4), AodvParameters(broadcast_jitter_s=0.0, ttl_start_hops=3))
    net.node(0).send(3, "hi")
    net.run(1.0)
    asked = "request_id=1 destination=3 destination_sequence=- originator=0 originator_sequence=1"
    assert net.transcript().splitlines() == [
        f"   0.000   0 -> *  Rreq ttl=3 hops=0 {asked}",
        f"   0.001   1 -> *  Rreq ttl=2 hops=1 {asked}",
        f"   0.002   2 -> *  Rreq ttl=1 hops=2 {asked}",
        "   0.003   3 -> 2  Rrep hops=0 destination=3 destination_sequence=0 originator=0 lifetime_ms=6000",
        "   0.004   2 -> 1  Rrep hops=1 destination=3 destination_sequence=0 originator=0 lifetime_ms=6000",
        "   0.005   1 -> 0  Rrep hops=2 destination=3 destination_sequence=0 originator=0 lifetime_ms=6000",
        "   0.006   0 -> 1  Routed source=0 destination=3 hops=1 attempt=1 payload=[Note text=hi]",
        "   0.007   1 -> 2  Routed source=0 destination=3 hops=2 attempt=1 payload=[Note text=hi]",
        "   0.008   2 -> 3  Routed source=0 destination=3 hops=3 attempt=1 payload=[Note text=hi]",
    ]
    assert net.node(3).received == [(0, "hi", 3)]


def test_discovery_sets_up_both_directions_and_the_precursors() -> None:
    net = aodv_net(line(4))
    net.node(0).send(3, "hi")
    net.run(1.0)
    assert [routes(net, n).next_hop(3, net.now_s) for n in range(4)] == [1, 2, 3, NOBODY]
    assert [routes(net, n).next_hop(0, net.now_s) for n in range(4)] == [NOBODY, 0, 1, 2]
    assert list(route(net, 1, 3).precursors) == [0]
    assert list(route(net, 2, 0).precursors) == [3]
    frames = dict(net.frames)
    net.node(3).send(0, "back")
    net.run(1.0)
    assert net.node(0).received == [(3, "back", 3)]
    assert net.frames == {**frames, "Note": frames["Note"] + 3}  # no further request


def test_a_grid_is_crossed_on_a_shortest_path() -> None:
    net = aodv_net(grid(5, 5))
    net.node(0).send(24, "corner to corner")
    net.run(5.0)
    assert net.node(24).received == [(0, "corner to corner", 8)]


@pytest.mark.parametrize("destination", [1, 2, 3, 5, 7, 8])
def test_the_ring_is_no_wider_than_needed(destination: int) -> None:
    net = aodv_net(line(12))
    net.node(0).send(destination, "hi")
    net.run(5.0)
    last = next(ttl for ttl in (1, 3, 5, 7, 35) if ttl >= destination)
    assert requests(net, 0)[-1][1] == last
    assert net.node(destination).received == [(0, "hi", destination)]


def test_rings_and_their_timing_towards_nobody() -> None:
    net = aodv_net(line(2))
    net.node(0).send(9, "hello?")
    net.run(21.5)
    asked = [(0.0, 1), (0.24, 3), (0.64, 5), (1.2, 7), (1.92, 35), (4.72, 35), (10.32, 35)]
    assert requests(net, 0) == asked
    assert net.node(0).returned == []
    net.run(0.1)  # 10.32 + 11.2 s
    assert net.node(0).returned == [(9, "hello?")]
    assert net.host(0).timers == [("aodv.sweep", 0)]


def test_the_constants_of_ns2() -> None:
    net = aodv_net(line(2), NS2)
    net.node(0).send(9, "hello?")
    net.run(20.0)
    assert requests(net, 0) == [(0.0, 5), (0.3, 7), (0.72, 30), (1.72, 30), (3.72, 30), (7.72, 30)]
    assert net.node(0).returned == [(9, "hello?")]


def test_a_relay_that_knows_answers() -> None:
    net = aodv_net(line(5))
    net.node(1).send(4, "first")
    net.run(2.0)
    relayed = net.frames["Rreq"]
    net.node(0).send(4, "second")
    net.run(0.1)
    assert net.node(4).received == [(1, "first", 3), (0, "second", 4)]
    assert net.frames["Rreq"] == relayed + 1  # the first ring was enough: node 1 answered
    assert 0 in route(net, 1, 4).precursors


def test_only_the_destination_answers_if_so_asked() -> None:
    net = aodv_net(line(5), AodvParameters(broadcast_jitter_s=0.0, destination_only=True))
    net.node(1).send(4, "first")
    net.run(2.0)
    net.node(0).send(4, "second")
    net.run(2.0)
    assert net.node(4).received == [(1, "first", 3), (0, "second", 4)]
    assert requests(net, 0)[-1][1] == 5


def test_a_gratuitous_reply_tells_the_destination_the_way_back() -> None:
    for gratuitous in (False, True):
        net = aodv_net(line(5), AodvParameters(broadcast_jitter_s=0.0, gratuitous=gratuitous))
        net.node(1).send(4, "first")
        net.run(2.0)
        net.node(0).send(4, "second")
        net.run(0.1)
        assert (routes(net, 4).next_hop(0, net.now_s) == 3) == gratuitous


def test_packets_wait_and_leave_in_order() -> None:
    net = aodv_net(line(3))
    for number in range(10):
        net.node(0).send(2, f"note {number}")
        net.run(0.03)
    net.run(1.0)
    assert [text for _, text, _ in net.node(2).received] == [f"note {number}" for number in range(10)]


def test_a_full_buffer_returns_the_oldest() -> None:
    net = aodv_net(line(3), AodvParameters(buffer_packets=2))
    for text in "abc":
        net.node(0).send(2, text)
    assert net.node(0).returned == []
    net.run(1.0)
    assert net.node(0).returned == [(2, "a")]
    assert [text for _, text, _ in net.node(2).received] == ["b", "c"]
    assert net.transcript("dropped").endswith("drops: unicast-buffer-full")


def test_who_waits_too_long_comes_back() -> None:
    net = aodv_net(line(2), AodvParameters(buffer_timeout_s=1.0))
    net.node(0).send(9, "a")
    net.run(0.5)
    net.node(0).send(9, "b")
    net.run(0.6)
    assert net.node(0).returned == [(9, "a")]
    net.run(0.5)
    assert net.node(0).returned == [(9, "a"), (9, "b")]
    net.run(30.0)
    assert requests(net, 0)[-1][0] < 1.5  # nobody waits any more, so nobody asks


def test_requests_keep_their_rate() -> None:
    net = aodv_net([], AodvParameters(ttl_start_hops=35, request_retries=0), nodes=1)
    for destination in range(1, 26):
        net.node(0).send(destination, "x")
    net.run(10.0)
    times = [time_s for time_s, _ in requests(net, 0)]
    assert times == [0.0] * 10 + [1.0] * 10 + [2.0] * 5
    assert len(net.node(0).returned) == 25


def test_a_lost_reply_is_asked_for_again() -> None:
    net = aodv_net(line(3), AodvParameters(blacklist_timeout_s=0.0))
    net.drop("Rrep", receiver=0)
    net.node(0).send(2, "x")
    net.run(3.0)
    assert net.node(2).received == [(0, "x", 2)]


def test_who_cannot_be_answered_is_not_listened_to_for_a_while() -> None:
    net = aodv_net(line(2))
    net.drop("Rrep", sender=1, receiver=0)
    net.node(0).send(1, "x")
    net.run(3.0)
    assert len(requests(net, 0)) == 5
    assert net.frames["Rrep"] == 1  # the draft's blacklist: 5.6 s
    net.run(3.0)
    assert net.frames["Rrep"] == 1
    net.run(8.0)
    assert net.node(1).received == [(0, "x", 1)]


def test_numbers_go_on_through_the_wraparound() -> None:
    net = aodv_net(line(4))
    for address in net.addresses:
        service = net.node(address).unicast
        assert isinstance(service, Aodv)
        service.router.sequence = 2**32 - 2
    for round_number in range(6):
        net.node(0).send(3, f"out {round_number}")
        net.run(1.0)
        net.unlink(1, 2)
        net.node(0).send(3, f"lost {round_number}")
        net.run(2.0)
        net.link(1, 2)
        net.run(20.0)
    texts = [text for _, text, _ in net.node(3).received]
    assert [text for text in texts if text.startswith("out")] == [f"out {n}" for n in range(6)]
    service = net.node(0).unicast
    assert isinstance(service, Aodv)
    assert service.router.sequence < 2**31  # it did wrap


def test_a_node_that_returns_is_not_taken_for_its_past() -> None:
    net = aodv_net(line(3))
    for number in range(8):
        net.node(0).send(9, f"raises the number {number}")
        net.run(3.0)
    net.restart(0)
    net.node(0).send(2, "back again")
    net.run(3.0)
    assert net.node(2).received == [(0, "back again", 2)]


def test_every_failed_frame_tells_of_a_broken_link() -> None:
    net = aodv_net(line(3))
    net.node(0).send(2, "hi")
    net.run(1.0)
    assert routes(net, 0).next_hop(2, net.now_s) == 1
    net.node(0).on_send_failed(1, Note("a frame of the owner, not of the service"))
    assert routes(net, 0).next_hop(2, net.now_s) == NOBODY
