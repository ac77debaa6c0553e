"""Nodes on machines of their own, which are network namespaces: they find each other, sealed and signed."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roamcast.live.authority import new_authority
from roamcast.live.codec import DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX
from roamcast.live.identity import Certificate, new_identity
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.secret_files import write_secret
from roamcast.testing.namespaces import Fleet, NamespaceMachines, NamespaceNode, why_impossible

IMPOSSIBLE = why_impossible()
pytestmark = pytest.mark.skipif(IMPOSSIBLE is not None, reason=str(IMPOSSIBLE))

IPV4_ONLY, IPV6_ONLY, BOTH = (1, 2, 3), (4, 5, 6), (7, 8, 9, 10)


class Scene:
    """Machines, each with a certified node."""

    def __init__(self, folder: Path, count: int) -> None:
        self.machines = NamespaceMachines(count)
        self.address: dict[int, int] = {}  # of the node on a machine
        self.machine: dict[int, int] = {}  # of a node
        self.nodes: dict[int, NamespaceNode] = {}  # by machine
        self._folder = folder
        self._fleet: Fleet | None = None

    def start(self) -> None:
        authority = new_authority("roamcast")
        write_ring(self._folder / "net.key", new_ring("roamcast", 0.0, authority.public))
        now_s = int(time.time())
        options: dict[str, list[str]] = {}
        for machine in self.machines.machines:
            identity = new_identity()
            certificate = Certificate("roamcast", identity.public, str(machine), now_s - 60, now_s + 3600)
            authority, statement = authority.certified(certificate)
            file = self._folder / f"{machine}.node"
            write_secret(file, msgspec.structs.replace(identity, certificate=statement), "identity")
            self.address[machine] = identity.address
            self.machine[identity.address] = machine
            words = ["--json", "--log-format", "json", "--protocol", "flooding"]
            words += ["--language", "intervals", "--subscribe", "0..100"]
            words += ["--key", str(self._folder / "net.key"), "--identity", str(file), "--state", str(self._folder)]
            options[self.machines.name(machine)] = words
        self._fleet = Fleet(options)
        self.nodes = dict(zip(self.machines.machines, self._fleet.nodes, strict=True))

    def close(self) -> None:
        if self._fleet is not None:
            self._fleet.close()
        self.machines.close()

    def neighbours(self, machine: int, count: int) -> set[int]:
        """The machines whose nodes are the next ones that it hears for the first time."""
        return {self.machine[self.nodes[machine].next("neighbour")["node"]] for _ in range(count)}

    def deliver(self, publisher: int, content: int, *, without: tuple[int, ...] = ()) -> None:
        """An event reaches all nodes but those."""
        self.nodes[publisher].say(f"publish {content}")
        for machine, node in self.nodes.items():
            if machine != publisher and machine not in without:
                assert node.next("delivered", content=content)["publisher"] == self.address[publisher]

    def settled(self, machine: int, neighbours: int) -> dict[str, Any]:
        """The counters of a node once it has so many neighbours."""
        for _ in range(100):
            self.nodes[machine].say("stats")
            stats = self.nodes[machine].next("stats")
            if stats["neighbours"] == neighbours:
                return stats
            time.sleep(0.1)
        raise AssertionError(stats)


@pytest.fixture
def ten(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, 10)
    yield scene
    scene.close()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, 3)
    yield scene
    scene.close()


def audible(machine: int) -> set[int]:
    """Whom a node hears: those with whom it has an IP version in common."""
    deaf_to = IPV6_ONLY if machine in IPV4_ONLY else IPV4_ONLY if machine in IPV6_ONLY else ()
    return {*IPV4_ONLY, *IPV6_ONLY, *BOTH} - {machine, *deaf_to}


@pytest.mark.slow("ten machines' network stacks, in real time")
def test_ten_nodes_find_each_other_over_ipv4_and_ipv6_and_deliver(ten: Scene) -> None:
    scene, machines = ten, ten.machines
    for machine in machines.machines:
        machines.connect(machine, ipv4=machine not in IPV6_ONLY, ipv6=machine not in IPV4_ONLY)
    scene.start()
    assert scene.nodes[1].next("started")["security"] == "sealed and signed"
    for machine in machines.machines:
        assert scene.neighbours(machine, len(audible(machine))) == audible(machine)
    scene.deliver(1, 11)  # to the nodes without IPv4 over one that has both
    scene.deliver(6, 66)

    machines.disconnect(10)
    machines.unplug(9)
    for machine in (9, 10):
        scene.nodes[machine].next("interface-gone", interface="eth0")
    scene.deliver(2, 22, without=(9, 10))
    for machine in (1, 4, 7):
        for gone in (9, 10):
            scene.nodes[machine].next("neighbour-gone", node=scene.address[gone])
    machines.plug_in(9)
    machines.connect(10, mtu_bytes=1280)
    for machine in (9, 10):
        scene.nodes[machine].next("interface", name="eth0")
        for other in (1, 4, 7):
            scene.nodes[other].next("neighbour", node=scene.address[machine])
    stats = scene.settled(10, 9)
    scene.deliver(3, 33)
    scene.deliver(10, 99)
    assert stats["interfaces"] == ["eth0"]
    assert stats["frame_bytes_max"] == 1280 - 48 - (DATAGRAM_BYTES_MAX - FRAME_BYTES_MAX)
    assert stats["delivered"] == 2, "not what was published while it was away"


def test_a_node_with_two_interfaces_joins_two_networks_and_a_node_may_change_from_one_to_the_other(
    three: Scene,
) -> None:
    machines, left, middle, right = three.machines, 1, 2, 3
    machines.connect(left, 0)
    machines.connect(middle, 0)
    machines.connect(middle, 1, ipv4=False)
    machines.connect(right, 1)
    three.start()
    assert three.neighbours(middle, 2) == {left, right}
    assert three.neighbours(left, 1) == {middle}
    assert three.neighbours(right, 1) == {middle}
    three.deliver(left, 11)
    three.deliver(right, 33)

    machines.disconnect(left, 0)
    three.nodes[left].next("interface-gone", interface="eth0")
    machines.connect(left, 1)
    three.nodes[left].next("interface", name="eth1")
    three.nodes[left].next("neighbour", node=three.address[right])
    three.deliver(left, 44)
    assert three.settled(middle, 2)["interfaces"] == ["eth0", "eth1"]
