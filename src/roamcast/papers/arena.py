"""The arena's pages in the book: all systems side by side, from what is kept of its campaigns.

There are three: the arena, the hard one, and the one with large networks.

    docs/results/data/arena/campaign.toml    what was run; the others are in data/arena-hard and data/arena-large
    docs/results/data/arena/plan.csv         its runs
    docs/results/data/arena/runs.csv         every run's measures
    docs/results/data/arena/points.csv       their means with confidence intervals
    docs/results/data/arena/command.txt
    docs/results/data/arena/capacity.json    the answer of `roamcast capacity`, if there is one
    docs/results/data/arena/notes.md         findings about the results, if there are any

`keep` takes these from a campaign's directory (with Spark, once); `write_arena` makes a page from them alone. Only the
arena's own page has a figure for every measure.
"""

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from pyspark.sql import SparkSession

from roamcast.analysis.analyse import analyse
from roamcast.campaign.file import Campaign, load_campaign
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError
from roamcast.report.contenders import limits
from roamcast.report.decisions import (
    QUESTIONS,
    base_table,
    collapse_table,
    crossed_table,
    decision_table,
    decisions,
)
from roamcast.report.drawing import Drawing
from roamcast.report.figures import measure_figure
from roamcast.report.layouts import layouts_of
from roamcast.report.maps import CROSSED_CAPTION, MAP_CAPTION, PROFILE_CAPTION, decision_map, profiles
from roamcast.report.markdown import markdown_table, put_between_marks
from roamcast.report.pareto import tradeoffs
from roamcast.report.tables import Cell, Grid, point_table, shown_measures
from roamcast.report.winners import winners_table
from roamcast.trace.measures import MEASURES

DATA = Path("data")
ARENA = "arena"
ARENAS = (ARENA, "arena-hard", "arena-large")
KEPT_MAP = DATA / "arena-map"  # of a campaign whose axes cross: its file, plan and runs
NOTES = "notes.md"
CAPACITY = "capacity.json"
BRIEF = ("delivery_ratio", "within_100ms", "airtime_per_delivery_ms", "latency_ms_p50")
"""Measures on the pages of the others."""

_TABLES = ("plan", "runs", "points")


def keep(session: SparkSession, store: Store, directory: Path, name: str = ARENA, capacity: Path | None = None) -> None:
    """Stores what a page needs from a campaign, and the answer of a search for capacities."""
    analysis = analyse(session, store)
    plan = store.plan().drop_columns("run").to_pandas()
    measures = shown_measures(store.manifest().campaign, analysis.points)
    kept = directory / DATA / name
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "campaign.toml").write_text(store.manifest().text, encoding="utf-8")
    (kept / "command.txt").write_text(store.manifest().command + "\n", encoding="utf-8")
    if capacity is not None:
        (kept / CAPACITY).write_bytes((capacity / CAPACITY).read_bytes())
    plan.to_csv(kept / "plan.csv", index=False)
    analysis.runs[[*plan.columns, *measures]].to_csv(kept / "runs.csv", index=False, float_format="%.6g")
    points = analysis.points[analysis.points["measure"].isin(measures)]
    points.to_csv(kept / "points.csv", index=False, float_format="%.6g")


def keep_map(session: SparkSession, store: Store, directory: Path) -> None:
    """Stores what the table and the map of crossing axes need."""
    runs = analyse(session, store).runs
    plan = store.plan().drop_columns("run").to_pandas()
    kept = directory / KEPT_MAP
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "campaign.toml").write_text(store.manifest().text, encoding="utf-8")
    (kept / "command.txt").write_text(store.manifest().command + "\n", encoding="utf-8")
    plan.to_csv(kept / "plan.csv", index=False)
    runs[[*plan.columns, *QUESTIONS]].to_csv(kept / "runs.csv", index=False, float_format="%.6g")


def kept_arenas(directory: Path) -> list[str]:
    return [name for name in ARENAS if (directory / DATA / name / "campaign.toml").exists()]


