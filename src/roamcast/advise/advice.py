"""The answer: what is recommended, the evidence for it, and how to run it. Plain data, ready for JSON."""

import shlex
from collections.abc import Mapping
from math import isfinite
from typing import Literal

import msgspec

from roamcast.advise.candidates import Candidate
from roamcast.advise.demands import measure_of
from roamcast.advise.judgement import (
    Elimination,
    Findings,
    Question,
    Stage,
    StageJudgement,
    Standing,
    preferred,
    shortfall,
)
from roamcast.advise.reasons import reasons
from roamcast.advise.validity import warnings
from roamcast.analysis.intervals import Interval, Observations, difference, mean_interval
from roamcast.world.scenario import Scenario

Outcome = Literal["certain", "level", "cautious", "unclear", "none"]
"""certain: one meets the demands and is better than all others that might. level: others that meet them are as good or
were not told apart. cautious: others may be better, but whether they meet the demands is not certain. unclear: that is
so of all. none: all certainly miss them."""

KEY_FILE = "network.key"
AUTHORITY_FILE = "network.authority"
IDENTITY_FILE = "node-1.node"


class MeanEstimate(msgspec.Struct, frozen=True):
    """A mean over networks and its 95 % confidence interval; none from a single network."""

    n: int
    mean: float
    low: float | None
    high: float | None


class Evidence(msgspec.Struct, frozen=True):
    """What is known about a candidate from the last stage that it was in."""

    label: str
    protocol: str
    parameters: dict[str, str | int | float | bool]
    standing: Standing | None  # towards the demands; none if it could not be judged
    measures: dict[str, MeanEstimate]
    dropped: Elimination | None


class Elsewhere(msgspec.Struct, frozen=True):
    """The best candidate in a network that differs in one respect, by means over few networks."""

    what: str  # how it differs
    first: str
    is_choice: bool
    meets: bool  # whether it meets the demands there
    value: float | None  # the mean of the objective of the first one there
    choice_value: float | None  # and of the choice; none if nothing arrived
    choice_meets: bool


class Advice(msgspec.Struct, frozen=True):
    scenario: str
    demands: tuple[str, ...]
    objective: str
    confidence: float
    stages: tuple[Stage, ...]
    outcome: Outcome
    choice: str | None  # what is recommended; if nothing meets the demands, what comes closest
    level: tuple[str, ...]  # others that meet the demands and are as good, or cannot be distinguished
    open: tuple[str, ...]  # others that may be better, if they meet the demands
    runner_up: str | None  # the next of those that meet the demands; if none certainly does, of those that may
    lead: MeanEstimate | None  # objective of the choice minus that of the runner-up, by seed
    evidence: tuple[Evidence, ...]  # the choice first, then by how well they do
    commands: tuple[str, ...]
    reasons: tuple[str, ...] = ()  # why the choice is the choice
    elsewhere: tuple[Elsewhere, ...] = ()  # where it would be another
    warnings: tuple[str, ...] = ()  # what about the scenario is beyond what was validated


def give_advice(
    question: Question,
    last: StageJudgement,
    findings: Findings,
    candidates: Mapping[str, Candidate],
    source: str,
    scenario: Scenario,
) -> Advice:
    scores = findings.scores
    ranked = _ranked(question, candidates, last, findings)
    meeting = [name for name in last.kept if findings.standings[name] == "meets"]
    choice = next(iter(preferred(question, scores, meeting)), None)
    if choice is None:
        choice = next((name for name in ranked if _is_complete(question, scores.get(name, {}))), None)
    level = tuple(name for name in last.kept if name != choice and findings.standings[name] == "meets")
    still_open = tuple(name for name in last.kept if name != choice and findings.standings[name] == "unclear")
    outcome = _outcome(last, level, still_open)
    eligible = {"none": (), "unclear": ("unclear",)}.get(outcome, ("meets",))
    rivals = [name for name in ranked if name != choice and findings.standings.get(name) in eligible]
    runner_up = next(iter(rivals), None)
    lead = None
    if choice is not None and runner_up is not None:
        lead = estimate(difference(scores[choice][question.objective], scores[runner_up][question.objective]))
    order = dict.fromkeys(([choice] if choice else []) + ranked)
    return Advice(
        scenario=source,
        demands=tuple(map(str, question.demands)),
        objective=question.objective,
        confidence=question.confidence,
        stages=tuple(findings.stages),
        outcome=outcome,
        choice=choice,
        level=level,
        open=still_open,
        runner_up=runner_up,
        lead=lead,
        evidence=tuple(_evidence(candidates[name], findings) for name in order),
        commands=() if choice is None else commands(candidates[choice], source, scenario),
        reasons=() if choice is None else reasons(question, choice, ranked, findings, candidates),
        warnings=warnings(scenario),
    )


def _outcome(last: StageJudgement, level: tuple[str, ...], still_open: tuple[str, ...]) -> Outcome:
    if last.leader is None:
        return "unclear" if last.kept else "none"
    if still_open:
        return "cautious"
    return "level" if level else "certain"


def estimate(found: Interval) -> MeanEstimate:
    if found.n < 2 or not isfinite(found.half_width):
        return MeanEstimate(found.n, found.mean, None, None)
    return MeanEstimate(found.n, found.mean, found.low, found.high)


def commands(candidate: Candidate, source: str, scenario: Scenario) -> tuple[str, ...]:
    """What simulates the choice, makes a key for the network and an identity for a node, and runs the choice live."""
    chosen = ["--protocol", candidate.protocol, *candidate.settings]
    width_m, height_m = scenario.area_m
    site = ["--site", f"{width_m:g}x{height_m:g}", "--range", f"{scenario.radio.range_m:g}"]
    keys = ["--key", KEY_FILE, "--identity", IDENTITY_FILE]
    live = ["--language", scenario.workload.language, *site, *keys]
    return (
        shlex.join(["roamcast", "simulate", "--scenario", source, *chosen]),
        shlex.join(["roamcast", "key", "new", KEY_FILE]),
        shlex.join(["roamcast", "key", "certify", AUTHORITY_FILE, IDENTITY_FILE]),
        shlex.join(["roamcast", "node", *chosen, *live]),
    )


def _ranked(
    question: Question, candidates: Mapping[str, Candidate], last: StageJudgement, findings: Findings
) -> list[str]:
    """Candidates that are left come before those that were dropped; then those whose means meet the demands; then by
    preference."""
    complete = [name for name in candidates if _is_complete(question, findings.scores.get(name, {}))]
    kept = [name for name in complete if name in last.kept]
    dropped = [name for name in complete if name not in last.kept]
    order = [*preferred(question, findings.scores, kept), *preferred(question, findings.scores, dropped)]
    missing = {name: max(0.0, shortfall(question, findings.scores[name])) for name in complete}
    order.sort(key=lambda name: (name not in last.kept, missing[name]))
    return [*order, *(name for name in candidates if name not in complete)]


def _is_complete(question: Question, measured: Mapping[str, Observations]) -> bool:
    return all(measured.get(measure) for measure in question.measures)


def _evidence(candidate: Candidate, findings: Findings) -> Evidence:
    measured = findings.scores.get(candidate.label, {})
    return Evidence(
        candidate.label,
        candidate.protocol,
        candidate.parameters,
        findings.standings.get(candidate.label),
        {
            measure: estimate(mean_interval(values.values(), most=measure_of(measure).most))
            for measure, values in measured.items()
            if values
        },
        dropped=findings.dropped.get(candidate.label),
    )
