"""Estimates with confidence intervals for anything that is computed from means over seeds.

A figure's values are means over the seeds; curves and claims are functions of them, often ratios of several means. All
points of a figure use the same seeds, and contenders under one seed meet the same network, so the seed is the unit that
is drawn independently. The jackknife (`analysis.intervals`) follows from that: leave one seed out, compute everything
again, and see how much it matters.

The least or the largest of several values (`Extreme`) has an interval of its own. Each value gets one, and theirs are
combined, as the extreme of their ends. That is right on one side: the least value cannot lie below all the low ends
unless the low end of the true least one misses. On the other side any of the m values can mislead, so the ends there
are those of intervals that miss m times more rarely.

Where a figure was looked at several times, `sequential` says what its intervals
mean.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, nan
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from roamcast.analysis.intervals import jackknife
from roamcast.analysis.student import CONFIDENCE
from roamcast.papers.figure import Bounds, Claim, Extreme, Places, Shape, Values, X

Verdict = Literal["holds", "fails", "undecided"]


class Estimate(msgspec.Struct, frozen=True):
    """A value and its 95 % confidence interval; `None` where there is nothing to compute it from."""

    value: float | None
    low: float | None = None  # with a single seed there is no interval
    high: float | None = None


class Observations:
    """The observations of a figure: for every curve, x and seed one value, and how much it counts in the mean."""

    def __init__(self, rows: pd.DataFrame) -> None:
        known = rows.dropna(subset=["x", "value"])
        weight = known.get("weight", 1.0)
        weighed = known.assign(weight=weight, part=known["value"] * weight)
        sums = weighed.groupby(["curve", "x", "seed"], sort=False, observed=True)[["part", "weight"]].mean()
        parts, weights = sums["part"].unstack("seed"), sums["weight"].unstack("seed")
        self.seeds: list[int] = sorted(map(int, parts.columns))
        self._keys: list[tuple[str, X]] = list(parts.index)
        self._parts = parts[self.seeds].to_numpy(dtype=np.float64)
        self._weights = weights[self.seeds].to_numpy(dtype=np.float64)

    def among(self, seeds: Iterable[int]) -> "Observations":
        """The observations of these seeds alone."""
        wanted = set(seeds)
        kept = [at for at, seed in enumerate(self.seeds) if seed in wanted]
        part = Observations.__new__(Observations)
        part.seeds = [self.seeds[at] for at in kept]
        part._keys, part._parts, part._weights = self._keys, self._parts[:, kept], self._weights[:, kept]
        return part

    def values(self, without: int | None = None) -> Values:
        """The means over all seeds, or over all but the one at this place of `seeds`."""
        kept = np.ones(len(self.seeds), dtype=np.bool_)
        if without is not None:
            kept[without] = False
        totals, weights = (np.nansum(table[:, kept], axis=1) for table in (self._parts, self._weights))
        values: Values = {}
        for (curve, x), total, weight in zip(self._keys, totals, weights, strict=True):
            values.setdefault(curve, {})[x] = float(total / weight) if weight else nan
        return values

    def estimates(
        self, functions: Iterable[Callable[[Values], float]], confidence: float = CONFIDENCE
    ) -> list[Estimate]:
        """What each function makes of the values, with its interval."""
        asked = list(functions)
        whole = self.values()
        parts = [self.values(without) for without in range(len(self.seeds))] if len(self.seeds) > 1 else []
        return [
            _extreme(ask, whole, parts, confidence)
            if isinstance(ask, Extreme)
            else _jackknife(_number(ask, whole), [_number(ask, part) for part in parts], confidence)
            for ask in asked
        ]


class CurvePoint(msgspec.Struct, frozen=True):
    """One point of a drawn curve."""

    curve: str
    x: X
    estimate: Estimate


class JudgedClaim(msgspec.Struct, frozen=True):
    """A claim with our answer."""

    statement: str
    reported: str
    required: str
    estimate: Estimate
    verdict: Verdict
    finding: str
    of_paper: bool = True


def draw(sample: Observations, shape: Shape, confidence: float = CONFIDENCE) -> list[CurvePoint]:
    """The curves as the figure shows them, by label and x in the order of the shape."""
    shown = shape(sample.values())
    places = [(curve, x) for curve, course in shown.items() for x in _ordered(course)]
    found = sample.estimates((_Place(shape, curve, x) for curve, x in places), confidence)
    return [CurvePoint(curve, x, estimate) for (curve, x), estimate in zip(places, found, strict=True)]


def judge(
    sample: Observations,
    claims: Iterable[Claim],
    *,
    looks: Sequence[Sequence[int]] = (),
    confidence: float = CONFIDENCE,
    last: bool = True,
) -> list[JudgedClaim]:
    """The claims after looks at these seeds, each with the confidence of one look; without looks, once at all seeds.

    `last`: there will be no more looks, so also an estimate without width decides.
    """
    asked = list(claims)
    parts = [sample.among(seeds) for seeds in looks] or [sample]
    by_look = [part.estimates((claim.statistic for claim in asked), confidence) for part in parts]
    judged = []
    for at, claim in enumerate(asked):
        ours = together([estimates[at] for estimates in by_look])
        told = verdict(ours, claim.region) if last or has_width(ours) else "undecided"
        judged.append(
            JudgedClaim(
                statement=claim.statement,
                reported=claim.reported,
                required=str(claim.region),
                estimate=ours,
                verdict=told,
                finding=claim.finding,
                of_paper=claim.of_paper,
            )
        )
    return judged


def together(looks: Sequence[Estimate]) -> Estimate:
    """The last estimate with the interval that all looks leave. Looks without width leave everything.

    If the estimate is not in that interval, some look missed the truth, as one in twenty may; the last stands alone.
    """
    last = looks[-1]
    wide = [look for look in looks if has_width(look)]
    if last.value is None or not has_width(last) or not wide:
        return last
    low = max(look.low for look in wide if look.low is not None)
    high = min(look.high for look in wide if look.high is not None)
    return Estimate(last.value, low, high) if low <= last.value <= high else last


def has_width(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None and estimate.low < estimate.high


def verdict(estimate: Estimate, region: Bounds) -> Verdict:
    """Whether the whole interval lies inside the region, or all of it outside."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low in region and estimate.high in region:
        return "holds"
    return "fails" if estimate.high < region.low or estimate.low > region.high else "undecided"


