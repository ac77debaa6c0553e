"""The measures of a run: by hand, and equal to the single-run summary for every measure."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from roamcast.analysis.cost import breakdowns
from roamcast.analysis.evaluation import evaluate
from roamcast.analysis.measures import measure_runs
from roamcast.analysis.relations import SparkRelations, contents
from roamcast.trace.evaluation import Evaluator
from roamcast.trace.expressions import col, count
from roamcast.trace.measures import RUN_MEASURES
from roamcast.trace.relations import TraceRelations
from roamcast.trace.schema import Record
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

RUNS = {
    "static": Run(scenario=Scenario(nodes=20, area_m=(500, 500), duration_s=15, mobility=Mobility(model="static"))),
    "resubscribing and failing": Run(
        scenario=Scenario(
            nodes=25,
            area_m=(700, 700),
            duration_s=20,
            workload=Workload(resubscribe_period_s=4, subscriptions_per_node=3),
            faults=Faults(crash_share=0.1, return_share=0.2, return_after_s=4, join_share=0.1, leave_share=0.1),
        ),
        protocol="gossip",
        seed=3,
    ),
    "topics": Run(
        scenario=Scenario(
            nodes=20,
            area_m=(600, 600),
            duration_s=15,
            radio=Ideal(loss=0.1),
            workload=Workload(language="topics", subscriptions_per_node=2),
        ),
        seed=5,
    ),
    "deadline": Run(
        scenario=Scenario(
            nodes=20,
            area_m=(900, 900),
            duration_s=15,
            workload=Workload(utility="8ms"),
        ),
        seed=2,
    ),
    "utility curve": Run(
        scenario=Scenario(
            nodes=20,
            area_m=(900, 900),
            duration_s=15,
            workload=Workload(utility="4ms:1 10ms:0.5 10ms:0.25 1s:0"),
        ),
        seed=2,
    ),
    "nobody listens": Run(scenario=Scenario(nodes=3, duration_s=12, workload=Workload(subscribers=0))),
}


@pytest.fixture(scope="module")
def traces() -> Any:
    return {name: simulate(run).recorder.table() for name, run in RUNS.items()}


@pytest.fixture(scope="module")
def awkward(rows: Any) -> Any:
    """Duplicates at the same instant, deliveries nobody asked for, of events nobody published, drops and losses."""
    return rows.table(
        "awkward",
        [
            rows.subscribed(0, 1, "0..10"),
            rows.subscribed(0, 1, "5..20"),
            rows.subscribed(0, 2, "0..10"),
            rows.published(1, 0, 1, 7, [0, 2, -1]),
            rows.published(2, 0, 2, 15, [0, 1, 1]),
            rows.delivered(1.5, 1, 1, 0.5, 3),
            rows.delivered(1.5, 1, 1, 0.5, 2),
            rows.delivered(1.7, 1, 1, 0.7, 1),
            rows.delivered(2.1, 2, 2, 0.1, 1),
            rows.delivered(2.2, 2, 99, 0.1, 1),
            rows.delivered(1.6, 2, 1, 0.6, 4),
            Record(1, "frame", value=0.25, bytes=100, count=4, category="maintenance", detail="Hello"),
            Record(1, "frame", value=0.5, bytes=300, count=6, category="publish_subscribe", detail="Flood"),
            Record(3, "load", 0, value=0.5, bytes=1, count=1, category="x", detail="Flood"),
            Record(3, "load", 1, value=0.25, bytes=1, count=1, category="x", detail="Flood"),
            Record(3, "lost", count=5, detail="collision"),
            Record(2, "dropped", 1, event_id=1, detail="too-old"),
            rows.ended(3, 3),
        ],
    )


@pytest.fixture(scope="module")
def measured(spark: SparkSession, traces: Any, awkward: Any) -> Any:
    trace = spark.createDataFrame(pa.concat_tables([*traces.values(), awkward]))
    has = contents(trace)
    assert has.languages == ("intervals", "topics")
    return {row.run_id: row for row in measure_runs(trace, has=has).collect()}


def equal(ours: Any, theirs: Any) -> Any:
    return ours == theirs if ours is None or theirs is None else ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [*RUNS, "awkward"])
def test_every_measure_equals_the_summary_of_the_run(traces: Any, awkward: Any, measured: Any, name: Any) -> None:
    table = awkward if name == "awkward" else traces[name]
    summary, row = summarise(table), measured[table["run_id"][0].as_py()]
    for measure in [*RUN_MEASURES, "nodes", "duration_s"]:
        assert equal(row[measure], summary[measure]), measure


def test_a_new_measure_is_one_declaration(spark: SparkSession, traces: Any, awkward: Any) -> None:
    """Drops per publication, a measure that a user might add: the same over one run and on Spark, with no other
    code."""
    declared = {"drops_per_publication": count("dropped", col("detail").equals("too-old")) / count("published")}
    trace = spark.createDataFrame(pa.concat_tables([*traces.values(), awkward]))
    rows = evaluate(SparkRelations(trace), trace.select("run_id").distinct(), declared).collect()
    found = {row.run_id: row.drops_per_publication for row in rows}
    assert found["awkward"] == 0.5
    for table in [*traces.values(), awkward]:
        alone = Evaluator(TraceRelations.of_trace(table)).value(declared["drops_per_publication"])
        assert equal(found[table["run_id"][0].as_py()], alone)


def test_timeliness_looks_at_expected_pairs(measured: Any, traces: Any) -> None:
    row = measured[traces["deadline"]["run_id"][0].as_py()]
    assert 0 < row.within_own == row.utility_ratio < row.delivery_ratio
    assert row.within_100ms <= row.within_250ms <= row.within_1s <= row.delivery_ratio
    curve = measured[traces["utility curve"]["run_id"][0].as_py()]
    assert 0 < curve.utility_ratio < curve.within_own <= curve.within_1s
    without = measured[traces["static"]["run_id"][0].as_py()]
    assert (without.within_own, without.utility_ratio) == (None, None)


def test_by_hand(measured: Any) -> None:
    row = measured["awkward"]
    assert (row.publications, row.expected, row.delivered) == (2, 3, 2)
    assert row.delivery_ratio == pytest.approx(2 / 3)
    assert (row.expected_reachable, row.delivered_reachable) == (2, 1)  # no path led to node 2 when 1 was published
    assert (row.unexpected, row.duplicates) == (2, 2)
    assert row.latency_ms_mean == pytest.approx(550)
    assert (row.latency_ms_p50, row.latency_ms_p95) == (500, 600)
    assert row.hops_mean == 3  # 2, the fewest at the first instant, and 4
    assert row.stretch_mean == 1
    assert row.control_frames_share == pytest.approx(0.4)
    assert row.load_fairness == pytest.approx(0.75**2 / (3 * (0.5**2 + 0.25**2)))


def test_breakdowns_equal_the_summary_of_the_run(spark: SparkSession, traces: Any, awkward: Any) -> None:
    trace = spark.createDataFrame(pa.concat_tables([*traces.values(), awkward]))
    ours: dict[tuple[str, str], dict[str, float]] = {}
    for row in breakdowns(trace).collect():
        ours.setdefault((row.run_id, row.measure), {})[row.key] = row.value
    for table in [*traces.values(), awkward]:
        summary = summarise(table)
        run_id = table["run_id"][0].as_py()
        for measure in ("frames", "bytes", "airtime_s", "frames_by_category", "frames_lost", "dropped"):
            assert ours.get((run_id, measure), {}) == pytest.approx(summary[measure]), measure


def test_the_measures_cover_all_single_numbers_of_a_summary(awkward: Any) -> None:
    numbers = {name for name, value in summarise(awkward).items() if not isinstance(value, dict)}
    assert numbers - {"nodes", "duration_s"} <= set(RUN_MEASURES)
