"""Nodes on machines of their own, made of network namespaces: they find each other without a list, with a key."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roamcast.live.codec import DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX
from roamcast.live.keys import new_ring, write_ring
from roamcast.testing.namespaces import Fleet, LiveNode, Machines, why_impossible

IMPOSSIBLE = why_impossible()
pytestmark = pytest.mark.skipif(IMPOSSIBLE is not None, reason=str(IMPOSSIBLE))

IPV4_ONLY, IPV6_ONLY, BOTH = (1, 2, 3), (4, 5, 6), (7, 8, 9, 10)


@pytest.fixture
def machines() -> Iterator[Machines]:
    machines = Machines(10)
    yield machines
    machines.close()


def start(machines: Machines, folder: Path, *options: str) -> Fleet:
    write_ring(folder / "net.key", new_ring("roamcast", 0.0))
    common = ["--json", "--log-format", "json", "--protocol", "flooding", *options]
    common += ["--language", "intervals", "--subscribe", "0..100"]
    common += ["--key", str(folder / "net.key"), "--state", str(folder)]
    return Fleet({machines.name(each): ["--address", str(each), *common] for each in machines.machines})


def deliver(nodes: dict[int, LiveNode], publisher: int, content: int, *, without: tuple[int, ...] = ()) -> None:
    nodes[publisher].say(f"publish {content}")
    for address, node in nodes.items():
        if address != publisher and address not in without:
            assert node.next("delivered", content=content)["publisher"] == publisher


def audible(address: int) -> set[int]:
    """Whom a node hears: those with whom it has an IP version in common."""
    deaf_to = IPV6_ONLY if address in IPV4_ONLY else IPV4_ONLY if address in IPV6_ONLY else ()
    return {*IPV4_ONLY, *IPV6_ONLY, *BOTH} - {address, *deaf_to}


def settled(node: LiveNode, neighbours: int) -> dict[str, Any]:
    """Its counters once it has this many neighbours."""
    for _ in range(100):
        node.say("stats")
        stats = node.next("stats")
        if stats["neighbours"] == neighbours:
            return stats
        time.sleep(0.1)
    raise AssertionError(stats)


def test_ten_nodes_find_each_other_over_ipv4_and_ipv6_and_deliver(machines: Machines, tmp_path: Path) -> None:
    for machine in machines.machines:
        machines.connect(machine, ipv4=machine not in IPV6_ONLY, ipv6=machine not in IPV4_ONLY)
    fleet = start(machines, tmp_path)
    nodes = dict(zip(machines.machines, fleet.nodes, strict=True))
    try:
        heard = {address: audible(address) for address in nodes}
        for address, node in nodes.items():
            assert {node.next("neighbour")["node"] for _ in heard[address]} == heard[address]
        deliver(nodes, 1, 11)  # to the nodes without IPv4 over one that has both
        deliver(nodes, 6, 66)

        machines.disconnect(10)
        machines.unplug(9)
        for address in (9, 10):
            nodes[address].next("interface-gone", interface="eth0")
        deliver(nodes, 2, 22, without=(9, 10))
        for address in (1, 4, 7):
            for gone in (9, 10):
                if gone in heard[address]:
                    nodes[address].next("neighbour-gone", node=gone)
        machines.plug_in(9)
        machines.connect(10, mtu_bytes=1280)
        for address in (9, 10):
            nodes[address].next("interface", name="eth0")
            for other in (1, 4, 7):
                nodes[other].next("neighbour", node=address)
        deliver(nodes, 3, 33)
        deliver(nodes, 10, 99)

        stats = settled(nodes[10], 9)
        assert stats["interfaces"] == ["eth0"]
        assert stats["frame_bytes_max"] == 1280 - 48 - (DATAGRAM_BYTES_MAX - FRAME_BYTES_MAX)
        assert stats["delivered"] == 3  # not what was published while it was away
    finally:
        fleet.close()
