"""Every confidence interval that Roamcast states is made here.

**Means over seeds** (`mean_interval`). Student's interval, mean ± t(n - 1) s / sqrt(n), is right for measures whose
distribution over networks is about normal. Many are not: where nine networks of ten deliver everything and the tenth is
partitioned, most samples of twenty seeds contain one partitioned network or none, and Student's interval misses the
mean far more often than it says. So a second interval is computed, and each end is the outer one of the two.

The second is Gaffke's (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
nonnegative variable"). Add one value to the observations: the worst that a run could have. Give all of them random
weights, uniform over all weights that sum to 1. The low end is the quantile at (1 - confidence) / 2 of the weighted
mean. The high end is the same with the best value that a run could have. For runs that are all 0 or 1 these are Clopper
and Pearson's limits.

If a run of a share could have any value between 0 and 1, the interval is valid for every distribution, as far as is
known, but useless at ten seeds: [0.69, 1] if all ten runs deliver everything. So we assume less about runs that were
not seen:

- They lie beyond the least and the largest observation by at most `BEYOND` times the observed spread. On the side to
  which the observations are skewed it is up to one spread more.
- Shares: they lie up to `UNSEEN_LOSS` from the median, times the proportion of observations that equal the median, or
  times the skew if that is larger. Runs that are all equal say nothing about the others.
- Shares stay between 0 and 1, and measures whose observations are all positive stay above 0.

The skew is |a - b| / (a + b), where a and b are the distances of the extremes from the median. Both constants were
chosen on some populations of real runs and then checked on others, of other protocols and settings, that had no part in
the choice. `tests/analysis/test_coverage.py` repeats both; `docs/statistics.md` has the figures.

**Several looks** (`look_confidence`). A procedure that looks repeatedly and stops once the interval is narrow stops too
often when it is narrow by chance. Bonferroni's correction over the planned looks keeps the promise at whatever look it
stops.

**Differences** (`difference`). Contenders meet the same networks, so their difference is taken seed by seed. Under the
hypothesis that two contenders are equally good the differences are symmetric, and Student's test is safe. Where many
differences are shown together, `holm` corrects for their number.

**Anything computed from means** (`jackknife`): leave one seed out, compute everything again, and see how much it
matters.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite, sqrt
from statistics import fmean, median, stdev
from typing import NamedTuple

import numpy as np

from roamcast.analysis.student import CONFIDENCE, quantile, two_sided

Observations = Mapping[int, float]
"""What was measured under each seed."""

ROUNDING = 1e-12
"""Deviations below this share of the values are those of the arithmetic, not of the networks."""


BEYOND = 0.25
"""How far runs that were not seen may lie beyond the observations, in spreads."""

UNSEEN_LOSS = 0.4
"""How much of a share a run that was not seen may lose, if the runs that were seen are equal or skewed."""

DRAWS_LEAST, DRAWS_MOST, WEIGHTS_MOST = 2_000, 4_000, 400_000


class Interval(NamedTuple):
    """A mean, its confidence interval, and how likely a mean this far from 0 is by chance."""

    n: int
    mean: float
    low: float  # infinite with fewer than two observations
    high: float
    p: float  # two-sided; 1 with fewer than two observations; if all are equal, that of n equal signs

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def turned(self) -> "Interval":
        """The same about the negative."""
        return Interval(self.n, -self.mean, -self.high, -self.low, self.p)


def interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's, of independent observations that are about normal, or symmetric around 0 if their mean is 0."""
    observed = list(values)
    n = len(observed)
    if n < 2:
        return Interval(n, observed[0] if observed else 0.0, -inf, inf, 1.0)
    mean = fmean(observed)
    error = stdev(observed) / sqrt(n)
    if error <= ROUNDING * max(map(abs, observed)):
        return Interval(n, mean, mean, mean, 1.0 if mean == 0 else 2.0 ** (1 - n))
    half_width = quantile(n - 1, confidence) * error
    return Interval(n, mean, mean - half_width, mean + half_width, two_sided(mean / error, n - 1))


