"""Real processes with journals, killed and stopped: an independent checker counts what was lost or came twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest

from roamcast.checkers.receipts import judge
from roamcast.live.endpoints import open_socket
from roamcast.live.settings import LISTEN

PATIENCE_S = 60.0
STOPPED_S = 10.0  # longer than a neighbour that is not heard is remembered


class Process:
    """A node as its operator starts it, as often as needed: its output is kept across lives."""

    def __init__(self, directory: Path, address: int, listen: str, peer: str, *options: str) -> None:
        self._output = directory / f"output-{address}"
        self._command = [
            *(sys.executable, "-m", "roamcast", "node", "--json", "--address", str(address)),
            *("--listen", listen, "--peer", peer, "--protocol", "flooding", "--journal", str(directory / "journal")),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        started = len(self.lines("started"))
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=output)
        wait_until(lambda: len(self.lines("started")) > started)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def send(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def publish(self, count: int) -> None:
        """Publishes, and waits until the node has acknowledged all of it."""
        assert self._process is not None
        assert self._process.stdin is not None
        before = len(self.lines("published"))
        self._process.stdin.write(b"publish fire/north smoke\n" * count)
        self._process.stdin.flush()
        wait_until(lambda: len(self.lines("published")) == before + count)

    def lines(self, kind: str) -> list[dict[str, Any]]:
        if not self._output.exists():
            return []
        whole = self._output.read_bytes().rpartition(b"\n")[0].splitlines()
        return [found for found in map(json.loads, whole) if found["kind"] == kind]


def wait_until(condition: Any) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "this takes too long"
        time.sleep(0.05)


@pytest.mark.slow("a process is stopped for ten seconds")
def test_nothing_is_lost_or_comes_twice_when_processes_are_killed_and_stopped(tmp_path: Path) -> None:
    sockets = [open_socket(LISTEN, None) for _ in range(2)]
    here, there = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    with (
        Process(tmp_path, 1, here, there) as alice,
        Process(tmp_path, 2, there, here, "--subscribe", "fire/**", "--ordered") as bob,
    ):
        bob.start()
        alice.start()
        alice.publish(20)
        bob.kill()
        alice.publish(20)
        bob.start()
        alice.publish(20)
        alice.kill()  # right after it has acknowledged
        alice.start()
        alice.publish(20)
        bob.send(signal.SIGSTOP)
        alice.publish(20)
        time.sleep(STOPPED_S)
        bob.send(signal.SIGCONT)
        alice.publish(1)
        bob.kill()  # somewhere in the middle
        bob.start()
        published = [line["event_id"] for line in alice.lines("published")]
        wait_until(lambda: published[-1] in [line["event_id"] for line in bob.lines("delivered")])
        delivered = bob.lines("delivered")
        first_time = [line["event_id"] for line in delivered if "again" not in line]
        told_again = {line["event_id"] for line in delivered if "again" in line}
    assert len(published) == 101
    got = [*first_time, *sorted(told_again - set(first_time))]
    found = judge({2: published}, {2: got})
    assert (found.lost, found.twice, found.unasked) == (0, 0, 0), found
    assert judge({2: first_time}, {2: first_time}).disordered == 0