def write_arena(directory: Path, name: str = ARENA, *, pictures: bool = True) -> list[Path]:
    """The page and, with `pictures`, its figures; returns the files written."""
    kept = directory / DATA / name
    campaign = load_campaign(kept / "campaign.toml")
    plan, runs, points = (pd.read_csv(kept / f"{name}.csv", dtype=_types(kept / f"{name}.csv")) for name in _TABLES)
    overview = _overview(name, campaign, plan, runs, points)
    against = {
        f"{name}-against-{it.title.split()[-1]}": (it.title, it.drawing) for it in tradeoffs(campaign, plan, points)
    }
    measures = [measure for measure in shown_measures(campaign, points) if name == ARENA or measure in BRIEF]
    crossed, crossing = _crossed(directory) if name == ARENA else (Grid([], [], 1), {})
    by_measure: dict[str, tuple[str, Drawing]] = {}
    if name == ARENA:
        layouts = layouts_of(campaign, plan)
        by_measure = {
            f"{name}-{measure.replace('_', '-')}": (MEASURES[measure].title, measure_figure(layouts, points, measure))
            for measure in measures
        }
    written = []
    for figure, (_, drawn) in (overview | against | crossing | by_measure).items() if pictures else ():
        written.append(directory / "figures" / f"{figure}.svg")
        written[-1].parent.mkdir(parents=True, exist_ok=True)
        on_white = drawn.svg.replace("<svg ", '<svg style="background: white" ', 1)  # pages of any colour may show it
        written[-1].write_text(on_white + "\n", encoding="utf-8")
    notes = kept / NOTES
    page = _template().render(
        title=campaign.title,
        description=[" ".join(part.split()) for part in campaign.description.split("\n\n") if part.strip()],
        runs=f"{plan['run_id'].nunique():,}",
        seeds=int(plan.groupby("point")["seed"].nunique().min()),
        command=(kept / "command.txt").read_text(encoding="utf-8").strip(),
        option=name.rpartition("-")[2],
        tradeoffs=_captions(against),
        figures=_captions(by_measure),
        notes=notes.read_text(encoding="utf-8").strip() if notes.exists() else "",
        limits=sorted(limits(campaign)),
        crossed=crossed,
        decisions=decision_table(campaign, plan, runs),
        collapses=collapse_table(campaign, plan, runs),
        crossing=_captions(crossing),
        pictures=_captions(overview),
        exclusions=campaign.exclusions,
        capacity=_capacities(kept / CAPACITY),
        winners=winners_table(campaign, plan, runs, measures),
        points=point_table(campaign, points, plan, measures),
    )
    written.append(directory / f"{name}.md")
    written[-1].write_text(page.rstrip() + "\n", encoding="utf-8")
    return written


def renew_tables(directory: Path, document: Path) -> None:
    """Replaces the tables between marks of a Markdown file by those of the stored arena: `decisions` (the ends of the
    sweeps), `choices` (the same without figures) and `base point`. A file needs only one of them."""
    kept = directory / DATA / ARENA
    campaign = load_campaign(kept / "campaign.toml")
    plan, runs = (pd.read_csv(kept / f"{name}.csv", dtype=_types(kept / f"{name}.csv")) for name in ("plan", "runs"))
    tables = {
        "decisions": decision_table(campaign, plan, runs, ends_only=True),
        "choices": decision_table(campaign, plan, runs, ends_only=True, names_only=True),
        "base point": base_table(campaign, plan, runs),
    }
    text = document.read_text(encoding="utf-8")
    present = [name for name in tables if f"<!-- {name} -->" in text]
    if not present:
        marks = ", ".join(f"<!-- {name} -->" for name in tables)
        raise ConfigurationError(f"{document}: has none of the marks {marks}")
    for name in present:
        put_between_marks(document, name, markdown_table(tables[name]))


def _types(path: Path) -> dict[Hashable, type[str]]:
    """Swept settings are names of places in the plan, not numbers to count with."""
    columns = list(pd.read_csv(path, nrows=0).columns)
    numbers = {"point", "seed", "place", "n", "mean", "low", "high", "half_width", *MEASURES}
    return {name: str for name in columns if name not in numbers}


def _crossed(directory: Path) -> tuple[Grid, dict[str, tuple[str, Drawing]]]:
    """The table and the map of load, mobility and size, if that campaign was kept."""
    kept = directory / KEPT_MAP
    if not (kept / "campaign.toml").exists():
        return Grid([], [], 1), {}
    campaign = load_campaign(kept / "campaign.toml")
    plan, runs = (pd.read_csv(kept / f"{name}.csv", dtype=_types(kept / f"{name}.csv")) for name in ("plan", "runs"))
    drawing = decision_map(campaign, plan, runs)
    crossing = {"arena-load-mobility-size": (CROSSED_CAPTION, drawing)} if drawing else {}
    return crossed_table(campaign, plan, runs), crossing


def _capacities(path: Path) -> Grid:
    """The results of `roamcast capacity`, if there are any."""
    if not path.exists():
        return Grid([], [], 1)
    answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for each in answer["capacities"]:
        most, least = (each[end]["rate_per_s"] if each[end] else None for end in ("passes", "fails"))
        rates = ("none", "none") if most is None else (f"{most:.3g}", f"{most * answer['publishers']:.3g}")
        figures_of = *rates, f"{least:.3g}" if least else "–"
        rows.append([Cell(str(each["label"])), *map(Cell, figures_of)])
    return Grid(["protocol", "events per publisher and s", "events per s", "fails at"], rows, 1)


def _overview(
    name: str, campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame, points: pd.DataFrame
) -> dict[str, tuple[str, Drawing]]:
    """By file name: caption and drawing of the map and of the profiles, if anything was judged."""
    if not decisions(campaign, plan, runs):
        return {}
    found = {
        f"{name}-map": (MAP_CAPTION, decision_map(campaign, plan, runs)),
        f"{name}-profiles": (PROFILE_CAPTION, profiles(campaign, plan, points)),
    }
    return {file: (caption, drawing) for file, (caption, drawing) in found.items() if drawing}


def _captions(figures: Mapping[str, tuple[str, Drawing]]) -> list[tuple[str, str]]:
    return [(name, caption) for name, (caption, _) in figures.items()]


def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters["grid"] = markdown_table
    return environment.get_template("arena.md")
