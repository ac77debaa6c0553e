"""Losing routes: breaks, errors, repairs, hellos, age (draft sections 6.9 to 6.12)."""

from roamcast.protocols.api import NOBODY
from roamcast.protocols.routing import Aodv, AodvParameters
from roamcast.protocols.routing.messages import Rerr
from roamcast.testing import Courier, Link, TinyNet, line, ring


def aodv_net(links: list[Link], **settings: float) -> TinyNet[Courier]:
    return TinyNet(links, Courier.maker(AodvParameters(**{"broadcast_jitter_s": 0.0, **settings})))  # type: ignore[arg-type]


def next_hops(net: TinyNet[Courier], destination: int) -> list[int]:
    hops = []
    for address in net.addresses:
        service = net.node(address).unicast
        assert isinstance(service, Aodv)
        hops.append(service.routes.next_hop(destination, net.now_s))
    return hops


def texts(net: TinyNet[Courier], address: int) -> list[str]:
    return [text for _, text, _ in net.node(address).received]


def test_golden_break_error_and_rediscovery() -> None:
    net = aodv_net(ring(6), ttl_start_hops=3)
    net.node(0).send(3, "before")
    net.run(0.5)
    assert next_hops(net, 3)[:3] == [1, 2, 3]
    net.unlink(2, 3)
    net.node(0).send(3, "lost")
    net.run(0.01)
    assert net.transcript(since_s=0.5).splitlines() == [
        "   0.500   2 | 3",
        "   0.500   0 -> 1  Routed source=0 destination=3 hops=1 attempt=1 payload=[Note text=lost]",
        "   0.501   1 -> 2  Routed source=0 destination=3 hops=2 attempt=1 payload=[Note text=lost]",
        "   0.502   2 -> 3  Routed source=0 destination=3 hops=3 attempt=1 payload=[Note text=lost]",
        "   0.503   2 -x 3  Note",
        "   0.503   2 -> 1  Rerr unreachable=((3,1))",
        "   0.503   2 drops: unicast-link-broken",
        "   0.504   1 -> 0  Rerr unreachable=((3,1))",
    ]
    assert next_hops(net, 3)[:3] == [NOBODY, NOBODY, NOBODY]
    net.node(0).send(3, "after")
    net.run(1.0)
    assert texts(net, 3) == ["before", "after"]
    assert next_hops(net, 3)[0] == 5


def test_the_source_itself_tries_another_way() -> None:
    net = aodv_net([(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)])
    net.node(0).send(2, "before")
    net.run(1.0)
    net.unlink(0, 1)
    net.node(0).send(2, "during")
    net.run(1.0)
    assert net.node(2).received == [(0, "before", 2), (0, "during", 3)]


def test_a_packet_sets_out_only_so_often() -> None:
    net = aodv_net(line(2), attempts_max=2)
    net.drop("Note", count=None)
    net.node(0).send(1, "x")
    net.run(10.0)
    assert net.frames["Note"] == 2
    assert net.node(0).returned == [(1, "x")]


def test_an_error_goes_to_several_precursors_at_once() -> None:
    net = aodv_net([(0, 2), (1, 2), (2, 3)])
    for source in (0, 1):
        net.node(source).send(3, "x")
        net.run(1.0)
    net.unlink(2, 3)
    net.node(0).send(3, "y")
    net.run(0.1)
    assert "2 -> *  Rerr unreachable=((3,1))" in net.transcript()
    assert next_hops(net, 3) == [NOBODY] * 4


def test_data_without_a_route_is_answered_with_an_error() -> None:
    net = aodv_net(line(4))
    net.node(0).send(3, "x")
    net.run(0.5)
    net.restart(2)
    net.node(0).send(3, "y")
    net.run(0.1)
    assert "2 drops: unicast-no-route" in net.transcript()
    assert next_hops(net, 3) == [NOBODY] * 4
    net.node(0).send(3, "z")
    net.run(2.0)
    assert texts(net, 3) == ["x", "z"]


def test_an_error_of_somebody_else_changes_nothing() -> None:
    net = aodv_net([*line(3), (0, 3)])
    net.node(0).send(2, "x")
    net.run(0.5)
    net.host(3).broadcast(Rerr(((2, 99),)))
    net.run(0.1)
    assert next_hops(net, 2)[0] == 1


def test_old_errors_change_nothing() -> None:
    net = aodv_net(line(3))
    net.node(0).send(2, "x")
    net.run(0.5)
    net.host(1).broadcast(Rerr(((2, 2**32 - 5),)))
    net.run(0.1)
    assert next_hops(net, 2)[0] == 1


