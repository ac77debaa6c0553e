"""Deadlines and utility curves: what they mean, and what is refused."""

import numpy as np
import pytest

from roamcast.errors import ConfigurationError
from roamcast.trace.relations import worth
from roamcast.trace.utility import canonical, parse_utility


def worths(text: str, *ages_s: float) -> list[float]:
    return [float(value) for value in worth(parse_utility(text), np.array(ages_s))]


def test_a_deadline_is_worth_all_up_to_its_age_and_nothing_after() -> None:
    assert worths("250ms", 0.0, 0.25, 0.2500001, 9.0) == [1, 1, 0, 0]


def test_a_curve_is_straight_between_its_points() -> None:
    assert worths("100ms:1 1.1s:0", 0.0, 0.1, 0.6, 1.1, 5.0) == pytest.approx([1, 1, 0.5, 0, 0])


def test_two_points_at_one_age_are_a_step() -> None:
    assert worths("0:4 1:2 1:1 2:1", 0.5, 1.0, 1.001, 3.0) == pytest.approx([3, 2, 1, 1])


def test_the_canonical_form_is_in_seconds_and_means_the_same() -> None:
    assert canonical("250ms") == "0.25:1.0 0.25:0.0"
    assert canonical("") == ""
    for text in ("250ms", "1s", "100ms:1 1s:0.2 5s:0"):
        assert parse_utility(canonical(text)) == parse_utility(text)


@pytest.mark.parametrize("text", ["soon", "-1s", "nan", "1s:", "1s:x", "1s:-1", "2s:1 1s:0", "1s 2s", "1:1 " * 40])
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_utility(text)
    assert str(refusal.value).startswith("utility = ")
    assert "\n" not in str(refusal.value)
