"""The staged search on Spark: a campaign per stage, all in one directory.

    DIR/stage-1.toml, stage-2.toml, …   what was run; `roamcast campaign run` takes them too
    DIR/stage-1-rate-2.toml, …          the same at another rate, for a demand on capacity
    DIR/variants.toml                   the first few candidates in networks that differ (`sensitivity`)
    DIR/campaign/                       the runs of all stages: those that are there are not simulated again
    DIR/advice.json                     the answer

Each stage runs every remaining candidate on the same seeds, from 1 up to `SEEDS` of the stage. It drops candidates that
certainly miss a demand or are certainly worse (`judgement`) and keeps the `KEEP` best of the rest by their means. The
latter is a screening, not a test: it bounds the work, and the answer names the candidates that it dropped. A candidate
that misses a demand by less than `SCREENING_SLACK` of its bound passes the screening.

So the number of runs is known from the start, at most. All decisions follow from the runs; only a time budget makes
them depend on the machine.
"""

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from roamcast.advise.advice import Advice, Elsewhere, give_advice
from roamcast.advise.candidates import Candidate
from roamcast.advise.judgement import (
    PRICE,
    Elimination,
    Findings,
    Question,
    Stage,
    StageJudgement,
    judge,
    preferred,
    shortfall,
)
from roamcast.advise.runs import MeasuredRuns, run_s, run_stage
from roamcast.advise.sensitivity import Variants, variant_runs, variants
from roamcast.analysis.intervals import Observations
from roamcast.campaign.conduct import Progress
from roamcast.campaign.grid import written_into
from roamcast.errors import ConfigurationError
from roamcast.trace.measures import RUN_MEASURES
from roamcast.world.scenario_file import Tables, run_from_tables

SEEDS = (2, 4, 8, 16)
"""Networks that each remaining candidate has met by the end of each stage."""

KEEP = (16, 8, 4)
"""Candidates that go on after each stage but the last, at most."""

SCREENING_SLACK = 0.05
RATE = "workload.rate_per_s"
PROFILE = ("delivery_ratio", "within_250ms", "latency_ms_p95", PRICE, "maintenance_ms_per_node_s")
"""What is measured besides, to say why the choice is the choice."""

ANSWER = "advice.json"


