"""Traces that grow: followed by Spark and by the monitor, and equal to the finished traces in the end."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.measures import measure_runs
from roamcast.analysis.source import register
from roamcast.cli.monitor import monitor
from roamcast.errors import ConfigurationError
from roamcast.report.monitor import TraceWatch, page
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.files import TraceWriter
from roamcast.trace.measures import RUN_MEASURES
from roamcast.trace.summary import summarise
from roamcast.trace.tail import START, files_between, latest
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Run, Scenario, Workload
from roamcast.world.simulator import simulate

STEPS = 6
LIVE = ("subscribed", "unsubscribed", "published", "delivered", "frame", "load", "dropped", "end")


class Network:
    """A simulated run, written as its nodes would have written it: each into its own directory, piece by piece."""

    def __init__(self, directory: Path, nodes: int = 8) -> None:
        workload = Workload(rate_per_s=1, publisher_share=0.5, utility="20ms")
        scenario = Scenario(
            nodes=nodes, area_m=(500, 500), duration_s=30, workload=workload, radio=Ideal(loss=0.1)
        )
        table = simulate(Run(scenario=scenario)).recorder.table()
        table = table.filter(pc.is_in(table["kind"], value_set=pa.array(LIVE)))
        rows = table.to_pylist()
        end = rows.pop()  # of the simulator; live nodes have one each
        rows += [{**end, "node": node, "count": 1} for node in range(nodes)]
        self.whole = pa.Table.from_pylist(rows, schema=SCHEMA)
        self._directory = directory
        self._nodes = nodes
        self._writers: dict[int, TraceWriter] = {}
        self.step = 0

    def write(self) -> None:
        """The rows of the next five seconds; the last step has the ends of all nodes."""
        self.step += 1
        span = pc.and_(
            pc.greater_equal(self.whole["t"], pa.scalar(5.0 * (self.step - 1))),
            pc.less(self.whole["t"], pa.scalar(5.0 * self.step if self.step < STEPS else 1e9)),
        )
        rows = self.whole.filter(span)
        for node in range(self._nodes):
            is_mine = [(row or 0) == node for row in rows["node"].to_pylist()]
            mine = rows.filter(pa.array(is_mine, pa.bool_()))
            if node not in self._writers:
                self._writers[node] = TraceWriter(self._directory / f"node-{node}")
            self._writers[node].append(mine.to_batches())


def counted(table: pa.Table) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in table.to_pylist())


def test_a_position_includes_each_file_once(tmp_path: Path) -> None:
    network = Network(tmp_path)
    seen: list[Path] = []
    position = START
    for _ in range(STEPS):
        network.write()
        end = json.loads(json.dumps(latest([tmp_path])))  # as a checkpoint keeps it
        seen += [path for _, path in files_between(position, end)]
        position = end
    assert sorted(seen) == sorted(tmp_path.glob("*/kind=*/*.parquet"))
    assert list(files_between(position, latest([tmp_path]))) == []
    (tmp_path / "node-0" / "kind=end" / ".part-00099.parquet").write_bytes(b"being written")
    assert latest([tmp_path]) == position


def test_a_stream_reads_every_row_exactly_once_even_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    traces, out, checkpoint = (tmp_path / name for name in ("traces", "out", "checkpoint"))
    network = Network(traces)
    register(spark)
    for steps in (2, 4):  # the query ends in between, and goes on from its checkpoint
        for _ in range(steps):
            network.write()
        rows = spark.readStream.format("roamcast").load(str(traces))
        query = (
            rows.writeStream.format("parquet")
            .option("path", str(out))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = spark.read.parquet(str(out)).select(*SCHEMA.names).toArrow().cast(SCHEMA)
    assert counted(found) == counted(network.whole)


def test_the_monitor_ends_with_the_measures_of_the_finished_traces(spark: SparkSession, tmp_path: Path) -> None:
    network = Network(tmp_path)
    watch = TraceWatch([tmp_path], window_s=5, patience_s=2)
    assert watch.look().windows == ()
    seen = []
    for _ in range(STEPS):
        network.write()
        seen.append(watch.look())
    assert [state.is_over for state in seen] == [False] * (STEPS - 1) + [True]
    last, summary = seen[-1], summarise(network.whole)
    assert last.totals.keys() == RUN_MEASURES.keys()
    (row,) = measure_runs(spark.createDataFrame(network.whole)).collect()
    for name, value in last.totals.items():  # sums in another order are rounded differently
        same = None if value is None else pytest.approx(value, rel=1e-9)
        assert summary[name] == same, name
        assert row[name] == same, name
    for field, measure in (("expected", "expected"), ("delivered", "delivered"), ("frames", "frames_total")):
        assert sum(getattr(window, field) for window in last.windows) == summary[measure]
    assert sum(window.broken for window in last.windows) == summary["expected"] - summary["delivered"] > 0
    assert all(window.settled and window.pending == 0 for window in last.windows)


def test_what_is_not_settled_is_pending_and_not_broken(tmp_path: Path) -> None:
    network = Network(tmp_path)
    watch = TraceWatch([tmp_path], window_s=5, patience_s=2)
    for _ in range(3):
        network.write()
    state = watch.look()
    assert state.watermark_s is not None
    assert state.watermark_s < 15
    for window in state.windows:
        assert window.settled == (window.start_s + 5 <= state.watermark_s)
        assert (window.broken, window.pending)[window.settled] == 0
    assert any(window.settled for window in state.windows)
    assert not all(window.settled for window in state.windows)


def test_the_command_answers_and_keeps_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = Network(tmp_path / "traces")
    for _ in range(STEPS):
        network.write()
    monitor([tmp_path / "traces"], window=5.0, html=tmp_path / "monitor.html", as_json=True)
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["totals"]["delivery_ratio"] == summarise(network.whole)["delivery_ratio"]
    html = (tmp_path / "monitor.html").read_text(encoding="utf-8")
    assert "8 nodes, 8 of them ended" in html
    assert 'http-equiv="refresh"' not in html  # it is over
    assert "<meter" in html
    monitor([tmp_path / "traces"], once=True)
    assert "8 nodes, 8 ended" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="is not a directory"):
        monitor([tmp_path / "nowhere"])


def test_a_page_of_a_living_network_loads_itself_again(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.write()
    assert '<meta http-equiv="refresh" content="2.0">' in page(TraceWatch([tmp_path]).look(), refresh_s=2.0)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    Network(tmp_path).write()
    victim = tmp_path / "node-0" / "kind=subscribed" / "part-00000.parquet"
    victim.write_bytes(victim.read_bytes()[:200])
    with pytest.raises(ConfigurationError, match=r"subscribed/part-00000\.parquet' cannot be read"):
        monitor([tmp_path], once=True)
