"""A campaign as a Delta table, read by the library `deltalake`."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from roamcast.campaign.compact import compact, vacuum
from roamcast.campaign.delta import LOG, register
from roamcast.campaign.file import load_campaign
from roamcast.campaign.store import Manifest, Store, Written
from roamcast.campaign.worker import DONE, TaskWriter, outcome_row
from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

RUNS = ["run0", "run1", "run2"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two batches; the third run is committed by `another_batch`."""
    file = tmp_path / "campaign.toml"
    file.write_text('protocols = ["flooding"]\nseeds = 1\n', encoding="utf-8")
    store = Store(tmp_path / "out")
    with store.opened(Manifest(load_campaign(file), file.read_text(encoding="utf-8"), "again", {})):
        store.write_plan(pa.table({"run_id": RUNS}))
        for run in RUNS[:2]:
            _commit(store, run)
    return store


def another_batch(store: Store) -> None:
    with store.held():
        _commit(store, RUNS[2])


def _commit(store: Store, run: str) -> None:
    batch = store.next_batch()
    writer = TaskWriter(store.trace, batch, f"owner-{batch:05}-0")
    recorder = Recorder(run)
    for node in range(5):
        recorder.add(Record(float(node), "delivered", node, value=0.5))
    recorder.add(Record(60.0, "end", count=5))
    for rows in [*recorder.batches(), outcome_row(run, DONE, "hash", 1.0, 6)]:
        writer.add(rows)
    writer.flush()
    store.commit(batch, [Written(writer.files, writer.runs)])


def counts(store: Store) -> dict[tuple[str, str], int]:
    """Rows by run and kind, as the library sees them."""
    deltalake = pytest.importorskip("deltalake", reason="left out: pip install deltalake brings the reader")
    table: Any = deltalake.DeltaTable(str(store.trace.path))
    rows = pa.table(deltalake.QueryBuilder().register("trace", table).execute("select * from trace").read_all())
    assert set(rows.column_names) == set(SCHEMA.names)
    found = rows.group_by(["run_id", "kind"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["run_id"], row["kind"]): row["count_all"] for row in found}


def expected(runs: list[str]) -> dict[tuple[str, str], int]:
    return {(run, kind): rows for run in runs for kind, rows in (("delivered", 5), ("end", 1), ("run", 1))}


def test_the_table_holds_what_the_commits_name(store: Store) -> None:
    assert register(store) == (0, 6, 14)
    assert counts(store) == expected(RUNS[:2])
    assert register(store).version == 0  # nothing has changed
    another_batch(store)
    assert register(store) == (1, 9, 21)
    assert counts(store) == expected(RUNS)


def test_compaction_and_vacuum_bring_it_up_to_date(store: Store) -> None:
    register(store)
    another_batch(store)
    compact(store)
    vacuum(store)
    assert len(list(store.trace.path.rglob("*.parquet"))) == 3
    assert counts(store) == expected(RUNS)
    store.write_plan(pa.table({"run_id": RUNS[1:]}))
    vacuum(store)
    assert counts(store) == expected(RUNS[1:])


def test_a_campaign_without_a_table_gets_none(store: Store) -> None:
    compact(store)
    assert not (store.trace.path / LOG).exists()


def test_a_table_that_another_engine_changed_is_left_alone(store: Store) -> None:
    register(store)
    log = store.trace.path / LOG
    (log / f"{1:020d}.json").write_text('{"commitInfo": {"engineInfo": "other"}}\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another engine"):
        register(store)
    shutil.rmtree(log)
    assert register(store).version == 0
