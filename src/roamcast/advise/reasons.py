"""Why the choice is the choice: sentences made from the evidence."""

from collections.abc import Mapping
from statistics import fmean

from roamcast.advise.candidates import Candidate
from roamcast.advise.demands import measure_of, short_name
from roamcast.advise.judgement import Findings, Question
from roamcast.protocols.catalogue import protocol_class

NOTICEABLE = 1.15
"""A ratio below this is not worth a sentence."""


def reasons(
    question: Question,
    choice: str,
    ranked: list[str],
    findings: Findings,
    candidates: Mapping[str, Candidate],
) -> tuple[str, ...]:
    """About the choice, the best candidate of another protocol, and any that would be better if it met the demands."""
    means = {name: {key: fmean(values.values()) for key, values in measured.items() if values}
             for name, measured in findings.scores.items()}  # fmt: skip
    mine = means.get(choice, {})
    if question.objective not in mine:
        return ()
    said = [f"{choice}: {protocol_class(candidates[choice].protocol).summary}."]
    figures = [f"{short_name(key)} {_figure(key, mine[key])}" for key in question.measures if key in mine]
    said.append(f"It has {', '.join(figures)}, on average.")
    other = next((name for name in ranked if candidates[name].protocol != candidates[choice].protocol), None)
    if other is not None and question.objective in means.get(other, {}):
        said += _compared(other, mine, means[other])
    said += _better(question, choice, means)
    return tuple(said)


def _compared(other: str, mine: Mapping[str, float], its: Mapping[str, float]) -> list[str]:
    """How the best candidate of another protocol differs."""
    pluses: list[str] = []
    minuses: list[str] = []
    for key in mine:
        better = measure_of(key).better
        if key not in its or not better or min(mine[key], its[key]) <= 0:
            continue
        ratio = max(mine[key], its[key]) / min(mine[key], its[key])
        gap = abs(mine[key] - its[key]) if measure_of(key).most == 1 else 0.0
        if ratio < NOTICEABLE and gap < 0.02:
            continue
        words = f"{short_name(key)} {_figure(key, mine[key])} against {_figure(key, its[key])}"
        (pluses if (mine[key] > its[key]) == (better == "higher") else minuses).append(words)
    said = []
    if pluses:
        said.append(f"It is ahead of {other}, the best of the other protocols, in {', '.join(pluses)}.")
    if minuses:
        said.append(f"It is behind {other} in {', '.join(minuses)}.")
    if not said:
        said.append(f"{other}, the best of the other protocols, is as good in everything to {NOTICEABLE - 1:.0%}.")
    return said


def _better(question: Question, choice: str, means: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Candidates that would be better, but whose means miss a demand."""
    sign = -1 if question.better == "higher" else 1
    cost = sign * means[choice][question.objective]
    tempting: list[tuple[float, str, str]] = []
    for name, its in means.items():
        missed = [each for each in question.demands if each.key in its and each.margin(its[each.key]) < 0]
        if missed and question.objective in its and sign * its[question.objective] < cost:
            why = ", ".join(f"{short_name(each.key)} {_figure(each.key, its[each.key])}" for each in missed)
            tempting.append((sign * its[question.objective], name, why))
    if not tempting:
        return []
    least, name, why = min(tempting)
    figure = _figure(question.objective, sign * least)
    aim = f"{question.better} {short_name(question.objective)}"
    return [f"{name} would have a {aim} ({figure}), but misses a demand: {why}."]


def _figure(key: str, value: float) -> str:
    return f"{value:.3g} {measure_of(key).unit}".strip()
