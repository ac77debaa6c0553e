"""`roamcast replay` by running it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from roamcast import cli

SOURCE = Path(__file__).parents[2] / "src"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


@pytest.fixture
def trace(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    options = ["--nodes", 12, "--area", 400, "--duration", 14, "--protocol", "gossip", "--seed", 3]
    assert run(capfd, "simulate", *options, "--trace", tmp_path / "trace")[0] == 0
    return tmp_path / "trace"


def test_json_tells_what_was_found(capfd: pytest.CaptureFixture[str], trace: Path) -> None:
    code, out, err = run(capfd, "replay", trace, "--json")
    answer: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    assert (answer["protocol"], answer["seed"], answer["nodes"], answer["duration_s"]) == ("gossip", 3, 12, 14.0)
    assert answer["publications"] > 0
    assert answer["positions"] is True
    assert answer["exported"] is None
    assert [each["run_id"] for each in answer["runs"]] == [answer["run_id"]]


def test_the_page_is_exported_whole(capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    code, out, _ = run(capfd, "replay", trace, "--export", tmp_path / "page.html", "--json")
    page = (tmp_path / "page.html").read_bytes()
    assert code == 0
    assert json.loads(out)["page_bytes"] == len(page)
    assert page.startswith(b"<!doctype html>")
    assert b"{{" not in page
    assert b"http://" not in page
    assert b"https://" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "trace"]


def test_what_was_exported_is_told(capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    _, out, _ = run(capfd, "replay", trace, "--export", tmp_path / "page.html")
    assert "12 nodes, 14 s" in out
    assert f"written to {tmp_path / 'page.html'}" in out


def test_mistakes_are_refused_in_one_line(capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([tmp_path / "nowhere"], "is not a directory"),
        ([tmp_path / "empty"], "holds no trace"),
        ([trace, "--run", "zz"], "run: 'zz' is not in"),
        ([trace, "--export", "/nowhere/page.html"], "cannot be written"),
        ([trace, "--port", 70000], "65535"),
    ):
        code, out, err = run(capfd, "replay", *arguments, "--json")  # so that nothing is served if it is not refused
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def test_the_page_is_served_until_interrupted(trace: Path) -> None:
    command = [sys.executable, "-m", "roamcast", "replay", str(trace), "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        server.stdout.readline()
        url = server.stdout.readline().split()[2]
        with urllib.request.urlopen(url, timeout=5) as answer:
            assert answer.read().startswith(b"<!doctype html>")
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=5) == 0
