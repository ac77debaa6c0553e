"""What a movement file holds, whatever its format, and how samples of positions become paths.

Samples say where a node is at some instants; in between it goes straight at constant speed. A node that is first seen
after the recording began, or last seen before it ended, is *present* only in between: the simulator switches it on and
off. Times start at the earliest sample. Geographic positions are projected onto a plane that touches the earth in the
middle of all samples (errors below 0.1 % within 50 km of it). The plane's origin is then moved so that no coordinate
is negative.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import cos, inf, radians, sin, sqrt
from typing import Final, NamedTuple

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import Line
from roamcast.world.mobility.movements import Corner

_EQUATOR_M: Final = 6_378_137.0  # WGS 84
_ECCENTRICITY_SQUARED: Final = 6.69437999014e-3
_SAME_MPS: Final = 1e-9  # velocities that differ by less are the same
_BRIEF_S: Final = 1.0  # a node that was seen once is present this long

Span = tuple[float, float]


class MovementRecording(NamedTuple):
    paths: tuple[tuple[Corner, ...], ...]
    names: tuple[str, ...] = ()  # per node, if the file has names
    present: tuple[Span, ...] = ()  # per node, from when until when; empty: all nodes, always
    area_m: tuple[float, float] | None = None  # what the file says, or what its nodes cover
    duration_s: float | None = None
    origin_deg: tuple[float, float] | None = None  # latitude and longitude of the area's south-west corner


class _Sample(NamedTuple):
    t_s: float
    x: float  # metres, or degrees of longitude
    y: float  # metres, or degrees of latitude
    line: Line


class Samples:
    """Positions at instants, by the names of the nodes, in any order."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[_Sample]] = {}

    def add(self, name: str, t_s: float, x: float, y: float, line: Line) -> None:
        self._by_name.setdefault(name, []).append(_Sample(t_s, x, y, line))

    def add_degrees(self, name: str, t_s: float, longitude: float, latitude: float, line: Line) -> None:
        if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
            raise line.refuse("a latitude between -90 and 90 and a longitude between -180 and 180 degrees")
        self.add(name, t_s, longitude, latitude, line)

    def unused(self, name: str) -> str:
        """`name`, or the same with a number if a node has it already."""
        known, number = name, 2
        while known in self._by_name:
            known, number = f"{name} ({number})", number + 1
        return known

    def __len__(self) -> int:
        return len(self._by_name)

    def recording(
        self, geographic: bool = False, area_m: tuple[float, float] | None = None, until_s: float | None = None
    ) -> MovementRecording:
        """Nodes are numbered in the natural order of their names (`bus9` before `bus10`). `area_m` and `until_s` are
        what the file says about itself; without them, they are what the samples cover."""
        names = sorted(self._by_name, key=_natural)
        every = [_in_order(self._by_name[name], name) for name in names]
        begin_s = min(samples[0].t_s for samples in every)
        end_s = max(samples[-1].t_s for samples in every) if until_s is None else until_s
        plane = _Plane(every, geographic)
        paths: list[tuple[Corner, ...]] = []
        present: list[Span] = []
        for samples in every:
            corners = [(sample.t_s - begin_s, *plane.point(sample)) for sample in samples]
            first_s, last_s = corners[0][0], corners[-1][0]
            if first_s > 0:
                corners.insert(0, (0.0, *corners[0][1:]))
            paths.append(_without_needless(corners))
            leaves_s = inf if last_s >= end_s - begin_s else max(last_s, first_s + _BRIEF_S)
            present.append((first_s, leaves_s))
        always = all(span == (0.0, inf) for span in present)
        duration_s = end_s - begin_s
        return MovementRecording(
            paths=tuple(paths),
            names=() if names == [str(number) for number in range(len(names))] else tuple(names),
            present=() if always else tuple((from_s, min(until, duration_s)) for from_s, until in present),
            area_m=area_m or plane.area_m,
            duration_s=duration_s if duration_s > 0 else None,
            origin_deg=plane.origin_deg,
        )


class _Plane:
    """From a file's coordinates to metres east and north of the area's corner."""

    def __init__(self, every: list[list[_Sample]], geographic: bool) -> None:
        xs = [sample.x for samples in every for sample in samples]
        ys = [sample.y for samples in every for sample in samples]
        west, east, south, north = min(xs), max(xs), min(ys), max(ys)
        self.origin_deg: tuple[float, float] | None = None
        if geographic:
            if east - west > 180:
                raise ConfigurationError(f"longitudes from {west:g} to {east:g}: must span less than half the earth")
            self._scale = metres_per_degree((south + north) / 2)
            self._west, self._south = west, south
            self.origin_deg = (south, west)
        else:
            self._scale = (1.0, 1.0)
            self._west, self._south = min(west, 0.0), min(south, 0.0)
        width_m, height_m = (east - self._west) * self._scale[0], (north - self._south) * self._scale[1]
        self.area_m = (max(width_m, 1.0), max(height_m, 1.0))

    def point(self, sample: _Sample) -> tuple[float, float]:
        return (sample.x - self._west) * self._scale[0], (sample.y - self._south) * self._scale[1]


def metres_per_degree(latitude_deg: float) -> tuple[float, float]:
    """Of longitude and of latitude, at this latitude on the WGS 84 ellipsoid."""
    latitude = radians(latitude_deg)
    flat = 1 - _ECCENTRICITY_SQUARED * sin(latitude) ** 2
    east_m = _EQUATOR_M / sqrt(flat) * cos(latitude)
    north_m = _EQUATOR_M * (1 - _ECCENTRICITY_SQUARED) / flat**1.5
    return radians(max(east_m, 1.0)), radians(north_m)


def bounds_m(paths: Sequence[Sequence[Corner]]) -> tuple[float, float]:
    """The smallest area from the origin that holds all corners; at least a metre wide and high."""
    return (
        max(1.0, max(x_m for path in paths for _, x_m, _ in path)),
        max(1.0, max(y_m for path in paths for _, _, y_m in path)),
    )


def _in_order(samples: list[_Sample], name: str) -> list[_Sample]:
    """By time; the same place at the same time twice is one sample, two places are refused."""
    ordered = sorted(samples, key=lambda sample: sample.t_s)
    kept = ordered[:1]
    for sample in ordered[1:]:
        if sample.t_s > kept[-1].t_s:
            kept.append(sample)
        elif (sample.x, sample.y) != (kept[-1].x, kept[-1].y):
            earlier = kept[-1].line.line_number
            raise sample.line.refuse(f"{name!r} at one place at {sample.t_s:.15g} s (line {earlier} has another)")
    return kept


def _without_needless(corners: list[Corner]) -> tuple[Corner, ...]:
    """Without the corners at which neither speed nor direction changes, such as those of a car at a red light."""
    if len(corners) < 3:
        return tuple(corners)
    velocities = [
        ((x2 - x1) / (t2 - t1), (y2 - y1) / (t2 - t1)) for (t1, x1, y1), (t2, x2, y2) in pairwise(corners)
    ]
    kept = [corners[0]]
    for corner, (vx1, vy1), (vx2, vy2) in zip(corners[1:-1], velocities, velocities[1:], strict=False):
        if abs(vx1 - vx2) > _SAME_MPS or abs(vy1 - vy2) > _SAME_MPS:
            kept.append(corner)
    kept.append(corners[-1])
    return tuple(kept)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Digits compare as numbers, anything else as text; numbers come first."""
    parts: list[str] = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts]
