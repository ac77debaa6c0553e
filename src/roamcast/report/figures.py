"""The report's figures: Vega-Lite specifications from `charts/`, filled with data and drawn as SVG.

The specifications use fixed field names (`x`, `mean`, `low`, `high`, `protocol`, `panel`), so that a figure is one
table and two axis titles. Altair checks each against the Vega-Lite schema; vl-convert draws it without a browser.
"""

import itertools
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from roamcast.campaign.file import Campaign
from roamcast.campaign.grid import Axis
from roamcast.campaign.plan import SWEEPS, column_names
from roamcast.report.wording import setting_title, setting_value
from roamcast.trace.measures import MEASURES, Measure

_CHARTS = Path(__file__).with_name("charts")
_numbers = itertools.count()

WIDE_PX = 640
PANELS_MAX = 6
SWEEP_PX = 370
TICKS_MAX = 12
BANDS_MAX = 4  # more bands would hide each other; their intervals are drawn as bars
LOGARITHMIC_ABOVE = 20  # an axis whose largest value is this many times its smallest is logarithmic
CURVE_COLUMNS = ["x", "mean", "low", "high", "protocol", "panel"]


class Layout:
    """How the axes of a grid are shown: one along x, the others as panels beside each other."""

    def __init__(self, campaign: Campaign, plan: pd.DataFrame, axes: tuple[Axis, ...]) -> None:
        names = column_names(campaign)
        leaders = [names[axis.paths[0]] for axis in axes]  # tied settings follow the first of them
        swept = [name for name in leaders if plan[name].nunique() > 1]
        self.x = max(swept, key=lambda name: (_is_numeric(plan[name]), plan[name].nunique()), default=None)
        self.panels = [name for name in swept if name != self.x]
        self.is_numeric = self.x is not None and _is_numeric(plan[self.x])
        self._points = plan.drop_duplicates("point").set_index("point")
        self.protocols = [contender.label for contender in campaign.contenders]

    @property
    def ticks(self) -> list[float]:
        """The values along a numeric x, as far as there is room for them."""
        return [] if self.x is None else sorted(set(pd.to_numeric(self._points[self.x].dropna()).tolist()))[:TICKS_MAX]

    @property
    def x_title(self) -> str:
        return "" if self.x is None else setting_title(self.x)

    def placed(self, table: pd.DataFrame) -> pd.DataFrame:
        """`table` with the columns `protocol`, `x` and `panel`, in the order of the campaign file."""
        placed = table.merge(self._points.reset_index(), on="point").sort_values("point", kind="stable")
        placed["x"] = "" if self.x is None else placed[self.x]
        placed["panel"] = [self._panel(row) for row in placed[self.panels].to_dict("records")] if self.panels else ""
        order = {label: place for place, label in enumerate(self.protocols)}
        placed = placed.sort_values("protocol", key=lambda labels: labels.map(order), kind="stable")
        return self._spread(placed)

    def _panel(self, row: dict[Any, Any]) -> str:
        return ", ".join(setting_value(name, value) for name, value in row.items() if value is not None)

    def last(self, placed: pd.DataFrame) -> pd.DataFrame:
        """The rows at the last value along x."""
        return placed if self.x is None else placed[placed["x"] == self._last(placed["x"])]

    @property
    def last_title(self) -> str:
        return "" if self.x is None else setting_value(self.x, self._points[self.x].dropna().iloc[-1])

    def _last(self, values: "pd.Series[Any]") -> Any:
        return values.max() if self.is_numeric else values.iloc[-1]

    def _spread(self, placed: pd.DataFrame) -> pd.DataFrame:
        """A contender without the swept parameter is the same all along x."""
        if self.x is None or not placed["x"].isna().any():
            everywhere = placed
        else:
            values = placed["x"].dropna().unique()
            constant = placed[placed["x"].isna()].drop(columns="x").merge(pd.DataFrame({"x": values}), how="cross")
            everywhere = pd.concat([placed[placed["x"].notna()], constant])
        return everywhere.assign(x=pd.to_numeric(everywhere["x"])) if self.is_numeric else everywhere


def layouts_of(campaign: Campaign, plan: pd.DataFrame) -> list[Layout]:
    """One per grid."""
    if SWEEPS not in plan:
        return [Layout(campaign, plan, campaign.sweeps[0])]
    return [Layout(campaign, plan[_in_sweep(plan, at)], axes) for at, axes in enumerate(campaign.sweeps)]


def common_layout(campaign: Campaign, plan: pd.DataFrame) -> Layout:
    """What stands for the whole where one grid is enough: the points that all grids share, or the first grid."""
    if SWEEPS in plan:
        memberships = [_in_sweep(plan, at) for at in range(len(campaign.sweeps))]
        shared = plan[[all(words) for words in zip(*memberships, strict=True)]]
        if not shared.empty:
            return Layout(campaign, shared, ())
    return layouts_of(campaign, plan)[0]


def _in_sweep(plan: pd.DataFrame, number: int) -> "pd.Series[bool]":
    return plan[SWEEPS].map(lambda text: str(number) in text.split())


def measure_figure(layouts: list[Layout], points: pd.DataFrame, name: str) -> str:
    """One measure along the axis of each layout, with confidence bands."""
    found = points[points["measure"] == name]
    found = found.assign(low=found["low"].fillna(found["mean"]), high=found["high"].fillna(found["mean"]))
    drawings = [(_measure_chart(layout, MEASURES[name], found), layout.placed(found)) for layout in layouts]
    if len(drawings) == 1:
        return drawn(*drawings[0], CURVE_COLUMNS)
    whole = chart("sweeps")
    for spec, rows in drawings:
        spec["spec"]["layer"][0]["encoding"]["y"]["axis"]["title"] = MEASURES[name].unit or None  # the page has a title
        for panel, part in rows.groupby("panel", sort=False):
            values = {"values": part[CURVE_COLUMNS].to_dict("records")}
            whole["concat"].append(
                spec["spec"] | {"data": values, "width": SWEEP_PX} | ({"title": panel} if panel else {})
            )
    return as_svg(whole)


