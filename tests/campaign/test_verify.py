"""Lost, cut and altered files are found, named and set aside, and their runs simulated again: by the command line."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from roamcast import cli
from roamcast.analysis.source import read_traces
from roamcast.campaign import verify as verifying
from roamcast.campaign.commits import FAILED, RunOutcome, trace_files
from roamcast.campaign.compact import compact, vacuum
from roamcast.campaign.sealed import AlteredError, sealed_table, unsealed_json, unsealed_table
from roamcast.campaign.store import Store, Written
from roamcast.campaign.verify import glance, verify
from roamcast.cli.sql import sql
from roamcast.errors import ConfigurationError

CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 3
[scenario]
nodes = 8
area_m = 300
duration_s = 12
"""


def answer(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", *map(str, words), "--json"])
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), json.loads(out), err


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    (place / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    with pytest.raises(SystemExit):
        cli.main(["campaign", "run", str(place / "campaign.toml"), "--out", str(place / "out"), "--no-report"])
    return place


@pytest.fixture
def campaign(whole: Path, tmp_path: Path) -> Store:
    shutil.copytree(whole, tmp_path / "copy")
    return Store(tmp_path / "copy" / "out")


def rows(spark: SparkSession, store: Store) -> list[str]:
    frame = read_traces(spark, store.directory).where("kind <> 'run'")
    return sorted(map(repr, frame.toArrow().to_pylist()))


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = pytest.mark.parametrize(
    ("kind", "damage", "said"),
    [("delivered", delete, "is missing"), ("run", delete, "is missing"), ("end", cut, "bytes instead of"),
     ("published", flip, "was altered")],
)  # fmt: skip


def damaged_file(store: Store, kind: str) -> str:
    return next(file.path for commit in store.commits() for file in commit.files if file.kind == kind)


@DAMAGE
def test_a_damaged_batch_is_named_and_its_runs_are_simulated_again(
    spark: SparkSession,
    campaign: Store,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    damage: Callable[[Path], None],
    said: str,
) -> None:
    before, outcomes = rows(spark, campaign), campaign.outcomes()
    path = damaged_file(campaign, kind)
    damage(campaign.trace.path / path)

    code, told, err = answer(capfd, "verify", campaign.directory)
    assert code == 1
    [found] = told["damaged"]
    assert (found["path"], said in found["what"]) == (f"trace/{path}", True)
    assert path in err
    assert "roamcast campaign run" in err
    assert told["runs"] == len(campaign.outcomes()) == 6 - found["runs"] < 6
    assert not any("delivered" in file.path for commit in campaign.commits() for file in commit.files) or told["runs"]

    file = campaign.directory.path.parent / "campaign.toml"
    code, told, _ = answer(capfd, "run", file, "--out", campaign.directory, "--no-report")
    assert (code, told["runs"], told["already_there"]) == (0, 6, 6 - found["runs"])
    assert rows(spark, campaign) == before
    assert {name: run.detail for name, run in campaign.outcomes().items()} == {
        name: run.detail for name, run in outcomes.items()
    }
    assert verify(campaign.directory) == []


def test_running_again_mends_without_being_asked(
    spark: SparkSession, campaign: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    before = rows(spark, campaign)
    delete(campaign.trace.path / damaged_file(campaign, "run"))
    file = campaign.directory.path.parent / "campaign.toml"
    code, told, err = answer(capfd, "run", file, "--out", campaign.directory, "--no-report")
    assert (code, len(told["damaged"])) == (0, 1)
    assert "is missing" in err
    assert rows(spark, campaign) == before


@pytest.mark.slow("runs a campaign and its report again for each kind of damage")
def test_a_report_says_what_it_leaves_out(
    spark: SparkSession, campaign: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    commits = campaign.commits()
    delete(campaign.trace.path / damaged_file(campaign, "delivered"))
    code, told, err = answer(capfd, "report", campaign.directory)
    assert (code, len(told["damaged"])) == (1, 1)
    lost = len(commits[0].runs)
    html = (campaign.directory.path / "report.html").read_text(encoding="utf-8")
    assert f"{lost} run{'s have' if lost > 1 else ' has'} not been simulated yet" in html
    assert "roamcast campaign run" in err


def test_a_campaign_without_runs_is_told_in_one_line(campaign: Store, capfd: pytest.CaptureFixture[str]) -> None:
    for file in trace_files(campaign.directory).files:
        if file.kind == "end":
            delete(campaign.trace.path / file.path)
    for command in ("report", "decide"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["campaign", command, str(campaign.directory)])
        assert ended.value.code == 2
        assert "has come to its end; to simulate them: roamcast campaign run" in capfd.readouterr().err


def test_no_flipped_bit_goes_unnoticed(campaign: Store) -> None:
    """Anywhere in any file: in a page, a page's header or the footer."""
    draws = random.Random(7)
    files = [file for commit in campaign.commits() for file in commit.files]
    for _ in range(60):
        file = draws.choice(files)
        path = campaign.trace.path / file.path
        content = bytearray(path.read_bytes())
        place, bit = draws.randrange(len(content)), 1 << draws.randrange(8)
        content[place] ^= bit
        path.write_bytes(content)
        shutil.copytree(campaign.directory.path / "commits", campaign.directory.path / "kept")
        assert [damage.path for damage in verify(campaign.directory)] == [f"trace/{file.path}"]
        _put_back(campaign)
        content[place] ^= bit
        path.write_bytes(content)
    assert verify(campaign.directory) == []


def _put_back(store: Store) -> None:
    """Undoes a quarantine."""
    place = store.directory.path
    shutil.copytree(place / "quarantine" / "trace", place / "trace", dirs_exist_ok=True)
    shutil.rmtree(place / "quarantine")
    shutil.rmtree(place / "commits")
    (place / "kept").rename(place / "commits")


@pytest.mark.parametrize("name", ["campaign.json", "campaign.toml", "plan.parquet", "commits"])
def test_no_flipped_bit_in_the_bookkeeping_goes_unnoticed(campaign: Store, name: str) -> None:
    """A wrong run id in a commit or in the plan would have its run counted twice, or not at all."""
    place = campaign.directory.path / name
    path = min(place.iterdir()) if place.is_dir() else place
    whole, draws = path.read_bytes(), random.Random(5)
    assert (glance(campaign.directory)[1], campaign.damaged_books()) == ([], [])
    at_the_end = range(8 * (len(whole) - 60), 8 * len(whole), 3)  # where JSON has its digest
    for bit in [*at_the_end, *(draws.randrange(8 * len(whole)) for _ in range(80))]:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        [damage] = [*glance(campaign.directory)[1], *campaign.damaged_books()]
        assert campaign.directory.path / damage.path == path


def test_no_flipped_bit_in_a_sealed_table_goes_unnoticed() -> None:
    content = sealed_table(pa.table({"run": ["a", "b"], "seed": [1, 2]}))
    assert unsealed_table(content) == pa.table({"run": ["a", "b"], "seed": [1, 2]})
    for bit in range(8 * len(content)):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(AlteredError):
            unsealed_table(bytes(altered))


def test_a_lost_commit_is_told(campaign: Store, capfd: pytest.CaptureFixture[str]) -> None:
    first = campaign.commits()[0]
    delete(campaign.directory.path / first.name)
    code, told, err = answer(capfd, "verify", campaign.directory)
    assert (code, told["missing"], told["uncommitted"]) == (0, len(first.runs), len(first.files))
    assert "a commit is lost" in err
    assert min(file.path for file in first.files) in err


def test_campaigns_without_these_digests_are_read_as_they_are(campaign: Store) -> None:
    before = campaign.manifest(), campaign.plan(), campaign.outcomes()
    for path in [campaign.directory.path / "campaign.json", *campaign.directory.path.glob("commits/*")]:
        path.write_bytes(unsealed_json(path.read_bytes()))
    pq.write_table(before[1], campaign.directory.path / "plan.parquet")
    assert (campaign.manifest(), campaign.plan(), campaign.outcomes()) == before
    assert verify(campaign.directory) == []


@pytest.mark.parametrize("name", ["campaign.json", "plan.parquet"])
@pytest.mark.parametrize("damage", [delete, cut])
def test_a_campaign_whose_description_is_damaged_goes_on(
    spark: SparkSession, campaign: Store, capfd: pytest.CaptureFixture[str], name: str, damage: Callable[[Path], None]
) -> None:
    campaign.trace.write("batch=00099/kind=end/left-over.parquet", b"never committed")
    before = campaign.manifest(), campaign.plan(), trace_files(campaign.directory)
    damage(campaign.directory.path / name)
    assert trace_files(campaign.directory) == before[2]
    with pytest.raises(SystemExit) as ended:
        cli.main(["campaign", "report", str(campaign.directory)])
    assert ended.value.code == 2
    told = capfd.readouterr().err
    assert f"{name} in" in told
    assert "Traceback" not in told
    file = campaign.directory.path.parent / "campaign.toml"
    code, told, _ = answer(capfd, "run", file, "--out", campaign.directory, "--no-report")
    assert (code, told["already_there"]) == (0, 6)
    assert campaign.manifest().campaign.contenders == before[0].campaign.contenders
    assert campaign.plan() == before[1]


def test_a_batch_of_failed_runs_is_no_damage(campaign: Store) -> None:
    failed = RunOutcome("f" * 16, FAILED, "ValueError: on purpose", 0.1, 0)
    campaign.commit(99, [Written([], [failed])])
    assert verify(campaign.directory) == []
    assert campaign.outcomes()["f" * 16] == failed


def test_a_damaged_commit_is_set_aside_like_its_batch(campaign: Store) -> None:
    first = campaign.commits()[0]
    campaign.directory.write(first.name, b'{"batch": 0, "fil')
    with pytest.raises(ConfigurationError, match=f"{first.name} cannot be read"):
        trace_files(campaign.directory)
    [damage] = verify(campaign.directory)
    assert damage.path == first.name
    assert len(campaign.outcomes()) == 6 - len(first.runs)


@pytest.mark.parametrize(("damage", "said"), [(delete, "is missing"), (cut, "bytes instead of")])
def test_status_does_not_count_runs_whose_files_are_lost(
    campaign: Store, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None], said: str
) -> None:
    first = campaign.commits()[0]
    path = damaged_file(campaign, "delivered")
    damage(campaign.trace.path / path)
    code, told, err = answer(capfd, "status", campaign.directory)
    assert (code, told["done"], told["damaged"]) == (1, 6 - len(first.runs), [f"trace/{path}"])
    assert said in err


@pytest.mark.parametrize(("damage", "said"), [(delete, "is missing"), (cut, "bytes instead of"), (flip, "was altered")])
def test_sql_over_damaged_files_is_one_line_and_no_answer(
    spark: SparkSession, campaign: Store, damage: Callable[[Path], None], said: str
) -> None:
    damage(campaign.trace.path / damaged_file(campaign, "delivered"))
    with pytest.raises(ConfigurationError) as refusal:
        sql(str(campaign.directory), "select sum(latency_ms), sum(node), sum(event_id), sum(t) from deliveries")
    assert said in str(refusal.value)
    assert "roamcast campaign verify" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_vacuum_meanwhile_is_no_damage(spark: SparkSession, campaign: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that read the commits before a compaction and a vacuum finds their files gone."""
    before = rows(spark, campaign)
    old = campaign.commits()
    campaign.commit(max(commit.batch for commit in old) + 1, [])  # so that there is something to put together
    read = [old, None]

    def read_commits(place: Any) -> Any:
        return read.pop(0) or campaign.commits()

    compact(campaign)
    vacuum(campaign)
    monkeypatch.setattr(verifying, "read_commits", read_commits)
    assert verify(campaign.directory) == []
    assert rows(spark, campaign) == before
