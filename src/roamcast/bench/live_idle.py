"""What a live node costs that has nothing to do, and whether fifty of them in one group serve each other.

    python -m roamcast.bench.live_idle neighbours PORT KEY COUNT
    python -m roamcast.bench.live_idle idle PORT KEY SECONDS
    python -m roamcast.bench.live_idle group PORT KEY FIRST COUNT

The nodes share a multicast group on the loopback interface and are sealed. `neighbours` are many nodes in one process;
`idle` is one more, in a process of its own, whose CPU time and memory are measured. `group` are some of many nodes with
Overlays that all subscribe to what the last one publishes.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import psutil

import roamcast
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.loop import run
from roamcast.testing.endpoints import free_endpoints

GROUP = "239.255.21.103"
TOPIC = "bench/group"
EVENTS = 20
SETTLING_S = 15.0
PATIENCE_S = 60.0
PER_PROCESS = 10


class IdleNode(msgspec.Struct, frozen=True):
    """A node that has neighbours and nothing to do."""

    neighbours: int
    cpu_share: float  # of one core
    memory_mb: float  # resident, in MB


class GroupDeliveries(msgspec.Struct, frozen=True):
    """Nodes in one group, one of which publishes."""

    nodes: int
    delivered: int
    expected: int


def measure_idle(neighbours: int, seconds: float) -> IdleNode:
    with tempfile.TemporaryDirectory() as folder:
        place = _place(Path(folder))
        others = subprocess.Popen([*place("neighbours"), str(neighbours)], stdin=subprocess.PIPE)
        try:
            told = subprocess.run([*place("idle"), str(seconds)], check=True, stdout=subprocess.PIPE)
        finally:
            others.kill()
            others.wait()
    return msgspec.json.decode(told.stdout, type=IdleNode)


def measure_group(nodes: int) -> GroupDeliveries:
    """Nodes in processes of `PER_PROCESS`, all started at once."""
    with tempfile.TemporaryDirectory() as folder:
        place = _place(Path(folder))
        parts = [
            subprocess.Popen(
                [*place("group"), str(first), str(min(PER_PROCESS, nodes - first))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in range(0, nodes, PER_PROCESS)
        ]
        try:
            for part in parts:
                assert part.stdout is not None
                part.stdout.readline()
            time.sleep(SETTLING_S)
            assert parts[-1].stdin is not None
            parts[-1].stdin.write("publish\n")
            parts[-1].stdin.flush()
            time.sleep(SETTLING_S)
            delivered = sum(int(part.communicate("end\n", PATIENCE_S)[0]) for part in parts)
        finally:
            for part in parts:
                part.kill()
    return GroupDeliveries(nodes, delivered, EVENTS * (nodes - 1))


def _place(folder: Path) -> Any:
    key = folder / "bench.key"
    write_ring(key, new_ring("bench", 0.0))
    ((_, port),) = free_endpoints(1)
    return lambda role: [sys.executable, "-m", "roamcast.bench.live_idle", role, str(port), str(key)]


def _node(address: int, port: str, key: str, **options: Any) -> roamcast.Node:
    return roamcast.Node(
        address, listen=f"127.0.0.1:{port}", broadcast=f"{GROUP}:{port}", key=key, state=Path(key).parent, **options
    )


async def _neighbours(port: str, key: str, count: int) -> None:
    async with AsyncExitStack() as stack:
        for address in range(1, count + 1):
            await stack.enter_async_context(_node(address, port, key))
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def _idle(port: str, key: str, seconds: float) -> None:
    async with _node(0, port, key) as node:
        await asyncio.sleep(SETTLING_S)
        began_s, cpu_s = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - cpu_s) / (time.monotonic() - began_s)
        memory_mb = psutil.Process().memory_info().rss / 1e6
        print(json.dumps({"neighbours": len(node.neighbours), "cpu_share": share, "memory_mb": memory_mb}), flush=True)


async def _group(port: str, key: str, first: int, count: int) -> None:
    """Subscribes, and says how many deliveries there were when told to end; on a line `publish` the last node does."""
    got: set[tuple[int, int]] = set()
    async with AsyncExitStack() as stack:
        nodes = []
        for address in range(first, first + count):
            opened = _node(address, port, key, protocol="overlays", parameters={"machine_load": False})
            node = await stack.enter_async_context(opened)
            node.observe(lambda delivery, address=address: got.add((address, delivery.event.id)))  # type: ignore[misc]
            node.subscribe(TOPIC)
            nodes.append(node)
        print("ready", flush=True)
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline) == "publish\n":
            for _ in range(EVENTS):
                await nodes[-1].publish(TOPIC, b"." * 64)
                await asyncio.sleep(0.1)
    print(len(got), flush=True)


if __name__ == "__main__":
    role, port, key, number, *more = sys.argv[1:]
    if role == "neighbours":
        run(_neighbours(port, key, int(number)))
    elif role == "idle":
        run(_idle(port, key, float(number)))
    else:
        run(_group(port, key, int(number), int(more[0])))
