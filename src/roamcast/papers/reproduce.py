"""Reproducing a figure: its campaign on Spark, its estimates, its files.

    DIR/somer-6.5-quick/campaign.toml       what was run; `roamcast campaign run` takes it too
    DIR/somer-6.5-quick/campaign/           the campaign's directory: resumed if it is there
    DIR/somer-6.5-quick/summary.json        points and verdicts (`summary`)
    DIR/somer-6.5-quick/figure.svg, .png, index.html
"""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import Precision, measured_runs
from roamcast.campaign.conduct import Conductor, Ending, Progress
from roamcast.campaign.store import Store
from roamcast.campaign.text import campaign_text
from roamcast.papers.estimate import Sample, draw, judge
from roamcast.papers.figure import Figure, Scale
from roamcast.papers.page import write_pages
from roamcast.papers.summary import FILE, Summary, write_summary

PAPER_NOTE = "The paper's own sizes, durations and replicates."


class Reproduction:
    """One figure at one scale and where its results go. Making it refuses a wrong campaign before Spark is started."""

    def __init__(self, figure: Figure, scale: Scale, out: Path, *, master: str) -> None:
        self.figure = figure
        self.scale = scale
        self.directory = out / f"{figure.id}-{scale}"
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "campaign.toml"
        file.write_text(campaign_text(figure.campaign(scale)), encoding="utf-8")
        self._command = shlex.join(["roamcast", "reproduce", figure.id, "--scale", scale])
        self._conductor = Conductor(file, self.directory / "campaign", master=master)
        self._store = self._conductor.store

    def run(self, session: SparkSession, on_progress: Callable[[Progress], None] = lambda progress: None) -> Summary:
        """Simulates what is missing, estimates and judges, and writes everything down."""
        precise = Precision(session, self._store)
        ending = self._conductor.conduct(session, precise=precise, on_progress=on_progress)
        rows_of = self.figure.rows or partial(curve_rows, self.figure)
        summary = self._summarised(Sample(rows_of(session, self._store)), ending)
        write_summary(summary, self.directory / FILE)
        write_pages(summary, self.directory)
        return summary

    def _summarised(self, sample: Sample, ending: Ending) -> Summary:
        figure = self.figure
        manifest = self._store.manifest()
        planned = set(self._store.plan()["run_id"].to_pylist())
        kept = ("roamcast", "sources", "python")
        return Summary(
            figure=figure.id,
            title=figure.title,
            paper=figure.paper,
            section=figure.section,
            setting=figure.setting,
            scale=self.scale,
            scale_note=figure.quick_note if self.scale == "quick" else PAPER_NOTE,
            x_title=figure.x_title,
            y_title=figure.y_title,
            x_format=figure.x_format,
            y_format=figure.y_format,
            mark=figure.mark,
            seeds=len(sample.seeds),
            runs=ending.planned,
            failed=tuple(self._store.replay_command(outcome.run_id) for outcome in ending.failed),
            simulated_s=sum(each.wall_s for name, each in self._store.outcomes().items() if name in planned),
            command=self._command,
            environment={name: manifest.environment[name] for name in kept},
            points=tuple(draw(sample, figure.shown)),
            claims=tuple(judge(sample, figure.claims)),
        )


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
