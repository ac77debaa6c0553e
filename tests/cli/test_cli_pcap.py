"""`roamcast simulate --pcap`, run as users run it."""

from pathlib import Path

import pytest

from roamcast.cli import main


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--nodes", "6", "--area", "200", "--duration", "6", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


def test_it_leaves_the_file_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.pcap"
    assert told(capsys, "--protocol", "ps-maodv", "--pcap", path) == (0, "")
    assert path.stat().st_size > 1000
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.pcap"]


def test_a_bad_place_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = told(capsys, "--pcap", tmp_path / "absent" / "run.pcap")
    assert status == 2
    assert text == f"roamcast: {tmp_path}/absent/run.pcap: cannot be written: No such file or directory\n"


def test_a_run_that_is_refused_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = told(capsys, "--protocol", "georendezvous", "--positioning", "none", "--pcap", tmp_path / "run.pcap")
    assert status == 2
    assert list(tmp_path.iterdir()) == []
