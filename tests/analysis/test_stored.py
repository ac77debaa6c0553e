"""What a report reads instead of traces: stored measures, equal to those that Spark finds in the traces."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, analyse, measured_runs
from roamcast.analysis.measures import measure_runs
from roamcast.analysis.stored import measure_table, wide
from roamcast.analysis.traces import read_traces
from roamcast.campaign.conduct import Conductor
from roamcast.campaign.store import PLACES, Store
from roamcast.trace.measures import RUN_MEASURES
from roamcast.trace.relations import TraceRelations

CAMPAIGN = """
protocols = ["flooding", "gossip"]
seeds = 3
[scenario]
nodes = 14
area_m = 600
duration_s = 13
workload.utility = "20ms"
[grid]
scenario.radio.range_m = [150, 250]
"""


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    directory = tmp_path_factory.mktemp("stored")
    (directory / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    conductor = Conductor(directory / "campaign.toml", directory / "out", master="local[2]")
    conductor.conduct(spark, precise=Precision(spark, conductor.store))
    return conductor.store


def no_spark() -> SparkSession:
    raise AssertionError("stored measures need no Spark")


def measure_files(store: Store) -> list[Path]:
    return sorted(Path(str(store.directory)).glob("trace/batch=*/kind=measure/*.parquet"))


def same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(_numbers(ours), _numbers(theirs), rtol=1e-9)


def _numbers(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.set_index("run_id")[list(RUN_MEASURES)].sort_index().astype(float)


def test_stored_measures_equal_those_of_the_raw_traces(spark: SparkSession, store: Store) -> None:
    stored = measured_runs(no_spark, store)
    assert len(stored) == 12
    same(stored, measure_runs(read_traces(spark, store.trace)).toPandas())


@pytest.mark.parametrize("damage", ["none", "other definitions"])
def test_runs_without_stored_measures_are_measured_from_their_files(
    spark: SparkSession, store: Store, damage: str
) -> None:
    whole = measured_runs(no_spark, store)
    kept = {path: path.read_bytes() for path in measure_files(store)}
    assert kept
    victim = next(iter(kept))
    table = pq.ParquetFile(victim).read()
    if damage == "none":
        broken = table.slice(0, 0)
    else:
        digests = [None if name is None else name[::-1] for name in table["category"].to_pylist()]
        broken = table.set_column(table.column_names.index("category"), "category", pa.array(digests, pa.string()))
    try:
        pq.write_table(broken, victim)
        with pytest.raises(AssertionError, match="need no Spark"):
            measured_runs(no_spark, store)
        same(measured_runs(spark, store), whole)
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


def test_pairs_that_all_delivered(spark: SparkSession, store: Store) -> None:
    """Against a slow twin: sets of pairs, run by run."""
    analysis = analyse(spark, store)
    trace = read_traces(spark, store.trace).toArrow()
    runs: Any = analysis.runs
    for _, group in runs.groupby(["place", "seed"]):
        arrived: dict[str, dict[tuple[int, int], float]] = {}
        for run_id in group["run_id"]:
            mine = trace.filter(pc.equal(trace["run_id"], pa.scalar(run_id)))
            first: dict[tuple[int, int], tuple[float, int, float]] = {}
            for row in mine.filter(pc.equal(mine["kind"], pa.scalar("delivered"))).to_pylist():
                key, told = (row["event_id"], row["node"]), (row["t"], row["hops"], row["value"])
                first[key] = min(first.get(key, told), told)
            assert TraceRelations.of_trace(mine)("pairs").numbers("expected").all()
            arrived[run_id] = {key: told[2] for key, told in first.items()}
        shared = set.intersection(*(set(pairs) for pairs in arrived.values()))
        for row in group.itertuples():
            latencies = [1000 * arrived[row.run_id][pair] for pair in shared]
            assert row.latency_common_ms_mean == pytest.approx(sum(latencies) / len(latencies))
            assert row.common_share == pytest.approx(len(shared) / row.expected)


def test_measures_of_places_are_computed_once(spark: SparkSession, store: Store) -> None:
    first = analyse(spark, store)
    assert store.directory.path.joinpath(PLACES).exists()
    second = analyse(no_spark, store)
    for one, other in zip(first, second, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_a_table_has_one_row_per_run(store: Store) -> None:
    runs = [str(name) for name in store.plan()["run_id"].to_pylist()]
    found = wide(measure_table(no_spark, store, runs[:5]))
    assert sorted(found["run_id"]) == sorted(runs[:5])
