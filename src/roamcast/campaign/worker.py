"""What an executor does: runs in, trace files out.

Each row that comes in is a run as JSON. What comes of it is in the one trace schema: the run's trace and, as its last
row, one of kind `run` that says how it went. A run that raises leaves only that row, so a trace is whole or absent.

The executor writes these rows as Parquet itself and answers Spark only with the name of the folder: rows that went
through the JVM would cost more than all else that Spark does. Each attempt at a task has a folder of its own, and only
those whose answer arrived are committed (see `store`), so it does no harm that Spark repeats tasks.
"""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import pyarrow as pa
from pyspark import TaskContext

from roamcast.campaign.plan import decode_run
from roamcast.trace.files import TraceWriter
from roamcast.trace.schema import SCHEMA
from roamcast.trace.summary import measure_rows
from roamcast.world.scenario import run_id
from roamcast.world.simulator import simulate

DONE, FAILED = "done", "failed"
ERROR_CHARACTERS = 2000
FILE_ROWS = 1_000_000  # a task that made so many rows writes them before it goes on

Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
ANSWER = "attempt string"


def write_runs(worker: Worker, stage: str, runs: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: writes what `worker` makes of the runs below `stage`, and answers with the folder's name."""
    task = TaskContext.get()
    assert task is not None, "only Spark's tasks write"
    attempt = f"{task.partitionId():05}-{task.taskAttemptId()}"
    files = TraceWriter(Path(stage) / attempt)
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in worker(runs):
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= FILE_ROWS:
            files.append(waiting)
            waiting, rows = [], 0
    files.append(waiting)
    yield pa.RecordBatch.from_pydict({"attempt": [attempt]})


def simulate_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns `run_id` and `run` in, the trace schema out."""
    for batch in batches:
        for name, text in zip(batch["run_id"].to_pylist(), batch["run"].to_pylist(), strict=True):
            yield from _simulate_one(str(name), str(text))


def _simulate_one(name: str, text: str) -> Iterator[pa.RecordBatch]:
    began = perf_counter()
    try:
        run = decode_run(text)
        if run_id(run) != name:
            raise RuntimeError("this executor has other sources of Roamcast than the driver")
        result = simulate(run)
        batches = list(result.recorder.batches())
        rows = sum(batch.num_rows for batch in batches)
        outcome = outcome_row(name, DONE, result.recorder.trace_hash(), result.wall_s, rows)
        batches += measure_rows(pa.Table.from_batches(batches))
    except Exception as error:  # whatever a protocol does wrong is that run's outcome, not the campaign's end
        batches = []
        outcome = outcome_row(name, FAILED, explain(error), perf_counter() - began, 0)
    yield from batches
    yield outcome


def outcome_row(name: str, status: str, detail: str, wall_s: float, rows: int) -> pa.RecordBatch:
    row = {
        "run_id": name,
        "t": 0.0,
        "kind": "run",
        "category": status,
        "detail": detail,
        "value": wall_s,
        "count": rows,
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def explain(error: BaseException) -> str:
    """The error and the place where it was raised, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}, {frames[-1].name})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:ERROR_CHARACTERS] + place
