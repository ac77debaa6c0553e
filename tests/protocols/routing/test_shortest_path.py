"""The oracle takes shortest paths and follows the links as they change."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols.routing.messages import Rreq
from roamcast.testing import Courier, TinyNet, grid, line, ring
from roamcast.testing.oracle import LinkOracle


def oracle_net(links: list[tuple[int, int]], nodes: int = 0) -> TinyNet[Courier]:
    return TinyNet(links, Courier.maker(unicast="oracle"), nodes=nodes, oracle=True)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda link: link[0] != link[1]), max_size=14))
def test_every_pair_gets_a_shortest_path(links: list[tuple[int, int]]) -> None:
    net = oracle_net(links, nodes=7)
    for source in range(7):
        for destination in range(7):
            net.node(source).send(destination, "x")
    net.run(1.0)
    oracle = LinkOracle(net)
    for destination in range(7):
        connected = [s for s in range(7) if oracle.hops(s, destination) >= 0]
        assert sorted(net.node(destination).received) == [(s, "x", oracle.hops(s, destination)) for s in connected]
    returned = sum(len(net.node(s).returned) for s in range(7))
    assert returned == sum(oracle.hops(s, d) < 0 for s in range(7) for d in range(7))


def test_it_costs_nothing_but_the_payload() -> None:
    net = oracle_net(grid(3, 3))
    net.node(0).send(8, "x")
    net.run(1.0)
    assert net.frames == {"Note": 4}


def test_it_follows_changes_while_the_packet_travels() -> None:
    net = oracle_net(ring(6))
    net.node(0).send(3, "x")  # sets out through 1
    net.run(0.0005)
    net.unlink(1, 2)
    net.run(1.0)
    assert net.node(3).received == [(0, "x", 5)]  # 0-1-0-5-4-3


def test_a_failed_link_is_tried_again_and_then_reported() -> None:
    net = oracle_net(line(2))
    net.drop(sender=0, count=2)
    net.node(0).send(1, "third time lucky")
    net.run(1.0)
    assert net.node(1).received == [(0, "third time lucky", 1)]
    net.drop(sender=0, count=3)
    net.node(0).send(1, "never")
    net.run(1.0)
    assert net.node(0).returned == [(1, "never")]


def test_a_relay_without_a_path_counts_the_loss() -> None:
    net = oracle_net(line(3))
    net.node(0).send(2, "x")
    net.run(0.0005)
    net.unlink(1, 2)
    net.run(1.0)
    assert net.transcript("dropped").endswith("1 drops: unicast-no-route")


def test_messages_of_aodv_are_ignored() -> None:
    net = oracle_net(line(2))
    net.node(0).on_message(1, Rreq(1, 0, 1, 0, None, 1, 1))
    net.run(1.0)
    assert not net.frames
