"""The report's figures: Vega-Lite specifications from `charts/`, filled with data and drawn as SVG.

The specifications use fixed field names (`x`, `mean`, `low`, `high`, `protocol`, `panel`), so that a figure is one
table and two axis titles. Altair checks each against the Vega-Lite schema; vl-convert draws it without a browser.
"""

import itertools
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from roamcast.campaign.file import Campaign
from roamcast.campaign.plan import column_names
from roamcast.report.wording import setting_title, setting_value
from roamcast.trace.measures import MEASURES, Measure

_CHARTS = Path(__file__).with_name("charts")
_numbers = itertools.count()

WIDE_PX = 640
PANELS_MAX = 6


class Layout:
    """How a campaign's axes are shown: one along x, the others as panels beside each other."""

    def __init__(self, campaign: Campaign, plan: pd.DataFrame) -> None:
        names = column_names(campaign)
        leaders = [names[axis.paths[0]] for axis in campaign.axes]  # tied settings follow the first of them
        swept = [name for name in leaders if plan[name].nunique() > 1]
        self.x = max(swept, key=lambda name: (_is_numeric(plan[name]), plan[name].nunique()), default=None)
        self.panels = [name for name in swept if name != self.x]
        self.is_numeric = self.x is not None and _is_numeric(plan[self.x])
        self._points = plan.drop_duplicates("point").set_index("point")
        self.protocols = [contender.label for contender in campaign.contenders]

    @property
    def x_title(self) -> str:
        return "" if self.x is None else setting_title(self.x)

    def placed(self, table: pd.DataFrame) -> pd.DataFrame:
        """`table` with the columns `protocol`, `x` and `panel`, in the order of the campaign file."""
        placed = table.join(self._points, on="point").sort_values("point", kind="stable")
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


def measure_figure(layout: Layout, points: pd.DataFrame, name: str) -> str:
    """One measure along the layout's axis, with confidence bands."""
    measure = MEASURES[name]
    rows = layout.placed(points[points["measure"] == name])
    rows = rows.assign(low=rows["low"].fillna(rows["mean"]), high=rows["high"].fillna(rows["mean"]))
    spec = _spec("lines" if layout.is_numeric else "dots")
    spec["spec"]["encoding"]["x"]["axis"]["title"] = layout.x_title
    if layout.is_numeric:
        spec["spec"]["encoding"]["x"]["axis"]["values"] = sorted(rows["x"].unique().tolist())[:12]
    _set_y(spec, axis_title(measure), measure.most, rows)
    return _drawn(spec, rows, ["x", "mean", "low", "high", "protocol", "panel"])


def timeline_figure(layout: Layout, timeline: pd.DataFrame, measure: str, title: str) -> str:
    """A measure over simulated time, at the last value of x in each panel."""
    rows = layout.last(layout.placed(timeline[timeline["measure"] == measure]))
    rows = rows.assign(low=rows["low"].fillna(rows["mean"]), high=rows["high"].fillna(rows["mean"])).sort_values("t")
    spec = _spec("timeline")
    spec["spec"]["encoding"]["color"]["sort"] = layout.protocols
    known = MEASURES.get(measure)
    _set_y(spec, title, known.most if known else None, rows)
    return _drawn(spec, rows, ["t", "mean", "low", "high", "protocol", "panel"])


def parts_figure(layout: Layout, breakdowns: pd.DataFrame, measure: str, title: str) -> str:
    """What the whole is made of, by message or reason, at the last value of x in each panel."""
    rows = layout.last(layout.placed(breakdowns[breakdowns["measure"] == measure]))
    spec = _spec("parts")
    spec["spec"]["encoding"]["x"]["axis"]["title"] = title
    return _drawn(spec, rows, ["key", "mean", "protocol", "panel"])


def axis_title(measure: Measure) -> str:
    return f"{measure.title}, {measure.unit}" if measure.unit else measure.title


def _is_numeric(values: "pd.Series[Any]") -> bool:
    return bool(pd.to_numeric(values.dropna(), errors="coerce").notna().all())


@cache
def _file(name: str) -> str:
    return (_CHARTS / f"{name}.json").read_text(encoding="utf-8")


def _spec(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(_file(name))
    spec["config"] = json.loads(_file("theme"))
    return spec


def _set_y(spec: dict[str, Any], title: str, most: float | None, rows: pd.DataFrame) -> None:
    """An interval may reach beyond what is possible; the axis does not."""
    y = spec["spec"]["layer"][0]["encoding"]["y"]
    y["axis"]["title"] = title
    if most is not None and rows["high"].max() > most:
        y["scale"]["domainMax"] = most


def _drawn(spec: dict[str, Any], rows: pd.DataFrame, columns: list[str]) -> str:
    panels = rows["panel"].unique()[:PANELS_MAX]
    rows = rows[rows["panel"].isin(panels)]
    if len(panels) == 1:
        spec["spec"]["width"] = WIDE_PX
    if list(panels) == [""]:
        spec["facet"]["header"]["labels"] = False
    spec["data"]["values"] = rows[columns].to_dict("records")
    alt.Chart.from_dict(spec)  # refuses what is not Vega-Lite
    return _embeddable(vl_convert.vegalite_to_svg(json.dumps(spec)))


def _embeddable(svg: str) -> str:
    """Several figures share a page: identifiers must differ, and the size follows the page."""
    prefix = f"figure{next(_numbers)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r"url\(#", f"url(#{prefix}", svg)
