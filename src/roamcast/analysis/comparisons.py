"""Which contender is better, and whether that is certain: paired t-tests over the same networks.

Two contenders are compared seed by seed over the seeds that both have (`intervals.difference`).

Among many contenders some look better than others by chance. So a contest does not ask which contender is best, but
which can be ruled out: those that lose to another in a one-sided test. The truly best of k contenders meets k - 1
others. At the level (1 - confidence) / (k - 1) for each of these tests, the probability that it is ruled out is at most
1 - confidence. So the best is among those that are left with at least that confidence, whichever of them has the best
mean; if one is left, it has won. (This is subset selection after Gupta, with Bonferroni's correction.)
"""

from collections.abc import Mapping
from itertools import combinations
from statistics import fmean
from typing import Literal, NamedTuple

from roamcast.analysis.intervals import Interval, Observations, difference
from roamcast.analysis.student import CONFIDENCE

Better = Literal["higher", "lower"]


class Lead(NamedTuple):
    """By how much one contender is better than another (worse where it is negative), and whether that rules it out."""

    margin: Interval
    is_certain: bool


class Contest(NamedTuple):
    """The contender with the best mean, those that may still be the best, and those that are ruled out."""

    best: str
    level: list[str]  # in order of their means, without the best
    behind: list[str]  # the same of those that are ruled out
    margins: dict[str, Interval]  # of the best over each other, positive where the best is better

    @property
    def runner_up(self) -> str | None:
        return next(iter([*self.level, *self.behind]), None)


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
        ahead = gap if sign > 0 else gap.turned()
        leads[first, second] = Lead(ahead, is_told_apart and ahead.mean > 0)
        leads[second, first] = Lead(ahead.turned(), is_told_apart and ahead.mean < 0)
    return leads


def contest(values: Mapping[str, Observations], better: Better, confidence: float = CONFIDENCE) -> Contest:
    """Compares all contenders (at least one) with each other."""
    leads = pairwise(values, better, confidence)
    sign = 1 if better == "higher" else -1
    best, *others = sorted(values, key=lambda name: -sign * fmean(values[name].values()))
    behind = [name for name in others if any(leads[rival, name].is_certain for rival in values if rival != name)]
    level = [name for name in others if name not in behind]
    return Contest(best, level, behind, {name: leads[best, name].margin for name in others})
