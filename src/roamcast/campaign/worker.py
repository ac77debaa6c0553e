"""What an executor does: runs in, trace rows out.

Each row that comes in is a run as JSON. What goes out is in the one trace schema: the run's trace and, as its last row,
one of kind `run` that says how it went. A run that raises leaves only that row, so a trace is whole or absent.
"""

import traceback
from collections.abc import Callable, Iterator
from time import perf_counter

import pyarrow as pa

from roamcast.campaign.plan import decode_run
from roamcast.trace.schema import SCHEMA
from roamcast.world.scenario import run_id
from roamcast.world.simulator import simulate

DONE, FAILED = "done", "failed"
ERROR_CHARACTERS = 2000

Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def simulate_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: columns `run_id` and `run` in, the trace schema out."""
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
