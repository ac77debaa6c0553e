"""Flood Watch as separate programs, with keys, each in a network of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from tests.emulator.namespaces import needs_namespaces

SOURCE = Path(__file__).parents[3] / "src"
PATIENCE_S = 240.0


def feed(url: str) -> Iterator[dict[str, Any]]:
    """What the page at `url` is told, from the moment it answers."""
    give_up_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_s:
        try:
            with urlopen(f"{url}news", timeout=60) as answer:
                for line in answer:
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])
                    if time.monotonic() > give_up_s:
                        pytest.fail("it never came about")
        except (URLError, TimeoutError):
            time.sleep(0.2)


@pytest.mark.slow("six programs in real time")
@needs_namespaces
def test_a_team_sees_water_that_a_vehicle_computed_in_a_network_with_keys(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "roamcast", "app", "flood-watch", "--demo", "--emulated", "--stay"]
    command += ["--page", "127.0.0.1:0", "--out", str(tmp_path / "page.html")]
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path / "scratch")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        known: dict[str, dict[str, Any]] = {}  # the last message of each kind
        for message in feed(url):
            known[message["kind"]] = message
            vehicles = known.get("map", {}).get("vehicles", {})
            if "depths" in known and str(known["state"]["broker"]) in vehicles:
                break
        state = known["state"]
        assert state["received_bytes"] == state["received"] * 40 * 30 * 8  # the box alone: a vehicle computed it
        # Its address follows from an identity; its name is what it says.
        assert state["broker"] > 1000
        assert vehicles[str(state["broker"])]["name"] in {"vehicle 1", "vehicle 2", "vehicle 3"}
        parts = psutil.Process(process.pid).children(recursive=True)
        assert len(parts) >= 12  # six programs, and what keeps their networks
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
    assert psutil.wait_procs(parts, timeout=20)[1] == []
    assert list((tmp_path / "scratch").iterdir()) == []  # no keys are left behind
