"""What an executor does: runs in, trace files out.

Each row that comes in is a run as JSON. The result has the one trace schema: the run's trace and, as its last
row, one of kind `run` that says how it went. A run that raises leaves only that row, so a trace is whole or absent.

The executor writes these rows as Parquet itself and answers the driver with the files' names, sizes and digests and
with the outcome of each run: rows that went through the JVM would cost more than all else that Spark does. Each
attempt at a task has file names of its own, and only files that the driver commits count (see `store`), so it does no
harm that Spark repeats tasks. All rows of a run and kind lie in one file. A run that failed has no rows: the commit
has its error.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from roamcast.campaign.commits import DONE, FAILED, File, RunOutcome
from roamcast.campaign.garbage import settle_memory
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.plan import decode_run
from roamcast.campaign.sealed import digest_of
from roamcast.campaign.store import Written
from roamcast.trace.arrow import SCHEMA, batches_by_kind
from roamcast.trace.files import encoded_by_kind
from roamcast.trace.rows import run_row
from roamcast.trace.summary import measure_rows
from roamcast.world.scenario import run_id
from roamcast.world.simulator import simulate

__all__ = ["DONE", "FAILED", "Worker", "explain", "outcome_row", "perform", "simulate_runs"]

ERROR_CHARACTERS = 2000
FILE_ROWS = 1_000_000  # a task that has made this many rows writes them before it goes on

Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Task = list[tuple[str, str]]
"""Runs, by name and as JSON."""


class TaskWriter:
    """Writes what one attempt at a task makes, under names that no other attempt uses."""

    def __init__(self, trace: StoreLocation, batch: int, attempt: str) -> None:
        self._trace = trace
        self._batch = batch
        self._attempt = attempt
        self._waiting: list[pa.RecordBatch] = []
        self._part = 0
        self.files: list[File] = []
        self.runs: list[RunOutcome] = []

    def add(self, rows: pa.RecordBatch) -> None:
        outcome = _outcome(rows)
        if outcome is None or not outcome.failed:
            self._waiting.append(rows)
        if outcome is not None:  # only between runs, so that the rows of a run lie together
            self.runs.append(outcome)
            if sum(each.num_rows for each in self._waiting) >= FILE_ROWS:
                self.flush()

    def flush(self) -> None:
        for kind, content, rows in encoded_by_kind(self._waiting):
            path = f"batch={self._batch:05d}/kind={kind}/{self._attempt}-{self._part}.parquet"
            self._trace.write(path, content)
            self.files.append(File(path, content.size, rows, digest_of(memoryview(content))))
        self._waiting = []
        self._part += 1


def perform(worker: Worker, trace: str, batch: int, owner: str, task: Task) -> bytes:
    """Writes what `worker` makes of the task's runs below `trace`, and answers with what it wrote as JSON."""
    context = TaskContext.get()
    assert context is not None, "only Spark's tasks write"
    settle_memory()
    attempt = f"{owner}-{context.partitionId():05}-{context.taskAttemptId()}"
    writer = TaskWriter(StoreLocation(trace), batch, attempt)
    runs = {"run_id": [name for name, _ in task], "run": [text for _, text in task]}
    for rows in worker(iter([pa.RecordBatch.from_pydict(runs)])):
        writer.add(rows)
    writer.flush()
    return msgspec.json.encode(Written(writer.files, writer.runs))


def simulate_runs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns `run_id` and `run` in, the trace schema out."""
    for batch in batches:
        for name, text in zip(batch["run_id"].to_pylist(), batch["run"].to_pylist(), strict=True):
            yield from _simulate_one(str(name), str(text))


def _simulate_one(name: str, text: str) -> Iterator[pa.RecordBatch]:
    began = perf_counter()
    try:
        run = decode_run(text)
        if run_id(run) != name:
            raise RuntimeError("this executor has other sources of Roamcast or of the protocol than the driver")
        result = simulate(run)
        batches = list(batches_by_kind(result.recorder.packed()))
        rows = sum(batch.num_rows for batch in batches)
        outcome = outcome_row(name, DONE, result.recorder.trace_hash(), result.wall_s, rows)
        batches += measure_rows(result.recorder).batches()
    except Exception as error:  # whatever a protocol does wrong is that run's outcome, not the campaign's end
        batches = []
        outcome = outcome_row(name, FAILED, explain(error), perf_counter() - began, 0)
    yield from batches
    yield outcome


def outcome_row(name: str, status: str, detail: str, wall_s: float, rows: int) -> pa.RecordBatch:
    row = run_row(status, detail, wall_s, rows)._asdict()
    return pa.RecordBatch.from_pylist([{"run_id": name} | row], schema=SCHEMA)


def _outcome(rows: pa.RecordBatch) -> RunOutcome | None:
    """What the rows say, if they are the one row that ends a run."""
    if rows.num_rows != 1 or rows["kind"][0].as_py() != "run":
        return None
    [row] = rows.to_pylist()
    return RunOutcome(row["run_id"], row["category"], row["detail"], row["value"], row["count"])


def explain(error: BaseException) -> str:
    """The error and the place where it was raised, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}, {frames[-1].name})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:ERROR_CHARACTERS] + place
