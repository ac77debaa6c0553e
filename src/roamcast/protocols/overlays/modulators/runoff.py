"""Where rain goes: water depths on a terrain, by a small run-off model.

A grid of square cells, each with a height and a depth of water. Rain adds to the depth, infiltration takes from it, and
water flows between cells that share an edge, from the higher water surface to the lower. The flow per metre of edge is
Chézy's, C d^1.5 S^0.5, with the depth d of the upper cell and the slope S of the surface. In one step a cell gives away
no more than it has, and no more than levels the two surfaces, so depths stay positive and the model is stable at any
step. At the border water runs off the map as if the ground went on falling gently. Volumes add up exactly but for
rounding: `fallen = stored + soaked + left`.

There are only sums, products, quotients and square roots here, which every machine rounds alike, so depths are the same
to the last bit wherever they are computed.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.float64]

CHEZY: Final = 8.0  # m^0.5/s, overland flow over grass and fields
INFILTRATION_MM_H: Final = 4.0  # of a soil that is wet already
BORDER_SLOPE: Final = 0.01
CELL_M: Final = 50.0
SHARES: Final = 5.0  # a cell shares what it has with four neighbours and itself


class Runoff:
    """Water depths (`depth_m`) on one terrain, step by step."""

    def __init__(self, terrain_m: Grid, cell_m: float = CELL_M) -> None:
        self.terrain_m = terrain_m
        self.cell_m = cell_m
        self.depth_m: Grid = np.zeros_like(terrain_m)
        self.left_m: float = 0.0  # ran off the map, as a depth of one cell
        self.soaked_m: float = 0.0  # into the ground, likewise

    def advance(self, rain_mm_h: Grid, seconds: float, steps: int) -> None:
        """Rain of this intensity falls for `seconds`, computed in `steps` steps."""
        step_s = seconds / steps
        rain_m = np.maximum(rain_mm_h, 0.0) * (step_s / 3_600_000.0)
        soak_m = INFILTRATION_MM_H * step_s / 3_600_000.0
        for _ in range(steps):
            self.depth_m += rain_m
            soaked = np.minimum(self.depth_m, soak_m)
            self.depth_m -= soaked
            self.soaked_m += float(soaked.sum())
            self._flow(step_s)

    def _flow(self, step_s: float) -> None:
        depth = self.depth_m
        surface = self.terrain_m + depth
        change: Grid = np.zeros_like(depth)
        rate = CHEZY * step_s / self.cell_m
        for upper, lower in ((np.s_[:-1, :], np.s_[1:, :]), (np.s_[:, :-1], np.s_[:, 1:])):
            drop = surface[upper] - surface[lower]
            giver = np.where(drop > 0.0, depth[upper], depth[lower])
            moved = np.copysign(_moved_m(giver, np.abs(drop), rate, self.cell_m), drop)
            change[upper] -= moved
            change[lower] += moved
        for border in (np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1]):
            leaving = _moved_m(depth[border], BORDER_SLOPE * self.cell_m, rate, self.cell_m)
            change[border] -= leaving
            self.left_m += float(leaving.sum())
        depth += change


def _moved_m(depth_m: Any, drop_m: Any, rate: float, cell_m: float) -> Any:
    flow = rate * depth_m * np.sqrt(depth_m) * np.sqrt(drop_m / cell_m)
    return np.minimum(np.minimum(flow, depth_m / SHARES), drop_m / SHARES)


def plane(rows: int, columns: int) -> Grid:
    """Ground that falls one metre a cell to the south, with a valley in the middle."""
    down = np.arange(rows, 0, -1, dtype=np.float64)[:, None]
    side = np.abs(np.arange(columns, dtype=np.float64) - (columns - 1) / 2)[None, :]
    return down + 0.5 * side
