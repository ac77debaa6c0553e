"""What a campaign stores of a run's measures is what its summary says."""

from collections import defaultdict
from typing import Any

import msgspec
import pytest

from roamcast.trace.measures import BREAKDOWNS, RUN_FACTS, RUN_MEASURES
from roamcast.trace.recorder import BATCH_ROWS, Recorder
from roamcast.trace.summary import COURSES, DEFINITIONS, definitions_digest, measure_rows, summarise
from roamcast.world.scenario import Run, Scenario, Workload
from roamcast.world.simulator import simulate

SCENARIO = Scenario(nodes=20, area_m=(700, 700), duration_s=12, workload=Workload(utility="50ms"))


def stored(recorder: Recorder) -> dict[str, dict[Any, float]]:
    """Measure -> key or second -> value."""
    found: dict[str, dict[Any, float]] = defaultdict(dict)
    for row in measure_rows(recorder).table().to_pylist():
        assert row["kind"] == "measure"
        assert row["run_id"] == recorder.run_id
        key = row["t"] if row["detail"] in COURSES else row["category"]
        assert key not in found[row["detail"]]
        found[row["detail"]][key] = row["value"]
    return found


def test_stored_rows_say_what_the_summary_says() -> None:
    recorder = simulate(Run(scenario=SCENARIO)).recorder
    summary, rows = summarise(recorder), stored(recorder)
    for name in [*RUN_FACTS, *RUN_MEASURES]:
        assert rows.get(name, {}).get(None) == summary[name], name
    for name in BREAKDOWNS:
        assert rows.get(name, {}) == summary[name], name
    assert rows[DEFINITIONS] == {definitions_digest(): None}


@pytest.mark.parametrize("raw_frames", [False, True])
def test_a_recorder_and_its_table_have_the_same_summary(raw_frames: bool) -> None:
    busy = msgspec.structs.replace(SCENARIO, workload=Workload(rate_per_s=80, utility="50ms"))
    recorder = simulate(Run(scenario=busy), raw_frames=raw_frames).recorder
    assert len(recorder) > BATCH_ROWS or not raw_frames, "rows of several batches"
    assert summarise(recorder) == summarise(recorder.table())


def test_stored_courses_add_up_to_the_totals() -> None:
    recorder = simulate(Run(scenario=SCENARIO)).recorder
    summary, rows = summarise(recorder), stored(recorder)
    assert sum(rows["expected_at"].values()) == summary["expected"]
    assert sum(rows["delivered_at"].values()) == summary["delivered"]
    assert sum(rows["frames_at"].values()) == summary["frames_total"]
    assert all(5 <= second < 12 and second == int(second) for second in rows["expected_at"])


def test_an_empty_trace_has_rows_too() -> None:
    found = stored(simulate(Run(scenario=Scenario(nodes=1, duration_s=1))).recorder)
    assert found["publications"] == {None: 0}
    assert "delivery_ratio" not in found
