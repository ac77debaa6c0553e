"""Student's t distribution, as far as confidence intervals need it: quantiles for whole degrees of freedom.

For whole degrees of freedom the probability of |T| < t is a finite sum of powers of the cosine of atan(t / sqrt(df))
(Abramowitz and Stegun, 26.7.3 and 26.7.4), so no special functions are needed; the quantile is found by bisection.
"""

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt

CONFIDENCE = 0.95


@lru_cache(4096)
def quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t for which |T| < t with probability `confidence`; infinite without a degree of freedom."""
    if degrees < 1:
        return float("inf")
    low, high = 0.0, 2.0
    while _central(high, degrees) < confidence:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _central(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def two_sided(t: float, degrees: int) -> float:
    """The probability of |T| >= |t|; 1 without a degree of freedom."""
    return max(0.0, 1.0 - _central(abs(t), degrees)) if degrees >= 1 else 1.0


def _central(t: float, degrees: int) -> float:
    """The probability of |T| < t."""
    angle = atan(t / sqrt(degrees))
    cosine, sine = cos(angle), sin(angle)
    if degrees % 2:
        term, total = cosine, 0.0
        for power in range(1, degrees - 1, 2):
            total += term
            term *= cosine * cosine * (power + 1) / (power + 2)
        return 2 / pi * (angle + sine * total)
    term, total = 1.0, 0.0
    for power in range(0, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    return sine * total
