"""Drawings: Vega-Lite specifications from `charts/`, the rows they show, and the scales they share.

The specifications use fixed field names (`x`, `mean`, `low`, `high`, `protocol`, `panel`) and read the dataset `rows`,
so that a drawing is one table and a few titles. A report's page draws them itself and lets its reader switch protocols
off (the parameter `hidden`); `svg` draws one without a browser. Tests hold each against the Vega-Lite schema.

A specification's `usermeta` says how the page fits it into the width it has: a panel is at least `panel_px` wide.
"""

import itertools
import json
import math
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import vl_convert

from roamcast.report.wording import with_interval
from roamcast.trace.measures import Measure

_CHARTS = Path(__file__).with_name("charts")
_numbers = itertools.count()

LOGARITHMIC_ABOVE = 20  # an axis whose largest value is this many times its smallest is logarithmic
TOUCH = "touch"  # the layer of large, invisible points that have tooltips and can be clicked

Spec = dict[str, Any]


class View(NamedTuple):
    """One way to show the rows of a drawing."""

    title: str  # what its tab says
    spec: Spec


class Drawing(NamedTuple):
    """The first view is for a page that is read, the last one for paper and pages without scripts."""

    rows: list[dict[str, Any]]
    views: list[View]

    @property
    def svg(self) -> str:
        return _as_svg(self.views[-1].spec | {"datasets": {"rows": self.rows}}, has_legend=True)

    @property
    def svg_without_legend(self) -> str:
        """For a page that has a legend of its own."""
        return _as_svg(self.views[-1].spec | {"datasets": {"rows": self.rows}}, has_legend=False)


def drawing(rows: pd.DataFrame, columns: list[str], views: list[View]) -> Drawing:
    records = rows[columns].to_dict("records")
    return Drawing([{str(name): brief(value) for name, value in row.items()} for row in records], views)


def brief(value: Any) -> Any:
    """Six digits are more than a screen can show; what is not a number is nothing."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


@cache
def _file(name: str) -> str:
    return (_CHARTS / f"{name}.json").read_text(encoding="utf-8")


def chart(name: str) -> Spec:
    """A specification of its own, in the report's style."""
    spec: Spec = json.loads(_file(name))
    spec["config"] = json.loads(_file("theme"))
    return spec


def paint(color: Spec, colours: dict[str, str]) -> None:
    """Gives every contender its colour, whichever are shown."""
    color["scale"] = {"domain": list(colours), "range": list(colours.values())}


def panelled(spec: Spec, panels: Iterable[str], wide_px: int | None = None) -> Spec:
    """With a facet for each panel, in this order. One alone may be wider."""
    names = list(panels)
    if len(names) == 1 and wide_px is not None:
        spec["spec"]["width"] = wide_px
    if names == [""]:
        spec["facet"]["header"]["labels"] = False
    spec["facet"]["sort"] = names
    spec["usermeta"]["panels"] = len(names)
    return spec


def axis_title(measure: Measure) -> str:
    return f"{measure.title}, {measure.unit}" if measure.unit else measure.title


def with_ends(rows: pd.DataFrame, unit: str = "") -> pd.DataFrame:
    """`told` has the mean and its interval as tables show them; an interval that is not known ends at the mean."""
    told = [
        f"{with_interval(mean, low, high)} {unit}".strip()
        for mean, low, high in zip(rows["mean"], rows["low"], rows["high"], strict=True)
    ]
    mean, low, high = (pd.to_numeric(rows[name]) for name in ("mean", "low", "high"))
    return rows.assign(told=told, mean=mean, low=low.fillna(mean), high=high.fillna(mean))


def set_y(y: Spec, title: str | None, most: float | None, rows: pd.DataFrame) -> None:
    """An interval may reach beyond what is possible; the axis does not."""
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


def logarithmic(means: "pd.Series[Any]") -> Spec:
    """A scale of decades, with a place for 0 where it occurs. What is below it is shown at its lower end."""
    if means.min() == 0:
        return {"type": "symlog", "constant": means[means > 0].min(), "domainMin": 0, "clamp": True, "nice": False}
    return {"type": "log", "domainMin": means.min() / 1.5, "clamp": True, "nice": False}


def decades(means: "pd.Series[Any]") -> list[float]:
    """The ticks of a logarithmic scale, which ends at the largest mean."""
    positive = means[means > 0]
    exponents = range(math.ceil(math.log10(positive.min() / 1.5)), math.floor(math.log10(positive.max())) + 1)
    return [0.0] * bool(means.min() == 0) + [10.0**exponent for exponent in exponents]


def _as_svg(spec: Spec, has_legend: bool) -> str:
    still = _without_touch(spec)
    still["config"] = still["config"] | {"aria": False}
    if not has_legend:
        still["config"]["legend"] = still["config"]["legend"] | {"disable": not spec["usermeta"].get("legend", False)}
    return _embeddable(vl_convert.vegalite_to_svg(json.dumps(still)))


def _without_touch(spec: Spec) -> Spec:
    """A copy without the layers that only a pointer finds."""
    copied = dict(spec)
    if "layer" in copied:
        copied["layer"] = [layer for layer in copied["layer"] if layer.get("name") != TOUCH]
    if "spec" in copied:
        copied["spec"] = _without_touch(copied["spec"])
    if "concat" in copied:
        copied["concat"] = [_without_touch(part) for part in copied["concat"]]
    return copied


def _embeddable(svg: str) -> str:
    """Several figures share a page: identifiers must differ, and the size follows the page."""
    prefix = f"figure{next(_numbers)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r"url\(#", f"url(#{prefix}", svg)
