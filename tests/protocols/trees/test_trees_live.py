"""Tree protocols over UDP: twelve `roamcast node` processes on the loopback interface, one killed and restarted, and
twelve nodes of each single-tree protocol in this process."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roamcast.interests import parse_interest
from roamcast.live.endpoints import Endpoint, open_socket
from roamcast.live.node import Delivery, Node, NodeSettings

SOURCE = Path(__file__).parents[3] / "src"
NODES = 12
STARTS_WITHIN_S = 60.0  # a busy machine takes its time to start twelve interpreters
PATIENCE_S = 60.0
QUICK = {"refresh_period_s": 1.0, "join_wait_s": 0.2}


def free_endpoints(count: int) -> list[Endpoint]:
    sockets = [open_socket(("127.0.0.1", 0), None) for _ in range(count)]
    endpoints: list[Endpoint] = [each.getsockname() for each in sockets]
    for each in sockets:
        each.close()
    return endpoints


def beside(address: int) -> tuple[int, int]:
    """Neighbours in a ring."""
    return (address - 1) % NODES, (address + 1) % NODES


class Ring:
    """Processes in a ring; what they deliver is collected by reading their output."""

    def __init__(self) -> None:
        self._endpoints = free_endpoints(NODES)
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._started = {address: threading.Event() for address in range(NODES)}
        self.delivered: dict[int, set[int]] = {address: set() for address in range(NODES)}

    def start(self, *addresses: int) -> None:
        for address in addresses:
            self._started[address].clear()
            self._launch(address)
        for address in addresses:
            assert self._started[address].wait(STARTS_WITHIN_S), f"{address} does not start"

    def _launch(self, address: int) -> None:
        host, port = self._endpoints[address]
        options = ["--address", str(address), "--listen", f"{host}:{port}", "--subscribe", "0..1000", "--json"]
        for neighbour in beside(address):
            options += ["--peer", "{}:{}".format(*self._endpoints[neighbour])]
        settings = {**QUICK, "advertisement_period_s": 1.0, "root_density": float(address in (0, 6))}
        for name, value in settings.items():
            options += ["--set", f"{name}={value}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "roamcast", "node", "--protocol", "somer", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self._processes[address] = process
        threading.Thread(target=self._read, args=(address, process), daemon=True).start()

    def _read(self, address: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            if row["kind"] == "started":
                self._started[address].set()
            elif row["kind"] == "delivered":
                self.delivered[address].add(row["content"])

    def publish_until_heard(self, publisher: int, first: int, by: set[int]) -> int:
        """Publishes `first`, `first + 1`, ... until one of them has reached everybody in `by`; that number."""
        process = self._processes[publisher]
        assert process.stdin is not None
        deadline_s = time.monotonic() + PATIENCE_S
        number = first
        while time.monotonic() < deadline_s:
            print(f"publish {number}", file=process.stdin, flush=True)
            time.sleep(0.4)
            for sent in range(first, number + 1):
                if all(sent in self.delivered[address] for address in by):
                    return sent
            number += 1
        missing = [address for address in sorted(by) if not any(n >= first for n in self.delivered[address])]
        raise AssertionError(f"from {first} on: not within {PATIENCE_S} s; nothing arrived at {missing}")

    def kill(self, address: int) -> None:
        process = self._processes.pop(address)
        process.kill()
        process.wait()

    def close(self) -> None:
        for address in list(self._processes):
            self.kill(address)


@pytest.fixture
def ring() -> Iterator[Ring]:
    ring = Ring()
    yield ring
    ring.close()


def test_twelve_processes_of_somer_serve_each_other_and_one_that_returns(ring: Ring) -> None:
    ring.start(*range(NODES))
    everybody = set(range(NODES))
    ring.publish_until_heard(1, 100, by=everybody - {1})
    ring.kill(4)
    ring.start(4)
    ring.publish_until_heard(3, 500, by={4})


async def three_networks() -> dict[str, dict[int, set[float]]]:
    """Twelve nodes in a ring for each protocol, all at once; node 2 publishes until everybody has heard."""
    heard: dict[str, dict[int, set[float]]] = {}
    rings: dict[str, list[Node]] = {}
    for protocol in ("ps-maodv", "sp-combo", "dsapst"):
        endpoints = free_endpoints(NODES)
        heard[protocol] = {address: set() for address in range(NODES)}
        rings[protocol] = []
        for address in range(NODES):

            def note(delivery: Delivery, into: set[float] = heard[protocol][address]) -> None:
                into.add(float(delivery.event.content))

            settings = NodeSettings(
                address=address,
                protocol=protocol,
                network=protocol,
                parameters=dict(QUICK),
                listen=endpoints[address],
                peers=tuple(endpoints[neighbour] for neighbour in beside(address)),
            )
            rings[protocol].append(await Node.open(settings, note))
        for node in rings[protocol]:
            node.subscribe(parse_interest("intervals", "0..1000"))
    await asyncio.sleep(4.0)
    for number in range(40):
        for nodes in rings.values():
            nodes[2].publish(number)
        await asyncio.sleep(0.3)
        if all(_complete(network) for network in heard.values()):
            break
    for nodes in rings.values():
        for node in nodes:
            node.close()
    return heard


def _complete(network: dict[int, set[float]]) -> bool:
    """Whether some event has reached everybody but its publisher."""
    return bool(set.intersection(*(numbers for address, numbers in network.items() if address != 2)))


def test_twelve_nodes_of_each_single_tree_protocol() -> None:
    for protocol, network in asyncio.run(three_networks()).items():
        assert _complete(network), protocol
        assert not network[2], protocol
