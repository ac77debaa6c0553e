"""Who is better, and is it certain: paired t-tests between contenders that met the same networks.

Two contenders are compared seed by seed over the seeds that both have; the difference is Student's (see `summaries`).

Among many contenders some look better than others by chance, so a contest does not ask who is best, but who can be
ruled out: whoever is beaten by some other in a one-sided test. The truly best of k contenders meets k - 1 others; at
the level (1 - confidence) / (k - 1) for each of these tests, the probability that it is ruled out is at most
1 - confidence. So the best is among those that are left with at least that confidence, whichever of them turns out to
have the best mean; if one is left, it has won. (This is subset selection after Gupta, with Bonferroni's correction.)
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from roamcast.analysis.student import CONFIDENCE, quantile, two_sided

Better = Literal["higher", "lower"]
Observations = Mapping[int, float]
"""What was measured under each seed."""

ROUNDING = 1e-12
"""Deviations below this share of the values are those of the arithmetic, not of the networks."""


class Interval(NamedTuple):
    """A mean, the half-width of its confidence interval, and how likely it is this far from 0 by chance."""

    n: int
    mean: float
    half_width: float  # infinite with fewer than two observations
    p: float  # two-sided; 1 with fewer than two observations

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


class Lead(NamedTuple):
    """By how much one contender is better than another (worse where it is negative), and whether that rules it out."""

    margin: Interval
    is_certain: bool


class Contest(NamedTuple):
    """Who has the best mean, who else may be the best, and who is ruled out."""

    best: str
    level: list[str]  # in order of their means, without the best
    behind: list[str]  # the same of those that are ruled out
    margins: dict[str, Interval]  # of the best over each other, positive where the best is better

    @property
    def runner_up(self) -> str | None:
        return next(iter([*self.level, *self.behind]), None)


def interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Interval:
    """Of independent observations."""
    observed = list(values)
    n = len(observed)
    if n < 2:
        return Interval(n, observed[0] if observed else 0.0, inf, 1.0)
    mean = fmean(observed)
    error = stdev(observed) / sqrt(n)
    if error <= ROUNDING * max(map(abs, observed)):
        return Interval(n, mean, 0.0, 1.0 if mean == 0 else 0.0)
    return Interval(n, mean, quantile(n - 1, confidence) * error, two_sided(mean / error, n - 1))


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


def pairwise(
    values: Mapping[str, Observations], better: Better, confidence: float = CONFIDENCE
) -> dict[tuple[str, str], Lead]:
    """By how much each contender is ahead of each other (at least one observation each), in both directions."""
    sign = 1 if better == "higher" else -1
    level = (1 - confidence) / max(1, len(values) - 1)
    leads: dict[tuple[str, str], Lead] = {}
    for first, second in combinations(values, 2):
        gap = difference(values[first], values[second], confidence)
        is_told_apart = gap.p / 2 <= level  # one-sided
        for names, mean in (((first, second), sign * gap.mean), ((second, first), -sign * gap.mean)):
            leads[names] = Lead(gap._replace(mean=mean), is_told_apart and mean > 0)
    return leads


def contest(values: Mapping[str, Observations], better: Better, confidence: float = CONFIDENCE) -> Contest:
    """Compares all contenders (at least one) with each other."""
    leads = pairwise(values, better, confidence)
    sign = 1 if better == "higher" else -1
    best, *others = sorted(values, key=lambda name: -sign * fmean(values[name].values()))
    behind = [name for name in others if any(leads[rival, name].is_certain for rival in values if rival != name)]
    level = [name for name in others if name not in behind]
    return Contest(best, level, behind, {name: leads[best, name].margin for name in others})
