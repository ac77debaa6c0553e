"""The figures of a campaign's page, and the data from which its script draws them and names the runs of a point."""

import json
import re
from typing import Any, NamedTuple

import pandas as pd

from roamcast.analysis.analyse import Analysis
from roamcast.campaign.file import Campaign
from roamcast.campaign.store import Store
from roamcast.report.decisions import decisions
from roamcast.report.drawing import Drawing, brief, chart
from roamcast.report.figures import TOGETHER_MAX, measure_figure, parts_figure, timeline_figure
from roamcast.report.layouts import Layout
from roamcast.report.maps import MAP_CAPTION, PROFILE_CAPTION, decision_map, profiles
from roamcast.report.pareto import tradeoffs
from roamcast.report.places import contender_names, place_titles
from roamcast.trace.measures import MEASURES


class PageFigure(NamedTuple):
    title: str
    caption: str
    drawing: Drawing
    measure: str = ""  # whose values the list of runs shows
    has_legend: bool = True  # of protocols, to switch them off
    has_colours: bool = True  # that stand for protocols

    @property
    def name(self) -> str:
        """Its anchor in the page."""
        return "figure-" + re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def measure_figures(layouts: list[Layout], analysis: Analysis, measures: list[str]) -> list[PageFigure]:
    known = set(analysis.points["measure"])
    return [
        PageFigure(MEASURES[name].title, _meaning(name), measure_figure(layouts, analysis.points, name), name)
        for name in measures
        if name in known
    ]


def _meaning(name: str) -> str:
    measure = MEASURES[name]
    return f"{measure.meaning} {measure.better.capitalize()} is better." if measure.better else measure.meaning


def decision_figures(campaign: Campaign, plan: pd.DataFrame, analysis: Analysis) -> list[PageFigure]:
    """The map and the profiles."""
    if not decisions(campaign, plan, analysis.runs):
        return []
    drawn = [
        ("Map", MAP_CAPTION, decision_map(campaign, plan, analysis.runs), False),
        ("Profiles", PROFILE_CAPTION, profiles(campaign, plan, analysis.points), True),
    ]
    return [
        PageFigure(title, caption, drawing, has_legend=has_legend)
        for title, caption, drawing, has_legend in drawn
        if drawing is not None
    ]


def tradeoff_figures(campaign: Campaign, plan: pd.DataFrame, analysis: Analysis) -> list[PageFigure]:
    return [PageFigure(*each) for each in tradeoffs(campaign, plan, analysis.points)]


def more_figures(layout: Layout, analysis: Analysis) -> list[PageFigure]:
    where = f", {layout.last_title}" if layout.last_title else ""
    drawn: list[PageFigure] = []

    def add(source: tuple[pd.DataFrame, Any], measure: str, title: str, axis: str, caption: str) -> None:
        table, draw = source
        if (table["measure"] == measure).any():
            shown = measure if measure in MEASURES else ""
            drawing: Drawing = draw(layout, table, measure, axis)
            drawn.append(PageFigure(title, caption + where, drawing, shown, has_colours=draw is not parts_figure))

    over_time = (analysis.timeline, timeline_figure)
    add(over_time, "delivery_ratio", "Delivery over time", "Delivery ratio", "by time of publication")
    add(over_time, "frames_per_s", "Traffic over time", "Frames per s", "all nodes together")
    parts = (analysis.breakdowns, parts_figure)
    add(parts, "frames", "Frames by message", "frames per run", "mean per run")
    add(parts, "frames_lost", "Receptions lost at the radio", "receptions per run", "by reason")
    add(parts, "dropped", "Dropped by the protocol", "drops per run", "by reason")
    return drawn


def script_data(
    store: Store, campaign: Campaign, analysis: Analysis, measures: list[str], figures: list[PageFigure]
) -> str:
    """What the page's script reads, as JSON that may stand inside a script element."""
    measured = analysis.runs
    names = contender_names(campaign, measured)
    titles = place_titles(campaign, measured).items()
    places = {place: ", ".join(filter(None, (title.text, title.note))) for place, title in titles}
    points = {}
    for point, runs in measured.groupby("point", sort=True):
        title = ", ".join(filter(None, (names[int(str(point))], places[int(runs["place"].iloc[0])])))
        rows = runs.to_dict("records")
        listed = [[row["seed"], row["run_id"], [brief(row[name]) for name in measures]] for row in rows]
        points[str(point)] = {"title": title, "runs": listed}
    data = {
        "config": chart("lines")["config"] | {"legend": {"disable": True}},
        "legend": chart("lines")["config"]["legend"],
        "figures": {it.name: _figure_data(it) for it in figures},
        "measures": {name: [MEASURES[name].title, MEASURES[name].unit] for name in measures},
        "points": points,
        "again": store.replay_command(""),
        "watch": store.watch_command(""),
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _figure_data(it: PageFigure) -> dict[str, Any]:
    views = [
        {"title": view.title, "spec": {key: part for key, part in view.spec.items() if key != "config"}}
        for view in it.drawing.views
    ]
    return {"rows": it.drawing.rows, "views": views, "measure": it.measure}


def are_many(campaign: Campaign) -> bool:
    """Whether figures need the whole width of the page."""
    return len(campaign.contenders) > TOGETHER_MAX
