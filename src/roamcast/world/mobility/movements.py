"""Piecewise linear movement: each node's corners, and where it is between them.

A corner is `(t_s, x_m, y_m)`. The first is at time 0; times strictly increase; between two corners the node goes
straight at constant speed; after its last corner it stays. A node that never moves has one corner.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from roamcast.errors import ConfigurationError

Corner = tuple[float, float, float]
"""At `t_s` seconds, `x_m` metres east and `y_m` metres north of the area's corner."""

Leg = tuple[float, float, float, float, float]
"""From `t_s` on: start `x_m`, `y_m` and velocity `vx_mps`, `vy_mps`, until the next leg starts."""


class _Stretch:
    """A leg with its end, as one object of numbers."""

    __slots__ = ("end_s", "start_s", "vx_mps", "vy_mps", "x_m", "y_m")

    def __init__(self, leg: Leg, end_s: float) -> None:
        self.start_s, self.x_m, self.y_m, self.vx_mps, self.vy_mps = leg
        self.end_s = end_s


class Movements:
    """The paths of nodes 0, 1, 2, …, ready to be asked for positions at any time, in any order."""

    __slots__ = ("_corners", "_latest", "_legs", "_starts_s", "nodes")

    def __init__(self, paths: Iterable[Sequence[Corner]]) -> None:
        self._corners: list[tuple[Corner, ...]] = [tuple(path) for path in paths]
        for node, corners in enumerate(self._corners):
            _check(node, corners)
        self.nodes: int = len(self._corners)
        self._legs: list[list[Leg]] = [_legs(corners) for corners in self._corners]
        self._starts_s: list[list[float]] = [[leg[0] for leg in legs] for legs in self._legs]
        self._latest = [self._stretch(node, 0.0) for node in range(self.nodes)]  # the last one looked up

    def corners(self, node: int) -> tuple[Corner, ...]:
        return self._corners[node]

    def until(self, node: int, end_s: float) -> list[Corner]:
        """Its corners before `end_s`, and where it is then if it is still moving."""
        corners = [corner for corner in self._corners[node] if corner[0] < end_s]
        if self.velocity(node, corners[-1][0]) != (0.0, 0.0):
            corners.append((end_s, *self.position(node, end_s)))
        return corners

    def legs(self, node: int) -> list[Leg]:
        """Its straight stretches in order of time; the last one has no end and velocity 0."""
        return self._legs[node]

    def position(self, node: int, t_s: float) -> tuple[float, float]:
        stretch = self._at(node, t_s)
        elapsed_s = t_s - stretch.start_s
        return stretch.x_m + stretch.vx_mps * elapsed_s, stretch.y_m + stretch.vy_mps * elapsed_s

    def velocity(self, node: int, t_s: float) -> tuple[float, float]:
        """Metres per second east and north; at a corner, those of the leg that starts there."""
        stretch = self._at(node, t_s)
        return stretch.vx_mps, stretch.vy_mps

    def _at(self, node: int, t_s: float) -> _Stretch:
        stretch = self._latest[node]
        if not stretch.start_s <= t_s < stretch.end_s:
            stretch = self._latest[node] = self._stretch(node, t_s)
        return stretch

    def _stretch(self, node: int, t_s: float) -> _Stretch:
        legs = self._legs[node]
        place = bisect_right(self._starts_s[node], t_s) - 1
        return _Stretch(legs[place], legs[place + 1][0] if 0 <= place < len(legs) - 1 else inf)

    def positions(self, t_s: float) -> NDArray[np.float64]:
        """All nodes at once, one row `x_m, y_m` each."""
        rows = [self.position(node, t_s) for node in range(self.nodes)]
        return np.array(rows, dtype=np.float64).reshape(self.nodes, 2)


def _check(node: int, corners: Sequence[Corner]) -> None:
    """Corners come from files and scenarios, so errors in them are the user's."""
    if not corners or corners[0][0] != 0:
        raise ConfigurationError(f"path of node {node}: must start with a corner at time 0")
    for number, corner in enumerate(corners):
        if not all(map(isfinite, corner)):
            raise ConfigurationError(f"path of node {node}, corner {number} = {corner}: must be finite numbers")
    for (earlier_s, _, _), (later_s, _, _) in pairwise(corners):
        if later_s <= earlier_s:
            raise ConfigurationError(f"path of node {node}: corner at {later_s} s must be later than {earlier_s} s")


def _legs(corners: Sequence[Corner]) -> list[Leg]:
    legs = [
        (t_s, x_m, y_m, (next_x_m - x_m) / (next_t_s - t_s), (next_y_m - y_m) / (next_t_s - t_s))
        for (t_s, x_m, y_m), (next_t_s, next_x_m, next_y_m) in pairwise(corners)
    ]
    legs.append((*corners[-1], 0.0, 0.0))
    return legs
