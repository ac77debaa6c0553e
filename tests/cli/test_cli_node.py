"""`roamcast node` by running it: processes on the loopback interface, with nothing between them but UDP."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roamcast.cli import commands
from roamcast.errors import ConfigurationError
from roamcast.testing.endpoints import free_endpoints
from roamcast.trace.files import read_trace

SOURCE = Path(__file__).parents[2] / "src"
SCHEMA = SOURCE.parent / "examples" / "sighting.xsd"
PATIENCE_S = 20.0
FLOODING = ["--protocol", "flooding", "--language", "intervals", "--subscribe", "0..100"]


class Process:
    """One `roamcast node`; its output is read line by line."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "roamcast", "node", "--json", "--log-level", "error", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def next(self, kind: str) -> dict[str, Any]:
        """The next line that is no receipt of a publication; it must be of this kind."""
        line = self._lines.get(timeout=PATIENCE_S)
        while line is not None and line["kind"] == "published" != kind:
            line = self._lines.get(timeout=PATIENCE_S)
        assert line is not None, self.process.communicate()[1]
        assert line["kind"] == kind, line
        return line

    def has_line(self, within_s: float = 0.2) -> bool:
        deadline_s = time.monotonic() + within_s
        while self._lines.empty() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return not self._lines.empty()

    def say(self, command: str) -> None:
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)

    def complaint(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class Chain:
    """Nodes 0, 1, 2, ... in a row: each hears only the one before and the one after."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self.nodes: dict[int, Process] = {}

    def start(self, *addresses: int, protocol: str = "flooding") -> None:
        for address in addresses:
            self.nodes[address] = Process("--protocol", protocol, *self._options(address))
        for address in addresses:
            assert self.nodes[address].next("started")["address"] == address

    def _options(self, address: int) -> list[str]:
        options = ["--address", str(address), "--listen", f"127.0.0.1:{self._ports[address]}"]
        for neighbour in (address - 1, address + 1):
            if 0 <= neighbour < len(self._ports):
                options += ["--peer", f"127.0.0.1:{self._ports[neighbour]}"]
        return [*options, "--language", "intervals", "--subscribe", "0..100"]

    def close(self) -> None:
        for node in self.nodes.values():
            node.process.kill()
            node.process.communicate()


@pytest.fixture
def chain() -> Iterator[Chain]:
    chain = Chain([port for _, port in free_endpoints(5)])
    yield chain
    chain.close()


def test_five_nodes_in_a_row_deliver_every_event_to_every_subscriber_and_a_killed_one_comes_back(chain: Chain) -> None:
    chain.start(0, 1, 2, 3, 4)
    nodes = chain.nodes
    for number in range(5):
        nodes[0].say(f"publish {number} payload {number}")
        for subscriber in range(1, 5):
            event = nodes[subscriber].next("delivered")
            assert (event["publisher"], event["content"], event["payload"]) == (0, number, f"payload {number}")
            assert event["hops"] == subscriber

    assert nodes[2].end(signal.SIGKILL) == -signal.SIGKILL
    nodes[0].say("publish 50")
    assert nodes[1].next("delivered")["content"] == 50  # and nobody beyond the gap: the next checks would see it

    chain.start(2)
    nodes[2].say("publish 60")
    for subscriber in (0, 1, 3, 4):
        assert nodes[subscriber].next("delivered")["content"] == 60
    nodes[4].say("publish 70")
    for subscriber in (3, 2, 1, 0):
        event = nodes[subscriber].next("delivered")
        assert (event["content"], event["hops"]) == (70, 4 - subscriber)
    nodes[4].say("publish 1000")
    nodes[4].say("publish 80")
    assert nodes[0].next("delivered")["content"] == 80


def test_waymark_delivers_over_two_hops(chain: Chain) -> None:
    chain.start(0, 1, 2, protocol="waymark")
    chain.nodes[0].say("publish 99")
    while not chain.nodes[2].has_line():  # until interests have spread
        chain.nodes[0].say("publish 99")
    for number in range(3):
        chain.nodes[0].say(f"publish {number}")
        for subscriber in (1, 2):
            event = chain.nodes[subscriber].next("delivered")
            while event["content"] == 99:
                event = chain.nodes[subscriber].next("delivered")
            assert event["content"] == number


def test_two_lives_of_a_node_do_not_share_event_numbers(chain: Chain) -> None:
    chain.start(0, 1)
    seen = []
    for _ in range(2):
        chain.nodes[1].say("publish 7")
        seen.append(chain.nodes[0].next("delivered")["event_id"])
        chain.nodes[1].end(signal.SIGKILL)
        chain.start(1)
    assert seen[0] < seen[1]
    assert [event_id >> 32 for event_id in seen] == [1, 1]


@pytest.mark.parametrize(
    ("protocol", "awaited"), [("flooding", None), ("somer", "a tree to join"), ("overlays", "a broker")]
)
def test_who_publishes_is_told_what_the_event_waits_for(protocol: str, awaited: str | None) -> None:
    never_a_broker = ["--set", "broker_share=0"] if protocol == "overlays" else []
    node = Process("--protocol", protocol, *never_a_broker, "--address", "3", "--peer", "127.0.0.1:9")
    node.next("started")
    node.say("publish 5 hello")
    assert node.next("published").get("awaited") == awaited
    assert node.end(signal.SIGINT) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_node_cleanly_with_counters_and_a_whole_trace(tmp_path: Path, number: signal.Signals) -> None:
    trace = str(tmp_path / "trace")
    node = Process("--protocol", "flooding", "--address", "3", "--peer", "127.0.0.1:9", "--trace", trace)
    node.next("started")
    node.say("publish 5 hello")
    node.say("move 120,40.5")
    node.say("stats")
    assert node.next("stats")["published"] == 1
    assert node.end(number) == 0
    stopped = node.next("stopped")
    assert (stopped["published"], stopped["frames_sent"]) == (1, {"Flood": 1})
    assert node.process.communicate()[1] == ""
    rows = read_trace(tmp_path / "trace").to_pylist()
    assert sorted(row["kind"] for row in rows) == ["end", "frame", "load", "position", "published"]


def test_commands_that_make_no_sense_are_answered_and_the_node_goes_on() -> None:
    node = Process("--address", "3", "--peer", "127.0.0.1:9", "--language", "topics")
    node.next("started")
    for command, answer in (
        ("shout", "command: 'shout' is unknown; allowed: publish CONTENT [PAYLOAD]"),
        ("publish", "command: 'publish' is unknown"),
        ("publish fire/*", "content: 'fire/*' is not a topic"),
        ("subscribe a//b", "interest: 'a//b'"),
        ("unsubscribe a", "interest: 'a' is not subscribed"),
        ("move north", "move: 'north' is not a place"),
        ("move 1,inf", "must be finite"),
        ("publish a " + "x" * 300_000, "allowed: at most 261120"),
        ("x" * 200_000, "command: "),
    ):
        node.say(command)
        complaint = node.complaint()
        assert complaint.startswith("roamcast: ")
        assert answer in complaint
    node.say("subscribe fire/**")
    node.say("stats")
    assert node.next("stats")["subscriptions"] == 1
    node.say("quit")
    assert node.next("stopped")["published"] == 0
    assert node.process.wait(PATIENCE_S) == 0


SIGHTING = (
    "<sighting team='3'><sector>{sector}</sector><altitude>{altitude}</altitude><urgency>now</urgency></sighting>"
)


def test_events_after_a_schema_of_ones_own(tmp_path: Path) -> None:
    ports = [port for _, port in free_endpoints(3)]
    peers = {0: [1], 1: [0, 2], 2: [1]}
    nodes = []
    for address, neighbours in peers.items():
        options = ["--address", str(address), "--listen", f"127.0.0.1:{ports[address]}", "--protocol", "odmrp"]
        options += [text for each in neighbours for text in ("--peer", f"127.0.0.1:{ports[each]}")]
        wanted = ["--subscribe", "/sighting[altitude > 2000]"] if address == 2 else []
        nodes.append(Process(*options, "--language", "content", "--schema", str(SCHEMA), *wanted))
    try:
        for node in nodes:
            node.next("started")
        nodes[0].say("publish " + SIGHTING.format(sector="north", altitude="high"))
        assert "event: altitude = 'high': must be a whole number" in nodes[0].complaint()
        for altitude in (1500, 2500):
            nodes[0].say("publish " + SIGHTING.format(sector="north", altitude=altitude))
        assert nodes[2].next("delivered")["content"] == SIGHTING.format(sector="north", altitude=2500)
        nodes[2].say("subscribe /PGMFORUM[hole = 1]")  # the golf forum is still there
        nodes[2].say("stats")
        assert nodes[2].next("stats")["subscriptions"] == 2
    finally:
        for node in nodes:
            node.process.kill()
            node.process.communicate()


BOMB = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]><x>&b;</x>"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is not a file"),
        (b"", "is not XML"),
        (b"\xff\xfe<", "is not text in UTF-8"),
        (BOMB.encode(), "has a DOCTYPE; none is allowed"),
        (b"<a>" * 5000, "is not XML"),
        (b" " * 1_000_000, "characters; allowed: at most 65536"),
        (b"<a/>", "allowed: schema of XML Schema"),
        (
            b'<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:include schemaLocation="/etc/x"/></s:schema>',
            "'include' is outside the subset",
        ),
    ],
)
def test_a_schema_that_is_none_is_refused_in_one_line(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "events.xsd"
    if content is not None:
        path.write_bytes(content)
    arguments = ["node", "--address", "1", "--peer", "127.0.0.1:9", "--language", "content", "--schema", str(path)]
    answer = CliRunner().invoke(commands, arguments)
    refusal = str(answer.exception)
    assert isinstance(answer.exception, ConfigurationError)
    assert refusal.startswith(f"--schema {str(path)!r}: ")
    assert reason in refusal
    assert "\n" not in refusal


def test_a_schema_needs_the_language_that_uses_it() -> None:
    arguments = ["node", "--address", "1", "--peer", "127.0.0.1:9", "--schema", str(SCHEMA)]
    answer = CliRunner().invoke(commands, arguments)
    assert "--schema: only for --language content" in str(answer.exception)


def test_the_end_of_the_input_does_not_end_a_node_but_its_duration_does() -> None:
    node = Process("--address", "3", "--peer", "127.0.0.1:9", "--duration", "0.2")
    node.next("started")
    assert node.process.stdin is not None
    node.process.stdin.close()
    assert node.next("stopped")["uptime_s"] >= 0.2
    assert node.process.wait(PATIENCE_S) == 0


def test_a_node_whose_output_nobody_reads_any_more_ends_without_a_traceback() -> None:
    readable, writable = os.pipe()
    node = subprocess.Popen(
        [sys.executable, "-m", "roamcast", "node", "--address", "3", "--peer", "127.0.0.1:9"],
        stdin=subprocess.PIPE,
        stdout=writable,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    os.close(writable)
    assert os.read(readable, 1000).startswith(b"node 3 runs waymark")
    os.close(readable)
    _, complaints = node.communicate("stats\n", timeout=PATIENCE_S)
    assert (node.returncode, complaints) == (1, "")


def test_a_stalled_reader_does_not_stop_the_node() -> None:
    (_, here), (_, there) = free_endpoints(2)
    other = Process("--address", "4", "--listen", f"127.0.0.1:{there}", "--peer", f"127.0.0.1:{here}", *FLOODING)
    readable, writable = os.pipe()
    words = ["--address", "3", "--listen", f"127.0.0.1:{here}", "--peer", f"127.0.0.1:{there}", *FLOODING]
    node = subprocess.Popen(
        [sys.executable, "-m", "roamcast", "node", "--log-level", "error", *words],
        stdin=subprocess.PIPE,
        stdout=writable,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    os.close(writable)
    try:
        other.next("started")
        assert os.read(readable, 1000).startswith(b"node 3 runs")
        assert node.stdin is not None
        assert node.stderr is not None
        for _ in range(2000):  # far more than the pipe holds
            print("stats", file=node.stdin)
        print("nonsense", file=node.stdin, flush=True)
        assert "command: 'nonsense' is unknown" in node.stderr.readline(), "it obeys while its output waits"
        print("publish 5", file=node.stdin, flush=True)
        assert other.next("delivered")["publisher"] == 3, "it talks to others while its output waits"
    finally:
        for process in (node, other.process):
            process.kill()
            process.wait(PATIENCE_S)
        os.close(readable)
