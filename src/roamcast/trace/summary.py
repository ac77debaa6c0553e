"""The measures of one run, computed from nothing but its trace, in memory without Spark or Arrow.

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
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from roamcast.errors import CallerError
from roamcast.trace.evaluation import Evaluator
from roamcast.trace.measures import BREAKDOWNS, RUN_FACTS, RUN_MEASURES, Breakdown
from roamcast.trace.recorder import Recorder
from roamcast.trace.relations import TraceRelations
from roamcast.trace.rows import measure_row

if TYPE_CHECKING:
    import pyarrow as pa

MEANING = 1
"""Raise this when relations or the evaluation change what a measure means; its declaration is in the digest anyway."""

DEFINITIONS = "definitions"
COURSES = ("expected_at", "delivered_at", "frames_at")
"""Counts per second: expected pairs and those that arrived, by time of publication; frames, by time of sending."""


def summarise(run: "Recorder | pa.Table") -> dict[str, Any]:
    """All measures of one run, from its recorder or a table with its rows. A ratio, mean or percentile of nothing is
    `None`."""
    return _summary(_relations(run))


def measure_rows(recorder: Recorder) -> Recorder:
    """The measures of a recorded run, as trace rows of kind `measure`."""
    return stored_rows(recorder.run_id, TraceRelations.of_recorder(recorder))


def stored_rows(run_id: str, relations: TraceRelations) -> Recorder:
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
    return stored


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


def _relations(run: "Recorder | pa.Table") -> TraceRelations:
    if isinstance(run, Recorder):
        return TraceRelations.of_recorder(run)
    runs = run["run_id"].unique()
    if len(runs) > 1:
        raise CallerError(f"summary: the table holds {len(runs)} runs; one is allowed")
    return TraceRelations.of_trace(run)


def _summary(relations: TraceRelations) -> dict[str, Any]:
    evaluator = Evaluator(relations)
    has_ended = len(relations("end")) > 0
    facts = {name: evaluator.value(fact) if has_ended else None for name, fact in RUN_FACTS.items()}
    measures = {name: evaluator.value(measure.value) for name, measure in RUN_MEASURES.items()}
    return facts | measures | {name: _parts(relations, breakdown) for name, breakdown in BREAKDOWNS.items()}


def _parts(relations: TraceRelations, breakdown: Breakdown) -> dict[str, Any]:
    rows = relations(breakdown.kind)
    keys = rows[breakdown.key]
    assert keys.texts is not None
    sums = counts = np.bincount(keys.values)
    if breakdown.column is not None:
        values = rows.numbers(breakdown.column)
        sums = np.zeros(len(counts), values.dtype)
        np.add.at(sums, keys.values, values)
    return {text: sums[place].item() for text, place in sorted((keys.texts[at], at) for at in counts.nonzero()[0])}


def _courses(relations: TraceRelations) -> dict[str, tuple[Any, Any]]:
    """Per name the seconds and what was counted in them."""
    pairs, frames = relations("pairs"), relations("frame")
    expected = pairs.numbers("expected")
    arrived = expected & (pairs.numbers("arrivals") > 0)
    published_s = pairs.numbers("published_s")
    return {
        "expected_at": _per_second(published_s[expected]),
        "delivered_at": _per_second(published_s[arrived]),
        "frames_at": _per_second(frames.numbers("t"), frames.numbers("count")),
    }


def _per_second(times_s: Any, weights: Any = None) -> tuple[Any, Any]:
    seconds, places = np.unique(np.floor(times_s), return_inverse=True)
    return seconds, np.bincount(places, weights, minlength=len(seconds))
