"""Pictures of decisions: a map of who to choose where, and a profile of every protocol."""

from statistics import median
from typing import Any

import pandas as pd

from roamcast.campaign.file import Campaign
from roamcast.report.contenders import colours, limits
from roamcast.report.decisions import AIRTIME, QUESTIONS, Choice, Decision, decisions
from roamcast.report.drawing import Drawing, Spec, View, chart, drawing, paint, panelled
from roamcast.report.layouts import Layout, common_layout, layouts_of
from roamcast.report.wording import number, setting_value
from roamcast.trace.measures import MEASURES

WORST = "at its worst place"
ASPECTS = {
    "delivery_ratio": "delivers",
    "within_100ms": "in 100 ms",
    "airtime_per_delivery_ms": "airtime",
    "maintenance_ms_per_node_s": "upkeep",
    "startup_ms_per_node": "start-up",
    "energy_mj_per_delivery": "energy",
}
"""Measure -> what a profile calls it."""

MAP_CAPTION = (
    "which protocol to choose if delivery, delivery within 100 ms or airtime matters most; where axes cross, airtime; "
    "faint, with a plus: the number of others that could not be ruled out"
)
CROSSED_CAPTION = (
    "the least airtime per delivery among those that deliver 95 % of what the best delivers; faint, with a plus: the "
    "number of others that could not be ruled out"
)
PROFILE_CAPTION = (
    "where all sweeps meet; shares as they are, costs as m / (m + cost), where m is the median: 0.5 is the median, 1 "
    "is free"
)

SHORT_QUESTIONS = dict(zip(QUESTIONS, ("delivery", "100 ms", "airtime"), strict=True))


def decision_map(campaign: Campaign, plan: pd.DataFrame, runs: pd.DataFrame) -> Drawing | None:
    """For every grid a panel: along x its first axis, along y its second one, or what matters. None without choices."""
    found = {decision.place: decision for decision in decisions(campaign, plan, runs)}
    rows: list[dict[str, Any]] = []
    for layout in layouts_of(campaign, plan):
        placed = layout.placed(plan.drop_duplicates("place")[["point"]])
        if layout.x is not None:
            rows += _crossed(layout, placed, found) if layout.panels else _strip(layout, placed, found)
    if not rows:
        return None
    spec = chart("map")
    chosen = {str(row["protocol"]) for row in rows}
    mine = {label: colour for label, colour in colours(campaign).items() if label in chosen}
    if len(mine) == len(chosen):  # else names carry parameters that are swept, and colours come as they may
        spec["spec"]["layer"][0]["encoding"]["color"]["scale"] = {"domain": list(mine), "range": list(mine.values())}
    return _filled(spec, rows, "panel")


def _strip(layout: Layout, placed: pd.DataFrame, found: dict[int, Decision]) -> list[dict[str, Any]]:
    """One axis: a column per value, a row for each thing that may count."""
    rows = []
    for row in _along(layout, placed):
        decision = found.get(int(row["place"]))
        for measure, choice in (decision.choices if decision else {}).items():
            rows.append(_tile(_value(layout, row["x"]), SHORT_QUESTIONS[measure], layout.x_title, choice, measure))
    return rows


def _crossed(layout: Layout, placed: pd.DataFrame, found: dict[int, Decision]) -> list[dict[str, Any]]:
    """Several axes: the first two span the map, the others make panels; by airtime."""
    up, *others = layout.panels
    rows = []
    for row in _along(layout, placed.sort_values(up, key=_comparable, kind="stable")):
        decision = found.get(int(row["place"]))
        if decision is not None and AIRTIME in decision.choices:
            panel = ", ".join([*(setting_value(name, row[name]) for name in others), f"{layout.x_title} →"])
            y = setting_value(up, row[up])
            rows.append(_tile(_value(layout, row["x"]), y, panel, decision.choices[AIRTIME], AIRTIME))
    return rows


def _along(layout: Layout, placed: pd.DataFrame) -> list[dict[Any, Any]]:
    return (placed.sort_values("x", kind="stable") if layout.is_numeric else placed).to_dict("records")


def _comparable(values: "pd.Series[Any]") -> "pd.Series[Any]":
    numbers = pd.to_numeric(values, errors="coerce")
    return values if numbers.isna().any() else numbers


def _tile(x: str, y: str, panel: str, choice: Choice, measure: str) -> dict[str, Any]:
    more = len(choice.result.level)
    return {
        "x": x,
        "y": y,
        "panel": panel,
        "protocol": choice.result.best,
        "alone": not more,
        "names": ", ".join(choice.names),
        "label": choice.result.best + (f" +{more}" if more else ""),
        "figure": f"{number(round(choice.mean, 3))} {MEASURES[measure].unit}".strip(),
    }


def _value(layout: Layout, value: Any) -> str:
    return f"{value:g}" if layout.is_numeric else str(value)


def profiles(campaign: Campaign, plan: pd.DataFrame, points: pd.DataFrame) -> Drawing | None:
    """A small bar chart per protocol at the place that all sweeps share. None where nothing is known."""
    layout = common_layout(campaign, plan)
    measures = [name for name in ASPECTS if (points["measure"] == name).any()]
    beyond = limits(campaign)
    rows: list[dict[str, Any]] = []
    for measure in measures:
        here = layout.last(layout.placed(points[points["measure"] == measure])).drop_duplicates("protocol")
        rows += _bars(here, measure, beyond)
        if measure == "delivery_ratio":
            rows += _worst(points, plan)
    spec = chart("profiles")
    paint(spec["spec"]["layer"][0]["encoding"]["color"], colours(campaign))
    order = {contender.label: at for at, contender in enumerate(campaign.contenders)}
    rows.sort(key=lambda row: order[row["protocol"]])
    return _filled(spec, rows, "protocol") if rows else None


def _filled(spec: Spec, rows: list[dict[str, Any]], panel: str) -> Drawing:
    """With panels in the order of the rows, as many as there are."""
    table = pd.DataFrame(rows)
    return drawing(table, list(table.columns), [View("", panelled(spec, table[panel].unique()))])


def _bars(here: pd.DataFrame, measure: str, beyond: set[str]) -> list[dict[str, Any]]:
    """Shares as they are. Costs as m / (m + cost), where m is the median of those that can be deployed: 1 is free."""
    middle = median(here.loc[~here["protocol"].isin(beyond), "mean"].dropna().tolist() or [0.0])
    rows = []
    for label, mean in zip(here["protocol"], here["mean"], strict=True):
        if mean != mean:
            continue
        score = mean if MEASURES[measure].most == 1 else (middle / (middle + mean) if middle + mean > 0 else 1.0)
        figure = f"{number(float(f'{mean:.3g}'))} {MEASURES[measure].unit}".strip()
        rows.append({"protocol": label, "aspect": ASPECTS[measure], "score": score, "figure": figure})
    return rows


def _worst(points: pd.DataFrame, plan: pd.DataFrame) -> list[dict[str, Any]]:
    labels = plan.drop_duplicates("point").set_index("point")["protocol"]
    delivered = points[points["measure"] == "delivery_ratio"]
    least = delivered["mean"].groupby(delivered["point"].map(labels)).min().dropna()
    return [
        {"protocol": str(label), "aspect": WORST, "score": mean, "figure": number(float(f"{mean:.3g}"))}
        for label, mean in least.items()
    ]
