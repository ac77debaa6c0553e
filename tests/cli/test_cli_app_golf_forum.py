"""`roamcast app golf-forum`: its options, a simulated tournament, and two devices in processes of their own."""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from roamcast import cli
from roamcast.testing.endpoints import free_endpoints

PATIENCE_S = 60
RESULT = {"player": "els", "holescore": 3, "totalscore": 11, "currentrank": 1}


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["app", "golf-forum", *arguments])
    out, err = capfd.readouterr()
    return ended.value.code, out, err


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ([], "--address: must be given"),
        (["--demo", "--simulate"], "--demo: not together with --simulate"),
        (["--address", "1", "--hole", "19"], "hole = 19: must be between 1 and 18"),
        (["--address", "1", "--interface", "lo", "--page", "here"], "page: 'here' is not an address"),
        (["--address", "1", "--plain", "--set", "jitter=1"], "jitter"),
        (["--simulate", "--duration", "6"], "duration = 6: must be at least 15 s"),
        (["--config", "absent.toml"], "--config 'absent.toml'"),
    ],
)
def test_mistakes_are_one_line(capfd: pytest.CaptureFixture[str], arguments: list[str], mistake: str) -> None:
    status, out, err = run(capfd, *arguments, "--no-browser")
    assert (status, out) == (2, "")
    assert mistake in err
    assert err.count("\n") == 1


def test_its_options_may_be_in_a_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = run(capfd, "--name", "Ann", "--address", "7", "--no-broker", "--print-config")
    assert status == 0
    assert out.startswith("# roamcast app golf-forum --config FILE\n")
    assert 'name = "Ann"\n' in out
    file = tmp_path / "ann.toml"
    file.write_text(out, encoding="utf-8")
    status, again, _ = run(capfd, "--config", str(file), "--print-config")
    assert (status, again) == (0, out)
    file.write_text("nome = 'Ann'\n", encoding="utf-8")
    status, _, err = run(capfd, "--config", str(file))
    assert status == 2
    assert "did you mean 'name'?" in err


def test_a_tournament_in_the_simulator(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "course.html"
    options = ["--holes", "3", "--visitors", "3", "--duration", "15", "--export", str(page), "--no-browser", "--json"]
    status, out, err = run(capfd, "--simulate", *options)
    assert (status, err) == (0, "")
    simulated, exported = (json.loads(line) for line in out.splitlines())
    assert simulated["nodes"] == 12
    assert 0 < simulated["delivered"] <= simulated["expected"]
    assert exported == {"kind": "exported", "path": str(page)}
    assert page.stat().st_size > 10_000


class Device:
    """A process with one device."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "roamcast", "app", "golf-forum", *options]
        command += ["--page", "127.0.0.1:0", "--no-browser", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self.said(PATIENCE_S)["url"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def said(self, within_s: float) -> Any:
        """Its next line; `queue.Empty` if there is none in time."""
        return json.loads(self._lines.get(timeout=within_s))

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        """The first message of its feed."""
        with urllib.request.urlopen(f"{self.url}feed", timeout=PATIENCE_S) as feed:
            for line in feed:
                if line.startswith(b"data: "):
                    found: dict[str, Any] = json.loads(line[6:])
                    return found
        raise AssertionError("an empty feed")


def test_devices_in_processes_of_their_own(tmp_path: Path) -> None:
    here, there = (f"{host}:{port}" for host, port in free_endpoints(2))
    file = tmp_path / "ann.toml"
    file.write_text(
        f'name = "Ann"\naddress = 2\nconstrained = true\nlisten = "{there}"\npeer = ["{here}"]\n', encoding="utf-8"
    )
    devices: list[Device] = []
    try:
        devices.append(Device("--address", "1", "--hole", "3", "--listen", here, "--peer", there))
        devices.append(Device("--config", str(file)))
        official, reader = devices
        answer = reader.post("subscribe", {"type": "PGMFORUM", "fields": {"player": ["els"]}})
        assert answer["xpath"] == "/PGMFORUM[player = 'els']"
        until_s = time.monotonic() + PATIENCE_S
        while reader.status()["home"] != 1:
            assert time.monotonic() < until_s
            time.sleep(0.2)
        notice = None
        while notice is None:  # the broker may not know the subscription yet
            assert official.post("publish", {"type": "PGMFORUM", "values": RESULT})["neighbours"] == 1
            assert time.monotonic() < until_s
            with contextlib.suppress(queue.Empty):
                notice = reader.said(1.0)
        assert (notice["from"], notice["values"]["hole"], notice["hops"]) == (1, 3, 1)
        assert notice["matches"][0]["reasons"] == [{"label": "Player", "condition": "player='els'", "value": "els"}]
    finally:
        ended = [device.stop() for device in devices]
    assert ended == [0, 0]
