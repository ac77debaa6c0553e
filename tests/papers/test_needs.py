"""What claims are computed from, and which points of a campaign go on for them."""

import numpy as np
import pandas as pd

from roamcast.campaign.plan import Point
from roamcast.papers.estimate import Observations, judge
from roamcast.papers.figure import Claim, Curve, Values, X, at_least, least
from roamcast.papers.needs import cells_of, places_of, points_at, points_with
from roamcast.world.scenario import Run, Scenario

VALUES: Values = {"a": {1.0: 2.0, 2.0: 3.0}, "b": {1.0: 5.0, 2.0: 4.0}, "c": {1.0: 0.0, 2.0: 1.0}}


def excess_by_x(values: Values) -> dict[X, float]:
    return {x: value - max(values["b"][x], values["c"][x]) for x, value in values["a"].items()}


def test_also_what_is_not_the_largest_now_is_needed() -> None:
    assert cells_of(lambda values: max(course[1.0] for course in values.values()), VALUES) == {
        ("a", 1.0),
        ("b", 1.0),
        ("c", 1.0),
    }


def test_each_place_needs_its_own_values() -> None:
    assert places_of(excess_by_x, VALUES)[2.0] == {("a", 2.0), ("b", 2.0), ("c", 2.0)}


def test_a_statistic_without_its_values_needs_nothing_that_is_there() -> None:
    assert cells_of(lambda values: values["d"][1.0], VALUES) == frozenset()


def point(label: str, **settings: str) -> Point:
    return Point(point=0, place=0, label=label, template=Run(Scenario(), "flooding", {}, 1), settings=settings)


def test_points_are_found_by_contender_and_place() -> None:
    curves = [Curve("a", "somer", "latency_ms_mean"), Curve("b", "odmrp", "latency_ms_mean", where={"alpha": "2"})]
    points = [point("somer", nodes="50"), point("somer", nodes="250"), point("odmrp", nodes="50", alpha="1")]
    assert points_with([("a", 50.0), ("b", 50.0)], curves, "nodes", points) == points[:1]


def test_points_are_found_by_place_alone_where_curves_are_computed() -> None:
    points = [point("somer", nodes="50"), point("odmrp", nodes="50"), point("somer", nodes="250"), point("oracle")]
    assert points_at([("frames", 50.0)], "nodes", points) == points[:2]


def observed(first: float, second: float, seeds_of_second: int) -> Observations:
    random = np.random.default_rng(5)
    rows = [("a", 1.0, seed, first + random.normal(0, 0.5)) for seed in range(1, 17)]
    rows += [("a", 2.0, seed, second + random.normal(0, 0.5)) for seed in range(1, seeds_of_second + 1)]
    return Observations(pd.DataFrame(rows, columns=["curve", "x", "seed", "value"]))


LOOKS = [list(range(1, 9)), list(range(1, 17))]
CLAIM = Claim("both above one", "", least(lambda values: values["a"]), at_least(1.0))


def test_a_place_that_is_clear_needs_no_more_seeds() -> None:
    ((judged, needs),) = judge(observed(1.1, 9.0, 8), [CLAIM], looks=LOOKS[:1], last=False)
    assert judged.verdict == "undecided"
    assert needs is not None
    assert list(needs) == [("a", 1.0)]


def test_a_place_that_stopped_keeps_what_it_had_at_its_last_look() -> None:
    ((before, _),) = judge(observed(9.0, 1.4, 8), [CLAIM], looks=LOOKS[:1], last=False)
    ((after, _),) = judge(observed(9.0, 1.4, 8), [CLAIM], looks=LOOKS, last=False)
    assert after.estimate == before.estimate


def test_a_decided_claim_needs_nothing() -> None:
    ((judged, needs),) = judge(observed(9.0, 9.0, 16), [CLAIM], looks=LOOKS, last=False)
    assert (judged.verdict, needs) == ("holds", frozenset())
