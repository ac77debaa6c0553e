"""A campaign at its place: commits, leftovers, the lock, campaigns of the first layout."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.campaign.commits import ABOUT, trace_files
from roamcast.campaign.file import load_campaign
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.store import LostFilesError, Manifest, Store, Written
from roamcast.campaign.worker import DONE, FAILED, TaskWriter, outcome_row
from roamcast.errors import ConfigurationError
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    file = tmp_path / "campaign.toml"
    file.write_text('protocols = ["flooding"]\nseeds = 1\n', encoding="utf-8")
    return Manifest(load_campaign(file), file.read_text(encoding="utf-8"), "roamcast campaign run", {"python": "3"})


def rows_of(run_id: str, status: str = DONE) -> list[pa.RecordBatch]:
    recorder = Recorder(run_id)
    for node in range(20):
        recorder.add(Record(1.0, "delivered", node, value=0.5))
    recorder.add(Record(9.0, "end", count=20))
    return [*recorder.batches(), outcome_row(run_id, status, "hash", 1.5, 21)]


def write(store: Store, batch: int, *runs: str, attempt: str = "0-0", status: str = DONE) -> Written:
    writer = TaskWriter(store.trace, batch, attempt)
    for run in runs:
        for rows in rows_of(run) if status == DONE else [outcome_row(run, status, "ValueError: x", 0.1, 0)]:
            writer.add(rows)
    writer.flush()
    return Written(writer.files, writer.runs)


def names(store: Store) -> list[str]:
    return sorted(store.outcomes())


def stored_runs(store: Store) -> list[str]:
    """What a reader sees, row by row of kind `end`."""
    found = trace_files(store.directory)
    files = [str(found.root.path / file.path) for file in found.files if file.kind == "end"]
    return sorted(str(name) for file in files for name in pq.ParquetFile(file).read()["run_id"].to_pylist())


def test_a_run_counts_when_its_batch_is_committed_and_not_before(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        first = write(store, store.next_batch(), "a", "b")
        assert store.outcomes() == {}
        assert [outcome.run_id for outcome in store.commit(0, [first])] == ["a", "b"]
        write(store, store.next_batch(), "c")
    again = Store(tmp_path / "out")
    assert names(again) == stored_runs(again) == ["a", "b"]
    with again.opened(manifest):
        assert again.next_batch() == 1
        assert not any("batch=00001" in name for name in again.trace.files())  # nobody will commit it


def test_attempts_that_did_not_answer_leave_nothing(tmp_path: Path, manifest: Manifest) -> None:
    """A task that Spark repeated may have written all of its rows before it failed."""
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        write(store, 0, "a", attempt="0-0")
        answered = [write(store, 0, "a", attempt="0-2"), write(store, 0, "b", attempt="1-1")]
        store.commit(0, answered)
        assert stored_runs(store) == ["a", "b"]
        assert set(store.trace.files()) == {file.path for part in answered for file in part.files}


def test_a_failed_run_has_an_outcome_and_no_rows(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        store.commit(0, [write(store, 0, "a", status=FAILED), write(store, 0, "b", attempt="1-1")])
        assert {name: outcome.failed for name, outcome in store.outcomes().items()} == {"a": True, "b": False}
        assert stored_runs(store) == ["b"]
        store.commit(1, [write(store, 1, "a")])  # repeated
        assert not store.outcomes()["a"].failed
        assert stored_runs(store) == ["a", "b"]


def test_a_run_that_two_drivers_committed_counts_once(tmp_path: Path, manifest: Manifest) -> None:
    store, other = Store(tmp_path / "out"), Store(tmp_path / "out")
    with store.opened(manifest):
        store.commit(0, [write(store, 0, "a", attempt="x")])
        other.commit(1, [write(other, 1, "a", "b", attempt="y")])
        assert names(store) == stored_runs(store) == ["a"]  # and b is simulated again


def test_what_is_not_there_is_not_committed(tmp_path: Path, manifest: Manifest) -> None:
    """Executors that write to a disk of their own answer like others."""
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        written = write(store, 0, "a")
        (store.trace.path / written.files[0].path).unlink()
        with pytest.raises(LostFilesError, match="do driver and executors share it"):
            store.commit(0, [written])
        assert store.outcomes() == {}


def test_two_drivers_do_not_share_a_directory(tmp_path: Path, manifest: Manifest) -> None:
    first, second = (Store(tmp_path / "out").opened(manifest) for _ in range(2))
    with first, pytest.raises(ConfigurationError, match="in use"), second:
        pass
    with Store(tmp_path / "out").opened(manifest):
        pass  # free again


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match="not empty"), Store(tmp_path / "out").opened(manifest):
        pass
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_a_place_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"^out: '/proc/foo' cannot be written: [^\n]+$"):
        Store("/proc/foo").require_writable()


def test_reading_a_directory_without_a_campaign_is_refused(tmp_path: Path) -> None:
    for read in (Store(tmp_path).manifest, Store(tmp_path).plan):
        with pytest.raises(ConfigurationError, match="holds no campaign"):
            read()
    assert Store(tmp_path).outcomes() == {}


def test_lineage_of_each_batch_is_kept(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        for batch, (run, sources) in enumerate((("a", "old"), ("b", "new"))):
            store.commit(
                batch,
                [write(store, batch, run)],
                parameters={'{"protocol":"x"}': {run: 7}},
                environment={"sources": sources},
            )
    assert [commit.environments for commit in store.commits()] == [[{"sources": "old"}], [{"sources": "new"}]]
    assert [commit.parameters for commit in store.commits()] == [{'{"protocol":"x"}': {run: 7}} for run in "ab"]
    assert all(file.digest and file.rows and file.bytes for commit in store.commits() for file in commit.files)


@pytest.mark.parametrize(("name", "field"), [(ABOUT, "layout"), ("commits/00000-x.json", "newer")])
def test_what_a_newer_roamcast_made_is_refused(tmp_path: Path, manifest: Manifest, name: str, field: str) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        pass
    store.directory.write(name, b'{"version": 99}')
    with pytest.raises(ConfigurationError, match=field):
        store.outcomes()


def old_campaign(place: Path, manifest: Manifest) -> Store:
    """As Roamcast 0.1 laid it out: batches committed by rename, no commits, failed runs with a row of their own."""
    store = Store(place)
    for batch, runs in enumerate((("a", "b"), ("c",))):
        table = pa.Table.from_batches([rows for run in runs for rows in rows_of(run)])
        pq.write_to_dataset(table, place / "trace" / f"batch={batch:05d}", partition_cols=["kind"])
    about = msgspec.json.decode(msgspec.json.encode(manifest))
    del about["version"]
    store.directory.write(ABOUT, msgspec.json.encode(about))
    store.write_plan(pa.table({"run_id": ["a", "b", "c"]}))
    return store


def test_an_older_campaign_is_read_and_continued(tmp_path: Path, manifest: Manifest) -> None:
    store = old_campaign(tmp_path / "out", manifest)
    assert names(store) == stored_runs(store) == ["a", "b", "c"]
    assert store.manifest().version == 2  # what is written from now on
    before = store.directory.files()
    with store.opened(manifest) as damages:
        assert damages == []
        assert store.next_batch() == 2
        store.commit(2, [write(store, 2, "d")])
    assert names(store) == stored_runs(store) == ["a", "b", "c", "d"]
    assert before.items() - {(ABOUT, before[ABOUT])} <= store.directory.files().items()  # nothing was moved
    assert all(file.digest for commit in store.commits() for file in commit.files)


@pytest.mark.parametrize("kind", ["run", "delivered"])
def test_an_older_batch_that_lost_a_file_does_not_count(tmp_path: Path, manifest: Manifest, kind: str) -> None:
    store = old_campaign(tmp_path / "out", manifest)
    for file in (store.trace.path / "batch=00000" / f"kind={kind}").iterdir():
        file.unlink()
    with store.opened(manifest) as damages:
        assert [damage.path for damage in damages] == ["trace/batch=00000"]
        assert names(store) == stored_runs(store) == ["c"]


def test_locations_are_told_apart_by_their_scheme(tmp_path: Path) -> None:
    assert StoreLocation(tmp_path).is_local
    assert StoreLocation(f"file://{tmp_path}").path == tmp_path
    assert str(StoreLocation("s3://bucket/a?scheme=http") / "b") == "s3://bucket/a/b?scheme=http"
    with pytest.raises(ConfigurationError, match=r"'gopher' is unknown|not known: gopher"):
        StoreLocation("gopher://x/y").exists()
