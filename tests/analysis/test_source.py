"""`spark.read.format("roamcast")`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.source import PARTITION_BYTES, Files, TraceReader, register, trace_files
from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.errors import ConfigurationError
from roamcast.trace.files import TraceWriter, write_trace
from roamcast.trace.schema import SCHEMA
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate


@pytest.fixture(scope="module")
def traces() -> Any:
    runs = [Run(scenario=Scenario(nodes=8, area_m=(300, 300), duration_s=12), seed=seed) for seed in (1, 2)]
    return [simulate(run).recorder.table() for run in runs]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, traces: Any) -> Any:
    """The layout of a campaign: two committed batches, and one that was never committed."""
    directory = tmp_path_factory.mktemp("campaign")
    for batch, table in enumerate(traces):
        write_trace(directory / "trace" / f"batch={batch:05d}", table.to_batches())
    write_trace(directory / "staging" / "abc-00002", traces[0].to_batches())
    return directory


def by_row(table: Any) -> Any:
    return sorted(map(repr, table.to_pylist()))


def test_a_campaign_reads_back_row_for_row(spark: SparkSession, campaign: Any, traces: Any) -> None:
    register(spark)
    frame = spark.read.format("roamcast").load(str(campaign))
    assert frame.schema == TRACE_SCHEMA
    assert by_row(frame.toArrow()) == by_row(pa.concat_tables(traces))


def test_a_growing_trace_of_a_live_node_reads_the_same(spark: SparkSession, tmp_path: Path, traces: Any) -> None:
    register(spark)
    writer = TraceWriter(tmp_path / "node")
    for batch in traces[0].to_batches(max_chunksize=50):
        writer.append([batch])
    assert by_row(spark.read.format("roamcast").load(str(tmp_path / "node")).toArrow()) == by_row(traces[0])


def test_conditions_are_right_whether_pushed_down_or_not(spark: SparkSession, campaign: Any, traces: Any) -> None:
    register(spark)
    frame = spark.read.format("roamcast").load(str(campaign))
    name = traces[1]["run_id"][0].as_py()
    wanted = frame.where(f"kind in ('published', 'end') and run_id = '{name}' and t > 6").toArrow()
    expected = [row for row in traces[1].to_pylist() if row["kind"] in ("published", "end") and row["t"] > 6]
    assert expected
    assert by_row(wanted) == sorted(map(repr, expected))


def test_a_condition_on_the_kind_opens_no_other_files(campaign: Any) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan

    reader = TraceReader(campaign)
    other = GreaterThan(("t",), 1.0)
    assert list(reader.pushFilters([EqualTo(("kind",), "end"), other])) == [other]
    paths = [path for files in reader.partitions() for path in files.value]
    assert len(paths) == 2
    assert all("kind=end" in path for path in paths)


def test_small_files_share_a_task(campaign: Any) -> None:
    assert sum(file.stat().st_size for file in trace_files(campaign)) < PARTITION_BYTES
    assert len(TraceReader(campaign).partitions()) == 1


def test_an_older_trace_lacks_later_columns(tmp_path: Path, traces: Any) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "kind=end").mkdir()
    pq.write_table(traces[0].select(["run_id", "t"]).slice(0, 1), tmp_path / "kind=end" / "part-0.parquet")
    [file] = trace_files(tmp_path)
    [batch] = TraceReader(tmp_path).read(Files([str(file)]))
    assert batch.schema == SCHEMA
    assert batch["kind"].to_pylist() == ["end"]
    assert batch["node"].to_pylist() == [None]


def test_a_directory_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no trace"):
        trace_files(tmp_path)
