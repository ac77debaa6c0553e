"""The figures of measures: along the axes of a campaign, over time, and by what they are made of."""

import json

import pandas as pd

from roamcast.report.drawing import (
    Drawing,
    Spec,
    View,
    axis_title,
    chart,
    drawing,
    paint,
    panelled,
    set_y,
    with_ends,
)
from roamcast.report.layouts import Layout
from roamcast.trace.measures import MEASURES, Measure

WIDE_PX = 640
PANELS_MAX = 6
SWEEP_PX = 370
BANDS_MAX = 4  # more bands would hide each other; their intervals are drawn as bars
TOGETHER_MAX = 6  # more lines would hide each other; each protocol gets a panel of its own
TOGETHER = "all in one"
PARTS_MAX = 19  # as many as have a colour of their own
OTHER_PARTS = "other"
CURVE_COLUMNS = ["x", "mean", "low", "high", "best", "told", "n", "protocol", "panel", "grid", "point"]


def measure_figure(layouts: list[Layout], points: pd.DataFrame, name: str) -> Drawing:
    """One measure along the axis of each layout, with confidence intervals."""
    measure = MEASURES[name]
    found = with_ends(points[points["measure"] == name], measure.unit)
    placed = [layout.placed(found).assign(grid=at) for at, layout in enumerate(layouts)]
    rows = pd.concat([_with_best(each, measure) for each in placed], ignore_index=True)
    views = []
    if len(layouts[0].protocols) > TOGETHER_MAX:
        for at, (layout, each) in enumerate(zip(layouts, placed, strict=True)):
            if layout.is_numeric:
                views += [_multiples(layout, measure, found, at, str(panel)) for panel in each["panel"].unique()]
    if len(layouts) == 1:
        spec = _measure_chart(layouts[0], measure, found)
        panels = list(placed[0]["panel"].unique()[:PANELS_MAX])
        spec["transform"].append({"filter": {"field": "panel", "oneOf": panels}})
        views.append(View(TOGETHER, panelled(spec, panels, WIDE_PX)))
    else:
        views.append(View(TOGETHER, _sweeps(layouts, placed, measure, found)))
    return drawing(rows, CURVE_COLUMNS, views)


