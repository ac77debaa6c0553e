"""ns-2 movement files.

A node has a starting place and is told at times to go somewhere at a speed. Told again before it arrives, it turns
where it is; told to go at speed 0, it stops. Lines about `$god_` (ns-2's all-knowing object) are skipped, because
contacts are computed here. `setdest` opens its files with a comment that gives the area; `roamcast mobility --write
movements` adds the duration to it.
"""

import re
from math import hypot
from pathlib import Path
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import Line, lines
from roamcast.world.files.recording import MovementRecording, bounds_m
from roamcast.world.mobility.movements import Corner

ARRIVED_S: Final = 1e-9
"""A node told to go on this shortly around its arrival has arrived; without this, rounding would add corners."""

_PLACE: Final = re.compile(r"\$node_\((\d+)\)\s+set\s+([XYZ])_\s+(\S+?)\s*;?")
_COMMAND: Final = re.compile(
    r'\$\w+\s+at\s+(\S+)\s+"\s*\$node_\((\d+)\)\s+setdest\s+(\S+)\s+(\S+)\s+([^\s"]+)\s*"\s*;?'
)
_HEADER: Final = re.compile(r"(max x|max y|duration): *([0-9.eE+-]+)")


class _Itinerary:
    """What a file says about one node: where it starts, and when it is told to go where, how fast."""

    def __init__(self, first_mention: Line) -> None:
        self.first_mention = first_mention
        self.start_m: dict[str, float] = {}
        self.orders: list[tuple[float, float, float, float]] = []  # t_s, x_m, y_m, speed_mps

    def corners(self, node: int) -> tuple[Corner, ...]:
        if not {"X", "Y"} <= self.start_m.keys():
            place = f"a starting place, `$node_({node}) set X_ NUMBER` and the same for Y_, somewhere in the file"
            raise self.first_mention.refuse(place)
        corners = [(0.0, self.start_m["X"], self.start_m["Y"])]
        for t_s, x_m, y_m, speed_mps in sorted(self.orders, key=lambda order: order[0]):
            _halt(corners, t_s)
            now_s, now_x_m, now_y_m = corners[-1]
            distance_m = hypot(x_m - now_x_m, y_m - now_y_m)
            if speed_mps > 0 and now_s + distance_m / speed_mps > now_s:
                corners.append((now_s + distance_m / speed_mps, x_m, y_m))
        return tuple(corners)


def read(path: Path, text: str) -> MovementRecording:
    itineraries: dict[int, _Itinerary] = {}
    for line in lines(path, text):
        if "god_" in line.text:
            continue
        if place := _PLACE.fullmatch(line.text):
            node, axis, value = place.groups()
            start_m = itineraries.setdefault(int(node), _Itinerary(line)).start_m
            start_m[axis] = line.number(value, f"a number of metres after {axis}_")
        elif command := _COMMAND.fullmatch(line.text):
            itineraries.setdefault(int(command[2]), _Itinerary(line)).orders.append(_order(line, command))
        else:
            raise line.refuse('`$node_(N) set X_ NUMBER` or `$ns_ at TIME "$node_(N) setdest X Y SPEED"`')
    for expected_node, node in enumerate(sorted(itineraries)):
        if node != expected_node:
            raise itineraries[node].first_mention.refuse(
                f"nodes 0, 1, 2, … (there are no lines about $node_({expected_node}))"
            )
    if not itineraries:
        raise ConfigurationError(f"{path}: expected at least one node, `$node_(0) set X_ NUMBER`")
    paths = tuple(itineraries[node].corners(node) for node in range(len(itineraries)))
    told = _header(path, text)
    area_m = (told["max x"], told["max y"]) if {"max x", "max y"} <= told.keys() else bounds_m(paths)
    last_s = max(corners[-1][0] for corners in paths)
    return MovementRecording(paths, area_m=area_m, duration_s=told.get("duration", last_s) or None)


def _header(path: Path, text: str) -> dict[str, float]:
    """What the comments before the first statement say about area and duration."""
    told: dict[str, float] = {}
    for number, full in enumerate(text.splitlines(), start=1):
        if full.strip() and not full.lstrip().startswith("#"):
            break
        for name, value in _HEADER.findall(full):
            told[name] = Line(path, number, full.strip()).number(value, f"a number after `{name}:`")
            if told[name] <= 0:
                raise Line(path, number, full.strip()).refuse(f"a number above 0 after `{name}:`")
    return told


def _order(line: Line, command: re.Match[str]) -> tuple[float, float, float, float]:
    expected = "TIME, X, Y and SPEED to be numbers, TIME and SPEED at least 0"
    t_s, x_m, y_m, speed_mps = (line.number(command[group], expected) for group in (1, 3, 4, 5))
    if t_s < 0 or speed_mps < 0:
        raise line.refuse(expected)
    return t_s, x_m, y_m, speed_mps


def _halt(corners: list[Corner], t_s: float) -> None:
    """Makes the last corner the place where the node is at `t_s`."""
    end_s, x_m, y_m = corners[-1]
    if t_s > end_s + ARRIVED_S:
        corners.append((t_s, x_m, y_m))
    elif t_s < end_s - ARRIVED_S:
        corners.pop()
        start_s, start_x_m, start_y_m = corners[-1]
        if t_s > start_s:
            share = (t_s - start_s) / (end_s - start_s)
            corners.append((t_s, start_x_m + share * (x_m - start_x_m), start_y_m + share * (y_m - start_y_m)))
