"""Whole campaigns on the tests' Spark session: results, resuming, failures, the stopping rule."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, analyse, measured_runs
from roamcast.campaign.commits import trace_files
from roamcast.campaign.conduct import Conductor, Ending, Progress
from roamcast.campaign.execute import CampaignStoppedError
from roamcast.campaign.plan import decode_run
from roamcast.campaign.store import Store
from roamcast.campaign.worker import Worker, simulate_runs
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.protocols.flooding import Flooding
from roamcast.trace.arrow import SCHEMA
from roamcast.world.simulator import simulate

SMALL = """
protocols = ["flooding", "gossip"]
seeds = 3
[scenario]
nodes = 10
area_m = 350
duration_s = 12
"""

TINY = SMALL.replace('"flooding", "gossip"', '"flooding"').replace("seeds = 3", "seeds = 2")
"""For faults: every task that fails costs a new worker, which takes seconds to start."""


def conducted(
    spark: SparkSession,
    directory: Path,
    text: str,
    worker: Worker = simulate_runs,
    on_progress: Any = lambda told: None,
) -> tuple[Store, Ending]:
    file = directory / "campaign.toml"
    file.write_text(text, encoding="utf-8")
    conductor = Conductor(file, directory / "out", master="local[2]")
    precise = Precision(spark, conductor.store)
    return conductor.store, conductor.conduct(spark, precise=precise, worker=worker, on_progress=on_progress)


def stored_rows(store: Store) -> list[str]:
    """Every committed trace row, but for what the clock says about the run."""
    partitions = ds.partitioning(pa.schema([("batch", pa.string()), ("kind", pa.string())]), flavor="hive")
    dataset = ds.dataset(store.trace.path, format="parquet", schema=SCHEMA, partitioning=partitions)
    assert sorted(dataset.files) == sorted(str(store.trace.path / file.path) for file in trace_files(store.trace).files)
    table = dataset.to_table().select(SCHEMA.names)
    rows = [row | {"value": None} if row["kind"] == "run" else row for row in table.to_pylist()]
    return sorted(map(repr, rows))


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store, ending = conducted(spark, tmp_path_factory.mktemp("done"), SMALL)
    assert ending == Ending(planned=6, skipped=0, failed=[])
    return store


def test_the_traces_are_those_of_the_simulator(done: Store) -> None:
    plan = done.plan().to_pylist()
    expected: list[str] = []
    for row in plan:
        result = simulate(decode_run(row["run"]))
        assert done.outcomes()[row["run_id"]].detail == result.recorder.trace_hash()
        assert done.outcomes()[row["run_id"]].rows == result.recorder.table().num_rows
        expected += map(repr, result.recorder.table().to_pylist())
    added = ("'kind': 'run'", "'kind': 'measure'")  # by the campaign
    assert sorted(row for row in stored_rows(done) if not any(kind in row for kind in added)) == sorted(expected)
    assert {path.name for path in done.directory.path.iterdir()} == {
        *("campaign.json", "campaign.toml", "commits", "lock", "plan.parquet", "trace"),
    }


def test_a_finished_campaign_does_nothing_again(spark: SparkSession, done: Store) -> None:
    before = sorted(done.directory.files())
    told: list[Progress] = []
    conductor = Conductor(done.directory.path / "campaign.toml", done.directory, master="local[2]")
    ending = conductor.conduct(spark, precise=Precision(spark, done), on_progress=told.append)
    assert ending == Ending(planned=6, skipped=6, failed=[])
    assert sorted(done.directory.files()) == before
    assert told[0] == Progress(planned=6, done=6, failed=0, simulated=0, running=0)


def test_more_seeds_add_only_what_is_missing(spark: SparkSession, done: Store, tmp_path: Path) -> None:
    shutil.copytree(done.directory.path, tmp_path / "out")
    store, ending = conducted(spark, tmp_path, SMALL.replace("seeds = 3", "seeds = 4"))
    assert ending == Ending(planned=8, skipped=6, failed=[])
    assert len(store.outcomes()) == 8


def test_a_run_that_raises_is_recorded_and_the_rest_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising(Flooding):
        name = "raising"

        def start(self) -> None:
            if self.host.address == 7:
                raise ValueError("on purpose,\nover two lines")

    def worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from roamcast.protocols import catalogue

        catalogue.PROTOCOLS["raising"] = Raising  # in the worker's process, which has a catalogue of its own
        yield from simulate_runs(batches)

    monkeypatch.setitem(PROTOCOLS, "raising", Raising)
    text = SMALL.replace('"gossip"', '"raising"').replace("seeds = 3", "seeds = 2")
    store, ending = conducted(spark, tmp_path, text, worker)
    assert ending.planned == 4
    assert len(ending.failed) == 2
    for outcome in ending.failed:
        assert outcome.detail.startswith("ValueError: on purpose, over two lines (test_conduct.py:")
        assert outcome.detail.endswith("start)")
        assert store.replay_command(outcome.run_id).split()[-1] == outcome.run_id
    analysis = analyse(spark, store)
    assert set(analysis.runs["protocol"]) == {"flooding"}
    _, again = conducted(spark, tmp_path, text, worker)
    assert again.skipped == 4  # a failure is an outcome: it is not repeated


def test_a_run_that_takes_its_worker_down_is_recorded(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(SMALL.replace("seeds = 3", "seeds = 2"), encoding="utf-8")
    victim = next(row["run_id"] for row in _plan(file) if row["seed"] == 2 and row["protocol"] == "gossip")

    def worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if victim in batch["run_id"].to_pylist():
                os._exit(9)
            yield from simulate_runs(iter([batch]))

    spark.sparkContext.setLogLevel("OFF")
    store, ending = conducted(spark, tmp_path, file.read_text(encoding="utf-8"), worker)
    spark.sparkContext.setLogLevel("ERROR")
    assert [outcome.run_id for outcome in ending.failed] == [victim]
    assert "died" in ending.failed[0].detail
    assert len(store.outcomes()) == 4


def _plan(file: Path) -> list[dict[str, Any]]:
    from roamcast.campaign.file import load_campaign
    from roamcast.campaign.plan import plan_table, points, replicates

    campaign = load_campaign(file)
    return plan_table(campaign, replicates(points(campaign), campaign.seeds)).to_pylist()


def test_what_is_no_runs_fault_ends_the_campaign_and_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise OSError("the disk is full")
        yield from batches

    text = TINY.replace("seeds = 2", "seeds = 1")
    spark.sparkContext.setLogLevel("OFF")
    with pytest.raises(CampaignStoppedError, match=r"^Spark gave up: OSError: the disk is full$"):
        conducted(spark, tmp_path, text, worker)
    spark.sparkContext.setLogLevel("ERROR")
    store, ending = conducted(spark, tmp_path, text)
    assert ending == Ending(planned=1, skipped=0, failed=[])
    assert len(store.outcomes()) == 1


def test_tasks_that_fail_at_first_leave_the_same_rows(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from simulate_runs(batches)
        if context.attemptNumber() == 0:
            raise RuntimeError("first attempt")

    spark.sparkContext.setLogLevel("OFF")
    store, ending = conducted(spark, tmp_path, TINY, worker)
    spark.sparkContext.setLogLevel("ERROR")
    assert ending.failed == []
    undisturbed, _ = conducted(spark, tmp_path_factory.mktemp("undisturbed"), TINY)
    assert stored_rows(store) == stored_rows(undisturbed)


STOPPING = """
protocols = ["flooding", "gossip"]
[stop]
measure = "{measure}"
half_width = {half_width}
least = 2
batch = 2
cap = 5
[scenario]
nodes = 12
area_m = 700
duration_s = 13
workload.selectivity = 0.8
[grid]
scenario.radio.range_m = [250, 10_000]
"""


def test_the_rule_stops_where_the_mean_is_known_and_goes_on_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """With a range of 10 km every delivery takes one hop and about the same time: two seeds tell it to 0.5 ms."""
    text = STOPPING.format(measure="latency_ms_mean", half_width=0.5)
    store, ending = conducted(spark, tmp_path, text)
    runs = measured_runs(spark, store)
    seeds = runs.groupby(["range_m", "protocol"])["seed"].agg(list).to_dict()
    assert seeds == {
        (reach, protocol): [1, 2] if reach == "10000" else [1, 2, 3, 4, 5]
        for reach in ("250", "10000")
        for protocol in ("flooding", "gossip")
    }
    assert ending.planned == 14
    again = conducted(spark, tmp_path, text)[1]
    assert (again.planned, again.skipped) == (14, 14)  # the same decisions from what is there


def test_a_generous_rule_stops_after_the_first_round(spark: SparkSession, tmp_path: Path) -> None:
    _, ending = conducted(spark, tmp_path, STOPPING.format(measure="latency_ms_mean", half_width=1000))
    assert ending.planned == 8


def test_the_rule_does_not_stop_because_all_seeds_agree(spark: SparkSession, tmp_path: Path) -> None:
    """With a range of 10 km every delivery takes one hop. That says nothing about the seeds that were not looked at."""
    store, _ = conducted(spark, tmp_path, STOPPING.format(measure="hops_mean", half_width=0.5))
    runs = measured_runs(spark, store)
    equal = runs[runs["range_m"] == "10000"]
    assert equal["hops_mean"].nunique() == 1
    assert sorted(equal["seed"].unique()) == [1, 2, 3, 4, 5]
