"""Measures over a big raw trace: Spark's time and memory beside DuckDB's over the same Parquet, and a report's time.

The trace is made up, but whole: every node subscribes to a range of numbers, every event is published with its shortest
paths, and most expected pairs arrive. Both engines find the expected pairs from publications and subscriptions, match
them with the first deliveries and answer counts, ratios, latency percentiles, hops and stretch per run; Spark answers
with every other measure as well. Each runs in a process of its own with two threads, so that its memory can be told;
the answers must agree.

Three methods are timed. `files`: what a campaign without stored measures does, one task per group of files
(`analysis.filewise`). `joins`: the independent twin, native expressions over all rows (`analysis.measures`). `stored`:
what a report does, reading the measures that were stored with the runs; no Spark is started for it.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import roamcast
from roamcast.bench.processes import Stopwatch
from roamcast.trace.arrow import SCHEMA

THREADS = 2
MEMORY = "2g"  # of Spark's heap; what the process takes in all is measured
NODES = 100
EVENTS = 2000  # per run
POOL = 10_000
SHARE = 0.5  # of the numbers that a subscription asks for
ARRIVING = 0.95
_SQL = Path(__file__).with_name("deliveries.sql.txt")
_PERCENTILES = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
_ANSWER = ("expected", "delivered", "delivered_reachable", "duplicates", "unexpected", "latency_ms_mean", "hops_mean")


_Answer = tuple[tuple[float, float], list[Any], list[int]]
"""Seconds by the clock and of CPU time, one row of `_ANSWER` per run, and further processes that took part."""


class SparkMeasurement(NamedTuple):
    deliveries: int
    spark_s: float  # file by file
    spark_peak_gib: float
    joins_s: float | None  # the independent twin; not timed unless asked for
    duckdb_s: float
    duckdb_peak_gib: float
    ratio: float  # file by file / DuckDB
    cpu_ratio: float  # the same of CPU times
    stored_s: float  # comparing all files with their digests and reading stored measures, as a report does


def measure(deliveries: int, *, joins: bool = False) -> SparkMeasurement:
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as place:
        directory = Path(place)
        written = write_trace(directory, deliveries)
        engines = ("duckdb", "files", *(["joins"] if joins else []), "stored")
        found = {engine: _child(engine, directory) for engine in engines}
    for engine in engines[1:]:
        for ours, theirs in zip(found[engine]["answer"], found["duckdb"]["answer"], strict=True):
            assert np.allclose(ours, theirs, rtol=1e-6), (engine, ours, theirs)
    files, duckdb = found["files"], found["duckdb"]
    return SparkMeasurement(
        deliveries=written,
        spark_s=files["wall_s"],
        spark_peak_gib=files["peak_gib"],
        joins_s=found["joins"]["wall_s"] if joins else None,
        duckdb_s=duckdb["wall_s"],
        duckdb_peak_gib=duckdb["peak_gib"],
        ratio=files["wall_s"] / duckdb["wall_s"],
        cpu_ratio=files["cpu_s"] / duckdb["cpu_s"],
        stored_s=found["stored"]["wall_s"],
    )


def write_trace(directory: Path, deliveries: int) -> int:
    """Writes a trace with about this many deliveries, in the layout of a campaign; returns their exact number."""
    random = np.random.default_rng(1)
    per_run = EVENTS * (NODES - 1) * SHARE * ARRIVING
    written = 0
    for run in range(max(1, round(deliveries / per_run))):
        written += _write_run(directory / f"batch={run:05d}", f"{run:016x}", random)
    return written


def _write_run(directory: Path, name: str, random: np.random.Generator) -> int:
    low = random.integers(0, POOL, NODES)
    high = low + int(POOL * SHARE)
    interests = [
        f"{a}..{b}" if b <= POOL else f"0..{b - POOL} {a}..{POOL}"
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    _write(directory, "subscribed", name, node=np.arange(NODES), t=np.zeros(NODES), detail=interests)
    publisher = random.integers(0, NODES, EVENTS)
    published_t = np.sort(random.uniform(1, 100, EVENTS))
    value = random.integers(0, POOL, EVENTS)
    event = np.arange(1, EVENTS + 1)
    shortest = random.integers(1, 8, (EVENTS, NODES)).astype(np.int16)
    _write(
        directory, "published", name, t=published_t, node=publisher, event_id=event, value=value.astype(float),
        shortest_hops=pa.FixedSizeListArray.from_arrays(pa.array(shortest.ravel()), NODES).cast(pa.list_(pa.int16())),
    )  # fmt: skip
    wants = (value[:, None] - low[None, :]) % POOL < high - low
    wants[np.arange(EVENTS), publisher] = False
    arrives = wants & (random.random(wants.shape) < ARRIVING)
    which, node = np.nonzero(arrives)
    latency = random.exponential(0.05, len(which))
    hops = shortest[which, node] + random.integers(0, 3, len(which))
    _write(
        directory, "delivered", name, t=published_t[which] + latency, node=node, event_id=event[which],
        peer=publisher[which], value=latency, hops=hops.astype(np.int32),
    )  # fmt: skip
    _write(directory, "end", name, t=np.array([100.0]), count=np.array([NODES]))
    return len(which)


def _write(directory: Path, kind: str, run: str, **columns: Any) -> None:
    rows = len(columns["t"])
    columns |= {"run_id": pa.repeat(pa.scalar(run), rows)}
    if kind in ("subscribed", "published"):
        columns["category"] = pa.repeat(pa.scalar("intervals"), rows)
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in SCHEMA
    ]
    place = directory / f"kind={kind}"
    place.mkdir(parents=True)
    table = pa.table(dict(zip(SCHEMA.names, arrays, strict=True))).drop_columns("kind")
    pq.write_table(table, place / "part-00000.parquet", compression="zstd")


def _child(engine: str, directory: Path) -> dict[str, Any]:
    source = str(Path(roamcast.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "roamcast.bench.spark_measures", engine, str(directory)],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{engine} failed: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _groups(directory: Path) -> dict[str, list[tuple[str, str]]]:
    """The files of each run together, as a task of a campaign writes them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(directory.glob("batch=*/kind=*/*.parquet")):
        groups.setdefault(path.parent.parent.name, []).append((path.parent.name.partition("=")[2], str(path)))
    return groups


