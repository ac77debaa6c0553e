"""The report of a campaign: one HTML file that opens anywhere, without a network.

Its charts are drawn by Vega-Lite, which it carries along (`vendor/`). Until its script has run, on paper, and where
scripts are forbidden, the same charts are there as still pictures.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from roamcast.analysis.analyse import Analysis, confidence_of
from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import column_names
from roamcast.campaign.store import Manifest, RunOutcome, Store
from roamcast.report import page_figures
from roamcast.report.answers import answers
from roamcast.report.contenders import colours, limits
from roamcast.report.decisions import collapse_table, collapsed_points, decision_table
from roamcast.report.layouts import common_layout, layouts_of
from roamcast.report.tables import HEADLINES, difference_table, overview, parts, point_table, shown_measures
from roamcast.report.winners import winners_table
from roamcast.report.wording import setting_value
from roamcast.trace.measures import MEASURES

_HERE = Path(__file__).parent
_TEMPLATES = _HERE / "templates"
_VENDORED = ("vega", "vega-lite", "vega-embed")


def write_report(store: Store, analysis: Analysis) -> str:
    """Writes `report.html` into the campaign's directory, whole or not at all, and says where it is."""
    return store.write_report(render(store, analysis, datetime.now(UTC)))


def render(store: Store, analysis: Analysis, now: datetime) -> str:
    manifest = store.manifest()
    campaign = manifest.campaign
    plan = store.plan().drop_columns("run").to_pandas()
    outcomes = store.outcomes()
    over = [outcomes[name] for name in plan["run_id"].drop_duplicates() if name in outcomes]
    measures = _headlines_first(campaign, shown_measures(campaign, analysis.points))
    layouts = layouts_of(campaign, plan)
    measured = plan[plan["run_id"].isin(analysis.runs["run_id"])]
    pictures = page_figures.decision_figures(campaign, measured, analysis)
    tradeoffs = page_figures.tradeoff_figures(campaign, measured, analysis)
    figures = page_figures.measure_figures(layouts, analysis, measures)
    more_figures = page_figures.more_figures(common_layout(campaign, plan), analysis)
    everything = [*pictures, *tradeoffs, *figures, *more_figures]
    about = [" ".join(part.split()) for part in campaign.description.split("\n\n") if part.strip()]
    return _template().render(
        style=_text("campaign.css"),
        script=_text("campaign.js"),
        libraries=[_library(name) for name in _VENDORED],
        data=page_figures.script_data(store, campaign, analysis, measures, everything),
        title=campaign.title,
        lead=about[0] if about else "",
        description=about[1:],
        facts=_facts(manifest, plan, over, now),
        answers=answers(campaign, measured, analysis.runs),
        colours=colours(campaign),
        baseline=campaign.baseline,
        overview=overview(campaign, analysis.differences, plan, collapsed_points(campaign, measured, analysis.runs)),
        figures=figures,
        decisions=decision_table(campaign, measured, analysis.runs),
        collapses=collapse_table(campaign, measured, analysis.runs),
        pictures=pictures,
        exclusions=_exclusions(campaign),
        winners=parts(winners_table(campaign, plan, analysis.runs, measures, units=True)),
        tradeoffs=tradeoffs,
        limits=sorted(limits(campaign)),
        wide=len(layouts) > 1 or page_figures.are_many(campaign),
        more_figures=more_figures,
        points=parts(point_table(campaign, analysis.points, measured, measures)),
        differences=parts(difference_table(campaign, analysis.differences, plan, measures)),
        definitions=[(MEASURES[name].title, name, MEASURES[name].meaning) for name in measures],
        failed=_failed(store, plan, over),
        missing=plan["run_id"].nunique() - len(over),
        command=manifest.command,
        environment=manifest.environment,
        campaign_file=manifest.text,
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("campaign.html")


def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _library(name: str) -> str:
    """Without the address of its source map, which no report has."""
    source = (_HERE / "vendor" / f"{name}.min.js").read_text(encoding="utf-8")
    return re.sub(r"\n?//# sourceMappingURL=\S+\s*$", "", source)


def _headlines_first(campaign: Campaign, measures: list[str]) -> list[str]:
    """Unless the campaign file has an order of its own."""
    return measures if campaign.measures else sorted(measures, key=lambda name: name not in HEADLINES)


def _facts(manifest: Manifest, plan: pd.DataFrame, over: list[RunOutcome], now: datetime) -> list[tuple[str, str]]:
    stop = manifest.campaign.stop
    seeds = plan.groupby("point")["seed"].nunique()
    each = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    rule = ""
    if stop:
        known_to = f"± {stop.half_width} {MEASURES[stop.measure].unit}" if stop.half_width else f"± {stop.relative:.1%}"
        rule = f", until {MEASURES[stop.measure].title.lower()} is known to {known_to.strip()}"
    looks = []
    if stop and stop.looks > 1:
        level = f"{100 * confidence_of(manifest.campaign):.4g} %"
        looks = [("intervals", f"{level} each: the rule may look {stop.looks} times, and 95 % holds wherever it stops")]
    return [
        ("runs", f"{len(over):,} of {plan['run_id'].nunique():,}"),
        ("points", f"{plan['point'].nunique()}"),
        ("seeds per point", each + rule),
        *looks,
        ("simulated in", f"{sum(outcome.wall_s for outcome in over):,.0f} s of one core"),
        ("written", now.strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _exclusions(campaign: Campaign) -> list[tuple[str, str, str]]:
    """Who is left out, where, and why."""
    names = column_names(campaign)
    return [
        (
            ", ".join(it.protocols),
            " and ".join(setting_value(names.get(path, path), value) for path, value in it.where.items()),
            it.because,
        )
        for it in campaign.exclusions
    ]


def _failed(store: Store, plan: pd.DataFrame, over: list[RunOutcome]) -> list[dict[str, Any]]:
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
