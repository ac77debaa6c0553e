"""The looks of `reproduce`: their plan, what they leave of an interval, and how often they are wrong."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from roamcast.analysis.student import CONFIDENCE
from roamcast.papers.estimate import Estimate, Observations, judge, together, verdict
from roamcast.papers.figure import (
    Bounds,
    Claim,
    Extreme,
    Places,
    Statistic,
    Values,
    X,
    at_least,
    at_most,
    largest,
    least,
)
from roamcast.papers.sequential import planned

SEEDS = range(1, 65)
DRAWS = 120
WRONG_MOST = 0.05 + 2 * (0.05 * 0.95 / DRAWS) ** 0.5  # what chance makes of 5 % in this many draws

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def normal(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    network = random.normal(0, 3, n)  # both contenders meet the same network
    return 12 + network + random.normal(0, 1, n), 10 + network + random.normal(0, 1, n)


def skewed(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    network = random.lognormal(0, 0.5, n)
    return 1.2 * network * random.lognormal(0, 0.3, n), network * random.lognormal(0, 0.3, n)


def ratio(values: Values) -> float:
    return values["mine"][1.0] / values["theirs"][1.0]


def sample_of(drawn: tuple[np.ndarray, np.ndarray]) -> Observations:
    rows = [
        (curve, 1.0, seed, value)
        for curve, course in zip(("mine", "theirs"), drawn, strict=True)
        for seed, value in zip(SEEDS, course, strict=True)
    ]
    return Observations(pd.DataFrame(rows, columns=["curve", "x", "seed", "value"]))


def decided(looks: list[Estimate], region: Bounds) -> Estimate:
    """The estimate at the first look that decides the claim, or at the last."""
    so_far = [together(looks[: number + 1]) for number in range(len(looks))]
    return next((found for found in so_far if verdict(found, region) != "undecided"), so_far[-1])


def wrong(draw: Draw, confidence: float, draws: int = DRAWS) -> float:
    """How often a claim that is false by a hair is found to hold, or the interval misses the truth, 1.2."""
    plan = planned(SEEDS)
    random = np.random.default_rng(7)
    failed = 0
    for _ in range(draws):
        sample = sample_of(draw(random, len(SEEDS)))
        looks = [sample.among(plan.seeds[:look]).estimates([ratio], confidence)[0] for look in plan.looks]
        found = [decided(looks, region) for region in (at_least(1.2 + 1e-9), at_most(1.2 - 1e-9))]
        failed += not all(low <= 1.2 <= high for _, low, high in map(bounds, found))
    return failed / draws


def everywhere(values: Values) -> dict[X, float]:
    return values["mine"]


def missed(statistic: Statistic, places: int = 9, seeds: int = 16) -> float:
    """How often the interval of one look misses 1, which the statistic is in truth, as all places are alike."""
    random = np.random.default_rng(11)
    failed = 0
    for _ in range(DRAWS):
        rows = [("mine", float(x), seed, random.normal(1, 0.3)) for x in range(places) for seed in range(seeds)]
        sample = Observations(pd.DataFrame(rows, columns=["curve", "x", "seed", "value"]))
        _, low, high = bounds(sample.estimates([statistic])[0])
        failed += not low <= 1 <= high
    return failed / DRAWS


def missed_in_stages(extreme: Callable[[Places], Extreme], region: Bounds, places: int = 5) -> float:
    """How often the interval misses 1 in the end, if after each look only those places go on that the claim needs."""
    plan = planned(SEEDS)
    random = np.random.default_rng(13)
    claim = Claim("the extreme is about one", "", extreme(everywhere), region)
    failed = 0
    for _ in range(DRAWS):
        course = random.normal(1, 0.3, (places, len(SEEDS)))
        reached = dict.fromkeys(range(places), 0)
        going_on = set(reached)
        for number, look in enumerate(plan.looks, 1):
            reached |= dict.fromkeys(going_on, look)
            rows = [("mine", float(x), s + 1, course[x, s]) for x, end in reached.items() for s in range(end)]
            sample = Observations(pd.DataFrame(rows, columns=["curve", "x", "seed", "value"]))
            looks = [plan.seeds[:each] for each in plan.looks[:number]]
            ((judged, needs),) = judge(sample, [claim], looks=looks, confidence=plan.confidence, last=False)
            assert needs is not None
            going_on = {int(x) for _, x in needs}
            if judged.verdict != "undecided":
                break
        _, low, high = bounds(judged.estimate)
        failed += not low <= 1 <= high
    return failed / DRAWS


def bounds(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.value, estimate.low, estimate.high


@pytest.mark.parametrize("draw", [normal, skewed])
def test_stopping_when_a_claim_seems_decided_keeps_its_promise(draw: Draw) -> None:
    assert wrong(draw, planned(SEEDS).confidence) <= WRONG_MOST


@pytest.mark.parametrize("extreme", [least, largest])
def test_the_extreme_of_several_equal_values_keeps_the_promise(extreme: Callable[[Places], Extreme]) -> None:
    honest = missed(extreme(everywhere))
    assert honest <= WRONG_MOST


@pytest.mark.parametrize(
    ("extreme", "region"), [(least, at_least(0.95)), (largest, at_most(1.05)), (largest, at_least(0.9))]
)
def test_places_that_stop_early_keep_the_promise(extreme: Callable[[Places], Extreme], region: Bounds) -> None:
    assert missed_in_stages(extreme, region) <= WRONG_MOST


def test_an_extreme_taken_without_saying_so_does_not() -> None:
    assert missed(lambda values: min(everywhere(values).values())) > WRONG_MOST


def test_looking_again_and_again_with_plain_intervals_does_not() -> None:
    assert wrong(normal, CONFIDENCE) > WRONG_MOST


@pytest.mark.parametrize(
    ("runs", "looks"),
    [
        (250, (8, 16, 32, 64, 128, 250)),
        (200, (8, 16, 32, 64, 128, 200)),
        (30, (8, 16, 30)),
        (20, (8, 20)),
        (8, (8,)),
        (3, (3,)),
    ],
)
def test_looks_double_and_end_with_the_papers_runs(runs: int, looks: tuple[int, ...]) -> None:
    plan = planned(range(runs))
    assert plan.looks == looks
    assert 1 - plan.confidence == pytest.approx(0.05 / len(looks))
    assert [seed for part in plan.rounds() for seed in part] == list(range(runs))


def test_a_limit_takes_looks_away_and_changes_no_interval() -> None:
    plan = planned(range(5001, 5251))
    assert plan.within(40) == (8, 16, 32)
    assert plan.within(3) == (3,)
    assert [len(part) for part in plan.rounds(40)] == [8, 8, 16]


def test_looks_leave_what_all_of_them_allow() -> None:
    looks = [Estimate(2.0, 1.0, 3.0), Estimate(2.6, 1.8, 3.4)]
    assert together(looks) == Estimate(2.6, 1.8, 3.0)
    assert together([Estimate(0.0, -1.0, 1.0), Estimate(5.0, 4.0, 6.0)]) == Estimate(5.0, 4.0, 6.0)
    assert together([Estimate(1.0, 0.9, 1.1), Estimate(0.8, 0.2, 1.4)]) == Estimate(0.8, 0.2, 1.4)
    assert together([Estimate(1.0, 1.0, 1.0), Estimate(2.0, 1.5, 2.5)]) == Estimate(2.0, 1.5, 2.5)


def test_a_verdict_stays_when_a_later_look_is_less_sure() -> None:
    random = np.random.default_rng(3)
    early, late = random.normal(2.0, 0.1, 8), random.normal(2.0, 0.6, 56)
    sample = sample_of((np.concatenate([early, late]), np.ones(64)))
    plan = planned(SEEDS)
    claim = Claim("more than one", "", ratio, at_least(1.0))
    for number in (1, 2, 3, 4):
        looks = [plan.seeds[:look] for look in plan.looks[:number]]
        ((judged, _),) = judge(sample, [claim], looks=looks, confidence=plan.confidence, last=False)
        assert judged.verdict == "holds"


def test_seeds_that_all_agree_decide_nothing_before_the_last_look() -> None:
    sample = sample_of((np.ones(64), np.ones(64)))
    claim = Claim("at least one", "", ratio, at_least(1.0))
    looks = [list(SEEDS)[:8]]
    assert judge(sample, [claim], looks=looks, last=False)[0].claim.verdict == "undecided"
    assert judge(sample, [claim], looks=looks, last=True)[0].claim.verdict == "holds"
