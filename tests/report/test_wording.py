"""Numbers as the report words them."""

import math

import pytest

from roamcast.report.wording import number, with_interval


@pytest.mark.parametrize("half_width", [None, math.nan, math.inf])
def test_a_mean_without_a_finite_interval_stands_alone(half_width: float | None) -> None:
    assert with_interval(0.5, half_width, half_width) == number(0.5, half_width) == "0.5"


def test_an_interval_decides_how_many_digits_are_shown() -> None:
    assert with_interval(0.91234, 0.91234 - 0.0123, 0.91234 + 0.0123) == "0.912 ± 0.012"
    assert with_interval(1.0, 1.0, 1.0) == "1 ± 0"
    assert with_interval(0.0, 0.0, 0.0) == "0 ± 0"
    assert with_interval(0.7619999999999294, 0.7619999999999293, 0.7619999999999295) == "0.762 ± 0"  # only rounded


def test_an_interval_that_is_not_symmetric_is_shown_by_its_ends() -> None:
    assert with_interval(0.9911, 0.8432, 1.0) == "0.991 [0.843, 1.000]"
