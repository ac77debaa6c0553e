"""Compaction and vacuum: fewer files, the same rows; runs of earlier plans go."""

from pathlib import Path

import pyarrow as pa
import pytest

from roamcast.campaign.commits import FAILED, RunOutcome, trace_files
from roamcast.campaign.compact import compact, vacuum
from roamcast.campaign.file import load_campaign
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.store import Manifest, Store, Written
from roamcast.campaign.verify import verify
from roamcast.campaign.worker import DONE, TaskWriter, outcome_row
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

RUNS = [f"run{number}" for number in range(12)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Six batches of two runs, each run written by a task of its own."""
    file = tmp_path / "campaign.toml"
    file.write_text('protocols = ["flooding"]\nseeds = 1\n', encoding="utf-8")
    store = Store(tmp_path / "out")
    with store.opened(Manifest(load_campaign(file), file.read_text(encoding="utf-8"), "again", {})):
        store.write_plan(pa.table({"run_id": RUNS}))
        for batch in range(6):
            mine = RUNS[2 * batch : 2 * batch + 2]
            parts = [_written(store, batch, number, run) for number, run in enumerate(mine)]
            parameters = {"{}": dict.fromkeys(mine, batch)}
            store.commit(batch, parts, parameters=parameters, environment={"sources": str(batch % 2)})
    return Store(tmp_path / "out")


def _written(store: Store, batch: int, task: int, run: str) -> Written:
    writer = TaskWriter(store.trace, batch, f"owner-{task:05}-{task}")
    recorder = Recorder(run)
    for node in range(50):
        recorder.add(Record(float(node), "delivered", node, value=0.5))
    recorder.add(Record(60.0, "end", count=50))
    for rows in [*recorder.batches(), outcome_row(run, DONE, "hash", 1.0, 51)]:
        writer.add(rows)
    writer.flush()
    return Written(writer.files, writer.runs)


def rows(store: Store) -> list[str]:
    import pyarrow.parquet as pq

    found = trace_files(store.directory)
    tables = [(file.kind, pq.ParquetFile(found.root.path / file.path).read()) for file in found.files]
    return sorted(f"{kind} {row!r}" for kind, table in tables for row in table.to_pylist())


def test_compaction_keeps_every_row_and_the_lineage(store: Store) -> None:
    before, outcomes = rows(store), store.outcomes()
    change = compact(store)
    assert (change.files_before, change.files_after) == (12 * 3, 3)
    assert rows(store) == before
    assert store.outcomes() == outcomes
    [commit] = store.commits()
    assert commit.environments == [{"sources": "0"}, {"sources": "1"}]
    assert commit.parameters == {"{}": {run: number // 2 for number, run in enumerate(RUNS)}}
    assert verify(store.directory) == []
    assert compact(store).files_after == 3  # nothing is left to do


def test_a_run_stays_in_one_group_of_files(store: Store) -> None:
    """So that its measures need no row to move (`roamcast.analysis.filewise`)."""
    import pyarrow.parquet as pq

    largest = max(file.bytes for commit in store.commits() for file in commit.files)
    compact(store, target_bytes=5 * largest)
    found = trace_files(store.directory)
    homes: dict[str, set[str]] = {}
    for file in found.files:
        for run in set(pq.ParquetFile(found.root.path / file.path).read()["run_id"].to_pylist()):
            homes.setdefault(str(run), set()).add(file.path.rpartition("/")[2])
    assert {len(files) for files in homes.values()} == {1}
    assert len(set().union(*homes.values())) == 3


def test_the_old_files_stay_until_vacuum(store: Store) -> None:
    before, old = rows(store), set(store.trace.files())
    compact(store)
    assert old < set(store.trace.files())
    change = vacuum(store)
    assert (change.runs_removed, change.objects_removed) == (0, len(old) + 6)
    assert rows(store) == before
    assert set(store.trace.files()) == {file.path for file in trace_files(store.directory).files}
    assert len(store.directory.files("commits")) == 1


def test_an_interrupted_compaction_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = rows(store), StoreLocation.write

    def failing(self: StoreLocation, name: str, content: bytes) -> None:
        if name.startswith("commits/"):
            raise OSError("the disk is full")
        write(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(StoreLocation, "write", failing)
        with pytest.raises(OSError, match="full"):
            compact(store)
    assert rows(store) == before
    compact(store)
    assert rows(store) == before


def test_runs_of_an_earlier_plan_go(store: Store) -> None:
    before = rows(store)
    planned = RUNS[3:]
    store.write_plan(pa.table({"run_id": planned}))
    change = vacuum(store)
    assert change.runs_removed == 3
    assert sorted(store.outcomes()) == sorted(planned)
    assert rows(store) == [row for row in before if not any(f"'{run}'" in row for run in RUNS[:3])]
    assert verify(store.directory) == []


def test_a_damaged_compacted_batch_is_set_aside_as_a_whole(store: Store) -> None:
    compact(store)
    vacuum(store)
    [file] = [file for file in trace_files(store.directory).files if file.kind == "end"]
    (store.trace.path / file.path).unlink()
    assert [damage.runs for damage in verify(store.directory)] == [12]
    assert store.outcomes() == {}


def test_a_failure_that_compaction_carries_along_does_not_hide_the_run_that_succeeded_later(store: Store) -> None:
    with store.held():
        failures = [store.next_batch(), store.next_batch()]
        for batch, run in zip(failures, ("again", "other"), strict=True):
            store.commit(batch, [Written([], [RunOutcome(run, FAILED, "ValueError: on purpose", 0.1, 0)])])
        repeated = store.next_batch()
        store.commit(repeated, [_written(store, repeated, 0, "again")])
    large = next(commit for commit in store.commits() if commit.batch == repeated)
    compact(store, target_bytes=2 * max(file.bytes for file in large.files))  # the last batch stays as it is
    assert store.commits()[-1].replaces
    assert not store.outcomes()["again"].failed