def test_errors_keep_their_rate() -> None:
    net = aodv_net(line(3), error_rate_limit=2)
    net.node(0).send(2, "x")
    net.run(0.5)
    net.restart(1)
    net.drop("Rerr", count=None)
    for _ in range(5):
        net.node(0).send(2, "y")
    net.run(0.5)
    assert net.frames["Rerr"] <= 2


def test_unused_routes_expire_and_used_ones_do_not() -> None:
    net = aodv_net(line(3), active_route_timeout_s=3.0, my_route_timeout_s=3.0)
    net.node(0).send(2, "x")
    net.run(0.5)
    for _ in range(8):
        net.node(0).send(2, "x")
        net.run(1.0)
    asked = net.frames["Rreq"]
    assert next_hops(net, 2) == [1, 2, NOBODY]
    net.run(3.0)
    assert next_hops(net, 2) == [NOBODY] * 3
    net.node(0).send(2, "again")
    net.run(1.0)
    assert net.frames["Rreq"] > asked
    assert texts(net, 2)[-1] == "again"


def test_memory_does_not_grow_for_ever() -> None:
    net = aodv_net(line(4))
    net.node(0).send(3, "x")
    net.run(130.0)
    for address in net.addresses:
        service = net.node(address).unicast
        assert isinstance(service, Aodv)
        assert len(service.routes) == 0
        assert net.host(address).timers == [("aodv.sweep", 0)]


DETOUR = [*line(5), (2, 5), (5, 6), (6, 4)]  # beside 2-3-4 there is 2-5-6-4


def test_a_relay_repairs_the_route_and_loses_nothing() -> None:
    net = aodv_net(DETOUR, local_repair=True)
    net.node(0).send(4, "before")
    net.run(2.0)
    net.unlink(2, 3)
    for text in ("one", "two"):
        net.node(0).send(4, text)
    net.run(0.3)
    assert net.node(4).received == [(0, "before", 4), (0, "one", 5), (0, "two", 5)]
    assert "2 -> 1  Rerr unreachable=((4,1)) keep=yes" in net.transcript()  # the new way is longer
    assert next_hops(net, 4)[:3] == [1, 2, 5]


def test_without_repair_the_same_packets_are_lost() -> None:
    net = aodv_net(DETOUR)
    net.node(0).send(4, "before")
    net.run(2.0)
    net.unlink(2, 3)
    for text in ("one", "two"):
        net.node(0).send(4, text)
    net.run(0.3)
    assert texts(net, 4) == ["before"]


def test_a_repair_that_fails_becomes_an_error() -> None:
    net = aodv_net(line(5), local_repair=True)
    net.node(0).send(4, "before")
    net.run(2.0)
    net.unlink(2, 3)
    net.node(0).send(4, "one")
    net.run(0.1)
    assert next_hops(net, 4)[:2] == [1, 2]  # nobody upstream has been told yet
    net.run(1.0)
    assert next_hops(net, 4)[:3] == [NOBODY] * 3
    assert "drops: unicast-no-route" in net.transcript("dropped")


def test_a_far_destination_is_left_to_the_source() -> None:
    net = aodv_net(DETOUR, local_repair=True, max_repair_ttl_hops=1)
    net.node(0).send(4, "before")
    net.run(2.0)
    net.unlink(2, 3)
    net.node(0).send(4, "one")
    net.run(0.3)
    assert texts(net, 4) == ["before"]


def test_who_repairs_may_have_packets_of_its_own() -> None:
    net = aodv_net(line(5), local_repair=True)
    net.node(0).send(4, "before")
    net.run(2.0)
    net.unlink(2, 3)
    net.node(0).send(4, "lost")
    net.run(0.05)
    net.node(2).send(4, "mine")
    net.run(2.0)
    net.link(2, 3)
    net.run(10.0)
    assert texts(net, 4) == ["before", "mine"]


def test_hellos_notice_a_silent_neighbour() -> None:
    net = aodv_net(line(3), hello=True, hello_interval_s=1.0)
    net.node(0).send(2, "x")
    net.run(4.0)
    assert net.frames["Hello"] > 0
    assert next_hops(net, 2)[0] == 1
    net.unlink(1, 2)
    net.run(3.1)  # allowed_hello_loss * hello_interval, and the time for the error to travel; no data was sent
    assert next_hops(net, 2) == [NOBODY] * 3


def test_only_nodes_on_active_routes_say_hello() -> None:
    net = aodv_net([*line(3), (2, 3)], hello=True)
    net.node(0).send(1, "x")
    net.run(8.0)
    assert {r.node for r in net.records if "Hello" in r.text} == {0, 1}
    net.run(30.0)
    before = net.frames["Hello"]
    net.run(10.0)
    assert net.frames["Hello"] == before
