"""The staged search on Spark: a campaign per stage, all in one directory.

    DIR/stage-1.toml, stage-2.toml, …   what was run; `roamcast campaign run` takes them too
    DIR/campaign/                       the runs of all stages: those that are there are not simulated again
    DIR/advice.json                     the answer

A stage gives every candidate that is left the same seeds, from 1 up to `SEEDS` of the stage, and then looks at them
(`judgement`). All decisions follow from the runs; only a time budget makes them depend on the machine.
"""

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import SparkSession

from roamcast.advise.advice import Advice, Dropped, Findings, Stage, give_advice
from roamcast.advise.candidates import Candidate
from roamcast.advise.judgement import Question, judge
from roamcast.analysis.analyse import Precision, measured_runs
from roamcast.analysis.intervals import Observations
from roamcast.campaign.conduct import Conductor, Progress
from roamcast.campaign.store import Store
from roamcast.campaign.text import campaign_text
from roamcast.errors import ConfigurationError
from roamcast.world.scenario_file import Tables, run_from_tables

SEEDS = (6, 12, 24, 48)
"""Networks that each remaining candidate has met by the end of each stage."""

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
    ) -> None:
        self._scenario = scenario
        self._candidates = {candidate.label: candidate for candidate in field}
        self._question = question
        self._out = out
        self._source = source
        self._master = master
        self._seeds = seeds
        self._described = run_from_tables({"scenario": scenario}, source=source).scenario
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"--out: {str(out)!r} cannot be made: {error.strerror}") from None

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
        for number, seeds in enumerate(self._seeds, 1):
            store = self._simulate(session, number, field, seeds, on_progress)
            found, failed = self._measured(session, store)
            judgement = judge(self._question, {name: found[name] for name in field if name not in failed})
            findings.scores |= found
            findings.standings |= judgement.standings
            findings.dropped |= {name: Dropped(number, why) for name, why in (failed | judgement.dropped).items()}
            findings.stages.append(Stage(number, seeds, len(field), len(judgement.kept)))
            on_stage(findings.stages[-1])
            field = judgement.kept
            if judgement.settled or number == len(self._seeds):
                break
            needed_s = len(field) * (self._seeds[number] - seeds) * _run_s(store, field) / slots
            if budget_s is not None and monotonic() - began_s + needed_s > budget_s:
                break
        advice = give_advice(
            question=self._question,
            last=judgement,
            findings=findings,
            candidates=self._candidates,
            source=self._source,
            scenario=self._described,
        )
        (self._out / ANSWER).write_bytes(msgspec.json.format(msgspec.json.encode(advice), indent=2))
        return advice

    def _simulate(
        self, session: SparkSession, number: int, field: list[str], seeds: int, on_progress: Callable[[Progress], None]
    ) -> Store:
        tables: dict[str, Any] = {
            "title": f"Advice for {self._source}, stage {number}",
            "protocols": [self._candidates[name].entry for name in field],
            "seeds": seeds,
            "scenario": self._scenario,
        }
        file = self._out / f"stage-{number}.toml"
        file.write_text(campaign_text(tables), encoding="utf-8")
        conductor = Conductor(file, self._out / "campaign", master=self._master)
        conductor.conduct(session, precise=Precision(session, conductor.store), on_progress=on_progress)
        return conductor.store

    def _measured(
        self, session: SparkSession, store: Store
    ) -> tuple[dict[str, dict[str, Observations]], dict[str, str]]:
        """What the runs of the store's plan measured, and which candidates had runs that failed."""
        plan = store.plan().select(["protocol", "run_id"]).to_pylist()
        outcomes = store.outcomes()
        errors: dict[str, list[str]] = {}
        for row in plan:
            if outcomes[row["run_id"]].failed:
                errors.setdefault(row["protocol"], []).append(store.replay_command(row["run_id"]))
        failed = {name: f"{len(commands)} runs failed; replay: {commands[0]}" for name, commands in errors.items()}
        measures = self._question.measures
        rows = measured_runs(session, store)[["protocol", "seed", *measures]]
        return {str(name): _observations(mine, measures) for name, mine in rows.groupby("protocol")}, failed


def _observations(rows: pd.DataFrame, measures: list[str]) -> dict[str, Observations]:
    by_seed = rows.set_index("seed")
    return {
        measure: {int(str(seed)): float(value) for seed, value in pd.to_numeric(by_seed[measure]).dropna().items()}
        for measure in measures
    }


def _run_s(store: Store, field: list[str]) -> float:
    """How long a run of these candidates takes, on the mean."""
    outcomes = store.outcomes()
    rows = store.plan().select(["protocol", "run_id"]).to_pylist()
    spent = [outcomes[row["run_id"]].wall_s for row in rows if row["protocol"] in field]
    return sum(spent) / len(spent) if spent else 0.0
