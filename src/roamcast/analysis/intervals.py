"""Every confidence interval that Roamcast states is made here.

**Means over seeds** (`mean_interval`). Student's interval, mean ± t(n - 1) s / sqrt(n), is right for measures whose
distribution over networks is about normal. Many are not: where nine networks of ten deliver everything and the tenth is
partitioned, most samples of twenty seeds contain one partitioned network or none, and Student's interval misses the
mean far more often than it says. Two additions correct that:

- *What was not seen.* With probability `confidence`, a kind of run that does not occur among n seeds has a probability
  of at most p(n) = 1 - (1 - confidence)^(1 / n), about 3 / n. We assume that such runs lie outside the observations by
  up to their spread, so they move the mean by up to p(n) times the spread. The interval grows by that on the side to
  which the observations are skewed, or by half of it on both sides if they are not. For skewed shares we assume more:
  runs that lose half of what the median run has. If all observations are equal, nothing is known about the spread, and
  the whole range of a share counts.
- *What cannot be.* A share lies between 0 and 1, and so does its interval. No measure whose values are all positive has
  an interval that goes below 0.

This is no theorem, since none can be had for arbitrary distributions without intervals that are useless at ten seeds.
It is calibrated: `tests/analysis/test_coverage.py` draws samples from real runs and holds the coverage to 0.94 or more.
`docs/statistics.md` says how the intervals are to be read.

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
from math import inf, isfinite, sqrt
from statistics import fmean, median, stdev
from typing import NamedTuple

from roamcast.analysis.student import CONFIDENCE, quantile, two_sided

Observations = Mapping[int, float]
"""What was measured under each seed."""

ROUNDING = 1e-12
"""Deviations below this share of the values are those of the arithmetic, not of the networks."""


SKEWED = 2.0
"""A sample is skewed if it reaches this many times farther from its median on one side than on the other."""


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
    unseen = 1 - (1 - confidence) ** (1 / found.n)
    below, above = _reach(observed, most)
    low, high = found.low - unseen * below, found.high + unseen * above
    if min(observed) >= 0:
        low = max(0.0, low)
    return found._replace(low=low, high=high if most is None else min(most, high))


def _reach(observed: Sequence[float], most: float | None) -> tuple[float, float]:
    """How far below and above the observations a run that was not seen is assumed to lie."""
    least, largest = min(observed), max(observed)
    spread = largest - least
    if spread <= ROUNDING * max(abs(least), abs(largest)):
        return (0.0, 0.0) if most is None else (least, most - largest)
    centre = median(observed)
    below, above = centre - least, largest - centre
    if below > SKEWED * above:
        return max(spread, 0.0 if most is None else centre / 2), 0.0
    if above > SKEWED * below:
        return 0.0, max(spread, 0.0 if most is None else (most - centre) / 2)
    return spread / 2, spread / 2


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
