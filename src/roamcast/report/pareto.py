"""Trade-offs: how much of one measure the next better value of another costs.

A contender is on the *front* if no other has both a better mean delivery ratio and a better mean of the cost: any other
choice is worse, whatever the weights. Limits (`Protocol.is_limit`) are shown, but do not compete.
"""

from typing import NamedTuple

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.report.contenders import colours, limits
from roamcast.report.drawing import (
    Drawing,
    View,
    axis_title,
    chart,
    decades,
    drawing,
    logarithmic,
    paint,
    panelled,
    spans_decades,
    with_ends,
)
from roamcast.report.figures import PANELS_MAX
from roamcast.report.layouts import Layout, common_layout, layouts_of
from roamcast.trace.measures import MEASURES

GAIN = "delivery_ratio"
COSTS = {"airtime_per_delivery_ms": "airtime", "latency_ms_mean": "latency"}
BASE = "where all sweeps meet"
COLUMNS = [
    *("cost", "cost_low", "cost_high", "cost_told", "gain", "gain_low", "gain_high", "gain_told"),
    *("protocol", "panel", "front", "limit", "point"),
]


class Tradeoff(NamedTuple):
    title: str
    caption: str
    drawing: Drawing


def tradeoffs(campaign: Campaign, plan: pd.DataFrame, points: pd.DataFrame) -> list[Tradeoff]:
    """Delivery against each cost; none if there are no contenders to compare."""
    beyond = limits(campaign)
    if len(campaign.contenders) - len(beyond) < 2:
        return []
    found = [(name, _rows(campaign, plan, points, name)) for name in COSTS]
    return [
        Tradeoff(
            f"Delivery against {COSTS[name]}",
            "up and to the left is better; dashed: the front; bars: 95 % confidence intervals",
            _drawn(rows.assign(limit=rows["protocol"].isin(beyond)), name, campaign),
        )
        for name, rows in found
        if not rows.empty
    ]


def front(rows: pd.DataFrame) -> list[bool]:
    """For each row, whether no other is at least as good in both respects and better in one."""
    pairs = list(zip(rows["gain"], rows["cost"], strict=True))
    return [
        not any(more >= gain and less <= cost and (more, less) != (gain, cost) for more, less in pairs)
        for gain, cost in pairs
    ]


def _rows(campaign: Campaign, plan: pd.DataFrame, points: pd.DataFrame, cost: str) -> pd.DataFrame:
    """One row per panel and contender: the place that all grids share, and the end of each grid."""
    wide = _wide(points, GAIN, "gain").merge(_wide(points, cost, "cost"), on="point")
    layouts = layouts_of(campaign, plan)
    parts = [_end(layout, wide) for layout in layouts]
    if len(layouts) > 1:
        common = common_layout(campaign, plan)
        parts.insert(0, common.placed(wide).assign(panel=BASE))
    return pd.concat(parts, ignore_index=True)


def _end(layout: Layout, wide: pd.DataFrame) -> pd.DataFrame:
    rows = layout.last(layout.placed(wide))
    return rows.assign(panel=[", ".join(filter(None, (layout.last_title, panel))) for panel in rows["panel"]])


def _wide(points: pd.DataFrame, measure: str, name: str) -> pd.DataFrame:
    rows = with_ends(points[points["measure"] == measure], MEASURES[measure].unit)
    named = {"mean": name, "low": f"{name}_low", "high": f"{name}_high", "told": f"{name}_told"}
    return rows[["point", *named]].rename(columns=named)


def _drawn(rows: pd.DataFrame, cost: str, campaign: Campaign) -> Drawing:
    competing = rows[~rows["limit"]]
    on_front = pd.concat(
        [pd.Series(front(part), index=part.index) for _, part in competing.groupby("panel", sort=False)]
    )
    rows = rows.assign(front=on_front.reindex(rows.index, fill_value=False).astype(bool))
    most = MEASURES[GAIN].most
    rows = rows.assign(gain_high=rows["gain_high"].clip(upper=most), cost_low=rows["cost_low"].clip(lower=0))
    panels = rows["panel"].unique()[:PANELS_MAX]
    spec = chart("pareto")
    encoding = spec["spec"]["encoding"]
    paint(encoding["color"], colours(campaign))
    encoding["x"]["axis"]["title"] = axis_title(MEASURES[cost])
    encoding["y"]["axis"]["title"] = axis_title(MEASURES[GAIN])
    *_, gain_told, cost_told = spec["spec"]["layer"][-1]["encoding"]["tooltip"]
    gain_told["title"], cost_told["title"] = MEASURES[GAIN].title, MEASURES[cost].title
    if spans_decades(rows["cost"]):
        encoding["x"]["scale"] = logarithmic(rows["cost"])
        encoding["x"]["axis"] |= {"values": decades(rows["cost"]), "format": "~g"}
    return drawing(rows[rows["panel"].isin(panels)], COLUMNS, [View("", panelled(spec, panels))])
