"""A still map of the network at one instant, as a self-contained SVG.

It shows the area, who hears whom, the partitions that stand at that instant, and by colour how the network falls apart:
the largest component, nodes in smaller ones, and nodes without neighbours. Imported movements are drawn as faint lines,
whole; nodes that are not present at that instant are left out. North is up.
"""

from dataclasses import dataclass
from math import floor, log10
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from roamcast.world.contacts import ContactPlan
from roamcast.world.mobility import Movements
from roamcast.world.scenario import Partition, Scenario

LONGER_SIDE_PX = 840
MARGIN_PX = 32
HEADER_PX = 76
FOOTER_PX = 88
NARROWEST_PX = 560  # leaves room for the legend
LABELLED_NODES = 40  # beyond this, numbers would hide the map

INK, FADED, BORDER = "#1f2933", "#66737f", "#9aa5b1"
LINK = "#a9b7c6"
LARGEST, SMALLER, ALONE = "#1d6fb8", "#e08a1e", "#ffffff"
PARTITION = "#c2334d"
TRACE = "#d9c9a3"


@dataclass(frozen=True)
class _Frame:
    """Turns metres into pixels. It holds the area and every node, also those that a file puts outside of it."""

    west_m: float
    north_m: float
    px_per_m: float
    width_px: float
    height_px: float
    left_px: float

    @classmethod
    def around(cls, area_m: tuple[float, float], positions_m: NDArray[np.float64]) -> "_Frame":
        corners_m = np.vstack((positions_m, np.array([(0.0, 0.0), area_m])))
        (west_m, south_m), (east_m, north_m) = corners_m.min(axis=0), corners_m.max(axis=0)
        px_per_m = LONGER_SIDE_PX / max(east_m - west_m, north_m - south_m)
        width_px = (east_m - west_m) * px_per_m
        left_px = MARGIN_PX + max(0.0, NARROWEST_PX - width_px) / 2
        height_px = (north_m - south_m) * px_per_m
        return cls(west_m, north_m, px_per_m, width_px=width_px, height_px=height_px, left_px=left_px)

    def x_px(self, x_m: float) -> float:
        return self.left_px + (x_m - self.west_m) * self.px_per_m

    def y_px(self, y_m: float) -> float:
        return HEADER_PX + (self.north_m - y_m) * self.px_per_m


def still_map(scenario: Scenario, movements: Movements, plan: ContactPlan, t_s: float) -> str:
    """`plan` holds the contacts of `movements` in `scenario`, partitions applied."""
    positions_m = movements.positions(t_s)
    frame = _Frame.around(scenario.area_m, positions_m)
    width_px = max(frame.width_px, NARROWEST_PX) + 2 * MARGIN_PX
    height_px = HEADER_PX + frame.height_px + FOOTER_PX
    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width_px:.0f} {height_px:.0f}",
            "width": f"{width_px:.0f}",
            "height": f"{height_px:.0f}",
            "font-family": "Helvetica, Arial, sans-serif",
        },
    )
    _add(svg, "rect", x=0, y=0, width=width_px, height=height_px, fill="#ffffff")
    _header(svg, scenario, plan, t_s)
    standing = [part for part in scenario.partitions() if part.from_s <= t_s < part.until_s]
    _area(svg, frame, scenario.area_m, standing)
    if scenario.mobility.model == "movements":
        _traces(svg, frame, movements, scenario.duration_s)
    _links(svg, frame, positions_m, plan, t_s)
    _nodes(svg=svg, frame=frame, scenario=scenario, positions_m=positions_m, plan=plan, t_s=t_s)
    _legend(svg, HEADER_PX + frame.height_px + 34, partitioned=bool(standing))
    _scale(svg, frame, scenario, width_px - MARGIN_PX, HEADER_PX + frame.height_px + 34)
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def _header(svg: ElementTree.Element, scenario: Scenario, plan: ContactPlan, t_s: float) -> None:
    links = len(plan.at(t_s)[0])
    share = np.bincount(plan.components(t_s)).max() / plan.nodes
    width_m, height_m = scenario.area_m
    title = f"{plan.nodes} nodes ({scenario.mobility.model}) at {t_s:g} s"
    facts = (
        f"{width_m:g} m × {height_m:g} m · range {scenario.radio.range_m:g} m · {links} links · "
        f"mean degree {2 * links / plan.nodes:.1f} · largest component {share:.0%}"
    )
    _text(svg, MARGIN_PX, 32, title, size=19, colour=INK, weight="bold")
    _text(svg, MARGIN_PX, 54, facts, size=13, colour=FADED)


