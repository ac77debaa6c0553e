"""The figures of the Opportunistic Overlays paper: what their statistics say, and what they read from a trace."""

from functools import partial

import msgspec
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from roamcast.emulator.emulation import require_emulable
from roamcast.errors import ConfigurationError
from roamcast.papers.catalogue import figures_named
from roamcast.papers.figure import Figure, Values
from roamcast.papers.overlays import FIGURES
from roamcast.papers.overlays_brokers import mean_path, path_course, topology_kbps
from roamcast.papers.overlays_floodwatch import SEEDS, STAGES, in_stage_order, latency_by_stage
from roamcast.papers.overlays_load import maximum_load
from roamcast.papers.overlays_setting import (
    LARGEST_GAP,
    OPPORTUNISTIC,
    PUBLISHED,
    STATIC,
    Measure,
    flat,
    share_below,
    with_largest_gaps,
    without_gaps,
)
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.workload import Publish, Subscribe, agenda

BY_ID = {figure.id: figure for figure in FIGURES}


def measured(spark: SparkSession, measure: Measure, *records: Record) -> dict[object, float]:
    """What a measure makes of these rows, by x if it has one."""
    recorder = Recorder("run")
    for record in records:
        recorder.add(record)
    rows = measure(spark.createDataFrame(recorder.table())).collect()
    return {row.asDict().get("x"): row["value"] for row in rows}


def test_every_figure_of_the_evaluation_is_there() -> None:
    simulated = [figure.id for figure in FIGURES if figure.emulation is None]
    assert simulated == [f"overlay-{number}" for number in (7, 8, 9, 10, 11, 12, 13, 14, 16, 17)]


def test_what_the_paper_measured_on_machines_can_be_emulated() -> None:
    emulated = [figure for figure in FIGURES if figure.emulation is not None]
    assert [figure.id for figure in emulated] == [f"overlay-{number}-emulated" for number in (13, 14, 16, 17)]
    assert figures_named("overlay-13", "emulator") == [BY_ID["overlay-13-emulated"]]
    assert figures_named("overlay-13") == [BY_ID["overlay-13"]]
    with pytest.raises(ConfigurationError, match="'overlay-7' is unknown on the emulator"):
        figures_named("overlay-7", "emulator")
    for figure in emulated:
        for contender in figure.quick["protocols"]:
            settings = {name: value for name, value in contender.items() if name not in ("name", "label")}
            scenario = msgspec.convert(figure.quick["scenario"], Scenario)
            require_emulable(Run(scenario=scenario, parameters=settings, protocol="overlays"))
            assert settings["unicast"] == "aodv"
            assert "runoff" in str(settings["modulator"])


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_contenders_of_a_campaign_are_told_apart(figure: Figure) -> None:
    for tables in (figure.quick, figure.paper_scale):
        labels = [contender["label"] for contender in tables["protocols"]]
        assert len(set(labels)) == len(labels)


def test_statistics_of_curves() -> None:
    values: Values = {OPPORTUNISTIC: {1.0: 4.0, 2.0: 5.0}, STATIC: {1.0: 6.0, 2.0: 5.0}}
    assert share_below(values, OPPORTUNISTIC, STATIC) == 0.5
    assert flat({"a": {1.0: 3.0}, "b": {1.0: 1.0, 2.0: 2.0}})["a"] == {1.0: 3.0, 2.0: 3.0}


def test_the_claims_about_path_lengths_ask_for_the_papers_numbers() -> None:
    as_reported: Values = {OPPORTUNISTIC: {25.0: 4.17}, STATIC: {25.0: 6.06}, "network": {25.0: 2.36}}
    as_bad_as_static: Values = {**as_reported, OPPORTUNISTIC: {25.0: 6.06}}
    claims = BY_ID["overlay-7"].claims
    assert all(claim.statistic(as_reported) in claim.region for claim in claims)
    assert [claim.statistic(as_bad_as_static) in claim.region for claim in claims] == [True, False, True, False]


