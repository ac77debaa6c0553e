"""The figures of the Pub/Sub ODMRP paper: what their statistics say, and what they read from a trace."""

import pytest
from pyspark.sql import SparkSession

from roamcast.papers.figure import Values
from roamcast.papers.odmrp import (
    BYTES,
    CHANNELS,
    DATA,
    DIVIDED,
    FALSE,
    FIGURE_10,
    FIGURE_BLOOM,
    FILTERING,
    FRAMES,
    GRAPH,
    KMEANS,
    LEAST,
    MIXED,
    NARROW,
    channels_per_publisher,
    saved,
    taste_of,
    to_graph,
    to_usual_size,
)
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record


def test_savings_are_against_the_graph() -> None:
    values: Values = {f"{FRAMES}, {DIVIDED}": {GRAPH: 200.0, KMEANS: 150.0, LEAST: 250.0}}
    assert saved(values, f"{FRAMES}, {DIVIDED}", KMEANS, GRAPH) == 0.25
    assert to_graph(values) == {f"{FRAMES}, {DIVIDED}": {GRAPH: 1.0, KMEANS: 0.75, LEAST: 1.25}}


def test_tastes_are_told_apart() -> None:
    assert [taste_of(0.6, 0.6), taste_of(0.0, 0.6), taste_of(0.0, 0.01)] == [DIVIDED, MIXED, NARROW]


def test_every_claim_can_fail() -> None:
    """The graph has one channel by definition, so that K-means has more is no claim."""
    labels = [f"{measure}, {taste}" for measure in (FRAMES, BYTES) for taste in (DIVIDED, MIXED, NARROW)]
    contenders = (LEAST, GRAPH, KMEANS, GRAPH + FILTERING, KMEANS + FILTERING)
    for claim in FIGURE_10.claims:
        verdicts = set()
        for better in contenders:
            values: Values = {label: {x: 50.0 if x == better else 100.0 for x in contenders} for label in labels}
            verdicts.add(claim.statistic(values) in claim.region)
        assert verdicts == {True, False}, claim.statement


def test_sizes_are_shown_against_the_usual_one() -> None:
    values: Values = {
        FALSE: {64.0: 0.4, 256.0: 0.1},
        DATA: {64.0: 300.0, 256.0: 200.0},
        "bytes in total": {64.0: 50.0, 256.0: 100.0},
        "delivery ratio": {64.0: 1.0, 256.0: 1.0},
    }
    shown = to_usual_size(values)
    assert shown[DATA] == {64.0: 1.5, 256.0: 1.0}
    assert shown[FALSE] == values[FALSE]
    assert [claim.statistic(values | {DATA: {32.0: 400.0, 256.0: 200.0}}) for claim in FIGURE_BLOOM.claims] == [
        pytest.approx(0.25),
        pytest.approx(0.5),
        1.0,
    ]


def test_channels_count_as_they_are_at_the_end(spark: SparkSession) -> None:
    recorder = Recorder("run")
    for t, node, value in ((1.0, 3, 1.0), (6.0, 3, 3.0), (2.0, 5, 2.0)):
        recorder.add(Record(t, "structure", node, value=value, category="channels", detail=""))
    recorder.add(Record(7.0, "structure", 9, value=1.0, category="broker"))
    (row,) = channels_per_publisher(spark.createDataFrame(recorder.table())).collect()
    assert row[CHANNELS] == 2.5