def _measure_chart(layout: Layout, measure: Measure, points: pd.DataFrame) -> dict[str, Any]:
    spec = chart("lines" if layout.is_numeric else "dots")
    encoding = spec["spec"]["encoding"]
    encoding["x"]["axis"]["title"] = layout.x_title
    encoding["color"]["sort"] = layout.protocols
    if layout.is_numeric:
        encoding["x"]["axis"]["values"] = layout.ticks
    if len(layout.protocols) > BANDS_MAX:
        spec["spec"]["layer"][0]["mark"] = {"type": "rule", "strokeWidth": 2, "opacity": 0.4, "clip": True}
    _set_y(spec, axis_title(measure), measure.most, points)
    return spec


def timeline_figure(layout: Layout, timeline: pd.DataFrame, measure: str, title: str) -> str:
    """A measure over simulated time, at the last value of x in each panel."""
    rows = layout.last(layout.placed(timeline[timeline["measure"] == measure]))
    rows = rows.assign(low=rows["low"].fillna(rows["mean"]), high=rows["high"].fillna(rows["mean"])).sort_values("t")
    spec = chart("timeline")
    spec["spec"]["encoding"]["color"]["sort"] = layout.protocols
    known = MEASURES.get(measure)
    _set_y(spec, title, known.most if known else None, rows)
    return drawn(spec, rows, ["t", "mean", "low", "high", "protocol", "panel"])


def parts_figure(layout: Layout, breakdowns: pd.DataFrame, measure: str, title: str) -> str:
    """What the whole is made of, by message or reason, at the last value of x in each panel."""
    rows = layout.last(layout.placed(breakdowns[breakdowns["measure"] == measure]))
    spec = chart("parts")
    spec["spec"]["encoding"]["x"]["axis"]["title"] = title
    return drawn(spec, rows, ["key", "mean", "protocol", "panel"])


def axis_title(measure: Measure) -> str:
    return f"{measure.title}, {measure.unit}" if measure.unit else measure.title


def _is_numeric(values: "pd.Series[Any]") -> bool:
    return bool(pd.to_numeric(values.dropna(), errors="coerce").notna().all())


@cache
def _file(name: str) -> str:
    return (_CHARTS / f"{name}.json").read_text(encoding="utf-8")


def chart(name: str) -> dict[str, Any]:
    """A specification of its own, in the report's colours."""
    spec: dict[str, Any] = json.loads(_file(name))
    spec["config"] = json.loads(_file("theme"))
    return spec


def _set_y(spec: dict[str, Any], title: str, most: float | None, rows: pd.DataFrame) -> None:
    """An interval may reach beyond what is possible; the axis does not."""
    y = spec["spec"]["layer"][0]["encoding"]["y"]
    y["axis"]["title"] = title
    if most is not None and rows["high"].max() > most:
        y["scale"]["domainMax"] = most
    if most is None and spans_decades(rows["mean"]):
        y["scale"] = logarithmic(rows["mean"])
        y["axis"] |= {"values": decades(rows["mean"]), "format": "~g"}


def spans_decades(means: "pd.Series[Any]") -> bool:
    """Whether an even scale would press most of the values together."""
    positive = means[means > 0]
    return bool(means.min() >= 0 and len(positive) and positive.max() / positive.min() > LOGARITHMIC_ABOVE)


def logarithmic(means: "pd.Series[Any]") -> dict[str, Any]:
    """A scale of decades, with a place for 0 where it occurs. What is below it is shown at its lower end."""
    if means.min() == 0:
        return {"type": "symlog", "constant": means[means > 0].min(), "domainMin": 0, "clamp": True, "nice": False}
    return {"type": "log", "domainMin": means.min() / 1.5, "clamp": True, "nice": False}


def decades(means: "pd.Series[Any]") -> list[float]:
    """The ticks of such a scale, none above the largest mean: it ends where the data does."""
    positive = means[means > 0]
    exponents = range(math.ceil(math.log10(positive.min() / 1.5)), math.floor(math.log10(positive.max())) + 1)
    return [0.0] * bool(means.min() == 0) + [10.0**exponent for exponent in exponents]


def drawn(spec: dict[str, Any], rows: pd.DataFrame, columns: list[str]) -> str:
    """A specification with `facet`, filled."""
    panels = list(rows["panel"].unique()[:PANELS_MAX])
    rows = rows[rows["panel"].isin(panels)]
    if len(panels) == 1:
        spec["spec"]["width"] = WIDE_PX
    if panels == [""]:
        spec["facet"]["header"]["labels"] = False
    spec["facet"]["sort"] = panels
    spec["data"]["values"] = rows[columns].to_dict("records")
    return as_svg(spec)


def as_svg(spec: dict[str, Any]) -> str:
    alt.Chart.from_dict(spec)  # refuses what is not Vega-Lite
    return _embeddable(vl_convert.vegalite_to_svg(json.dumps(spec)))


def _embeddable(svg: str) -> str:
    """Several figures share a page: identifiers must differ, and the size follows the page."""
    prefix = f"figure{next(_numbers)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r"url\(#", f"url(#{prefix}", svg)
