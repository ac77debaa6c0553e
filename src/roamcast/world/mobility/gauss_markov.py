"""Gauss–Markov mobility (Liang and Haas, INFOCOM 1999): a node's velocity changes gradually.

Once per second each component of the velocity becomes `memory` times its old value plus fresh Gaussian noise, scaled so
that its variance stays the same. `memory` 0 is a random walk, near 1 an almost straight line. The mean velocity is 0,
so the speed follows a Rayleigh distribution around `speed_mean_mps`.

At the border a node is reflected. Seen in a mirrored plane it goes straight on, so a uniform position with a Gaussian
velocity stays that way: nodes start in the steady state, which is uniform over the area.
"""

from math import pi, sqrt
from typing import Final

from roamcast.seeds import Random, derive
from roamcast.world.mobility.movements import Corner
from roamcast.world.scenario import Scenario

STEP_S: Final = 1.0


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    return [_path(scenario, derive(seed, "mobility", node)) for node in range(scenario.nodes)]


def _path(scenario: Scenario, random: Random) -> list[Corner]:
    width_m, height_m = scenario.area_m
    memory = scenario.mobility.memory
    deviation_mps = scenario.mobility.speed_mean_mps / sqrt(pi / 2)  # of a component; the mean of Rayleigh's law
    fresh_mps = deviation_mps * sqrt(1 - memory * memory)
    x_m, y_m = random.uniform(0.0, width_m), random.uniform(0.0, height_m)
    vx_mps, vy_mps = random.gauss(0.0, deviation_mps), random.gauss(0.0, deviation_mps)
    corners = [(0.0, x_m, y_m)]
    step = 0
    while corners[-1][0] < scenario.duration_s:
        step += 1
        left_s = STEP_S
        while left_s > 0:
            hit_s = min(left_s, _until_border_s(x_m, vx_mps, width_m), _until_border_s(y_m, vy_mps, height_m))
            left_s -= hit_s
            x_m, y_m = _within(x_m + vx_mps * hit_s, width_m), _within(y_m + vy_mps * hit_s, height_m)
            t_s = step * STEP_S - left_s
            if t_s > corners[-1][0]:
                corners.append((t_s, x_m, y_m))
            vx_mps, vy_mps = _reflected(x_m, vx_mps, width_m), _reflected(y_m, vy_mps, height_m)
        vx_mps = memory * vx_mps + random.gauss(0.0, fresh_mps)
        vy_mps = memory * vy_mps + random.gauss(0.0, fresh_mps)
    return corners


def _until_border_s(at_m: float, speed_mps: float, size_m: float) -> float:
    if speed_mps > 0:
        return (size_m - at_m) / speed_mps
    return -at_m / speed_mps if speed_mps < 0 else STEP_S


def _within(at_m: float, size_m: float) -> float:
    """Rounding must not put a node outside, nor leave it a hair short of the border that it was to reach."""
    if at_m < 1e-9 * size_m:
        return 0.0
    return size_m if at_m > size_m * (1 - 1e-9) else at_m


def _reflected(at_m: float, speed_mps: float, size_m: float) -> float:
    if at_m <= 0.0:
        return abs(speed_mps)
    return -abs(speed_mps) if at_m >= size_m else speed_mps
