"""When the choice would be different: the first few candidates in networks that differ in one respect.

Each variant changes one thing about the scenario: twice the rate, twice the speed, twice the nodes at the same density,
half the density, or no positions. The choice and the best candidates of the next protocols meet three networks of each.
That shows large differences. For certainty, ask about the changed scenario.
"""

from collections.abc import Callable, Mapping
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from pyspark.sql import SparkSession

from roamcast.advise.advice import Elsewhere
from roamcast.advise.candidates import Candidate
from roamcast.advise.judgement import PRICE, Question, preferred, shortfall
from roamcast.advise.runs import run_stage
from roamcast.analysis.intervals import Observations
from roamcast.campaign.conduct import Progress
from roamcast.trace.measures import RUN_MEASURES
from roamcast.world.scenario import Scenario
from roamcast.world.scenario_file import Tables

NETWORKS: Final = 3
CANDIDATES: Final = 4
NEEDS_POSITIONS: Final = ("georendezvous",)


class ParameterVariant(NamedTuple):
    what: str
    settings: dict[str, Any]  # of the scenario, by dotted path


def variants(scenario: Scenario) -> list[ParameterVariant]:
    """All that make sense for a scenario. Every variant says all settings that any of them changes."""
    mobility, workload = scenario.mobility, scenario.workload
    changes: list[tuple[str, dict[str, Any]]] = []
    changes.append(("twice the rate", {"scenario.workload.rate_per_s": 2 * workload.rate_per_s}))
    if mobility.model in ("waypoint", "group", "roads", "golf"):
        changes.append(("twice the speed", {"scenario.mobility.speed_max_mps": 2 * mobility.speed_max_mps}))
    if mobility.model in ("static", "waypoint", "group", "gauss-markov", "roads") and not mobility.positions_m:
        wider = [side_m * sqrt(2) for side_m in scenario.area_m]
        larger = {"scenario.nodes": 2 * scenario.nodes, "scenario.area_m": wider}
        changes.append(("twice the nodes at the same density", larger))
        changes.append(("half the density", {"scenario.area_m": wider}))
    if scenario.positioning.source == "exact" and mobility.model != "contacts":
        changes.append(("no positions", {"scenario.positioning.source": "none"}))
    usual: dict[str, Any] = {
        "scenario.workload.rate_per_s": workload.rate_per_s,
        "scenario.mobility.speed_max_mps": mobility.speed_max_mps,
        "scenario.nodes": scenario.nodes,
        "scenario.area_m": list(scenario.area_m),
        "scenario.positioning.source": scenario.positioning.source,
    }
    swept = {path for _, change in changes for path in change}
    return [
        ParameterVariant(what, {path: change.get(path, usual[path]) for path in sorted(swept)})
        for what, change in changes
    ]


def variant_runs(asked: list[ParameterVariant], protocols: int) -> int:
    """How many runs they take, at most."""
    return len(asked) * min(CANDIDATES, protocols) * NETWORKS


class Variants:
    """The variants of a question, for the best candidate of each of the first few protocols."""

    def __init__(
        self, question: Question, asked: list[ParameterVariant], candidates: Mapping[str, Candidate], ranked: list[str]
    ) -> None:
        self._question = question
        self._asked = asked
        self._candidates = candidates
        self._choice = ranked[0]
        best = {candidates[name].protocol: name for name in reversed(ranked)}  # protocol -> its best candidate
        self._field = sorted(best.values(), key=ranked.index)[:CANDIDATES]

    def run(
        self,
        session: SparkSession,
        scenario: Tables,
        file: Path,
        out: Path,
        *,
        source: str,
        master: str,
        on_progress: Callable[[Progress], None],
    ) -> tuple[Elsewhere, ...]:
        unable = [name for name in self._field if self._candidates[name].protocol in NEEDS_POSITIONS]
        without = {"scenario.positioning.source": "none"}
        tables: dict[str, Any] = {
            "title": f"Advice for {source}, variants",
            "protocols": [self._candidates[name].entry for name in self._field],
            "seeds": NETWORKS,
            "scenario": scenario,
            "grid": {"variant": [variant.settings for variant in self._asked]},
            "exclude": [{"protocols": unable, "where": without, "because": "it needs positions"}] if unable else [],
        }
        judged = [key for key in self._question.measures if key in RUN_MEASURES]
        measures = list(dict.fromkeys([*judged, PRICE]))
        stage = run_stage(session, tables, file, out, master=master, measures=measures, on_progress=on_progress)
        return tuple(
            self._elsewhere(variant.what, stage.places.get(place, {})) for place, variant in enumerate(self._asked)
        )

    def _elsewhere(self, what: str, found: Mapping[str, Mapping[str, Observations]]) -> Elsewhere:
        """By the means: candidates that meet the demands come first, then the preferred ones."""
        demands = tuple(demand for demand in self._question.demands if demand.rate_per_s is None)
        asked = Question(demands, self._question.objective, looks=1)

        def missing(name: str) -> float:
            return max(0.0, shortfall(asked, found[name]))

        def value(name: str) -> float | None:
            values = found.get(name, {}).get(asked.objective, {})
            return fmean(values.values()) if values else None

        complete = [name for name in self._field if all(found.get(name, {}).get(key) for key in asked.measures)]
        if not complete:
            return Elsewhere(
                what=what, first="none", is_choice=False, meets=False, value=None, choice_value=None, choice_meets=False
            )
        first = min(preferred(asked, found, complete), key=missing)
        choice = self._choice
        choice_meets = choice in complete and missing(choice) == 0
        return Elsewhere(
            what=what,
            first=first,
            is_choice=first == choice,
            meets=missing(first) == 0,
            value=value(first),
            choice_value=value(choice),
            choice_meets=choice_meets,
        )
