"""What nodes are told about where they are: the truth, the truth with errors, or nothing.

Errors are offsets east and north, drawn per node from the seed, so all protocols meet the same ones.

- A *bias* is fixed for the whole run, as from a badly surveyed place.
- A *drift* wanders, as a GPS fix does: a Gauss–Markov process in its steady state whose correlation falls to 1/e within
  `drift_time_s`. It is sampled ten times in that time and goes straight in between.

The velocity told is the derivative of the position told: a drifting node at rest is told that it moves.
"""

from collections.abc import Iterator
from math import ceil, exp, sqrt
from typing import Final

from roamcast.seeds import Random, derive
from roamcast.world.mobility import Corner, Movements
from roamcast.world.scenario import Positioning, Scenario

SAMPLES_PER_TIME: Final = 10  # of the drift, per `drift_time_s`

Point = tuple[float, float]


class ReportedPositions:
    """What every node is told of its position and velocity at any time."""

    def __init__(self, movements: Movements | None, errors: Movements | None) -> None:
        self._movements = movements  # None: nothing is told
        self._errors = errors

    def position(self, node: int, t_s: float) -> Point | None:
        if self._movements is None:
            return None
        point = self._movements.position(node, t_s)
        if self._errors is None:
            return point
        error = self._errors.position(node, t_s)
        return point[0] + error[0], point[1] + error[1]

    def velocity(self, node: int, t_s: float) -> Point | None:
        if self._movements is None:
            return None
        velocity = self._movements.velocity(node, t_s)
        if self._errors is None:
            return velocity
        change = self._errors.velocity(node, t_s)
        return velocity[0] + change[0], velocity[1] + change[1]


def whereabouts(scenario: Scenario, movements: Movements | None, seed: int) -> ReportedPositions:
    positioning = scenario.positioning
    if movements is None or positioning.source == "none":
        return ReportedPositions(None, None)
    if positioning.bias_m == 0 and positioning.drift_m == 0:
        return ReportedPositions(movements, None)
    errors = Movements(
        _error_path(positioning, scenario.duration_s, derive(seed, "positioning", node))
        for node in range(scenario.nodes)
    )
    return ReportedPositions(movements, errors)


def _error_path(positioning: Positioning, duration_s: float, random: Random) -> list[Corner]:
    deviation_m = positioning.bias_m / sqrt(2)  # of each coordinate
    bias_x_m, bias_y_m = random.gauss(0.0, deviation_m), random.gauss(0.0, deviation_m)
    if positioning.drift_m == 0:
        return [(0.0, bias_x_m, bias_y_m)]
    east, north = (_drift(positioning, random) for _ in range(2))
    step_s = positioning.drift_time_s / SAMPLES_PER_TIME
    steps = ceil(duration_s / step_s) + 1
    return [(step * step_s, bias_x_m + next(east), bias_y_m + next(north)) for step in range(steps)]


def _drift(positioning: Positioning, random: Random) -> Iterator[float]:
    deviation_m = positioning.drift_m / sqrt(2)
    kept = exp(-1 / SAMPLES_PER_TIME)
    fresh_m = deviation_m * sqrt(1 - kept * kept)
    error_m = random.gauss(0.0, deviation_m)
    while True:
        yield error_m
        error_m = kept * error_m + random.gauss(0.0, fresh_m)
