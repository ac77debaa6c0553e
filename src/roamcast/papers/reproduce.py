"""Reproducing a figure: its campaign on Spark, its estimates, its files.

Seeds are simulated in rounds until every claim is decided or the paper's number of runs is reached (`sequential`). Only
points that an undecided claim needs go on to the next round, where the figure tells by its curves or by the setting on
its axis which these are. After each round all files below are written again, so an interruption loses only the runs
under way, and the same command continues.

    DIR/somer-6.5-quick/campaign.toml       what was run; `roamcast campaign run` takes it too
    DIR/somer-6.5-quick/campaign/           the campaign's directory: resumed if it is there. Figures that show the same
                                            runs share one (`Figure.runs_of`)
    DIR/somer-6.5-quick/summary.json        points and verdicts (`summary`)
    DIR/somer-6.5-quick/figure.svg, .png, index.html
"""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import msgspec
import pandas as pd
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, measured_runs
from roamcast.campaign.conduct import Conductor, Ending, Precise, Progress
from roamcast.campaign.emulated import emulating
from roamcast.campaign.plan import Point
from roamcast.campaign.store import Store
from roamcast.campaign.text import campaign_text
from roamcast.campaign.worker import simulate_runs
from roamcast.errors import ConfigurationError
from roamcast.papers.estimate import Judgement, Observations, draw, judge
from roamcast.papers.figure import Figure, Scale
from roamcast.papers.needs import Cell, points_at, points_with
from roamcast.papers.page import write_pages
from roamcast.papers.sequential import planned
from roamcast.papers.sources import sources_of
from roamcast.papers.summary import FILE, Summary, write_summary
from roamcast.papers.witness import witnesses

GoingOn = Callable[[list[Point]], list[Point]]
"""Told of the points of a round that is over: those of the next round."""


class _InRounds(Conductor):
    """Conducts a figure's campaign in rounds, and asks after each which points go on."""

    def in_rounds(self, rounds: Sequence[Sequence[int]], going_on: GoingOn) -> Self:
        self._seeds_of_rounds = rounds
        self._who_goes_on = going_on
        return self

    def _rounds(self) -> Sequence[Sequence[int]]:
        return self._seeds_of_rounds

    def _imprecise(self, going_on: list[Point], precise: Precise, planned: list[str]) -> list[Point]:
        return self._who_goes_on(going_on)