class Search:
    """A question about a scenario. Making it refuses what makes no sense before Spark is started."""

    def __init__(
        self,
        scenario: Tables,
        field: list[Candidate],
        question: Question,
        out: Path,
        *,
        source: str,
        master: str,
        seeds: tuple[int, ...] = SEEDS,
        keep: tuple[int, ...] = KEEP,
        look_around: bool = True,
    ) -> None:
        self._scenario = scenario
        self._candidates = {candidate.label: candidate for candidate in field}
        self._question = question
        self._out = out
        self._source = source
        self._master = master
        self._seeds = seeds
        self._keep = keep
        self._described = run_from_tables({"scenario": scenario}, source=source).scenario
        self._variants = variants(self._described) if look_around else []
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"--out: {str(out)!r} cannot be made: {error.strerror}") from None

    def runs_at_most(self) -> int:
        """How many runs the search has if nothing is certain before its end."""
        return self._rates * len(self._candidates) * self._seeds[0] + self._later_runs(1, len(self._candidates))

    @property
    def _rates(self) -> int:
        """At how many rates a candidate is measured."""
        return 1 + len({demand.rate_per_s for demand in self._question.demands} - {None})

    def _later_runs(self, stage: int, left: int) -> int:
        """How many runs the stages after this one have, at most, if `left` candidates go on from it."""
        runs = variant_runs(self._variants, len({each.protocol for each in self._candidates.values()}))
        for number in range(stage, len(self._seeds)):
            left = min(left, self._keep[number - 1]) if number <= len(self._keep) else left
            runs += self._rates * left * (self._seeds[number] - self._seeds[number - 1])
        return runs

    def run(
        self,
        session: SparkSession,
        *,
        budget_s: float | None = None,
        on_stage: Callable[[Stage], None] = lambda stage: None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> Advice:
        """Searches until the question is settled, the seeds are used up or the next stage would exceed the budget."""
        began_s = monotonic()
        slots = session.sparkContext.defaultParallelism
        field = list(self._candidates)
        findings = Findings()
        told = _OneTotal(on_progress)
        for number, seeds in enumerate(self._seeds, 1):
            told.expect(self._later_runs(number, len(field)))
            stage = self._simulate(session, number, field, told)
            judgement = judge(self._question, {name: stage.found[name] for name in field if name not in stage.failed})
            kept, screened = self._screened(judgement, stage.found, number)
            findings.scores |= stage.found
            findings.standings |= judgement.standings
            reasons = stage.failed | judgement.dropped | screened
            findings.dropped |= {name: Elimination(number, why) for name, why in reasons.items()}
            judgement = msgspec.structs.replace(judgement, kept=kept)
            findings.stages.append(Stage(number, seeds, len(field), len(kept)))
            on_stage(findings.stages[-1])
            field = kept
            if judgement.settled or number == len(self._seeds):
                break
            needed_s = len(field) * (self._seeds[number] - seeds) * run_s(stage.store, field) / slots
            if budget_s is not None and monotonic() - began_s + needed_s > budget_s:
                break
        is_late = budget_s is not None and monotonic() - began_s > budget_s
        advice = give_advice(
            question=self._question,
            last=judgement,
            findings=findings,
            candidates=self._candidates,
            source=self._source,
            scenario=self._described,
        )
        if self._variants and not is_late and advice.choice is not None:
            advice = msgspec.structs.replace(advice, elsewhere=self._look_around(session, advice, told))
        (self._out / ANSWER).write_bytes(msgspec.json.format(msgspec.json.encode(advice), indent=2))
        return advice

    def _screened(
        self, judgement: StageJudgement, found: dict[str, dict[str, Observations]], number: int
    ) -> tuple[list[str], dict[str, str]]:
        """The candidates that go on, and those that are dropped by their rank alone."""
        most = self._keep[number - 1] if number <= len(self._keep) else len(judgement.kept)
        if len(judgement.kept) <= most or judgement.settled:
            return judgement.kept, {}

        best_first = preferred(self._question, found, judgement.kept)

        def rank(name: str) -> tuple[bool, float, int]:
            missing = shortfall(self._question, found[name])
            return name != judgement.leader, missing if missing > SCREENING_SLACK else 0.0, best_first.index(name)

        order = sorted(judgement.kept, key=rank)
        out = {name: f"screened out: rank {at} of {len(order)}" for at, name in enumerate(order, 1) if at > most}
        return [name for name in judgement.kept if name not in out], out

    def _simulate(self, session: SparkSession, number: int, field: list[str], told: "_OneTotal") -> MeasuredRuns:
        """A stage at the scenario's own rate, and at those that demands on capacity name."""
        judged = [key for key in self._question.measures if key in RUN_MEASURES]
        measures = list(dict.fromkeys([*judged, *PROFILE]))
        known = 0 if number == 1 else len(field) * self._seeds[number - 2]
        seeds = self._seeds[number - 1]
        tell = told.stage(known)
        stage = self._stage(
            session=session,
            name=f"stage-{number}",
            field=field,
            seeds=seeds,
            scenario=self._scenario,
            measures=measures,
            tell=tell,
        )
        for demand in self._question.demands:
            if demand.rate_per_s is not None:
                name = f"stage-{number}-rate-{demand.rate_per_s:g}"
                faster = written_into(self._scenario, {RATE: demand.rate_per_s})
                there = self._stage(
                    session=session,
                    name=name,
                    field=field,
                    seeds=seeds,
                    scenario=faster,
                    measures=[demand.measure],
                    tell=told.stage(known),
                )
                for label, measured in there.found.items():
                    stage.found.setdefault(label, {})[demand.key] = measured[demand.measure]
                stage.failed.update(there.failed)
        return stage

    def _stage(
        self,
        session: SparkSession,
        name: str,
        field: list[str],
        seeds: int,
        scenario: Tables,
        measures: list[str],
        tell: Callable[[Progress], None],
    ) -> MeasuredRuns:
        tables: dict[str, Any] = {
            "title": f"Advice for {self._source}, {name}",
            "protocols": [self._candidates[label].entry for label in field],
            "seeds": seeds,
            "scenario": scenario,
        }
        file = self._out / f"{name}.toml"
        place = self._out / "campaign"
        return run_stage(session, tables, file, place, master=self._master, measures=measures, on_progress=tell)

    def _look_around(self, session: SparkSession, advice: Advice, told: "_OneTotal") -> tuple[Elsewhere, ...]:
        told.expect(0)
        around = Variants(self._question, self._variants, self._candidates, [each.label for each in advice.evidence])
        return around.run(
            session,
            self._scenario,
            self._out / "variants.toml",
            self._out / "campaign",
            source=self._source,
            master=self._master,
            on_progress=told.stage(0),
        )


class _OneTotal:
    """One total for all stages: what is done, and what the rest takes at most."""

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell
        self._done = 0
        self._failed = 0
        self._later = 0  # runs of later stages, at most

    def expect(self, later: int) -> None:
        self._later = later

    def stage(self, known: int) -> Callable[[Progress], None]:
        """What reports of the next stage go to; `known` of its runs were counted in earlier ones."""
        before, failed_before = self._done - known, self._failed

        def report(progress: Progress) -> None:
            self._done = before + progress.done
            self._failed = failed_before + progress.failed
            planned = before + progress.planned + self._later
            self._tell(Progress(planned, self._done, self._failed, progress.simulated, progress.running))

        return report