def _area(
    svg: ElementTree.Element, frame: _Frame, area_m: tuple[float, float], standing: list[Partition]
) -> None:
    def rectangle(west_m: float, south_m: float, east_m: float, north_m: float, **style: str) -> None:
        x_px, y_px = frame.x_px(west_m), frame.y_px(north_m)
        _add(svg, "rect", x=x_px, y=y_px, width=frame.x_px(east_m) - x_px, height=frame.y_px(south_m) - y_px, **style)

    width_m, height_m = area_m
    rectangle(0.0, 0.0, width_m, height_m, fill="#f7f9fb", stroke=BORDER, stroke_width="1.5")
    for part in standing:
        # A partition may be larger than the area; what lies outside is not drawn.
        west_m, east_m = max(part.west_m, 0.0), min(part.east_m, width_m)
        south_m, north_m = max(part.south_m, 0.0), min(part.north_m, height_m)
        if west_m < east_m and south_m < north_m:
            style = {"fill": PARTITION, "fill_opacity": "0.07", "stroke": PARTITION, "stroke_width": "1.8"}
            rectangle(west_m, south_m, east_m, north_m, **style, stroke_dasharray="7 5")


def _traces(svg: ElementTree.Element, frame: _Frame, movements: Movements, end_s: float) -> None:
    for node in range(movements.nodes):
        corners = movements.until(node, end_s)
        if len(corners) > 1:
            places = (f"{frame.x_px(x_m):.1f} {frame.y_px(y_m):.1f}" for _, x_m, y_m in corners)
            _add(svg, "polyline", points=" ".join(places), stroke=TRACE, stroke_width="1.0", fill="none")


def _links(
    svg: ElementTree.Element, frame: _Frame, positions_m: NDArray[np.float64], plan: ContactPlan, t_s: float
) -> None:
    """One path for all: thousands of line elements would make the file heavy."""
    strokes: list[str] = []
    for a, b in zip(*(ends.tolist() for ends in plan.at(t_s)), strict=True):
        (from_x_m, from_y_m), (to_x_m, to_y_m) = positions_m[a], positions_m[b]
        start = f"{frame.x_px(from_x_m):.1f} {frame.y_px(from_y_m):.1f}"
        strokes.append(f"M{start}L{frame.x_px(to_x_m):.1f} {frame.y_px(to_y_m):.1f}")
    if strokes:
        width = min(1.2, max(0.35, 60 / len(strokes) ** 0.6))
        _add(svg, "path", d="".join(strokes), stroke=LINK, stroke_width=f"{width:.2f}", fill="none")


def _nodes(
    svg: ElementTree.Element,
    frame: _Frame,
    scenario: Scenario,
    positions_m: NDArray[np.float64],
    plan: ContactPlan,
    t_s: float,
) -> None:
    names, present = scenario.mobility.names, scenario.mobility.present
    components = plan.components(t_s)
    sizes = np.bincount(components, minlength=plan.nodes)
    largest = int(sizes.argmax())
    radius_px = min(6.0, max(1.6, 60 / plan.nodes**0.5))
    for node, (x_m, y_m) in enumerate(positions_m.tolist()):
        if present and not present[node][0] <= t_s < present[node][1]:
            continue
        colour = LARGEST if components[node] == largest else SMALLER
        if sizes[components[node]] == 1:
            colour = ALONE
        named = f"node {node} ({names[node]})" if names else f"node {node}"
        circle = _dot(svg, frame.x_px(x_m), frame.y_px(y_m), radius_px, colour)
        ElementTree.SubElement(circle, "title").text = f"{named} at {x_m:.1f}, {y_m:.1f}"
    if plan.nodes <= LABELLED_NODES:
        for node, (x_m, y_m) in enumerate(positions_m.tolist()):
            if present and not present[node][0] <= t_s < present[node][1]:
                continue
            x_px, y_px = frame.x_px(x_m) + radius_px + 2, frame.y_px(y_m) - radius_px
            label = _text(svg, x_px, y_px, str(node), size=11, colour=INK)
            label.attrib |= {"stroke": "#ffffff", "stroke-width": "3", "paint-order": "stroke"}


