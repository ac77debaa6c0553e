"""The figures of the GeoRendezvous paper (section 4): how much longer the path through a rendezvous point is.

What is compared. The paper compares the hops through a rendezvous cell with those of "a direct path". Both are taken
here as Cell Hash Routing goes: for every pair of publisher and subscriber, the hops of its notifications from end to
end, and the hops of a probe that the same routing carries straight from one to the other. Shortest paths in the radio
network would be another yardstick: they are shorter by a factor of more than two, because a step from cell to cell
covers at most the range and on average well under half of it; against them no choice of points could come close.

Every figure runs with the paper's own behaviour, `AS_PUBLISHED`.

Settings. A square with uniformly placed nodes, no collisions, the range such that a node has 45 neighbours on average
(nodes at the border counted: `range_for_degree`). 20 paths per network are those between 4 publishers and 5
subscribers. Each subscriber follows one of 20 topics, and each publisher publishes on all of them, so the positions of
points are averaged over topics as well as over networks. Keys lie anywhere in the square, up to the border.
"""

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind, only_runs, read_traces
from roamcast.campaign.store import Store
from roamcast.papers.figure import Claim, Figure, Tables, Values, X, at_least, at_most, between, largest
from roamcast.papers.georendezvous_theorem import theorem_figure

SIDE_M = 1000.0
DEGREE = 45
ALL = 64  # more points than there are: a subscriber tries all
STEADY_S = 14.0  # by now every topic has had an event, so its subscribers have pruned

PAPER_SEEDS = 200

AS_PUBLISHED: Tables = {
    "graph": "cells",  # Cell Hash Routing
    "margin_cells": 0.0,
    "nearest_points": 2,
    "filter_at_rendezvous": False,  # topics need none
    "notification_tree": False,
    "link_failures_max": 1,
    "beacon_period_s": 5.0,
    "refresh_period_s": 60.0,
    "advertisement_period_s": 60.0,
}
"""The paper's own behaviour, and periods that suit networks that stand still for half a minute."""


def range_for_degree(nodes: int, degree: float = DEGREE) -> float:
    """The radio range, in metres, at which a node placed at random in the square has `degree` neighbours on average."""
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        # the chance that two uniform points of the unit square are within `share` of each other, for up to its side
        within = pi * share**2 - 8 / 3 * share**3 + share**4 / 2
        low, high = (share, high) if (nodes - 1) * within < degree else (low, share)
    return round(low * SIDE_M, 3)


def _size(nodes: int) -> Tables:
    return {"scenario.nodes": nodes, "scenario.radio.range_m": range_for_degree(nodes)}


def _campaign(seeds: int, grid: Tables, protocols: list[Tables], scenario: Tables) -> Tables:
    shared: Tables = {"name": "georendezvous"} | AS_PUBLISHED
    common: Tables = {
        "area_m": [SIDE_M, SIDE_M],
        "mobility": {"model": "static"},
    }
    return {
        "protocols": [shared | protocol for protocol in protocols],
        "seeds": seeds,
        "scenario": common | scenario,
        "grid": grid,
    }


def _paths(seeds: int, grid: Tables, nodes: int = 600, **parameters: Any) -> Tables:
    """20 paths per network, and the direct path of each."""
    scenario: Tables = {
        "nodes": nodes,
        "duration_s": 24.0,
        "radio": {"model": "ideal", "range_m": range_for_degree(nodes)},
        "workload": {
            "language": "topics",
            "publishers": 4,
            "subscribers": 5,
            "topic_depth": 1,
            "topic_fanout": 20,
            "selectivity": 0.05,
            "rate_per_s": 3.0,
            "start_s": 3.0,
            "tail_s": 1.0,
        },
    }
    return _campaign(seeds, grid, [{"probe_direct_path": True} | parameters], scenario)


def _trees(seeds: int, subscribers: list[int]) -> Tables:
    """The trees of four publishers to a growing number of subscribers, with one point and with eight."""
    scenario: Tables = {
        "nodes": 600,
        "duration_s": 24.0,
        "radio": {"model": "ideal", "range_m": range_for_degree(600)},
        "workload": {
            "language": "topics",
            "publishers": 4,
            "topic_depth": 1,
            "topic_fanout": 20,
            "selectivity": 0.95,
            "rate_per_s": 8.0,
            "start_s": 3.0,
            "tail_s": 1.0,
        },
    }
    tree: Tables = {"notification_tree": True, "tree_progress_share": 1.0, "legs_max": 64}  # a shared link counts once
    protocols: list[Tables] = [
        tree | {"label": MANY, "rendezvous_points": 8, "nearest_points": 2},
        tree | {"label": ONE, "rendezvous_points": 1, "nearest_points": 1},
    ]
    return _campaign(seeds, {"scenario.workload.subscribers": subscribers}, protocols, scenario)


