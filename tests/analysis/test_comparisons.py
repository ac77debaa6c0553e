"""Paired comparisons against worked figures, and what they promise about errors."""

import random
from math import inf

import pytest

from roamcast.analysis.comparisons import contest, pairwise
from roamcast.analysis.intervals import difference, holm, interval
from roamcast.analysis.student import quantile, two_sided


def test_two_sided_probability_is_the_inverse_of_the_quantile() -> None:
    for degrees in (1, 2, 5, 30):
        for confidence in (0.5, 0.95, 0.999):
            assert two_sided(-quantile(degrees, confidence), degrees) == pytest.approx(1 - confidence, rel=1e-9)
    assert two_sided(5.0, 0) == 1.0


def test_interval_of_a_textbook_sample() -> None:
    found = interval([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert found.mean == 5.0
    assert found.half_width == pytest.approx(2.364624 * 2.13809 / 8**0.5, rel=1e-5)


def test_one_observation_says_nothing_and_equal_ones_as_much_as_their_signs() -> None:
    assert interval([3.0]) == (1, 3.0, -inf, inf, 1.0)
    assert interval([3.0, 3.0, 3.0]) == (3, 3.0, 3.0, 3.0, 0.25)
    assert interval([0.0, 0.0]).p == 1.0


def test_differences_are_taken_by_seed() -> None:
    """The networks differ by hundreds, the contenders by one in each."""
    mine = {1: 101.0, 2: 502.0, 3: 901.0}
    theirs = {3: 900.0, 1: 100.0, 2: 501.0, 9: 7.0}
    assert difference(mine, theirs)[:4] == (3, 1.0, 1.0, 1.0)


def test_rounding_is_no_difference() -> None:
    assert difference({1: 0.1 + 0.2, 2: 0.5}, {1: 0.3, 2: 0.5}).p == 1.0


def test_holm_corrects_each_value_for_those_that_are_not_smaller() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_contest_names_the_best_and_who_is_level_with_it() -> None:
    values = {
        "slow": {seed: 50.0 + seed + 0.1 * (seed % 3) for seed in range(8)},
        "fast": {seed: 10.0 + seed for seed in range(8)},
        "level": {seed: 10.1 + seed + (1 if seed % 2 else -1) for seed in range(8)},
    }
    found = contest(values, "lower")
    assert (found.best, found.level, found.behind) == ("fast", ["level"], ["slow"])
    assert found.margins["slow"].mean == pytest.approx(40.0875)
    assert found.runner_up == "level"
    assert contest(values, "higher").best == "slow"


def test_leads_are_the_same_in_both_directions() -> None:
    leads = pairwise({"a": {1: 1.0, 2: 2.0, 3: 3.5}, "b": {1: 5.0, 2: 6.0, 3: 7.0}}, "lower")
    assert leads["a", "b"].margin.mean == -leads["b", "a"].margin.mean > 0
    assert leads["a", "b"].is_certain
    assert not leads["b", "a"].is_certain


def test_the_best_is_rarely_ruled_out_and_equals_hardly_ever_win() -> None:
    """The first is better than the five others by next to nothing: the hardest case of the promise."""
    lost = won = 0
    for trial in range(300):
        generator = random.Random(trial)
        values = {f"{at}": {seed: generator.gauss(1e-9 * (at == 0), 1) for seed in range(6)} for at in range(6)}
        found = contest(values, "higher")
        lost += "0" in found.behind
        won += not found.level
    assert lost <= 0.08 * 300  # 5 % are allowed; the rest is luck
    assert won <= 3


def test_who_is_beaten_by_anybody_is_ruled_out() -> None:
    """The best mean comes from one lucky network; it rules nobody out, but the steady one does."""
    values = {
        "lucky": {seed: 1.0 + 90.0 * (seed == 0) for seed in range(8)},
        "steady": {seed: 10.0 + 0.1 * (seed % 3) for seed in range(8)},
        "poor": {seed: 3.0 + 0.1 * (seed % 2) for seed in range(8)},
    }
    found = contest(values, "higher")
    assert (found.best, found.level, found.behind) == ("lucky", ["steady"], ["poor"])
