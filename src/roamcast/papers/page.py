"""A figure's chart and page, from its summary alone: SVG, PNG and one HTML file that needs no network."""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup

from roamcast.papers.estimate import Estimate
from roamcast.papers.figure import X
from roamcast.papers.summary import Summary

_HERE = Path(__file__).parent
_PNG_SCALE = 2.0
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
CROWD = 6
"""Bands of more curves are fainter."""


def write_pages(summary: Summary, directory: Path) -> None:
    svg = vl_convert.vegalite_to_svg(json.dumps(chart(summary)))
    (directory / "figure.svg").write_text(svg, encoding="utf-8")
    on_white = json.dumps(chart(summary) | {"background": "white"})
    (directory / "figure.png").write_bytes(vl_convert.vegalite_to_png(on_white, scale=_PNG_SCALE))
    page = _templates().get_template("figure.html").render(summary=summary, svg=Markup(svg))
    (directory / "index.html").write_text(page, encoding="utf-8")


def chart(summary: Summary) -> dict[str, Any]:
    """The Vega-Lite specification of a figure."""
    spec: dict[str, Any] = json.loads((_HERE / "charts" / f"{summary.mark}.json").read_text(encoding="utf-8"))
    spec["config"] = json.loads((files("roamcast.report") / "charts" / "theme.json").read_text(encoding="utf-8"))
    kinds = families([point.curve for point in summary.points])
    spec["data"]["values"] = [
        {
            "curve": point.curve,
            "family": kinds[point.curve][0],
            "variant": kinds[point.curve][1],
            "x": point.x,
            "value": point.estimate.value,
            "low": point.estimate.value if point.estimate.low is None else point.estimate.low,
            "high": point.estimate.value if point.estimate.high is None else point.estimate.high,
        }
        for point in summary.points
    ]
    if summary.mark == "line":
        variants = list(dict.fromkeys(variant for _, variant in kinds.values()))
        dashed = spec["layer"][1]["encoding"]["strokeDash"]
        dashed["scale"] = {"domain": variants, "range": list(DASHES[: len(variants)])}
        if len(variants) > 1:
            told = [each for each in variants if each]
            dashed["legend"] = {
                "title": None,
                "orient": "bottom",
                "values": told,
                "symbolType": "stroke",
                "symbolSize": 400,
            }
        if len(kinds) > CROWD:
            spec["layer"][0]["mark"]["opacity"] /= 2
    spec["encoding"]["x"]["axis"] |= _axis(summary.x_title, summary.x_format)
    spec["layer"][0]["encoding"]["y"]["axis"] |= _axis(summary.y_title, summary.y_format)
    if summary.mark == "line" and len({point.x for point in summary.points}) <= 12:
        spec["encoding"]["x"]["axis"]["values"] = sorted({point.x for point in summary.points}, key=float)
    alt.Chart.from_dict(spec)  # refuses what is not Vega-Lite
    return spec


def families(curves: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and dash of each curve: "PS-MAODV, table" is drawn in the colour of PS-MAODV and the dashes of `table`, if
    several curves share the first. At most as many dashes as can be told apart; else each curve has its own colour."""
    split = {curve: (curve.rpartition(", ")[0] or curve, curve.rpartition(", ")[2]) for curve in curves}
    told = {curve: (family, variant if family != curve else "") for curve, (family, variant) in split.items()}
    shared = len({family for family, _ in told.values()}) < len(told)
    if shared and len({variant for _, variant in told.values()}) <= len(DASHES):
        return told
    return {curve: (curve, "") for curve in told}


def _axis(title: str, number_format: str) -> dict[str, str]:
    return {"title": title, "format": number_format} if number_format else {"title": title}


def interval(estimate: Estimate) -> str:
    """A value with its interval."""
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def number(value: X) -> str:
    """Three digits, thousands in full; names as they are."""
    if isinstance(value, str):
        return value
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "−")


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True)
    environment.filters |= {"interval": interval, "number": number}
    return environment
