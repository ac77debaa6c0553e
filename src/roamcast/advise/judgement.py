"""What can be concluded from the measures so far, and which candidates need more runs.

Everything is said about means over networks, from observations that are paired by seed:

- A candidate *meets* a demand if the mean is inside the bound, *misses* it if outside, by a t-test that is significant;
  it is *unclear* otherwise. If all its observations are equal, they decide.
- A candidate is *certainly worse* than another if the paired t-test of the objective rules it out
  (`analysis.comparisons`).

Many candidates are tested, and again at every look. The probability that any standing is wrong or that the best is
dropped is at most 1 - `confidence`: it is shared evenly among the planned looks, at each look evenly between demands
and objective. There Holm's method corrects for the number of candidates times demands, Bonferroni's for that of rivals.

A look drops candidates that certainly miss a demand and those that are certainly worse than the *leader*: the best mean
of the objective among those that certainly meet all demands. A difference of means below `indifference` of the leader's
does not matter: it drops nobody, and what takes less airtime is preferred. The question is settled when no candidate is
left, or when the leader is left with rivals to which the difference is certainly that small.
"""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Literal

import msgspec

from roamcast.advise.demands import Demand, measure_of
from roamcast.analysis.comparisons import Better, Lead, pairwise
from roamcast.analysis.intervals import Interval, Observations, holm, interval
from roamcast.analysis.student import CONFIDENCE

Standing = Literal["meets", "misses", "unclear"]
_ORDER: tuple[Standing, ...] = ("meets", "unclear", "misses")  # the worst of several demands counts
Scores = Mapping[str, Mapping[str, Observations]]
"""Candidate -> measure -> seed -> value."""

PRICE = "airtime_per_delivery_ms"
"""Decides between candidates whose difference does not matter."""


class Question(msgspec.Struct, frozen=True):
    demands: tuple[Demand, ...]
    objective: str  # the measure to minimise or to maximise, whichever is better
    looks: int  # how often it may be judged
    confidence: float = CONFIDENCE
    indifference: float = 0.01  # as a share of the leader's mean

    @property
    def error(self) -> float:
        """The probability of an error that each of the two families of tests may have at one look."""
        return (1 - self.confidence) / self.looks / 2

    @property
    def better(self) -> Better:
        return measure_of(self.objective).better or "lower"

    def cost(self, measured: Mapping[str, Observations]) -> float:
        """The mean of the objective, so that less is better."""
        mean = fmean(measured[self.objective].values())
        return -mean if self.better == "higher" else mean

    @property
    def measures(self) -> list[str]:
        """Keys of what is judged (`Demand.key`)."""
        return list(dict.fromkeys([*(demand.key for demand in self.demands), self.objective]))


class StageJudgement(msgspec.Struct, frozen=True):
    """After one look at the candidates of a stage."""

    standings: dict[str, Standing]
    leader: str | None
    kept: list[str]  # candidates that go on, the best mean of the objective first
    dropped: dict[str, str]  # the others, and why
    settled: bool


class Stage(msgspec.Struct, frozen=True):
    number: int
    seeds: int  # networks that each candidate has run in
    candidates: int
    kept: int


class Elimination(msgspec.Struct, frozen=True):
    stage: int
    reason: str


class Findings(msgspec.Struct):
    """What a search has gathered."""

    scores: dict[str, dict[str, Observations]] = {}  # the last result of each candidate
    standings: dict[str, Standing] = {}
    dropped: dict[str, Elimination] = {}
    stages: list[Stage] = []


def judge(question: Question, scores: Scores) -> StageJudgement:
    """Looks at all candidates of a stage; each has observations of every measure, or is dropped for lacking them."""
    dropped = {
        name: f"{lacking[0]} is undefined under some seed: nothing arrived"
        for name, measured in scores.items()
        if (lacking := _lacking(question, measured))
    }
    complete = {name: measured for name, measured in scores.items() if name not in dropped}
    standings = _standings(question, complete)
    dropped |= {
        name: "certainly misses " + ", ".join(_missed(question, complete[name]))
        for name, standing in standings.items()
        if standing == "misses"
    }
    values = {name: complete[name][question.objective] for name in complete if name not in dropped}
    cost = {name: question.cost(complete[name]) for name in values}
    order = sorted(values, key=cost.__getitem__)
    leader = next((name for name in order if standings[name] == "meets"), None)
    if leader is None:
        return StageJudgement(standings, None, order, dropped, settled=not order)
    leads = pairwise(values, question.better, 1 - question.error)
    zone = question.indifference * abs(cost[leader])
    rivals = [name for name in order if name != leader]
    behind = [name for name in rivals if leads[leader, name].is_certain and cost[name] - cost[leader] > zone]
    dropped |= dict.fromkeys(behind, f"certainly worse than {leader}")
    kept = [name for name in order if name not in behind]
    settled = all(_is_negligible(leads[leader, name], zone) for name in rivals if name in kept)
    return StageJudgement(standings, leader, kept, dropped, settled)


def preferred(question: Question, scores: Scores, names: Iterable[str]) -> list[str]:
    """The best first, by the means. What is as good as the best, or nearly, is ordered by its airtime."""
    cost = {name: question.cost(scores[name]) for name in names}
    best = min(cost.values(), default=0.0)
    zone = best + question.indifference * abs(best)

    def rank(name: str) -> tuple[bool, float, float]:
        airtime = scores[name].get(PRICE, {})
        price = fmean(airtime.values()) if airtime else 0.0
        return cost[name] > zone, price if cost[name] <= zone else cost[name], cost[name]

    return sorted(cost, key=rank)


def shortfall(question: Question, measured: Mapping[str, Observations]) -> float:
    """By which share of its bound the worst demand is missed; negative if all are met."""
    margins = [(demand.margin(fmean(measured[demand.key].values())), demand.bound) for demand in question.demands]
    return max((-margin / (abs(bound) or 1.0) for margin, bound in margins), default=0.0)


def _standings(question: Question, scores: Scores) -> dict[str, Standing]:
    tests = [(name, demand) for name in scores for demand in question.demands]
    margins = [interval(map(demand.margin, scores[name][demand.key].values())) for name, demand in tests]
    corrected = holm([margin.p for margin in margins])
    found: dict[str, set[Standing]] = {name: {"meets"} for name in scores}
    for (name, _), margin, p in zip(tests, margins, corrected, strict=True):
        found[name].add(_standing(margin, is_significant=p <= question.error))
    return {name: max(each, key=_ORDER.index) for name, each in found.items()}


def _standing(margin: Interval, *, is_significant: bool) -> Standing:
    if is_significant or margin.half_width == 0:
        return "meets" if margin.mean >= 0 else "misses"
    return "unclear"


def _is_negligible(lead: Lead, zone: float) -> bool:
    return -zone <= lead.margin.low and lead.margin.high <= zone


def _missed(question: Question, measured: Mapping[str, Observations]) -> list[str]:
    return [str(demand) for demand in question.demands if demand.margin(fmean(measured[demand.key].values())) < 0]


def _lacking(question: Question, measured: Mapping[str, Observations]) -> list[str]:
    """Measures that some run of this candidate does not have."""
    most = max((len(measured.get(measure, {})) for measure in question.measures), default=0)
    return [measure for measure in question.measures if not measured.get(measure) or len(measured[measure]) < most]
