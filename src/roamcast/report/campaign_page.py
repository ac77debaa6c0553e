"""The report of a campaign: one HTML file that opens anywhere, without a network and without scripts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from roamcast.analysis.analyse import Analysis
from roamcast.campaign.file import Campaign
from roamcast.campaign.store import Manifest, Outcome, Store
from roamcast.report import figures
from roamcast.report.decisions import collapse_table, collapsed_points, decision_table, decisions
from roamcast.report.maps import MAP_CAPTION, PROFILE_CAPTION, decision_map, profiles
from roamcast.report.pareto import limits, tradeoffs
from roamcast.report.tables import difference_table, overview, point_table, shown_measures
from roamcast.report.winners import winners_table
from roamcast.trace.measures import MEASURES

_TEMPLATES = Path(__file__).with_name("templates")


class PageFigure(NamedTuple):
    title: str
    caption: str
    svg: str


def write_report(store: Store, analysis: Analysis) -> str:
    """Writes `report.html` into the campaign's directory, whole or not at all, and says where it is."""
    return store.write_report(render(store, analysis, datetime.now(UTC)))


def render(store: Store, analysis: Analysis, now: datetime) -> str:
    manifest = store.manifest()
    campaign = manifest.campaign
    plan = store.plan().drop_columns("run").to_pandas()
    outcomes = store.outcomes()
    over = [outcomes[name] for name in plan["run_id"].drop_duplicates() if name in outcomes]
    measures = shown_measures(campaign, analysis.points)
    layouts = figures.layouts_of(campaign, plan)
    measured = plan[plan["run_id"].isin(analysis.runs["run_id"])]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("campaign.html").render(
        style=(_TEMPLATES / "campaign.css").read_text(encoding="utf-8"),
        title=campaign.title,
        description=[" ".join(part.split()) for part in campaign.description.split("\n\n") if part.strip()],
        facts=_facts(manifest, plan, over, now),
        baseline=campaign.baseline,
        overview=overview(campaign, analysis.differences, plan, collapsed_points(campaign, measured, analysis.runs)),
        figures=_measure_figures(layouts, analysis, measures),
        decisions=decision_table(campaign, measured, analysis.runs),
        collapses=collapse_table(campaign, measured, analysis.runs),
        pictures=_pictures(campaign, measured, analysis),
        exclusions=campaign.exclusions,
        winners=winners_table(campaign, plan, analysis.runs, measures),
        tradeoffs=tradeoffs(campaign, measured, analysis.points),
        limits=sorted(limits(campaign)),
        several_sweeps=len(layouts) > 1,
        more_figures=_more_figures(figures.common_layout(campaign, plan), analysis),
        points=point_table(campaign, analysis.points, measured, measures),
        differences=difference_table(campaign, analysis.differences, plan, measures),
        definitions=[(MEASURES[name].title, name) for name in measures],
        failed=_failed(store, plan, over),
        missing=plan["run_id"].nunique() - len(over),
        command=manifest.command,
        environment=manifest.environment,
        campaign_file=manifest.text,
    )


def _facts(manifest: Manifest, plan: pd.DataFrame, over: list[Outcome], now: datetime) -> list[tuple[str, str]]:
    stop = manifest.campaign.stop
    seeds = plan.groupby("point")["seed"].nunique()
    each = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    rule = f", until {stop.measure} is known to ± {stop.half_width or f'{stop.relative:.1%}'}" if stop else ""
    return [
        ("runs", f"{len(over):,} of {plan['run_id'].nunique():,}"),
        ("points", f"{plan['point'].nunique()}"),
        ("seeds per point", each + rule),
        ("simulated in", f"{sum(outcome.wall_s for outcome in over):,.0f} s of one core"),
        ("written", now.strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _measure_figures(layouts: list[figures.Layout], analysis: Analysis, measures: list[str]) -> list[PageFigure]:
    return [
        PageFigure(MEASURES[name].title, _caption(name), figures.measure_figure(layouts, analysis.points, name))
        for name in measures
        if (analysis.points["measure"] == name).any()
    ]


def _pictures(campaign: Campaign, plan: pd.DataFrame, analysis: Analysis) -> list[PageFigure]:
    """Of decisions: the map and the profiles."""
    if not decisions(campaign, plan, analysis.runs):
        return []
    drawn = [
        PageFigure("Map", MAP_CAPTION, decision_map(campaign, plan, analysis.runs)),
        PageFigure("Profiles", PROFILE_CAPTION, profiles(campaign, plan, analysis.points)),
    ]
    return [each for each in drawn if each.svg]


def _caption(name: str) -> str:
    better = MEASURES[name].better
    return f"{name}; {better} is better" if better else name


def _more_figures(layout: figures.Layout, analysis: Analysis) -> list[PageFigure]:
    where = f", {layout.last_title}" if layout.last_title else ""
    drawn: list[PageFigure] = []

    def add(source: tuple[pd.DataFrame, Any], measure: str, title: str, axis: str, caption: str) -> None:
        table, draw = source
        if (table["measure"] == measure).any():
            drawn.append(PageFigure(title, caption + where, draw(layout, table, measure, axis)))

    over_time = (analysis.timeline, figures.timeline_figure)
    add(over_time, "delivery_ratio", "Delivery over time", "Delivery ratio", "by time of publication")
    add(over_time, "frames_per_s", "Traffic over time", "Frames per s", "all nodes together")
    parts = (analysis.breakdowns, figures.parts_figure)
    add(parts, "frames", "Frames by message", "frames per run", "mean per run")
    add(parts, "frames_lost", "Receptions lost at the radio", "receptions per run", "by reason")
    add(parts, "dropped", "Dropped by the protocol", "drops per run", "by reason")
    return drawn


def _failed(store: Store, plan: pd.DataFrame, over: list[Outcome]) -> list[dict[str, Any]]:
    described = plan.drop_duplicates("run_id").set_index("run_id").to_dict("index")
    return [
        {
            "run_id": outcome.run_id,
            "protocol": described[outcome.run_id]["protocol"],
            "seed": described[outcome.run_id]["seed"],
            "error": outcome.detail,
            "command": store.replay_command(outcome.run_id),
        }
        for outcome in over
        if outcome.failed
    ]