def _legend(svg: ElementTree.Element, y_px: float, partitioned: bool) -> None:
    x_px = float(MARGIN_PX + 6)
    for colour, meaning in ((LARGEST, "largest component"), (SMALLER, "smaller component"), (ALONE, "no neighbours")):
        _dot(svg, x_px, y_px - 4, 5, colour)
        _text(svg, x_px + 12, y_px, meaning, size=12, colour=FADED)
        x_px += 24 + 6.4 * len(meaning)
    x_px, y_px = float(MARGIN_PX), y_px + 26
    _add(svg, "path", d=f"M{x_px:.1f} {y_px - 4:.1f}h22", stroke=LINK, stroke_width=2)
    _text(svg, x_px + 30, y_px, "in range", size=12, colour=FADED)
    if partitioned:
        style = {"fill": PARTITION, "fill_opacity": "0.07", "stroke": PARTITION, "stroke_dasharray": "4 3"}
        _add(svg, "rect", x=x_px + 100, y=y_px - 10, width=20, height=12, **style)
        _text(svg, x_px + 128, y_px, "partition", size=12, colour=FADED)


def _scale(svg: ElementTree.Element, frame: _Frame, scenario: Scenario, right_px: float, y_px: float) -> None:
    """Two bars, ending at the right: a round distance, and the radio's range."""
    round_m = _round_below(frame.width_px / frame.px_per_m / 4)
    bars = ((round_m, f"{round_m:g} m"), (scenario.radio.range_m, "range"))
    for row, (length_m, label) in enumerate(bars):
        length_px = length_m * frame.px_per_m
        if length_px > frame.width_px / 2:  # a range that spans the map says nothing as a bar
            continue
        x_px, bar_y_px = right_px - length_px, y_px - 4 + 26 * row
        _add(svg, "path", d=f"M{x_px:.1f} {bar_y_px - 4:.1f}v8m0 -4h{length_px:.1f}m0 -4v8", stroke=INK, fill="none")
        _text(svg, x_px - 8, bar_y_px + 4, label, size=12, colour=FADED, anchor="end")


def _round_below(length_m: float) -> float:
    """The greatest of 1, 2, 5, 10, 20, 50, … (or 0.5, 0.2, …) that is not above `length_m`."""
    unit = 10.0 ** floor(log10(length_m))
    return max(step * unit for step in (1, 2, 5) if step * unit <= length_m)


def _dot(svg: ElementTree.Element, x_px: float, y_px: float, radius_px: float, colour: str) -> ElementTree.Element:
    edge = FADED if colour == ALONE else "#ffffff"
    border = {"stroke": edge, "stroke_width": f"{radius_px / 5:.2f}"}
    return _add(svg, "circle", cx=x_px, cy=y_px, r=radius_px, fill=colour, **border)


def _text(
    svg: ElementTree.Element,
    x_px: float,
    y_px: float,
    words: str,
    size: int,
    colour: str,
    anchor: str = "start",
    weight: str = "normal",
) -> ElementTree.Element:
    style = {"font_size": size, "fill": colour, "text_anchor": anchor, "font_weight": weight}
    text = _add(svg, "text", x=x_px, y=y_px, **style)
    text.text = words
    return text


def _add(parent: ElementTree.Element, tag: str, **attributes: object) -> ElementTree.Element:
    """Underscores stand for hyphens; pixels get one decimal."""
    shown = {
        name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
        for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, shown)
