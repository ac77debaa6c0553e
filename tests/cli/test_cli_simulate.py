"""`roamcast simulate` by running it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roamcast import cli
from roamcast.trace.files import read_trace
from roamcast.trace.summary import summarise

SOURCE = Path(__file__).parents[2] / "src"
SMALL = ["--nodes", "12", "--area", "400", "--duration", "14"]


def simulate(capfd: pytest.CaptureFixture[str], *options: object) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["simulate", "--json", *map(str, options)])
    out, err = capfd.readouterr()
    assert (ended.value.code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def refusal(capfd: pytest.CaptureFixture[str], *options: object) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(["simulate", *map(str, options)])
    out, err = capfd.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith("roamcast: ")
    assert err.count("\n") == 1
    return err


def test_the_answer_holds_every_measure(capfd: pytest.CaptureFixture[str]) -> None:
    answer = simulate(capfd, "--protocol", "flooding", "--range", 200, "--seed", 1, *SMALL)
    fields = (
        "protocol nodes seed publications expected delivered delivery_ratio delivery_ratio_reachable latency_ms_mean "
        "latency_ms_p95 hops_mean stretch_mean frames frames_lost wall_s events_per_s trace_hash"
    )
    assert set(fields.split()) <= set(answer)
    assert (answer["protocol"], answer["nodes"], answer["seed"]) == ("flooding", 12, 1)
    assert answer["publications"] > 0
    assert 0 < answer["delivered"] <= answer["expected"]
    assert answer["frames"]["Flood"] >= answer["publications"]


def test_the_same_seed_gives_the_same_trace_in_any_process(capfd: pytest.CaptureFixture[str]) -> None:
    here = simulate(capfd, "--seed", 1, *SMALL)["trace_hash"]
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "roamcast", "simulate", "--json", "--seed", "1", *SMALL],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": hash_seed},
        )
        assert json.loads(done.stdout)["trace_hash"] == here
    assert simulate(capfd, "--seed", 2, *SMALL)["trace_hash"] != here


def test_the_trace_is_kept_and_says_the_same_as_the_answer(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = simulate(capfd, *SMALL, "--trace", tmp_path / "trace")
    summary = summarise(read_trace(tmp_path / "trace"))
    assert {name: answer[name] for name in summary} == summary


def test_raw_frames_are_one_row_each(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = simulate(capfd, *SMALL, "--raw-frames", "--trace", tmp_path / "trace")
    frames = [row for row in read_trace(tmp_path / "trace").to_pylist() if row["kind"] == "frame"]
    assert len(frames) == answer["frames_total"]
    assert all(row["node"] is not None for row in frames)


def test_positions_movements_and_contacts_come_from_files(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "positions").write_text("0 0\n150 0\n300 0\n")
    lines = [f"$node_({node}) set {axis}_ {150 * node if axis == 'X' else 0}" for node in range(3) for axis in "XY"]
    (tmp_path / "movements").write_text("\n".join(lines))
    (tmp_path / "contacts").write_text("0 1 0 20\n1 2 0 20\n")
    options = ["--duration", 20, "--publishers", 1, "--selectivity", 1, "--radio", "ideal"]
    for name in ("positions", "movements", "contacts"):
        answer = simulate(capfd, *options, f"--{name}", tmp_path / name)
        assert answer["nodes"] == 3
        assert answer["expected"] == answer["delivered"] == 2 * answer["publications"] > 0


def test_options_override_the_scenario_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        "protocol = 'gossip'\nseed = 3\n[parameters]\nprobability = 0.5\n"
        "[scenario]\nnodes = 12\narea_m = 400\nduration_s = 14\n"
    )
    from_file = simulate(capfd, "--scenario", file)
    assert (from_file["protocol"], from_file["seed"], from_file["parameters"]) == ("gossip", 3, {"probability": 0.5})
    from_options = simulate(capfd, "--protocol", "gossip", "--seed", 3, "--set", "probability=0.5", *SMALL)
    assert (from_file["trace_hash"], from_file["run_id"]) == (from_options["trace_hash"], from_options["run_id"])
    overridden = simulate(capfd, "--scenario", file, "--nodes", 9, "--set", "probability=1")
    assert (overridden["nodes"], overridden["seed"], overridden["parameters"]) == (9, 3, {"probability": 1.0})


def test_the_summary_is_readable(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["simulate", *SMALL])
    out, _ = capfd.readouterr()
    for word in ("flooding: 12 nodes, 14 s, seed 1", "delivered", "latency, ms", "frames Flood", "trace hash"):
        assert word in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--area", "-5"], "area_m = (-5.0, -5.0): must be above 0"),
        (["--area", "wide"], "--area: 'wide' is not a size"),
        (["--protocol", "smoke"], "protocol: 'smoke' is unknown; allowed: flooding, gossip"),
        (["--set", "volume=11"], "flooding: 'volume' is not a parameter; allowed: jitter_s, hops_max"),
        (["--set", "jitter_s"], "--set: 'jitter_s' is not a setting; write name=value"),
        (["--set", "jitter_s=-1"], "jitter_s = -1.0: must be between 0 and 60 s"),
        (["--nodes", "5", "--publishers", "6"], "workload.publishers = 6: must be at most nodes (5)"),
        (["--nodes", "0"], "nodes = 0: must be between 1 and 100000"),
        (["--radio", "laser"], "'laser' is not one of 'ideal', 'lora', '802.11b', '802.11g'"),
        (["--mobility", "movements"], "'movements' is not one of"),
        (["--range", "nan"], "range_m = nan: must be a finite number"),
        (["--trace", "/proc/nowhere"], "trace: cannot write to '/proc/nowhere'"),
        (["--positions", "/nowhere"], "/nowhere: cannot be read"),
        (["--scenario", "/nowhere.toml"], "/nowhere.toml: cannot be read"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    capfd: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    assert expected in refusal(capfd, *options)


def test_a_broken_movement_file_is_refused_with_its_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "moves.tcl"
    broken.write_text("$node_(0) set X_ 1.0\n$node_(0) set Y_ one\n")
    assert f"{broken}:2: " in refusal(capfd, "--movements", broken)


def test_a_refused_run_leaves_nothing_behind(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    refusal(capfd, "--trace", tmp_path / "a" / "trace", "--protocol", "smoke")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert "is not empty" in refusal(capfd, "--trace", tmp_path / "full", *SMALL)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "mine.txt"]