class Reproduction:
    """One figure at one scale and where its results go. Making it refuses a wrong campaign before Spark is started."""

    def __init__(self, figure: Figure, scale: Scale, out: Path, *, master: str, most: int | None = None) -> None:
        """`most` limits the seeds: undecided claims then stay so."""
        if most is not None and most < 2:
            raise ConfigurationError(f"most = {most}: must be at least 2")
        self.figure = figure
        self.scale = scale = figure.nearest(scale)
        self.directory = out / f"{figure.id}-{scale}"
        runs = out / f"{figure.runs_of or figure.id}-{scale}"
        for directory in (self.directory, runs):
            directory.mkdir(parents=True, exist_ok=True)
        file = runs / "campaign.toml"
        self._tables = figure.campaign(scale)
        file.write_text(campaign_text(self._tables), encoding="utf-8")
        self._most = most
        self._command = [*figure.command, "--scale", scale]
        self._conductor = _InRounds(file, runs / "campaign", master=master)
        self._store = self._conductor.store
        self._plan = planned(self._tables["seeds"])
        self._summary: Summary | None = None

    def run(
        self,
        session: SparkSession,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_look: Callable[[Summary], None] = lambda summary: None,
    ) -> Summary:
        """Simulates what is missing. After each look it stores all results and reports them."""
        ends = iter(self._plan.within(self._most))

        def going_on(points: list[Point]) -> list[Point]:
            self._summary, judgements = self._look(session, next(ends))
            on_look(self._summary)
            return self._needed(points, judgements) if self._summary.open else []

        ending = self._conductor.in_rounds(self._plan.rounds(self._most), going_on).conduct(
            session,
            precise=Precision(session, self._store),
            on_progress=on_progress,
            worker=simulate_runs if self.figure.emulation is None else emulating(self.figure.emulation),
        )
        assert self._summary is not None  # there is at least one look
        return self._kept(_with_failures(self._summary, self._store, ending))

    def _look(self, session: SparkSession, end: int) -> tuple[Summary, list[Judgement]]:
        """Judges all looks up to this one, from what is committed."""
        rows_of = self.figure.rows or partial(curve_rows, self.figure)
        sample = Observations(rows_of(session, self._store))
        so_far = tuple(look for look in self._plan.within(self._most) if look <= end)
        judgements = judge(
            sample,
            self.figure.claims,
            looks=[self._plan.seeds[:look] for look in so_far],
            confidence=self._plan.confidence,
            last=end == self._plan.looks[-1],
        )
        return self._kept(self._summarised(sample, so_far, judgements)), judgements

    def _needed(self, points: list[Point], judgements: list[Judgement]) -> list[Point]:
        """The points that undecided claims still need. Comparisons of our own count only where the paper claims
        nothing."""
        ours = [each for each in judgements if each.claim.of_paper] or judgements
        needs = [each.needs for each in ours]
        if None in needs or not self.figure.x:
            return points
        cells = frozenset[Cell]().union(*(each for each in needs if each is not None))
        if self.figure.rows is not None:
            return points_at(cells, self.figure.x, points)
        return points_with(cells, self.figure.curves, self.figure.x, points)

    def _kept(self, summary: Summary) -> Summary:
        write_summary(summary, self.directory / FILE)
        write_pages(summary, self.directory)
        return summary

    def _summarised(self, sample: Observations, looks: tuple[int, ...], judgements: list[Judgement]) -> Summary:
        figure, plan = self.figure, self._plan
        manifest = self._store.manifest()
        planned_runs = self._store.plan()
        runs = set(planned_runs["run_id"].to_pylist())
        seeds_by_point = Counter(planned_runs["point"].to_pylist())
        kept = ("roamcast", "sources", "python")
        limit = [] if self._most is None else ["--most", str(self._most)]
        return Summary(
            figure=figure.id,
            title=figure.title,
            paper=figure.paper,
            section=figure.section,
            setting=figure.setting,
            scale=self.scale,
            scale_note=figure.scale_note(self.scale),
            x_title=figure.x_title,
            y_title=figure.y_title,
            x_format=figure.x_format,
            y_format=figure.y_format,
            mark=figure.mark,
            seeds=len(sample.seeds),
            seeds_fewest=min(seeds_by_point.values()),
            runs=len(runs),
            failed=(),
            simulated_s=sum(each.wall_s for name, each in self._store.outcomes().items() if name in runs),
            command=shlex.join(self._command + limit),
            environment={name: manifest.environment[name] for name in kept},
            points=tuple(draw(sample, figure.shown, plan.confidence)),
            claims=tuple(each.claim for each in judgements),
            runs_of_paper=figure.runs_of_paper,
            looks=looks,
            confidence=plan.confidence,
            sources=sources_of(self._tables),
            witnesses=() if figure.emulation is not None else witnesses(self._store),
        )


def _with_failures(summary: Summary, store: Store, ending: Ending) -> Summary:
    commands = tuple(store.replay_command(outcome.run_id) for outcome in ending.failed)
    return msgspec.structs.replace(summary, failed=commands)


def curve_rows(figure: Figure, session: SparkSession, store: Store) -> pd.DataFrame:
    """The figure's curves, one row per curve, x and seed, from the measures of every run."""
    measures = sorted({name for curve in figure.curves for name in (curve.measure, *curve.weight)})
    settings = sorted({figure.x, *(name for curve in figure.curves for name in curve.where)})
    wanted = list(dict.fromkeys(["protocol", "seed", *settings, *measures]))
    runs = measured_runs(session, store)[wanted]
    parts = []
    for curve in figure.curves:
        mine = runs[runs["protocol"] == curve.contender]
        for name, value in curve.where.items():
            mine = mine[mine[name] == value]
        weight = mine[list(curve.weight)].astype(float).prod(axis="columns")
        columns = {"x": mine[figure.x], "seed": mine["seed"], "value": mine[curve.measure].astype(float)}
        parts.append(pd.DataFrame({"curve": curve.label, **columns, "weight": weight}))
    rows = pd.concat(parts, ignore_index=True)
    numbers = pd.to_numeric(rows["x"], errors="coerce")
    return rows.assign(x=numbers) if numbers.notna().all() else rows
