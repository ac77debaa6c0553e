"""`roamcast node` as a service: its configuration file, what a SIGHUP changes, what it tells systemd."""

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException
from typer.testing import CliRunner

from roamcast.cli import commands
from roamcast.live.keys import new_ring, write_ring

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 20.0


def refusal(*arguments: str) -> str:
    """What a command is refused with."""
    answer = CliRunner().invoke(commands, ["node", *arguments], standalone_mode=False)
    assert answer.exception is not None, answer.output
    error = answer.exception
    text = error.format_message() if isinstance(error, TyperException) else str(error)
    assert "\n" not in text
    return text


def printed_config(*arguments: str) -> dict[str, Any]:
    answer = CliRunner().invoke(commands, ["node", *arguments, "--print-config"])
    assert answer.exit_code == 0, answer.output
    return tomllib.loads(answer.output)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("addres = 1", "'addres' is unknown; did you mean 'address'?"),
        ("zebra = 1", "'zebra' is unknown; allowed: address, protocol"),
        ("config = 'x'", "'config' is unknown"),
        ("address = [1]", "'address' must be one value"),
        ("peer = '127.0.0.1:9'", "'peer' must be a list"),
        ("plain = 'yes'", "'plain' must be true or false"),
        ("set = 5", "'set' must be a table"),
        ("address = 'x'", "Invalid value for '--address': "),
        ("address = ", "is not TOML"),
        ("peer = ['nowhere']", "--peer: 'nowhere' is not an endpoint"),
        ("port = 0", "--port = 0: must be between 1 and 65535"),
        ("log-level = 'loud'", "--log-level: 'loud' is unknown; allowed: error, warning, info, debug"),
    ],
)
def test_a_file_with_a_mistake_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "node.toml"
    file.write_text(text if "address" in text else f"address = 1\n{text}")
    assert reason in refusal("--config", str(file))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "is not a configuration file" in refusal("--config", str(tmp_path))
    assert "is not a configuration file" in refusal("--config", "/dev/zero")


def test_options_win_over_the_file_and_files_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(
        'address = 1\nprotocol = "gossip"\nkey = "net.key"\nlog_level = "debug"\nplain = true\n'
        'subscribe = ["1..2"]\n[set]\nprobability = 0.5\nname = "x"\n'
    )
    shown = printed_config("--config", str(tmp_path / "node.toml"), "--protocol", "flooding", "--peer", "127.0.0.1:9")
    assert shown == {
        "address": 1,
        "protocol": "flooding",
        "peer": ["127.0.0.1:9"],
        "key": str(tmp_path / "net.key"),
        "log-level": "debug",
        "plain": True,
        "subscribe": ["1..2"],
        "set": {"probability": 0.5, "name": "x"},
    }


def test_a_printed_file_says_the_same_as_the_options_it_was_made_from(tmp_path: Path) -> None:
    options = ["--address", "7", "--interface", "lo", "--interface", "eth9", "--language", "topics", "--range", "50"]
    options += ["--subscribe", 'a "quoted" topic/**', "--set", "period_s=2", "--json", "--trace", str(tmp_path / "t")]
    answer = CliRunner().invoke(commands, ["node", *options, "--print-config"])
    (tmp_path / "node.toml").write_text(answer.output)
    assert printed_config("--config", str(tmp_path / "node.toml")) == tomllib.loads(answer.output)
    assert tomllib.loads(answer.output)["interface"] == ["lo", "eth9"]


class Service:
    """A node started as systemd would start it, by a configuration file."""

    def __init__(self, config: Path, told: socket.socket, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "roamcast", "node", "--config", str(config), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={
                **os.environ,
                "PYTHONPATH": str(SOURCE),
                "NOTIFY_SOCKET": told.getsockname(),
                "WATCHDOG_USEC": "400000",
            },
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        self._told = told

    def _read(self, stream: Any) -> None:
        for line in stream:
            self._lines.put(json.loads(line))

    def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            if line["kind"] == kind and all(line[name] == value for name, value in fields.items()):
                return line

    def told(self, what: str) -> None:
        """Waits until systemd is told so; signs of life alone do not prolong the wait."""
        end = time.monotonic() + PATIENCE_S
        while not self._told.recv(1000).decode().startswith(what):
            assert time.monotonic() < end, f"systemd was not told {what!r}"

    def stats(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        print("stats", file=self.process.stdin, flush=True)
        return self.until("stats")


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_S)
        yield listening


CONFIG = """
address = 1
json = true
log-format = "json"
language = "topics"
key = "net.key"
peer = ["127.0.0.1:9"]
subscribe = ["fire/**", "flood/**"]
"""


def test_a_service_says_what_it_does_and_follows_its_file(tmp_path: Path, systemd: socket.socket) -> None:
    write_ring(tmp_path / "net.key", new_ring("rescue", 0.0))
    config = tmp_path / "node.toml"
    config.write_text(CONFIG)
    node = Service(config, systemd)
    try:
        node.until("started")
        node.told("READY=1\nSTATUS=node 1 runs waymark")
        node.told("WATCHDOG=1")
        node.told("WATCHDOG=1")
        assert node.stats()["subscriptions"] == 2

        changed = CONFIG.replace('"flood/**"', '"storm/**", "snow/**"').replace(":9", ":10") + 'protocol = "gossip"\n'
        config.write_text(changed)
        node.process.send_signal(signal.SIGHUP)
        node.told("RELOADING=1\nMONOTONIC_USEC=")
        node.told("READY=1")
        assert node.until("needs-restart")["setting"] == "protocol"
        node.until("reloaded")
        assert node.stats()["subscriptions"] == 3

        for mistake in ("nonsense = 1", "address = ", "log-level = 'loud'"):
            config.write_text(CONFIG + mistake)
            node.process.send_signal(signal.SIGHUP)
            assert "not reloaded: " in node.until("refused")["text"]
        assert node.stats()["subscriptions"] == 3, "a mistake changes nothing"

        write_ring(tmp_path / "net.key", new_ring("elsewhere", 0.0), replace=True)
        config.write_text(changed + 'network = "rescue"\n')
        node.process.send_signal(signal.SIGHUP)
        assert "is of network 'elsewhere', not 'rescue'" in node.until("refused")["text"]

        node.process.send_signal(signal.SIGTERM)
        node.told("STOPPING=1")
        node.until("stopped")
        assert node.process.wait(PATIENCE_S) == 0
    finally:
        node.process.kill()
        node.process.wait()


def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    answer = CliRunner().invoke(commands, ["node", "--print-unit"])
    assert answer.exit_code == 0
    assert f"ExecStart={sys.executable} -m roamcast node --config" in answer.output
    assert "WatchdogSec=" in answer.output
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    unit = tmp_path / "roamcast@rescue.service"
    unit.write_text(answer.output)
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "roamcast@rescue.service" not in checked.stderr, checked.stderr


def test_doors_of_a_file_are_printed_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(
        'address = 1\n[door.http]\nlisten = "127.0.0.1:81"\nusers = "u"\n'
        '[door.http.access."*"]\nsubscribe = "a/**"\n[door.mqtt]\n'
    )
    shown = printed_config("--config", str(tmp_path / "node.toml"))
    http = {"listen": "127.0.0.1:81", "users": str(tmp_path / "u"), "access": {"*": {"subscribe": "a/**"}}}
    assert shown["door"] == {"http": http, "mqtt": {}}
