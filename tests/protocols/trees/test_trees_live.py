"""Tree protocols over UDP: `roamcast node` processes on the loopback interface, one killed and restarted."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from roamcast.testing.endpoints import free_endpoints

SOURCE = Path(__file__).parents[3] / "src"
STARTS_WITHIN_S = 60.0  # a busy machine takes its time to start all interpreters
PATIENCE_S = 60.0
QUICK = {"refresh_period_s": 1.0, "join_wait_s": 0.2}
SETTINGS: dict[str, dict[str, float]] = {
    "somer": {**QUICK, "advertisement_period_s": 1.0},
    "somer-plus": {**QUICK, "advertisement_period_s": 1.0},
    "ps-maodv": QUICK,
    "sp-combo": QUICK,
    "dsapst": {**QUICK, "probe_period_s": 1.0},
}
NODES = {protocol: 10 if protocol.startswith("somer") else 6 for protocol in SETTINGS}  # with two trees in SOMER
SOMER_ROOTS = (0, 5)


class Ring:
    """Processes in a ring; what they deliver is collected by reading their output."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self.nodes = NODES[protocol]
        self._endpoints = free_endpoints(self.nodes)
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._started = {address: threading.Event() for address in range(self.nodes)}
        self.delivered: dict[int, set[int]] = {address: set() for address in range(self.nodes)}

    def start(self, *addresses: int) -> None:
        for address in addresses:
            self._started[address].clear()
            self._launch(address)
        for address in addresses:
            assert self._started[address].wait(STARTS_WITHIN_S), f"{address} does not start"

    def _launch(self, address: int) -> None:
        host, port = self._endpoints[address]
        options = ["--address", str(address), "--listen", f"{host}:{port}", "--json"]
        options += ["--language", "intervals", "--subscribe", "0..1000"]
        for neighbour in ((address - 1) % self.nodes, (address + 1) % self.nodes):
            options += ["--peer", "{}:{}".format(*self._endpoints[neighbour])]
        settings = dict(SETTINGS[self._protocol])
        if self._protocol.startswith("somer"):
            settings["root_density"] = float(address in SOMER_ROOTS)
        for name, value in settings.items():
            options += ["--set", f"{name}={value}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "roamcast", "node", "--protocol", self._protocol, *options],
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


@pytest.mark.slow("many processes, one killed, in real time")
@pytest.mark.parametrize("protocol", SETTINGS)
def test_the_others_go_on_without_one_that_is_killed_and_serve_it_when_it_returns(protocol: str) -> None:
    ring = Ring(protocol)
    everybody = set(range(ring.nodes))
    try:
        ring.start(*everybody)
        ring.publish_until_heard(1, 100, by=everybody - {1})
        ring.kill(4)
        ring.publish_until_heard(3, 300, by=everybody - {3, 4})
        ring.start(4)
        ring.publish_until_heard(5, 500, by=everybody - {5})
    finally:
        ring.close()