# -- From traces to values -----------------------------------------------------------------------------------------

DIRECT = "direct, "
MANY, ONE = "8 points", "1 point"


def path_lengths(trace: DataFrame) -> DataFrame:
    """Per run the mean hops of its paths: `through` a point, and `direct`. Paths without an event are left out."""
    through = (
        of_kind(trace, "delivered")
        .groupBy(RUN, f.col("peer").alias("publisher"), f.col("node").alias("subscriber"))
        .agg(f.avg("hops").alias("through"))
    )
    direct = (
        of_kind(trace, "structure")
        .where(f.col("category") == "direct")
        .groupBy(RUN, f.col("node").alias("publisher"), f.col("peer").alias("subscriber"))
        .agg(f.avg("value").alias("direct"))
    )
    pairs = through.join(direct, [RUN, "publisher", "subscriber"])
    return pairs.groupBy(RUN).agg(f.avg("through").alias("through"), f.avg("direct").alias("direct"))


def tree_lengths(trace: DataFrame) -> DataFrame:
    """Per run the frames that carry one event, once pruning is over: the `length` of its tree in links. Every link
    of a tree takes one frame, since nothing collides."""
    is_notification = f.col("detail").isin("Notification", "ForwardedNotification")
    steady = trace.where(f.col("t") >= STEADY_S)
    frames = of_kind(steady, "frame").where(is_notification).groupBy(RUN).agg(f.sum("count").alias("frames"))
    events = of_kind(steady, "published").groupBy(RUN).agg(f.count(f.lit(1)).alias("events"))
    return frames.join(events, RUN).select(RUN, (f.col("frames") / f.col("events")).alias("length"))


def path_rows(x: str, curve: str, unit: str, session: SparkSession, store: Store) -> pd.DataFrame:
    """For each value of the setting `curve`, the lengths through a point and direct, over the setting `x`."""
    runs = _planned(session, store, path_lengths)
    label = runs[curve].astype(str) + unit
    through = runs.assign(curve=label, x=runs[x].astype(float), value=runs["through"])
    direct = runs.assign(curve=DIRECT + label, x=runs[x].astype(float), value=runs["direct"])
    return pd.concat([through, direct], ignore_index=True)[["curve", "x", "seed", "value"]]


def tree_rows(session: SparkSession, store: Store) -> pd.DataFrame:
    runs = _planned(session, store, tree_lengths)
    return runs.assign(curve=runs["protocol"], x=runs["subscribers"].astype(float), value=runs["length"])[
        ["curve", "x", "seed", "value"]
    ]


def _planned(session: SparkSession, store: Store, measure: Callable[[DataFrame], DataFrame]) -> pd.DataFrame:
    plan = session.createDataFrame(store.plan().drop_columns("run"))
    trace = only_runs(read_traces(session, store.trace), plan)
    return plan.join(measure(trace), RUN).toPandas()


def overheads(values: Values) -> Values:
    """By which share each path is longer than its direct path."""
    return {
        curve: {x: hops / values[DIRECT + curve][x] - 1 for x, hops in course.items()}
        for curve, course in values.items()
        if not curve.startswith(DIRECT)
    }


def _overhead(values: Values, curve: str, x: X) -> float:
    return values[curve][x] / values[DIRECT + curve][x] - 1


def _largest(values: Values) -> X:
    """The size of the largest networks."""
    return max(values["8 points"], key=float)


def length_ratio(values: Values) -> Values:
    """The tree through eight points as a share of the one through a single point."""
    return {"8 points / 1 point": {x: length / values[ONE][x] for x, length in values[MANY].items()}}


def _ratio(values: Values, x: float) -> float:
    return values[MANY][x] / values[ONE][x]


# -- The figures ---------------------------------------------------------------------------------------------------

_POINTS = "georendezvous.rendezvous_points"
_NEAREST = "georendezvous.nearest_points"