def _with_best(placed: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """`best` is the best mean at the same place, none where neither way is better."""
    if not measure.better:
        return placed.assign(best=float("nan"))
    means = placed.groupby(["panel", "x"], sort=False)["mean"]
    return placed.assign(best=means.transform("max") if measure.better == "higher" else means.transform("min"))


def _multiples(layout: Layout, measure: Measure, found: pd.DataFrame, at: int, panel: str) -> View:
    """A panel for each protocol, with the best of all behind it."""
    spec = chart("multiples")
    inner = spec["spec"]
    inner["encoding"]["x"]["axis"] |= {"title": None, "values": layout.ticks}
    paint(inner["encoding"]["color"], layout.colours)
    set_y(inner["layer"][0]["encoding"]["y"], None, measure.most, found)
    _set_tooltip(inner, layout, measure.title)
    spec["transform"].append(_only(at, panel))
    spec["title"]["text"] = f"along x: {layout.x_title}; grey: the best of all"
    if not measure.better:
        spec["title"]["text"] = f"along x: {layout.x_title}"
    return View(", ".join(filter(None, (f"by {layout.x_title}", panel))), panelled(spec, layout.protocols))


def _sweeps(layouts: list[Layout], placed: list[pd.DataFrame], measure: Measure, found: pd.DataFrame) -> Spec:
    """All protocols together, a panel for each sweep."""
    whole = chart("sweeps")
    for at, (layout, rows) in enumerate(zip(layouts, placed, strict=True)):
        spec = _measure_chart(layout, measure, found)["spec"]
        spec["layer"][0]["encoding"]["y"]["axis"]["title"] = measure.unit or None  # the page has a title
        for panel in rows["panel"].unique():
            part = spec | {"transform": [_only(at, str(panel))], "width": SWEEP_PX}
            whole["concat"].append(part | ({"title": str(panel)} if panel else {}))
    whole["usermeta"]["panels"] = len(whole["concat"])
    return whole


def _only(grid: int, panel: str) -> Spec:
    return {"filter": f"datum.grid === {grid} && datum.panel === {json.dumps(panel)}"}


def _measure_chart(layout: Layout, measure: Measure, points: pd.DataFrame) -> Spec:
    spec = chart("lines" if layout.is_numeric else "dots")
    inner = spec["spec"]
    inner["encoding"]["x"]["axis"]["title"] = layout.x_title
    paint(inner["encoding"]["color"], layout.colours)
    if layout.is_numeric:
        inner["encoding"]["x"]["axis"]["values"] = layout.ticks
    if layout.x is None:  # one place: its protocols stand side by side
        del inner["encoding"]["xOffset"]
        inner["encoding"]["x"] |= {"field": "protocol", "axis": {"title": None, "labelAngle": -35}}
    if len(layout.protocols) > BANDS_MAX:
        inner["layer"][0]["mark"] = {"type": "rule", "strokeWidth": 2, "opacity": 0.4, "clip": True}
    set_y(inner["layer"][0]["encoding"]["y"], axis_title(measure), measure.most, points)
    _set_tooltip(inner, layout, measure.title)
    return spec


def _set_tooltip(inner: Spec, layout: Layout, title: str) -> None:
    told: list[Spec] = [{"field": "protocol", "title": "protocol"}]
    if layout.x is not None:
        told.append({"field": "x", "title": layout.x_title})
    if layout.panels:
        told.append({"field": "panel", "title": "where"})
    told += [{"field": "told", "title": title}, {"field": "n", "title": "runs"}]
    inner["layer"][-1]["encoding"]["tooltip"] = told


def timeline_figure(layout: Layout, timeline: pd.DataFrame, measure: str, title: str) -> Drawing:
    """A measure over simulated time, at the last value of x in each panel."""
    found = layout.last(layout.placed(timeline[timeline["measure"] == measure])).sort_values("t", kind="stable")
    rows = _of_some_panels(with_ends(found))
    most = MEASURES[measure].most if measure in MEASURES else None
    columns = ["t", "mean", "low", "high", "told", "protocol", "panel", "point"]
    many = len(layout.protocols) > TOGETHER_MAX
    views = []
    for field in (["protocol"] if many and rows["panel"].nunique() == 1 else []) + ["panel"]:
        spec = chart("timeline")
        inner = spec["spec"]
        spec["facet"]["field"] = field
        paint(inner["encoding"]["color"], layout.colours)
        inner["layer"][-1]["encoding"]["tooltip"][-1]["title"] = title
        set_y(inner["layer"][0]["encoding"]["y"], title if field == "panel" else None, most, rows)
        if field == "panel":
            views.append(View(TOGETHER, panelled(spec, rows["panel"].unique(), WIDE_PX)))
        else:
            inner["height"] = 90
            spec["usermeta"] |= {"panel_px": 150, "columns": 5}
            views.append(View("by protocol", panelled(spec, layout.protocols)))
    return drawing(rows, columns, views)


def parts_figure(layout: Layout, breakdowns: pd.DataFrame, measure: str, title: str) -> Drawing:
    """What the whole is made of, by message or reason, at the last value of x in each panel."""
    found = _of_some_panels(layout.last(layout.placed(breakdowns[breakdowns["measure"] == measure])))
    largest = list(found.groupby("key")["mean"].sum().nlargest(PARTS_MAX).index)
    named = found.assign(key=found["key"].where(found["key"].isin(largest), OTHER_PARTS))
    rows = named.groupby(["protocol", "panel", "point", "key"], sort=False)["mean"].sum().reset_index()
    spec = chart("parts")
    encoding = spec["spec"]["encoding"]
    encoding["color"]["scale"]["domain"] = [key for key in (*largest, OTHER_PARTS) if (rows["key"] == key).any()]
    encoding["x"]["axis"]["title"] = title
    encoding["tooltip"][-1]["title"] = title
    encoding["y"]["sort"] = layout.protocols
    view = View("", panelled(spec, rows["panel"].unique(), WIDE_PX))
    return drawing(rows, ["key", "mean", "protocol", "panel", "point"], [view])


def _of_some_panels(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["panel"].isin(rows["panel"].unique()[:PANELS_MAX])]