def _session(directory: Path) -> Any:
    from roamcast.campaign.session import start_session

    size = sum(path.stat().st_size for path in directory.rglob("*.parquet"))
    session = start_session(f"local[{THREADS}]", trace_bytes=size, settings={"spark.driver.memory": MEMORY})
    session.range(1000).selectExpr("sum(id)").collect()
    return session


def _java(session: Any) -> int:
    return int(session.sparkContext._gateway.proc.pid)


def _file_by_file(directory: Path) -> _Answer:
    from roamcast.analysis.stored import measure_groups, wide

    session = _session(directory)
    groups = _groups(directory)
    watch = Stopwatch()
    rows = measure_groups(session, groups)
    answer = wide(rows).sort_values("run_id")[list(_ANSWER)].to_numpy().tolist()
    spent = watch.stop()
    pq.write_table(rows, directory / "stored.parquet")
    return spent, answer, [_java(session)]


def _by_joins(directory: Path) -> _Answer:
    from roamcast.analysis.measures import measure_runs
    from roamcast.analysis.traces import read_traces

    session = _session(directory)
    watch = Stopwatch()
    measured = measure_runs(read_traces(session, directory), names=(*_ANSWER, *_PERCENTILES))
    rows = measured.orderBy("run_id").select(*_ANSWER).collect()
    return watch.stop(), [list(row) for row in rows], [_java(session)]


def _from_stored(directory: Path) -> _Answer:
    """As a report does: it compares every trace file with its digest, and reads the measures."""
    from roamcast.analysis.stored import wide
    from roamcast.campaign.sealed import digest_of

    watch = Stopwatch()
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda path: digest_of(path.read_bytes()), directory.glob("batch=*/kind=*/*.parquet")))
    found = wide(pq.read_table(directory / "stored.parquet"))
    answer = found.sort_values("run_id")[list(_ANSWER)].to_numpy().tolist()
    return watch.stop(), answer, []


def _with_duckdb(directory: Path) -> _Answer:
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    query = _SQL.read_text(encoding="utf-8").replace("{directory}", str(directory))
    watch = Stopwatch()
    rows = connection.sql(query).project(", ".join(_ANSWER)).fetchall()
    return watch.stop(), [list(row) for row in rows], []


def _peak_gib(pids: list[int]) -> float:
    """The sum of the processes' own peaks of memory."""
    total_kib = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        total_kib += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return total_kib / 2**20


_ENGINES = {"files": _file_by_file, "joins": _by_joins, "stored": _from_stored, "duckdb": _with_duckdb}


def _main() -> None:
    engine, directory = sys.argv[1], Path(sys.argv[2])
    (wall_s, cpu_s), answer, helpers = _ENGINES[engine](directory)
    peak_gib = _peak_gib([os.getpid(), *helpers])
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "answer": answer, "peak_gib": peak_gib}))


if __name__ == "__main__":
    _main()
