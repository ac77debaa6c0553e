"""What a campaign stores of a run's measures is what its summary says."""

from collections import defaultdict
from typing import Any

import pyarrow as pa

from roamcast.trace.measures import BREAKDOWNS, RUN_FACTS, RUN_MEASURES
from roamcast.trace.schema import SCHEMA
from roamcast.trace.summary import COURSES, DEFINITIONS, definitions_digest, measure_rows, summarise
from roamcast.world.scenario import Run, Scenario, Workload
from roamcast.world.simulator import simulate

SCENARIO = Scenario(nodes=20, area_m=(700, 700), duration_s=12, workload=Workload(utility="50ms"))


def stored(table: pa.Table) -> dict[str, dict[Any, float]]:
    """Measure -> key or second -> value."""
    found: dict[str, dict[Any, float]] = defaultdict(dict)
    for row in pa.Table.from_batches(measure_rows(table), schema=SCHEMA).to_pylist():
        assert row["kind"] == "measure"
        assert row["run_id"] == table["run_id"][0].as_py()
        key = row["t"] if row["detail"] in COURSES else row["category"]
        assert key not in found[row["detail"]]
        found[row["detail"]][key] = row["value"]
    return found


def test_stored_rows_say_what_the_summary_says() -> None:
    table = simulate(Run(scenario=SCENARIO)).recorder.table()
    summary, rows = summarise(table), stored(table)
    for name in [*RUN_FACTS, *RUN_MEASURES]:
        assert rows.get(name, {}).get(None) == summary[name], name
    for name in BREAKDOWNS:
        assert rows.get(name, {}) == summary[name], name
    assert rows[DEFINITIONS] == {definitions_digest(): None}


def test_stored_courses_add_up_to_the_totals() -> None:
    table = simulate(Run(scenario=SCENARIO)).recorder.table()
    summary, rows = summarise(table), stored(table)
    assert sum(rows["expected_at"].values()) == summary["expected"]
    assert sum(rows["delivered_at"].values()) == summary["delivered"]
    assert sum(rows["frames_at"].values()) == summary["frames_total"]
    assert all(5 <= second < 12 and second == int(second) for second in rows["expected_at"])


def test_an_empty_trace_has_rows_too() -> None:
    found = stored(simulate(Run(scenario=Scenario(nodes=1, duration_s=1))).recorder.table())
    assert found["publications"] == {None: 0}
    assert "delivery_ratio" not in found