def test_paths_among_brokers_come_from_probes(spark: SparkSession) -> None:
    probe = partial(Record, kind="structure", category="path", detail="")
    records = [
        probe(t=10.0, node=1, peer=2, value=4.0),
        probe(t=49.0, node=2, peer=1, value=6.0),
        probe(t=60.0, node=2, peer=1, value=3.0),
        Record(10.0, "structure", 1, value=9.0, category="load", detail=""),
    ]
    assert measured(spark, path_course, *records) == {25.0: 5.0, 75.0: 3.0}
    assert measured(spark, mean_path, *records)[None] == pytest.approx(13 / 3)


def test_overhead_counts_rows_of_topology_tables_after_the_start(spark: SparkSession) -> None:
    frame = partial(Record, kind="frame", count=1, category="maintenance")
    records = [
        frame(t=5.0, bytes=99_999, detail="TopologyRows"),
        frame(t=70.0, bytes=15_000, detail="TopologyRows"),
        frame(t=75.0, bytes=5_000, detail="TopologyRows"),
        frame(t=80.0, bytes=77_777, detail="Seek"),
        Record(160.0, "end", count=100),
    ]
    assert measured(spark, topology_kbps, *records)[None] == pytest.approx(20_000 * 8 / 1000 / 40 / 100)


def test_the_largest_gap_is_that_of_each_run() -> None:
    courses = {
        (1, STATIC): (8.0, 6.0),
        (1, OPPORTUNISTIC): (3.0, 4.0),
        (2, STATIC): (5.0, 9.0),
        (2, OPPORTUNISTIC): (4.0, 2.0),
    }
    found = pd.DataFrame(
        [
            {"curve": curve, "x": x, "seed": seed, "value": value}
            for (seed, curve), course in courses.items()
            for x, value in zip((25.0, 75.0), course, strict=True)
        ]
    )
    gaps = with_largest_gaps(found, OPPORTUNISTIC, STATIC)
    assert gaps[gaps["curve"] == LARGEST_GAP]["value"].tolist() == [5.0, 7.0]
    assert without_gaps({LARGEST_GAP: {0.0: 6.0}, STATIC: {25.0: 1.0}}) == {STATIC: {25.0: 1.0}}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_figures_are_made_with_the_papers_behaviour(figure: Figure) -> None:
    own = {"discovery_period_s"}  # the experiments set it
    for tables in (figure.quick, figure.paper_scale):
        for contender in tables["protocols"]:
            assert {name: contender[name] for name in PUBLISHED if name not in own} == {
                name: value for name, value in PUBLISHED.items() if name not in own
            }


def test_the_maximum_load_is_that_of_any_broker_at_any_time(spark: SparkSession) -> None:
    load = partial(Record, kind="structure", category="load", detail="")
    records = [
        load(t=2.0, node=1, value=1.0),  # at the start
        load(t=22.0, node=1, value=0.2),
        load(t=22.0, node=2, value=0.6),
        load(t=24.0, node=1, value=0.4),
        load(t=24.0, node=2, value=0.1),
    ]
    assert measured(spark, maximum_load, *records)[None] == pytest.approx(0.6)


def test_latency_belongs_to_the_topology_in_which_the_event_was_published(spark: SparkSession) -> None:
    delivered = partial(Record, kind="delivered", node=2, peer=0, hops=2)
    records = [
        delivered(t=100.5, value=0.5),
        delivered(t=210.0, value=0.2),  # 10 s into a new topology: not settled
        delivered(t=400.5, value=1.5),  # published in the one before
        delivered(t=700.3, value=0.3),
    ]
    assert measured(spark, latency_by_stage, *records) == {"A-B-C": 500.0, "A-B-C-A": 1500.0, "B-A-C": 300.0}
    assert list(in_stage_order({"a": {"B-A-C": 1.0, "A-B-C": 2.0}})["a"]) == ["A-B-C", "B-A-C"]
    assert len(STAGES) == 4


def test_the_flood_watchs_seeds_make_a_the_producer_and_c_the_consumer() -> None:
    scenario = Scenario(
        nodes=3,
        duration_s=800.0,
        mobility=Mobility(model="contacts", contacts=((0, 1, 0.0, 800.0),)),
        workload=Workload(publishers=1, subscribers=1, rate_per_s=0.2, selectivity=1.0),
    )
    for seed in SEEDS:
        actions = agenda(scenario, seed)
        assert {action.node for action in actions if isinstance(action, Publish)} == {0}
        assert {action.node for action in actions if isinstance(action, Subscribe)} == {2}
