"""Estimates with confidence intervals for anything that is computed from means over seeds.

A figure's values are means over the seeds; curves and claims are functions of them, often ratios of several means. All
points of a figure use the same seeds, and contenders under one seed meet the same network, so the seed is the unit that
is drawn independently. The jackknife (`analysis.intervals`) follows from that: leave one seed out, compute everything
again, and see how much it matters.

The least or the largest of several values (`Extreme`) has an interval of its own. Each value gets one, and theirs are
combined, as the extreme of their ends. That is right on one side: the least value cannot lie below all the low ends
unless the low end of the true least one misses. On the other side any of the m values can mislead, so the ends there
are those of intervals that miss m times more rarely.

Where a figure was looked at several times, `sequential` says what its intervals mean. Points that only decided claims
need have fewer seeds than others then. A claim is judged at the looks for which all its values have their seeds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from math import isfinite, nan
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from roamcast.analysis.intervals import jackknife
from roamcast.analysis.student import CONFIDENCE, quantile
from roamcast.papers.figure import Bounds, Claim, Extreme, Places, Shape, Values, X
from roamcast.papers.needs import Cell, Cells, cells_of, places_of

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

    def counts(self) -> dict[Cell, int]:
        """How many seeds each curve has at each x."""
        counted = np.isfinite(self._parts).sum(axis=1)
        return {cell: int(count) for cell, count in zip(self._keys, counted, strict=True)}

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
        look = _Look(self, self.seeds, ())
        return [
            _combined(ask, _placed(ask, look, confidence))
            if isinstance(ask, Extreme)
            else _asked(ask, look, confidence)
            for ask in functions
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
    counts = sample.counts()
    if min(counts.values()) < len(sample.seeds):
        needs = places_of(partial(_flat, shape), sample.values())
        fewest = [min((counts[cell] for cell in needs.get(place, ())), default=len(sample.seeds)) for place in places]
        found = [_widened(each, n, len(sample.seeds), confidence) for each, n in zip(found, fewest, strict=True)]
    return [CurvePoint(curve, x, estimate) for (curve, x), estimate in zip(places, found, strict=True)]


def _flat(shape: Shape, values: Values) -> dict[Cell, float]:
    return {(curve, x): value for curve, course in shape(values).items() for x, value in course.items()}


def _widened(estimate: Estimate, fewest: int, seeds: int, confidence: float) -> Estimate:
    """The interval as it is if the least known of the values behind it has this many of the seeds."""
    if estimate.value is None or estimate.low is None or estimate.high is None or not 2 <= fewest < seeds:
        return estimate
    factor = quantile(fewest - 1, confidence) / quantile(seeds - 1, confidence)
    low, high = (estimate.value + factor * (end - estimate.value) for end in (estimate.low, estimate.high))
    return Estimate(estimate.value, low, high)


class Judgement(NamedTuple):
    """A judged claim, and which values it still needs from more seeds: none if it is decided, `None` for all."""

    claim: JudgedClaim
    needs: Cells | None


class _Look:
    """The values after a look, with those that the jackknife needs."""

    def __init__(self, sample: Observations, seeds: Sequence[int], before: Sequence[int]) -> None:
        part = sample.among(seeds)
        self.whole = part.values()
        self.parts = [part.values(without) for without in range(len(part.seeds))] if len(part.seeds) > 1 else []
        fresh = sample.among(set(seeds) - set(before)).counts()
        self.observed = {cell for cell, count in fresh.items() if count}  # under seeds that are new at this look


def judge(
    sample: Observations,
    claims: Iterable[Claim],
    *,
    looks: Sequence[Sequence[int]] = (),
    confidence: float = CONFIDENCE,
    last: bool = True,
) -> list[Judgement]:
    """The claims after looks at these seeds, each with the confidence of one look; without looks, once at all seeds.

    `last`: there will be no more looks, so also an estimate without width decides.
    """
    seeds = list(looks) or [sample.seeds]
    taken = [_Look(sample, now, before) for now, before in zip(seeds, [[], *seeds], strict=False)]
    return [_judged(claim, taken, confidence, last=last) for claim in claims]


def _judged(claim: Claim, looks: Sequence[_Look], confidence: float, *, last: bool) -> Judgement:
    ask = claim.statistic
    if isinstance(ask, Extreme):
        needs = places_of(ask.places, looks[0].whole)
        by_look = [_placed(ask, look, confidence) for look in looks]
        parts = {
            place: together([found[place] for found in by_look[: _complete(looks, cells)]])
            for place, cells in needs.items()
        }
        ours = _combined(ask, parts)
        told = _told(ours, claim, last=last)
        opened = [cells for place, cells in needs.items() if _told(parts[place], claim, last=last) == "undecided"]
        cells = frozenset[Cell]().union(*(opened or needs.values()))
    else:
        cells = cells_of(ask, looks[0].whole)
        ours = together([_asked(ask, look, confidence) for look in looks[: _complete(looks, cells)]])
        told = _told(ours, claim, last=last)
    judged = JudgedClaim(
        statement=claim.statement,
        reported=claim.reported,
        required=str(claim.region),
        estimate=ours,
        verdict=told,
        finding=claim.finding,
        of_paper=claim.of_paper,
    )
    return Judgement(judged, (cells or None) if told == "undecided" else frozenset())


def _complete(looks: Sequence[_Look], cells: Cells) -> int:
    """How many looks there are before one for which some of these values got no new seeds; at least one."""
    return max(1, len(list(takewhile(lambda look: cells <= look.observed, looks))))


def _told(estimate: Estimate, claim: Claim, *, last: bool) -> Verdict:
    return verdict(estimate, claim.region) if last or has_width(estimate) else "undecided"


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


def _asked(ask: Callable[[Values], float], look: _Look, confidence: float) -> Estimate:
    return _jackknife(_number(ask, look.whole), [_number(ask, part) for part in look.parts], confidence)


def _jackknife(whole: float, parts: list[float], confidence: float) -> Estimate:
    if not isfinite(whole):
        return Estimate(None)
    found = jackknife(whole, parts, confidence)
    return Estimate(whole) if found.n < 2 else Estimate(whole, found.low, found.high)


def _placed(ask: Extreme, look: _Look, confidence: float) -> dict[Any, Estimate]:
    """Each of the values with an interval that allows for the extreme's being chosen from them."""
    centre = _numbers(ask.places, look.whole)
    left = [_numbers(ask.places, part) for part in look.parts]
    cautious = 1 - (1 - confidence) / max(1, len(centre))
    found = {}
    for place, value in centre.items():
        parts = [part.get(place, nan) for part in left]
        sure, unsure = (_jackknife(value, parts, level) for level in (confidence, cautious))
        low, high = (sure.low, unsure.high) if ask.which == "least" else (unsure.low, sure.high)
        found[place] = Estimate(sure.value, low, high)
    return found


def _combined(ask: Extreme, placed: Mapping[Any, Estimate]) -> Estimate:
    """The extreme of values with their intervals."""
    values = [each.value for each in placed.values() if each.value is not None]
    if not values or len(values) < len(placed):
        return Estimate(None)
    low_ends = [each.low for each in placed.values() if each.low is not None]
    high_ends = [each.high for each in placed.values() if each.high is not None]
    value = float(ask.of(values))
    if len(low_ends) < len(values) or len(high_ends) < len(values):
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
