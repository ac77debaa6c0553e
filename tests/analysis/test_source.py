"""Traces as Spark tables: `read_traces` and `spark.read.format("roamcast")`, held against plain Parquet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from roamcast.analysis.source import PARTITION_BYTES, TraceReader, read_traces, register
from roamcast.campaign.commits import trace_files
from roamcast.campaign.execute import TRACE_SCHEMA
from roamcast.campaign.store import Store, Written
from roamcast.campaign.worker import TaskWriter, outcome_row
from roamcast.errors import ConfigurationError
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.files import TraceWriter, write_trace
from roamcast.world.scenario import Run, Scenario
from roamcast.world.simulator import simulate

Load = Callable[[SparkSession, str], DataFrame]


@pytest.fixture(scope="module")
def traces() -> Any:
    runs = [Run(scenario=Scenario(nodes=8, area_m=(300, 300), duration_s=12), seed=seed) for seed in (1, 2)]
    return [simulate(run).recorder.table() for run in runs]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, traces: Any) -> Any:
    """Two committed batches, and one that was written and never committed."""
    directory = tmp_path_factory.mktemp("campaign")
    store = Store(directory)
    store.directory.write("campaign.json", b'{"version": 2}')
    for batch, table in enumerate([*traces, traces[0]]):
        writer = TaskWriter(store.trace, batch, "task")
        for rows in [*table.to_batches(), outcome_row(table["run_id"][0].as_py(), "done", "", 1.0, 1)]:
            writer.add(rows)
        writer.flush()
        if batch < 2:
            store.commit(batch, [Written(writer.files, writer.runs)])
    return directory


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, traces: Any) -> DataFrame:
    """The same rows as Spark itself would store them."""
    directory = tmp_path_factory.mktemp("plain")
    pq.write_to_dataset(pa.concat_tables(traces), directory, partition_cols=["kind"])
    return spark.read.schema(TRACE_SCHEMA).parquet(str(directory)).select(*TRACE_SCHEMA.names)


def by_format(spark: SparkSession, place: str) -> DataFrame:
    register(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # a session may have it for other sources
    return spark.read.format("roamcast").load(place)


BOTH = pytest.mark.parametrize("load", [read_traces, by_format], ids=["read_traces", "format"])


def by_row(table: Any) -> Any:
    return sorted(map(repr, table.to_pylist()))


@BOTH
def test_a_campaign_reads_back_row_for_row(spark: SparkSession, campaign: Any, traces: Any, load: Load) -> None:
    frame = load(spark, str(campaign))
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in TRACE_SCHEMA
    ]
    assert by_row(frame.where("kind <> 'run'").toArrow()) == by_row(pa.concat_tables(traces))


@BOTH
def test_a_growing_trace_of_a_live_node_reads_the_same(
    spark: SparkSession, tmp_path: Path, traces: Any, load: Load
) -> None:
    writer = TraceWriter(tmp_path / "node")
    for batch in traces[0].to_batches(max_chunksize=50):
        writer.append([batch])
    assert by_row(load(spark, str(tmp_path / "node")).toArrow()) == by_row(traces[0])


QUERIES = {
    "join": """
        select p.event_id, d.node, d.value from trace p join trace d using (run_id, event_id)
        where p.kind = 'published' and d.kind = 'delivered'
    """,
    "union": """
        select kind, event_id from trace where kind = 'published'
        union all select kind, event_id from trace where kind = 'delivered'
    """,
    "self-join": """
        select run_id, a.node, b.node as other from trace a join trace b using (run_id)
        where a.kind = 'subscribed' and b.kind = 'subscribed' and a.node < b.node
    """,
    "subquery": """
        select run_id, t from trace where kind = 'end' and run_id in
        (select run_id from trace where kind = 'delivered' group by run_id having count(*) > 1)
    """,
    "scalar subquery": """
        select (select count(*) from trace where kind = 'published') as published,
               (select count(*) from trace where kind = 'delivered') as delivered,
               count(*) as ended from trace where kind = 'end'
    """,
    "anti-join": """
        select p.run_id, p.event_id from trace p where kind = 'published' and not exists
        (select 1 from trace d where d.kind = 'delivered' and d.run_id = p.run_id and d.event_id = p.event_id)
    """,
    "three kinds": """
        select p.event_id, count(d.node) as receivers, max(e.t) as duration
        from trace p left join trace d on d.kind = 'delivered' and d.run_id = p.run_id and d.event_id = p.event_id
        join trace e on e.kind = 'end' and e.run_id = p.run_id where p.kind = 'published' group by p.event_id
    """,
}


@BOTH
@pytest.mark.parametrize("name", QUERIES)
def test_queries_answer_as_over_plain_parquet(
    spark: SparkSession, campaign: Any, plain: DataFrame, load: Load, name: str
) -> None:
    plain.createOrReplaceTempView("trace")
    expected = by_row(spark.sql(QUERIES[name]).toArrow())
    assert expected
    load(spark, str(campaign)).where("kind <> 'run'").createOrReplaceTempView("trace")
    assert by_row(spark.sql(QUERIES[name]).toArrow()) == expected


@BOTH
def test_two_filters_of_one_frame_are_kept_apart(
    spark: SparkSession, campaign: Any, plain: DataFrame, load: Load
) -> None:
    frame = load(spark, str(campaign))

    def joined(trace: DataFrame) -> int:
        published = trace.where("kind = 'published'").select("run_id", "event_id")
        return trace.where("kind = 'delivered'").join(published, ["run_id", "event_id"]).count()

    assert joined(frame) == joined(plain) == plain.where("kind = 'delivered'").count() > 0
    frame.where("kind = 'delivered'").createOrReplaceTempView("deliveries")
    frame.where("kind = 'published'").createOrReplaceTempView("events")
    counts = spark.sql("select (select count(*) from events), (select count(*) from deliveries)").first()
    assert counts is not None
    assert tuple(counts) == tuple(plain.where(f"kind = '{kind}'").count() for kind in ("published", "delivered"))


def test_only_needed_columns_and_kinds_are_read(spark: SparkSession, campaign: Any) -> None:
    query = read_traces(spark, campaign).where("kind = 'delivered'").groupBy("run_id").avg("value")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<run_id:string,value:double>" in plan
    assert "PartitionFilters: [isnotnull(kind" in plan


def test_a_format_reads_what_it_is_told_to(spark: SparkSession, campaign: Any, traces: Any) -> None:
    register(spark)
    reader = spark.read.format("roamcast").option("kind", "end, published").schema("t double, kind string")
    expected = pa.concat_tables(traces).select(["t", "kind"]).to_pylist()
    wanted = [row for row in expected if row["kind"] in ("end", "published")]
    assert by_row(reader.load(str(campaign)).toArrow()) == sorted(map(repr, wanted))


def test_a_damaged_page_is_an_error_and_not_a_wrong_row(spark: SparkSession, tmp_path: Path, traces: Any) -> None:
    write_trace(tmp_path / "trace", traces[0].to_batches())
    [file] = (tmp_path / "trace" / "kind=delivered").iterdir()
    column = pq.ParquetFile(file).metadata.row_group(0).column(SCHEMA.get_field_index("value") - 1)
    content = bytearray(file.read_bytes())
    content[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 3] ^= 4
    file.write_bytes(content)
    with pytest.raises(Exception, match=r"(?i)checksum|CRC|corrupt"):
        read_traces(spark, tmp_path / "trace").agg({"value": "sum"}).collect()


def test_small_files_share_a_task(campaign: Any) -> None:
    assert sum(file.bytes for file in trace_files(campaign).files) < PARTITION_BYTES
    assert len(TraceReader(str(campaign), SCHEMA, None).partitions()) == 1


@BOTH
def test_an_older_trace_lacks_later_columns(spark: SparkSession, tmp_path: Path, traces: Any, load: Load) -> None:
    (tmp_path / "kind=end").mkdir()
    pq.write_table(traces[0].select(["run_id", "t"]).slice(0, 1), tmp_path / "kind=end" / "part-0.parquet")
    [row] = load(spark, str(tmp_path)).toArrow().to_pylist()
    assert (row["kind"], row["node"]) == ("end", None)


def test_a_directory_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no trace"):
        trace_files(tmp_path)
