"""A campaign's directory: commits, leftovers, the lock."""

from pathlib import Path

import pyarrow as pa
import pytest

from roamcast.campaign.file import load_campaign
from roamcast.campaign.store import Manifest, Store
from roamcast.campaign.worker import DONE, FAILED, outcome_row
from roamcast.errors import ConfigurationError
from roamcast.trace.files import TraceWriter


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    file = tmp_path / "campaign.toml"
    file.write_text('protocols = ["flooding"]\nseeds = 1\n', encoding="utf-8")
    return Manifest(load_campaign(file), file.read_text(encoding="utf-8"), "roamcast campaign run", {"python": "3"})


def stage(store: Store, batch: int, *rows: pa.RecordBatch, attempt: str = "00000-0") -> str:
    TraceWriter(store.stage(batch) / attempt).append(rows)
    return attempt


def test_a_run_counts_when_its_batch_is_committed_and_not_before(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        rows = outcome_row("a", DONE, "hash", 1.5, 10), outcome_row("b", FAILED, "ValueError: x", 0.1, 0)
        attempt = stage(store, 0, *rows)
        assert store.outcomes() == {}
        assert [outcome.run_id for outcome in store.commit(0, [attempt])] == ["a", "b"]
        stage(store, 1, outcome_row("c", DONE, "hash", 1.0, 5))
    again = Store(tmp_path / "out")
    assert {name: outcome.failed for name, outcome in again.outcomes().items()} == {"a": False, "b": True}
    assert again.next_batch() == 1


def test_attempts_that_did_not_answer_leave_nothing(tmp_path: Path, manifest: Manifest) -> None:
    """A task that Spark repeated may have written all of its rows before it failed."""
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        first, second = outcome_row("a", DONE, "hash", 1.5, 10), outcome_row("b", DONE, "hash", 1.0, 5)
        stage(store, 0, first, attempt="00000-0")
        answered = [stage(store, 0, first, attempt="00000-2"), stage(store, 0, second, attempt="00001-1")]
        assert [outcome.run_id for outcome in store.commit(0, answered)] == ["a", "b"]
        assert not store.stage(0).exists()


def test_what_an_earlier_owner_left_is_cleared_away(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        pass
    left = tmp_path / "out" / "staging" / "dead-00003" / "kind=run"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(b"half a file")
    with store.opened(manifest):
        assert not left.exists()
        assert store.outcomes() == {}


def test_two_drivers_do_not_share_a_directory(tmp_path: Path, manifest: Manifest) -> None:
    first, second = (Store(tmp_path / "out").opened(manifest) for _ in range(2))
    with first, pytest.raises(ConfigurationError, match="in use"), second:
        pass
    with Store(tmp_path / "out").opened(manifest):
        pass  # free again


def test_a_batch_is_never_committed_over_another(tmp_path: Path, manifest: Manifest) -> None:
    store = Store(tmp_path / "out")
    with store.opened(manifest):
        store.commit(0, [stage(store, 0, outcome_row("a", DONE, "hash", 1.5, 10))])
        attempt = stage(store, 0, outcome_row("b", DONE, "hash", 1.5, 10))
        with pytest.raises(OSError, match="not empty"):
            store.commit(0, [attempt])
        assert list(store.outcomes()) == ["a"]


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match="not empty"), Store(tmp_path / "out").opened(manifest):
        pass
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_reading_a_directory_without_a_campaign_is_refused(tmp_path: Path) -> None:
    for read in (Store(tmp_path).manifest, Store(tmp_path).plan):
        with pytest.raises(ConfigurationError, match="holds no campaign"):
            read()
    assert Store(tmp_path).outcomes() == {}
