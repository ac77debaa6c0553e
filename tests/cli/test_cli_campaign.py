"""`roamcast campaign`, on the tests' Spark session."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from roamcast import cli
from roamcast.campaign.conduct import Progress
from roamcast.cli.campaign_progress import TimeLeft

CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 2
[scenario]
nodes = 10
area_m = 350
duration_s = 12
"""


def answer(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", *map(str, words)])
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), json.loads(out) if "--json" in words and out else out, err


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign")
    (place / "small.toml").write_text(CAMPAIGN, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", "run", str(place / "small.toml"), "--out", str(place / "out"), "--json"])
    assert ended.value.code == 0
    return place / "out"


def test_run_writes_the_report_and_says_where(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said, err = answer(capfd, "run", directory.parent / "small.toml", "--out", directory, "--no-report", "--json")
    assert code == 0
    assert (said["runs"], said["already_there"], said["failed"], said["report"]) == (4, 4, [], None)
    assert "4 done, 0 failed, 0 running" in err  # progress goes to stderr
    assert (directory / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_status_tells_how_far_it_is(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said, _ = answer(capfd, "status", directory, "--json")
    assert (code, said["planned"], said["done"], said["failed"]) == (0, 4, 4, [])
    assert said["protocols"]["gossip"] == {"planned": 2, "done": 2, "failed": 0}
    _, text, _ = answer(capfd, "status", directory)
    assert "gossip" in text
    assert "report.html" in text


def test_replay_repeats_a_run_byte_for_byte(directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from roamcast.campaign.store import Store

    [name, *_] = Store(directory).outcomes()
    code, said, _ = answer(capfd, "replay", directory, name, "--trace", tmp_path / "trace", "--json")
    assert (code, said["same_trace"]) == (0, True)
    assert (tmp_path / "trace" / "kind=end").is_dir()


def test_export_writes_every_table(directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said, _ = answer(capfd, "export", directory, "--format", "parquet", "--out", tmp_path, "--json")
    assert code == 0
    names = {"runs", "points", "differences", "normalised", "timeline", "breakdowns"}
    assert {Path(path).stem for path in said["written"]} >= names
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    assert len(runs) == 4
    assert {"protocol", "seed", "delivery_ratio"} <= set(runs.columns)


def test_another_campaign_does_not_go_into_the_same_place(
    directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(CAMPAIGN.replace("nodes = 10", "nodes = 11"), encoding="utf-8")
    code, _, err = answer(capfd, "run", other, "--out", directory)
    assert (code, err.count("\n")) == (2, 1)
    assert "holds another campaign" in err
    other.write_text(CAMPAIGN.replace("seeds = 2", "seeds = [2]"), encoding="utf-8")  # has points in common
    code, said, _ = answer(capfd, "run", other, "--out", directory, "--no-report", "--json")
    assert (code, said["already_there"]) == (0, 2)


@pytest.mark.parametrize(
    ("words", "named"),
    [(["--out", "/proc/foo"], "/proc/foo"), (["--out", "gopher://x/y"], "gopher"), (["--conf", "ui=true"], "ui=true")],
)
def test_a_place_that_cannot_be_used_is_refused_before_spark_starts(
    tmp_path: Path, words: list[str], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(CAMPAIGN, encoding="utf-8")
    out = [] if "--out" in words else ["--out", str(tmp_path / "out")]
    code, _, err = answer(capfd, "run", tmp_path / "small.toml", *out, *words)
    assert (code, err.count("\n")) == (2, 1)
    assert named in err
    assert "Spark" not in err


def test_compact_and_vacuum_leave_the_runs_as_they_are(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from roamcast.campaign.store import Store

    before = Store(directory).outcomes()
    code, said, _ = answer(capfd, "compact", directory, "--json")
    assert (code, said["files_after"] <= said["files_before"]) == (0, True)
    code, said, _ = answer(capfd, "vacuum", directory, "--json")
    assert code == 0
    plan = set(Store(directory).plan()["run_id"].to_pylist())
    assert Store(directory).outcomes() == {name: before[name] for name in before if name in plan}
    assert answer(capfd, "verify", directory, "--json")[0] == 0


def test_failed_runs_show_in_the_exit_code(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from roamcast.campaign import conduct

    def one_fails(batches: Any) -> Any:
        from roamcast.campaign.worker import FAILED, outcome_row

        for batch in batches:
            for name in batch["run_id"].to_pylist():
                yield outcome_row(str(name), FAILED, "ValueError: on purpose", 0.1, 0)

    whole = conduct.Conductor.conduct

    def conducted(self: Any, session: Any, **options: Any) -> Any:
        return whole(self, session, **options | {"worker": one_fails})

    monkeypatch.setattr(conduct.Conductor, "conduct", conducted)
    (tmp_path / "small.toml").write_text(CAMPAIGN, encoding="utf-8")
    code, said, _ = answer(capfd, "run", tmp_path / "small.toml", "--out", tmp_path / "out", "--json")
    assert code == 1
    assert [failure["error"] for failure in said["failed"]] == ["ValueError: on purpose"] * 4
    assert said["failed"][0]["replay"].startswith("roamcast campaign replay ")
    assert said["report"] is None


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run", "none.toml", "--out", "x"], "none.toml"),
        (["status", "nowhere"], "nowhere"),
        (["report", "nowhere"], "nowhere"),
        (["export", "nowhere"], "nowhere"),
        (["replay", "nowhere", "1234"], "nowhere"),
        (["export", "nowhere", "--format", "xml"], "xml"),
        (["verify", "nowhere"], "nowhere"),
        (["compact", "nowhere"], "nowhere"),
        (["vacuum", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = answer(capfd, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert named in err
    assert list(tmp_path.iterdir()) == []


def test_time_left_follows_the_pace_of_this_session() -> None:
    clock = iter([100.0, 110.0, 120.0])
    pace = TimeLeft(lambda: next(clock))
    assert pace.left_s(Progress(planned=100, done=50, failed=0, simulated=0, running=2)) is None
    assert pace.left_s(Progress(planned=100, done=55, failed=0, simulated=5, running=2)) == pytest.approx(40)
    assert pace.note(Progress(100, 60, 1, 10, 2)) == "70 done, 1 failed, 2 running, 30 s left"
