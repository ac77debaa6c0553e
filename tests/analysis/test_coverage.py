"""Intervals contain the mean as often as they say, on the delivery ratios of real runs.

The populations are described in data/README.md. Samples are drawn from them with replacement, so the true mean is
known. Student's interval fails here, which the first test shows; what `intervals` makes of the same samples does not.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from roamcast.analysis.analyse import is_precise
from roamcast.analysis.intervals import (
    UNSEEN_LOSS,
    Interval,
    _weights,
    interval,
    look_confidence,
    mean_interval,
    unseen_extremes,
)
from roamcast.campaign.file import Stop

PROMISED = 0.94
DRAWS = 400


@pytest.fixture(scope="module", params=["mostly-one", "skewed"])
def population(request: pytest.FixtureRequest) -> list[float]:
    path = Path(__file__).parent / "data" / f"{request.param}.json"
    counts = json.loads(path.read_text(encoding="utf-8"))
    return [float(value) for value, count in counts.items() for _ in range(count)]


def samples(population: list[float], size: int, draws: int = DRAWS) -> list[list[float]]:
    random = np.random.default_rng(1)
    return [[float(value) for value in random.choice(population, size)] for _ in range(draws)]


@pytest.mark.parametrize("seeds", [8, 20])
def test_intervals_cover_the_means_of_runs_that_had_no_part_in_their_design(seeds: int) -> None:
    """Each measure in 90 of 100 samples, all together in 94."""
    held_out = json.loads((Path(__file__).parent / "data" / "held-out.json").read_text(encoding="utf-8"))
    coverage = []
    for measures in held_out.values():
        for measure, values in measures.items():
            most = None if measure == "airtime_per_delivery_ms" else 1.0
            found = [mean_interval(sample, most=most) for sample in samples(values, seeds, 200)]
            coverage.append(float(np.mean([covers(each, float(np.mean(values))) for each in found])))
    assert min(coverage) >= 0.9
    assert np.mean(coverage) >= PROMISED


def covers(found: Interval, truth: float) -> bool:
    return found.low <= truth <= found.high


@pytest.mark.parametrize("seeds", [5, 8, 20, 60])
def test_intervals_of_a_fixed_number_of_seeds_cover_the_mean(population: list[float], seeds: int) -> None:
    truth = float(np.mean(population))
    drawn = samples(population, seeds)
    found = [mean_interval(sample, most=1.0) for sample in drawn]
    assert np.mean([covers(each, truth) for each in found]) >= PROMISED
    assert all(0 <= each.low <= each.mean <= each.high <= 1 for each in found)
    if seeds <= 20:  # the reason why Student's interval alone is not shown
        assert np.mean([covers(interval(sample), truth) for sample in drawn]) < PROMISED


@pytest.mark.parametrize(
    "stop",
    [
        Stop(measure="delivery_ratio", half_width=0.02),
        Stop(measure="delivery_ratio", half_width=0.05),
        Stop(measure="delivery_ratio", half_width=0.1, least=8, batch=2, cap=60),
        Stop(measure="delivery_ratio", relative=0.1, least=5, batch=5, cap=100),
    ],
    ids=["narrow", "wide", "many looks", "relative"],
)
def test_the_interval_that_a_stopping_rule_ends_with_covers_the_mean(population: list[float], stop: Stop) -> None:
    truth = float(np.mean(population))
    covered = []
    for sample in samples(population, stop.cap, 100):
        seen = stop.rounds[0].stop - 1
        while not is_precise(stop, sample[:seen]) and seen < stop.cap:
            seen = min(seen + stop.batch, stop.cap)
        covered.append(covers(mean_interval(sample[:seen], most=1.0, confidence=look_confidence(stop.looks)), truth))
    assert np.mean(covered) >= PROMISED


def test_a_normal_measure_keeps_a_useful_interval() -> None:
    """What skewed measures need must not make the others useless: at 20 seeds at most twice Student's width."""
    random = np.random.default_rng(2)
    drawn = [[float(value) for value in random.normal(50, 5, 20)] for _ in range(DRAWS)]
    found = [mean_interval(sample) for sample in drawn]
    assert np.mean([covers(each, 50) for each in found]) >= 0.95
    widths = [each.half_width / interval(sample).half_width for each, sample in zip(found, drawn, strict=True)]
    assert 1 < float(np.mean(widths)) < 2


def test_equal_values_tell_little_about_a_share() -> None:
    """A kind of run that is not among 20 has a probability of at most 1 - 0.025 ** (1 / 20)."""
    found = mean_interval([1.0] * 20, most=1.0)
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1 - UNSEEN_LOSS * (1 - 0.025 ** (1 / 20)), abs=0.005)
    middle = mean_interval([0.5] * 20, most=1.0)
    assert middle.low == pytest.approx(found.low - 0.5)
    assert middle.high == pytest.approx(1.5 - found.low, abs=0.005)


def test_with_the_whole_range_assumed_the_limits_are_those_of_clopper_and_pearson() -> None:
    """Of 12 runs that are 0 or 1 with both possible, two are 0; the limits of 10 of 12 are in any table."""
    weights = _weights(13)
    ones = weights[:, :10].sum(axis=1)
    assert float(np.quantile(ones, 0.025)) == pytest.approx(0.516, abs=0.01)
    assert float(np.quantile(ones + weights[:, 12], 0.975)) == pytest.approx(0.979, abs=0.01)


def test_what_is_assumed_follows_the_skew() -> None:
    assert unseen_extremes([40.0, 50.0, 60.0], None) == (35.0, 65.0)
    assert unseen_extremes([0.0, 1.0, 10.0], None) == pytest.approx((0.0, 20.5))
    assert unseen_extremes([0.30, 0.31, 0.50, 0.69, 0.70], 1.0) == pytest.approx((0.2, 0.8))
    assert unseen_extremes([1.0] * 9 + [0.9], 1.0) == pytest.approx((0.6, 1.0))
    assert unseen_extremes([0.0] * 9 + [0.1], 1.0) == pytest.approx((0.0, 0.4))


def test_the_rule_looks_as_often_as_it_says() -> None:
    stop = Stop(measure="delivery_ratio", half_width=0.02, least=20, batch=7, cap=40)
    assert stop.rounds == [range(1, 21), range(21, 28), range(28, 35), range(35, 41)]
    assert stop.looks == 4
    assert look_confidence(4) == pytest.approx(1 - 0.05 / 4)
    assert Stop(measure="delivery_ratio", half_width=1, cap=10).looks == 1


def test_the_rule_stops_once_enough_is_known() -> None:
    stop = Stop(measure="delivery_ratio", half_width=0.05)
    random = np.random.default_rng(3)
    steady = [float(value) for value in random.normal(0.9, 0.03, 100)]
    assert not is_precise(stop, steady[:19])
    assert is_precise(stop, steady[:25])
    assert not is_precise(stop, [1.0] * 20)  # all equal: one run in five may still be a torn network
    assert is_precise(stop, [1.0] * 60)