def _figure_3a() -> Figure:
    def campaign(seeds: int, sizes: list[int]) -> Tables:
        grid: Tables = {"size": [_size(nodes) for nodes in sizes], _POINTS: [1, 2, 4, 6, 8, 12, 16]}
        return _paths(seeds, grid, nearest_points=ALL)

    curve = "600 nodes"
    return Figure(
        id="geo-3a",
        title="Overhead of the path through a rendezvous point, by number of points",
        paper="georendezvous",
        section="section 4, figure 3(a)",
        setting="Uniform static nodes with 45 neighbours each, no collisions. Every subscriber tries all points and "
        "keeps the shortest path; the direct path is that of Cell Hash Routing.",
        quick=campaign(PAPER_SEEDS, [600]),
        sparse=campaign(PAPER_SEEDS, [80, 600, 3000]),
        paper_scale=campaign(PAPER_SEEDS, [80, 600, 1200, 3000]),
        quick_note="Networks of 600 nodes only.",
        sparse_note="Networks of 80, 600 and 3000 nodes.",
        rows=partial(path_rows, "rendezvous_points", "nodes", " nodes"),
        x="rendezvous_points",
        shown=overheads,
        x_title="rendezvous points",
        y_title="longer than the direct path",
        y_format="%",
        claims=(
            Claim(
                "Eight points give most of what sixteen give: of the overhead that sixteen save over one, eight save "
                "nearly all",
                reported="the benefit of more than 8 cells is limited",
                statistic=lambda values: (
                    (_overhead(values, curve, 1) - _overhead(values, curve, 8))
                    / (_overhead(values, curve, 1) - _overhead(values, curve, 16))
                ),
                region=at_least(0.85),
            ),
            Claim(
                "With eight points the path is about as long as the direct path",
                reported="similar to a direct path with less than 8 cells",
                statistic=lambda values: _overhead(values, curve, 8),
                region=at_most(0.25),
            ),
        ),
    )


_RARE_TOURS = (
    "A direct path that runs into a bay of empty cells at the border may tour the whole network: in 20 networks of 300 "
    "nodes, 6 of 380 took 51 to 71 hops, the median being 6. With few networks these few decide the mean."
)


def _figure_3b() -> Figure:
    def campaign(seeds: int, sizes: list[int], points: list[int]) -> Tables:
        grid: Tables = {"size": [_size(nodes) for nodes in sizes], _POINTS: points}
        return _paths(seeds, grid, nearest_points=ALL)

    curve = "8 points"
    return Figure(
        id="geo-3b",
        title="Overhead of the path through a rendezvous point, by network size",
        paper="georendezvous",
        section="section 4, figure 3(b)",
        setting="Uniform static nodes with 45 neighbours each at every size, no collisions. Every subscriber tries all "
        "points and keeps the shortest path; the direct path is that of Cell Hash Routing.",
        quick=campaign(PAPER_SEEDS, [80, 300, 600, 1200], [2, 8]),
        sparse=campaign(PAPER_SEEDS, [80, 300, 600, 1200, 3000], [2, 8]),
        paper_scale=campaign(PAPER_SEEDS, [80, 150, 300, 600, 1200, 2000, 3000], [1, 2, 4, 8]),
        quick_note="Up to 1200 nodes, with 2 and 8 points only.",
        sparse_note="Five of seven sizes, with 2 and 8 points only.",
        rows=partial(path_rows, "nodes", "rendezvous_points", " points"),
        x="nodes",
        shown=overheads,
        x_title="nodes",
        y_title="longer than the direct path",
        y_format="%",
        claims=(
            Claim(
                "With eight points the overhead does not grow with the network: the largest against 300 nodes",
                reported="quite stable and largely independent of the network size",
                statistic=lambda values: _overhead(values, curve, _largest(values)) - _overhead(values, curve, 300),
                region=between(-0.08, 0.08),
                finding=_RARE_TOURS,
            ),
            Claim(
                "The number of points decides: at every size from 300 nodes, eight points have less than half the "
                "overhead of two",
                reported="performance is dictated by the number of cells",
                statistic=largest(
                    lambda values: {
                        nodes: _overhead(values, curve, nodes) / _overhead(values, "2 points", nodes)
                        for nodes in values[curve]
                        if float(nodes) >= 300
                    }
                ),
                region=at_most(0.5),
            ),
            Claim(
                "The same holds down to 80 nodes: overhead with eight points, 80 nodes against 600",
                reported="for all network sizes tested, 80 to 3000 nodes",
                statistic=lambda values: _overhead(values, curve, 80) - _overhead(values, curve, 600),
                region=between(-0.08, 0.08),
                finding=_RARE_TOURS,
            ),
        ),
    )


