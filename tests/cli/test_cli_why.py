"""`roamcast why`."""

import json
from pathlib import Path

import pytest

from roamcast.cli import main
from roamcast.trace.files import read_trace


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("why") / "run"
    with pytest.raises(SystemExit):
        main([
            "simulate", "--protocol", "flooding", "--nodes", "12", "--area", "450", "--duration", "20", "--raw-frames",
            "--trace", str(directory),
        ])  # fmt: skip
    return directory


def test_every_pair_of_a_run_has_a_verdict(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = [row for row in read_trace(recorded).to_pylist() if row["kind"] == "published"]
    verdicts = set()
    for row in published[:3]:
        for node in range(12):
            status, out, _ = run(capsys, "why", str(recorded), str(row["event_id"]), str(node), "--json")
            assert status == 0
            verdicts.add(json.loads(out)["verdict"])
    assert {"own", "delivered", "unwanted"} <= verdicts


def test_events_are_named_by_publisher_and_number_too(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = next(row for row in read_trace(recorded).to_pylist() if row["kind"] == "published")
    status, out, _ = run(capsys, "why", str(recorded), f"{row['node']}/1", str(row["node"]))
    assert status == 0
    assert "is its publisher" in out


def test_mistakes_are_one_line(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for event in ("nonsense", "1/x", "77"):
        status, _, err = run(capsys, "why", str(recorded), event, "3")
        assert status == 2
        assert len(err.strip().splitlines()) == 1
