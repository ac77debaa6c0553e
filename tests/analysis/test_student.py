"""Student's quantiles against scipy's."""

from typing import Any

import pytest
from scipy import stats  # type: ignore[import-untyped]

from roamcast.analysis.student import quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 10, 19, 30, 99, 200])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_agrees_with_scipy(degrees: Any, confidence: Any) -> None:
    assert quantile(degrees, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, degrees), rel=1e-9)


def test_one_value_says_nothing_about_its_error() -> None:
    assert quantile(0) == float("inf")
