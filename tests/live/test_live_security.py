"""Nodes with a key: they talk to each other only."""

import asyncio
import threading
from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.node import Delivery, LiveNode, NodeSettings
from roamcast.testing.endpoints import free_endpoints


async def scene(folder: Path) -> None:
    write_ring(folder / "net.key", new_ring("roamcast", 0.0))
    write_ring(folder / "other.key", new_ring("roamcast", 0.0))
    ends = free_endpoints(4)
    keys = [folder / "net.key", folder / "net.key", folder / "other.key", None]
    got: list[list[int]] = [[] for _ in ends]

    def receive(address: int, delivery: Delivery) -> None:
        got[address].append(int(delivery.event.content))

    nodes = [
        await LiveNode.open(
            NodeSettings(
                address=address,
                listen=end,
                peers=tuple(other for other in ends if other != end),
                key=keys[address],
                state=folder / "state",
            ),
            lambda delivery, address=address: receive(address, delivery),  # type: ignore[misc]
        )
        for address, end in enumerate(ends)
    ]
    for node in nodes:
        node.subscribe(Intervals.of((0, 100)))
    for address, node in enumerate(nodes):
        for number in range(5):
            node.publish(10 * address + number)
    async with asyncio.timeout(10):
        while len(got[0]) < 5 or len(got[1]) < 5:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
    assert (sorted(got[0]), sorted(got[1])) == ([10, 11, 12, 13, 14], [0, 1, 2, 3, 4])
    assert (got[2], got[3]) == ([], [])
    lost = nodes[0].counters()["frames_lost"]
    assert lost["forged"] >= 2  # five events in two datagrams
    assert lost["unsealed"] >= 2
    for node in nodes:
        node.close()
    assert (folder / "state" / "roamcast-0.heard").stat().st_size > 5


def test_nodes_with_the_same_key_talk_and_others_are_not_heard(tmp_path: Path) -> None:
    asyncio.run(scene(tmp_path))


@pytest.mark.parametrize(
    "settings",
    [
        NodeSettings(address=1, listen=("0.0.0.0", 0), peers=(("127.0.0.1", 9),)),
        NodeSettings(address=1, peers=(("192.0.2.1", 9),)),
    ],
)
def test_plain_datagrams_do_not_leave_the_machine_unless_allowed(settings: NodeSettings) -> None:
    async def start() -> None:
        await LiveNode.open(settings, lambda delivery: None)

    with pytest.raises(ConfigurationError, match="none given, so anyone in range could read and forge"):
        asyncio.run(start())


def test_a_key_of_another_network_is_refused(tmp_path: Path) -> None:
    write_ring(tmp_path / "net.key", new_ring("elsewhere", 0.0))
    settings = NodeSettings(address=1, peers=(("127.0.0.1", 9),), key=tmp_path / "net.key")

    async def start() -> None:
        await LiveNode.open(settings, lambda delivery: None)

    with pytest.raises(ConfigurationError, match="is of network 'elsewhere', not 'roamcast'"):
        asyncio.run(start())


def test_a_slow_disk_does_not_hold_up_a_node_that_remembers_whom_it_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        write_ring(tmp_path / "net.key", new_ring("roamcast", 0.0))
        settings = NodeSettings(address=1, listen=free_endpoints(1)[0], key=tmp_path / "net.key", state=tmp_path)
        node = await LiveNode.open(settings, lambda delivery: None)
        is_at_work, may_end = threading.Event(), threading.Event()

        def slow(descriptor: int) -> None:
            is_at_work.set()
            assert may_end.wait(10)

        monkeypatch.setattr("roamcast.live.lives.os.fsync", slow)
        node._flush()  # returns, although the disk has not
        node.publish(7)
        assert not (tmp_path / "roamcast-1.heard").exists() or is_at_work.wait(10)
        may_end.set()
        node.close()
        assert (tmp_path / "roamcast-1.heard").exists()

    asyncio.run(scene())