def _figure_3c() -> Figure:
    def campaign(seeds: int, nearest: list[int]) -> Tables:
        return _paths(seeds, {_NEAREST: nearest, _POINTS: [8]})

    curve = "8 points"
    return Figure(
        id="geo-3c",
        title="Overhead when a subscriber tries only the nearest of eight points",
        paper="georendezvous",
        section="section 4, figure 3(c)",
        setting="600 uniform static nodes with 45 neighbours each, no collisions. Subscribers try the nearest 1 to 8 "
        "of 8 points; the direct path is that of Cell Hash Routing.",
        quick=campaign(PAPER_SEEDS, [2, 8]),
        sparse=campaign(PAPER_SEEDS, [1, 2, 3, 4, 8]),
        paper_scale=campaign(PAPER_SEEDS, [1, 2, 3, 4, 5, 6, 7, 8]),
        quick_note="Only the two points that the claims are about.",
        sparse_note="The nearest 5, 6 and 7 are left out.",
        rows=partial(path_rows, "nearest_points", "rendezvous_points", " points"),
        x="nearest_points",
        shown=overheads,
        x_title="nearest points tried",
        y_title="longer than the direct path",
        y_format="%",
        claims=(
            Claim(
                "Two of eight come close to all eight: what the other six would save, as a share of the direct path",
                reported="close to the result of 8 cells",
                statistic=lambda values: _overhead(values, curve, 2) - _overhead(values, curve, 8),
                region=at_most(0.12),
            ),
            Claim(
                "Two of eight stay close to the direct path",
                reported="close to the average direct path",
                statistic=lambda values: _overhead(values, curve, 2),
                region=at_most(0.3),
            ),
        ),
    )


def _figure_3d() -> Figure:
    return Figure(
        id="geo-3d",
        title="Length of the notification tree: eight points against one",
        paper="georendezvous",
        section="section 4, figure 3(d)",
        setting="600 uniform static nodes with 45 neighbours each, no collisions. The length of a tree is the number "
        "of its links, after pruning: a link that several subscribers share counts once. With eight points "
        "subscribers try the nearest two. Four publishers have a tree each; subscribers follow 19 of 20 topics, so "
        "95 % of them receive an event.",
        quick=_trees(PAPER_SEEDS, [2, 4, 8, 32]),
        sparse=_trees(PAPER_SEEDS, [1, 2, 4, 8, 16, 32]),
        paper_scale=_trees(PAPER_SEEDS, [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32]),
        quick_note="Only the four points that the claims are about.",
        sparse_note="Six of twelve numbers of subscribers.",
        rows=tree_rows,
        x="subscribers",
        shown=length_ratio,
        x_title="subscribers",
        y_title="length of the tree, 8 points / 1 point",
        claims=(
            Claim(
                "With few subscribers eight points cost less than one: ratio with two subscribers",
                reported="below 1 with less than 8 subscribers",
                statistic=lambda values: _ratio(values, 2),
                region=at_most(1.0),
            ),
            Claim(
                "Still less with four subscribers",
                reported="below 1 with less than 8 subscribers",
                statistic=lambda values: _ratio(values, 4),
                region=at_most(1.0),
            ),
            Claim(
                "With eight subscribers both cost nearly the same",
                reported="nearly the same near 8 subscribers",
                statistic=lambda values: _ratio(values, 8),
                region=between(0.85, 1.15),
                finding="At eight subscribers the tree through eight points has 13 % fewer links. With straight lines "
                "instead of routes it would be 18 % shorter (a test holds that), so geometry favours eight points at "
                "any number of subscribers. That nearly the same means within 15 % is our reading.",
            ),
            Claim(
                "Beyond, eight points become better and better: by how much the ratio falls from 8 to 32 subscribers",
                reported="increasingly better as subscribers grow",
                statistic=lambda values: _ratio(values, 8) - _ratio(values, 32),
                region=at_least(0.0),
            ),
        ),
    )


def _figure_theorem() -> Figure:
    return theorem_figure(
        [_size(nodes) for nodes in (80, 150, 300, 600)],
        [_size(nodes) for nodes in (80, 600, 3000)],
        [_size(nodes) for nodes in (80, 150, 300, 600, 1200, 2000, 3000)],
        PAPER_SEEDS,
    )


FIGURES: tuple[Figure, ...] = (_figure_3a(), _figure_3b(), _figure_3c(), _figure_3d(), _figure_theorem())
