"""Section 4: from traces to the values of figures 3(a) to 3(d)."""

from functools import partial
from itertools import product
from math import dist

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from roamcast.papers.figure import Values
from roamcast.papers.georendezvous import (
    DIRECT,
    FIGURES,
    MANY,
    ONE,
    SIDE_M,
    STEADY_S,
    length_ratio,
    overheads,
    path_lengths,
    range_for_degree,
    tree_lengths,
)
from roamcast.protocols.api import Point, Site
from roamcast.protocols.georendezvous.cells import CellGrid
from roamcast.seeds import derive
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record


@pytest.mark.parametrize("nodes", [80, 600])
def test_a_node_has_45_neighbours_on_average(nodes: int) -> None:
    random = derive(nodes, "degree")
    range_m = range_for_degree(nodes)
    degrees = []
    for _ in range(12 if nodes == 80 else 2):
        places = [(random.random() * SIDE_M, random.random() * SIDE_M) for _ in range(nodes)]
        links = sum(dist(a, b) <= range_m for a, b in product(places, places)) - nodes
        degrees.append(links / nodes)
    assert sum(degrees) / len(degrees) == pytest.approx(45, rel=0.05)


def test_at_that_density_a_cell_has_about_two_members() -> None:
    grid = CellGrid(Site(SIDE_M, SIDE_M, range_for_degree(3000)))
    assert 1.8 < 3000 / (grid.columns * grid.rows) < 2.2


def traced(session: SparkSession, records: list[Record]) -> DataFrame:
    recorder = Recorder("run")
    for record in records:
        recorder.add(record)
    return session.createDataFrame(pa.Table.from_batches(recorder.batches()))


def test_a_path_counts_once_however_many_events_took_it(spark: SparkSession) -> None:
    trace = traced(
        spark,
        [
            Record(5.0, "delivered", 7, 1, event_id=11, value=0.01, hops=6),
            Record(6.0, "delivered", 7, 1, event_id=12, value=0.01, hops=8),
            Record(6.0, "delivered", 8, 1, event_id=12, value=0.01, hops=3),
            Record(6.0, "delivered", 9, 1, event_id=12, value=0.01, hops=100),  # its probe got lost
            Record(5.1, "structure", 1, 7, value=5.0, category="direct"),
            Record(5.1, "structure", 1, 8, value=1.0, category="direct"),
            Record(5.1, "structure", 1, 8, value=4.0, category="selected"),
        ],
    )
    (row,) = path_lengths(trace).collect()
    assert (row["through"], row["direct"]) == (5.0, 3.0)


def test_a_tree_is_measured_when_pruning_is_over(spark: SparkSession) -> None:
    early, late = STEADY_S - 1, STEADY_S + 1
    trace = traced(
        spark,
        [
            Record(early, "published", 1, event_id=11),
            Record(early, "frame", count=500, detail="Notification"),
            Record(late, "published", 1, event_id=12),
            Record(late, "published", 1, event_id=13),
            Record(late, "frame", count=10, detail="Notification"),
            Record(late, "frame", count=20, detail="ForwardedNotification"),
            Record(late, "frame", count=999, detail="Beacon"),
        ],
    )
    (row,) = tree_lengths(trace).collect()
    assert row["length"] == 15.0


def test_what_the_figures_show() -> None:
    through: Values = {"8 points": {600.0: 9.0}, DIRECT + "8 points": {600.0: 6.0}}
    assert overheads(through) == {"8 points": {600.0: 0.5}}
    assert length_ratio({MANY: {2.0: 12.0}, ONE: {2.0: 16.0}}) == {"8 points / 1 point": {2.0: 0.75}}


@pytest.mark.parametrize(("subscribers", "ratio"), [(1, 0.62), (4, 0.86), (8, 0.82), (32, 0.61)])
def test_straight_lines_alone_give_the_ratios_that_figure_3d_finds(subscribers: int, ratio: float) -> None:
    random = derive(subscribers, "straight lines")

    def place() -> Point:
        return random.random(), random.random()

    def detour(point: Point, publisher: Point, subscriber: Point) -> float:
        return dist(publisher, point) + dist(point, subscriber)

    many = one = 0.0
    for _ in range(600):
        publisher, points, alone = place(), [place() for _ in range(8)], place()
        used = set()
        one += dist(publisher, alone)
        for subscriber in (place() for _ in range(subscribers)):
            nearest = sorted(points, key=partial(dist, subscriber))[:2]
            chosen = min(nearest, key=partial(detour, publisher=publisher, subscriber=subscriber))
            used.add(chosen)
            many += dist(chosen, subscriber)
            one += dist(alone, subscriber)
        many += sum(dist(publisher, point) for point in used)
    assert many / one == pytest.approx(ratio, abs=0.05)


def test_paper_scale_is_the_papers() -> None:
    for figure in FIGURES:
        tables = figure.campaign("paper")
        assert len(tables["seeds"]) == figure.runs_of_paper == 200
        assert tables["scenario"]["radio"]["model"] == "ideal"
    sizes = [size["scenario.nodes"] for size in FIGURES[1].campaign("paper")["grid"]["size"]]
    assert (min(sizes), max(sizes)) == (80, 3000)
