"""The measures of one run, computed from nothing but its trace, in memory and without Spark.

`summarise` answers with everything that can be said about a run, ready for JSON. `measure_rows` answers with the same
as trace rows of kind `measure`. A campaign stores them beside the trace, so that a report need not read it again:

| `detail` | `category` | `t` | `value` |
|---|---|---|---|
| a measure of `MEASURES`, `nodes` or `duration_s` | | 0 | its value; undefined measures have no row |
| a breakdown of `BREAKDOWNS` | the key, such as a message's label | 0 | the sum |
| one of `COURSES` | | the second | the count in that second |
| `definitions` | `definitions_digest()` | 0 | |

The last row says by which definitions the others were computed. A reader that finds another digest measures the trace
itself instead of believing rows that may mean something else.
"""

from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.errors import CallerError
from roamcast.trace.evaluation import Evaluator
from roamcast.trace.measures import BREAKDOWNS, RUN_FACTS, RUN_MEASURES, Breakdown
from roamcast.trace.recorder import Recorder
from roamcast.trace.relations import TraceRelations
from roamcast.trace.rows import measure_row

MEANING = 1
"""Raise this when relations or the evaluation change what a measure means; its declaration is in the digest anyway."""

DEFINITIONS = "definitions"
COURSES = ("expected_at", "delivered_at", "frames_at")
"""Counts per second: expected pairs and those that arrived, by time of publication; frames, by time of sending."""


def summarise(table: pa.Table) -> dict[str, Any]:
    """All measures of the one run that `table` holds. A ratio, mean or percentile of nothing is `None`."""
    return _summary(_relations(table))


def measure_rows(table: pa.Table) -> list[pa.RecordBatch]:
    """The measures of the one run that `table` holds, as trace rows of kind `measure`."""
    return stored_rows(table["run_id"][0].as_py() if len(table) else "", _relations(table))


def stored_rows(run_id: str, relations: TraceRelations) -> list[pa.RecordBatch]:
    """The measures of a run as trace rows of kind `measure`, from its relations."""
    stored = Recorder(run_id)
    stored.add(measure_row(DEFINITIONS, None, key=definitions_digest()))
    for name, value in _summary(relations).items():
        for key, part in value.items() if isinstance(value, dict) else [(None, value)]:
            if part is not None:
                stored.add(measure_row(name, float(part), key=key))
    for name, (seconds, counts) in _courses(relations).items():
        for t, count in zip(seconds.tolist(), counts.tolist(), strict=True):
            stored.add(measure_row(name, float(count), t=t))
    return list(stored.batches())


@cache
def definitions_digest() -> str:
    """Changes with the definition of any measure."""
    declared = (
        MEANING,
        {name: repr(fact) for name, fact in RUN_FACTS.items()},
        {name: repr(measure.value) for name, measure in RUN_MEASURES.items()},
        {name: repr(breakdown) for name, breakdown in BREAKDOWNS.items()},
        COURSES,
    )
    return blake2b(msgspec.json.encode(declared), digest_size=8).hexdigest()


def _relations(table: pa.Table) -> TraceRelations:
    runs = pc.unique(table["run_id"])
    if len(runs) > 1:
        raise CallerError(f"summary: the table holds {len(runs)} runs; one is allowed")
    return TraceRelations.of_trace(table)


def _summary(relations: TraceRelations) -> dict[str, Any]:
    evaluator = Evaluator(relations)
    has_ended = len(relations("end")) > 0
    facts = {name: evaluator.value(fact) if has_ended else None for name, fact in RUN_FACTS.items()}
    measures = {name: evaluator.value(measure.value) for name, measure in RUN_MEASURES.items()}
    return facts | measures | {name: _parts(relations, breakdown) for name, breakdown in BREAKDOWNS.items()}


def _parts(relations: TraceRelations, breakdown: Breakdown) -> dict[Any, Any]:
    rows = relations(breakdown.kind)
    wanted: Any = ([], "count_all") if breakdown.column is None else (breakdown.column, "sum")
    sums = rows.group_by(breakdown.key).aggregate([wanted]).sort_by(breakdown.key)
    column = "count_all" if breakdown.column is None else f"{breakdown.column}_sum"
    return dict(zip(sums[breakdown.key].to_pylist(), sums[column].to_pylist(), strict=True))


def _courses(relations: TraceRelations) -> dict[str, tuple[Any, Any]]:
    """Per name the seconds and what was counted in them."""
    pairs, frames = relations("pairs"), relations("frame")
    expected = pairs.filter(pairs["expected"])
    arrived = expected.filter(pc.greater(expected["arrivals"], pa.scalar(0)))
    sent = frames["count"].to_numpy()
    return {
        "expected_at": _per_second(expected["published_s"].to_numpy()),
        "delivered_at": _per_second(arrived["published_s"].to_numpy()),
        "frames_at": _per_second(frames["t"].to_numpy(), sent),
    }


def _per_second(times_s: Any, weights: Any = None) -> tuple[Any, Any]:
    seconds, places = np.unique(np.floor(times_s), return_inverse=True)
    return seconds, np.bincount(places, weights, minlength=len(seconds))
