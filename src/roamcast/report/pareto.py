"""Trade-offs: how much of one measure the next better value of another costs.

A contender is on the *front* if no other has both a better mean delivery ratio and a better mean of the cost: any other
choice is worse, whatever the weights. Limits (`Protocol.is_limit`) are shown, but do not compete.
"""

from typing import Any, NamedTuple

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.protocols.catalogue import protocol_class
from roamcast.report import figures
from roamcast.report.figures import Layout
from roamcast.trace.measures import MEASURES

GAIN = "delivery_ratio"
COSTS = {"airtime_per_delivery_ms": "airtime", "latency_ms_mean": "latency"}
BASE = "where all sweeps meet"
COLUMNS = ["cost", "cost_low", "cost_high", "gain", "gain_low", "gain_high", "protocol", "panel", "front", "limit"]


class Tradeoff(NamedTuple):
    title: str
    caption: str
    svg: str


def limits(campaign: Campaign) -> set[str]:
    """The labels of the limits."""
    return {contender.label for contender in campaign.contenders if protocol_class(contender.protocol).is_limit}


def tradeoffs(campaign: Campaign, plan: pd.DataFrame, points: pd.DataFrame) -> list[Tradeoff]:
    """Delivery against each cost; none if there are no contenders to compare."""
    beyond = limits(campaign)
    if len(campaign.contenders) - len(beyond) < 2:
        return []
    found = [(name, _rows(campaign, plan, points, name)) for name in COSTS]
    return [
        Tradeoff(
            f"Delivery against {COSTS[name]}",
            f"{GAIN} and {name}; up and to the left is better; dashed: the front; bars: 95 % confidence intervals",
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
    layouts = figures.layouts_of(campaign, plan)
    parts = [_end(layout, wide) for layout in layouts]
    if len(layouts) > 1:
        common = figures.common_layout(campaign, plan)
        parts.insert(0, common.placed(wide).assign(panel=BASE))
    return pd.concat(parts, ignore_index=True)


def _end(layout: Layout, wide: pd.DataFrame) -> pd.DataFrame:
    rows = layout.last(layout.placed(wide))
    return rows.assign(panel=[", ".join(filter(None, (layout.last_title, panel))) for panel in rows["panel"]])


def _wide(points: pd.DataFrame, measure: str, name: str) -> pd.DataFrame:
    rows = points[points["measure"] == measure]
    low, high = rows["low"].fillna(rows["mean"]), rows["high"].fillna(rows["mean"])
    return pd.DataFrame({"point": rows["point"], name: rows["mean"], f"{name}_low": low, f"{name}_high": high})


def _drawn(rows: pd.DataFrame, cost: str, campaign: Campaign) -> str:
    competing = rows[~rows["limit"]]
    on_front = pd.concat(
        [pd.Series(front(part), index=part.index) for _, part in competing.groupby("panel", sort=False)]
    )
    rows = rows.assign(front=on_front.reindex(rows.index, fill_value=False).astype(bool))
    most = MEASURES[GAIN].most
    rows = rows.assign(gain_high=rows["gain_high"].clip(upper=most), cost_low=rows["cost_low"].clip(lower=0))
    spec = figures.chart("pareto")
    encoding: dict[str, Any] = spec["spec"]["encoding"]
    encoding["color"]["sort"] = [contender.label for contender in campaign.contenders]
    encoding["x"]["axis"]["title"] = figures.axis_title(MEASURES[cost])
    encoding["y"]["axis"]["title"] = figures.axis_title(MEASURES[GAIN])
    if figures.spans_decades(rows["cost"]):
        encoding["x"]["scale"] = figures.logarithmic(rows["cost"])
        encoding["x"]["axis"] |= {"values": figures.decades(rows["cost"]), "format": "~g"}
    return figures.drawn(spec, rows, COLUMNS)
