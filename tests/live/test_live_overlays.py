"""Opportunistic overlays on nine `roamcast node` processes over loopback: a client is handed over while events flow.

Brokers 1 - 2 - 3 stand in a row, producer 9 next to broker 3. Client 8 hears both ends of the row. It attaches to
broker 1, the first of two equally near ones; reports tell broker 1 of broker 3, from which the producer is nearer, and
it hands the client over. The client sees the events' way shrink from four hops to two, and no event missing, twice or
late.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roamcast.testing.endpoints import free_endpoints

SOURCE = Path(__file__).parents[2] / "src"
LINKS = [(1, 2), (2, 3), (3, 9), (1, 8), (3, 8), (1, 4), (2, 5), (2, 6), (3, 7)]
CLIENTS = (4, 5, 6, 7, 8)
SETTINGS = {
    "brokers": "1-3",
    "bootstrap_s": "2",
    "bootstrap_period_s": "0.3",
    "update_period_s": "2",
    "discovery_period_s": "2",
    "home_timeout_s": "10",
    "hop_time_s": "0.1",
    "retry_s": "0.5",
    "machine_load": "false",  # all brokers are on this machine, and it may be busy
}
ROW_HOPS, SHORT_HOPS = 4, 2
PATIENCE_S = 25.0


class NodeProcess:
    """One `roamcast node`; what it says is gathered as it comes."""

    def __init__(self, address: int, ports: dict[int, int]) -> None:
        peers = sorted({a + b - address for a, b in LINKS if address in (a, b)})
        options = ["--address", str(address), "--listen", f"127.0.0.1:{ports[address]}", "--protocol", "overlays"]
        options += ["--language", "intervals"]
        for peer in peers:
            options += ["--peer", f"127.0.0.1:{ports[peer]}"]
        for name, value in SETTINGS.items():
            options += ["--set", f"{name}={value}"]
        if address in CLIENTS:
            options += ["--subscribe", "0..100000"]
        if address == 9:
            options += ["--advertise", "0..100000"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "roamcast", "node", "--json", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self.deliveries: list[dict[str, Any]] = []
        self.has_started = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if said["kind"] == "started":
                self.has_started.set()
            elif said["kind"] == "delivered":
                self.deliveries.append(said)

    def say(self, command: str) -> None:
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def nodes() -> Iterator[dict[int, NodeProcess]]:
    addresses = sorted({address for link in LINKS for address in link})
    ports = {address: port for address, (_, port) in zip(addresses, free_endpoints(len(addresses)), strict=True)}
    running = {address: NodeProcess(address, ports) for address in addresses if address != 8}
    try:
        assert all(node.has_started.wait(PATIENCE_S) for node in running.values())
        running[8] = NodeProcess(8, ports)  # last, so that it hears both ends of the row from the start
        yield running
    finally:
        for node in running.values():
            node.end()


def test_a_client_is_handed_over_between_live_brokers_while_events_flow(nodes: dict[int, NodeProcess]) -> None:
    assert all(node.has_started.wait(PATIENCE_S) for node in nodes.values())
    moved = nodes[8]
    deadline_s = time.monotonic() + PATIENCE_S
    published = 0
    while time.monotonic() < deadline_s:
        hops = [delivery["hops"] for delivery in moved.deliveries]
        if hops and hops[-1] == SHORT_HOPS and max(hops) >= ROW_HOPS:
            break
        nodes[9].say(f"publish {published}")
        published += 1
        time.sleep(0.05)
    for _ in range(20):
        nodes[9].say(f"publish {published}")
        published += 1
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s and any(len(nodes[client].deliveries) < published for client in CLIENTS):
        time.sleep(0.05)
    for client in CLIENTS:
        assert [delivery["content"] for delivery in nodes[client].deliveries] == list(range(published)), client
    hops = [delivery["hops"] for delivery in moved.deliveries]
    assert hops[0] >= ROW_HOPS
    assert hops[-1] == SHORT_HOPS