def mean_interval(values: Iterable[float], *, most: float | None = None, confidence: float = CONFIDENCE) -> Interval:
    """Of a measure's mean over seeds; `most` is the upper bound of a share, whose lower bound is 0."""
    observed = list(values)
    found = interval(observed, confidence)
    if found.n < 2:
        return found if most is None else found._replace(low=0.0, high=most)
    worst, best = unseen_extremes(observed, most)
    weights = _weights(found.n + 1)
    seen = weights[:, :-1] @ np.asarray(observed, dtype=float)
    tail = (1 - confidence) / 2
    low = min(found.low, found.mean, float(np.quantile(seen + weights[:, -1] * worst, tail)))
    high = max(found.high, found.mean, float(np.quantile(seen + weights[:, -1] * best, 1 - tail)))
    if min(observed) >= 0:
        low = max(0.0, low)
    return found._replace(low=low, high=high if most is None else min(most, high))


def unseen_extremes(observed: Sequence[float], most: float | None) -> tuple[float, float]:
    """The worst and the best value that a run which was not seen is assumed to have."""
    least, centre, largest = min(observed), median(observed), max(observed)
    spread = largest - least
    down = max(0.0, (2 * centre - least - largest) / spread) if spread else 0.0  # the skew, 0 to 1
    up = max(0.0, (least + largest - 2 * centre) / spread) if spread else 0.0
    if most is None:
        worst, best = least - (BEYOND + down) * spread, largest + (BEYOND + up) * spread
    else:
        equal = sum(value == centre for value in observed) / len(observed)
        worst = min(least - BEYOND * spread, centre - UNSEEN_LOSS * most * max(equal, down))
        best = min(most, max(largest + BEYOND * spread, centre + UNSEEN_LOSS * most * max(equal, up)))
    return (max(0.0, worst) if least >= 0 else worst), best


@lru_cache(64)
def _weights(n: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Rows of n weights each, uniform over all that sum to 1; the same at every call."""
    rows = max(DRAWS_LEAST, min(DRAWS_MOST, WEIGHTS_MOST // n))
    uniform = np.random.default_rng(n).random((rows, n))
    exponential = -np.log1p(-uniform)
    found: np.ndarray[tuple[int, int], np.dtype[np.float64]] = exponential / exponential.sum(axis=1, keepdims=True)
    return found


def look_confidence(looks: int, confidence: float = CONFIDENCE) -> float:
    """The confidence of each of several looks so that all of them hold together with `confidence`."""
    return 1 - (1 - confidence) / max(1, looks)


def difference(mine: Observations, theirs: Observations, confidence: float = CONFIDENCE) -> Interval:
    """Of `mine` minus `theirs`, by seed."""
    scale = max([abs(value) for value in (*mine.values(), *theirs.values())], default=0.0)
    gaps = [mine[seed] - theirs[seed] for seed in mine if seed in theirs]
    return interval([gap if abs(gap) > ROUNDING * scale else 0.0 for gap in gaps], confidence)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value corrected for all: a test is passed at level a if its corrected value is at most a."""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for passed, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - passed) * p_values[at]))
        corrected[at] = largest
    return corrected


def jackknife(whole: float, parts: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Of a statistic of all seeds, given what it is without each of them.

    With theta of all n seeds and theta_i without seed i, the pseudo-values n theta - (n - 1) theta_i are treated as n
    independent observations of theta. For a plain mean they are the observations themselves, so the interval is
    Student's; for paired differences and ratios it accounts for the pairing without a formula for each.
    """
    known = [part for part in parts if isfinite(part)]
    n = len(known)
    if n < 2:
        return Interval(n, whole, -inf, inf, 1.0)
    spread = interval([n * whole - (n - 1) * part for part in known], confidence)
    return spread._replace(mean=whole, low=whole - spread.half_width, high=whole + spread.half_width)