class _Place:
    """The shown value at one place."""

    def __init__(self, shape: Shape, curve: str, x: X) -> None:
        self._shape, self._curve, self._x = shape, curve, x

    def __call__(self, values: Values) -> float:
        return self._shape(values)[self._curve][self._x]


def _number(ask: Callable[[Values], float], values: Values) -> float:
    """The answer, or not a number where runs that it needs are missing."""
    try:
        return float(ask(values))
    except (KeyError, ZeroDivisionError):
        return nan


def _jackknife(whole: float, parts: list[float], confidence: float) -> Estimate:
    if not isfinite(whole):
        return Estimate(None)
    found = jackknife(whole, parts, confidence)
    return Estimate(whole) if found.n < 2 else Estimate(whole, found.low, found.high)


def _extreme(ask: Extreme, whole: Values, parts: list[Values], confidence: float) -> Estimate:
    """The extreme with an interval that allows for having chosen it from several."""
    centre = _numbers(ask.places, whole)
    left = [_numbers(ask.places, part) for part in parts]
    if not centre or not all(map(isfinite, centre.values())):
        return Estimate(None)
    cautious = 1 - (1 - confidence) / len(centre)
    sure, unsure = (
        [_jackknife(value, [part.get(place, nan) for part in left], level) for place, value in centre.items()]
        for level in (confidence, cautious)
    )
    lows, highs = (sure, unsure) if ask.which == "least" else (unsure, sure)
    low_ends = [each.low for each in lows if each.low is not None]
    high_ends = [each.high for each in highs if each.high is not None]
    value = float(ask.of(centre.values()))
    if len(low_ends) < len(centre) or len(high_ends) < len(centre):
        return Estimate(value)
    return Estimate(value, ask.of(low_ends), ask.of(high_ends))


def _numbers(ask: Places, values: Values) -> Mapping[X, float]:
    """The answers at all places; none where runs that they need are missing."""
    try:
        return ask(values)
    except (KeyError, ZeroDivisionError):
        return {}


def _ordered(course: dict[X, float]) -> list[X]:
    """Numbers ascending; names in the order in which they come."""
    return sorted(course, key=lambda x: x if isinstance(x, (int, float)) else 0.0)
