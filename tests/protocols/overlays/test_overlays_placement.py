"""Placement: modulators go where the least has to travel, with one producer or several, by the policy that is set."""

from typing import Any

import pytest

from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays import Overlays
from roamcast.testing import TinyNet

ALL = Intervals.of((0, 1000))
QUICK: dict[str, Any] = {
    "unicast": "oracle",
    "bootstrap_s": 2.0,
    "bootstrap_period_s": 0.3,
    "discovery_period_s": 1000.0,
    "update_period_s": 6.0,
    "sweep_period_s": 5.0,
    "adaptors": "topology,placement",
}
CHAIN = [(1, 2), (2, 3), (3, 4), (4, 5)]
"""Brokers in a row."""


def network(clients: dict[int, int], **parameters: Any) -> TinyNet[Protocol]:
    links = [*CHAIN, *clients.items()]
    return TinyNet(links, "overlays", QUICK | {"brokers": "1-5"} | parameters, oracle=True)


def node(net: TinyNet[Protocol], address: int) -> Overlays:
    found = net.node(address)
    assert isinstance(found, Overlays)
    return found


def site(net: TinyNet[Protocol], client: int) -> list[int]:
    """The brokers that run the client's modulators."""
    found = []
    for address in range(1, 6):
        broker = node(net, address).broker
        if broker is not None and client in broker.clients.table and not broker.clients.table[client].is_passive:
            found.append(address)
    return found


def publish(net: TinyNet[Protocol], producers: tuple[int, ...], seconds: int, size: int = 400) -> None:
    for content in range(seconds):
        for producer in producers:
            net.publish(producer, content, bytes(size))
        net.run(1.0)


def test_a_filter_moves_to_its_producer_and_what_passes_everything_stays() -> None:
    net = network({10: 1, 20: 5, 21: 5})
    node(net, 20).open_channel(1, ALL, Modulation("sample(10)"))
    node(net, 21).open_channel(1, ALL, Modulation("sample(1)"))
    net.run(4.0)
    publish(net, (10,), 20)
    assert (site(net, 20), site(net, 21)) == ([1], [5])
    assert [each.event.content for each in net.deliveries if each.node == 20] == [0, 10]
    assert [each.event.content for each in net.deliveries if each.node == 21] == list(range(20))


def test_it_comes_back_when_it_does_not_shrink_any_more() -> None:
    net = network({10: 1, 20: 5})
    node(net, 20).open_channel(1, ALL, Modulation("sample(10)"))
    net.run(4.0)
    publish(net, (10,), 20)
    assert site(net, 20) == [1]
    node(net, 20).open_channel(1, ALL, Modulation('aggregate(count, content, 1) | assign(text, "' + "x" * 1500 + '")'))
    net.run(3.0)
    publish(net, (10,), 30)
    assert site(net, 20) == [5]
    assert len({each.event.number for each in net.deliveries if each.node == 20}) == 2 + 30  # none lost meanwhile


@pytest.mark.parametrize(("policy", "place"), [("bytes", 2), ("energy", 2), ("latency", 3)])
def test_several_producers_pull_it_to_where_they_meet(policy: str, place: int) -> None:
    """Two producers at broker 2, one at 5, the client at 3: at 2 the least travels, but the path from 5 gets longer."""
    net = network({10: 2, 11: 2, 12: 2, 13: 5, 20: 3}, policy=policy)
    node(net, 20).open_channel(1, ALL, Modulation("sample(20)"))
    net.run(4.0)
    publish(net, (10, 11, 12, 13), 20)
    assert site(net, 20) == [place]


def test_a_move_that_costs_more_than_it_saves_is_not_made() -> None:
    net = network({10: 1, 20: 5})
    node(net, 20).open_channel(1, ALL, Modulation("sample(10)", (("terrain", bytes(90_000)),)))
    net.run(4.0)
    publish(net, (10,), 20, size=100)
    assert site(net, 20) == [5]
