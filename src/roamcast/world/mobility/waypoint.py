"""Random waypoint, started in its steady state.

A node goes straight to a uniform point of its region at a uniform speed, rests for a uniform pause, and repeats. At a
random instant it is more often near the middle, and on a slow trip, than these draws suggest, because long and slow
trips take more time. A run that starts all nodes at uniform points with uniform speeds drifts for hundreds of seconds
(Yoon, Liu and Noble, INFOCOM 2003). Here the state at time 0 is drawn from the stationary distribution (perfect
simulation, Le Boudec and Vojnović, INFOCOM 2005), so no warm-up is needed:

- Paused with probability E[pause] / (E[pause] + E[trip]), else on a trip.
- Paused: at a uniform point, with the residual of a pause chosen with probability proportional to its length.
- On a trip: from one point to another, chosen with probability proportional to their distance (accept or draw again);
  at a uniform place between them; the speed has density proportional to 1/v.

E[1/v] must be finite, so a minimum speed of 0 is refused.
"""

from abc import ABC, abstractmethod
from math import asinh, cos, hypot, log, pi, sin, sqrt, tau

from roamcast.seeds import Random, derive
from roamcast.world.mobility.movements import Corner
from roamcast.world.scenario import Mobility, Scenario

Point = tuple[float, float]


class Region(ABC):
    """A convex place to roam in."""

    mean_trip_m: float  # mean distance of two uniform points
    diameter_m: float  # the largest distance of two points

    @abstractmethod
    def point(self, random: Random) -> Point:
        """A uniform point."""


class Rectangle(Region):
    def __init__(self, west_m: float, south_m: float, width_m: float, height_m: float) -> None:
        self._corner_m = (west_m, south_m)
        self._size_m = (width_m, height_m)
        self.diameter_m = hypot(width_m, height_m)
        self.mean_trip_m = _mean_distance_m(width_m, height_m)

    def point(self, random: Random) -> Point:
        return (
            self._corner_m[0] + random.random() * self._size_m[0],
            self._corner_m[1] + random.random() * self._size_m[1],
        )


class DiscRegion(Region):
    """Around the origin."""

    def __init__(self, radius_m: float) -> None:
        self._radius_m = radius_m
        self.diameter_m = 2 * radius_m
        self.mean_trip_m = 128 * radius_m / (45 * pi)  # the mean distance of two uniform points of a disc

    def point(self, random: Random) -> Point:
        distance_m = self._radius_m * sqrt(random.random())
        direction = tau * random.random()
        return distance_m * cos(direction), distance_m * sin(direction)


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    region = Rectangle(0.0, 0.0, *scenario.area_m)
    return [
        trips(region, scenario.mobility, scenario.duration_s, derive(seed, "mobility", node))
        for node in range(scenario.nodes)
    ]


def trips(region: Region, mobility: Mobility, duration_s: float, random: Random) -> list[Corner]:
    """The corners of one node's stationary random waypoint, to the first at or after `duration_s`."""
    corners, destination, speed_mps = _steady_start(region, mobility, random)
    while True:
        _go(corners, destination, speed_mps)
        if corners[-1][0] >= duration_s:
            return corners
        _rest(corners, random.uniform(mobility.pause_min_s, mobility.pause_max_s))
        destination = region.point(random)
        speed_mps = random.uniform(mobility.speed_min_mps, mobility.speed_max_mps)


def _steady_start(region: Region, mobility: Mobility, random: Random) -> tuple[list[Corner], Point, float]:
    """The corners up to the start of the first trip, that trip's end, and its speed."""
    pause_mean_s = (mobility.pause_min_s + mobility.pause_max_s) / 2
    trip_mean_s = region.mean_trip_m * mean_slowness(mobility.speed_min_mps, mobility.speed_max_mps)
    if random.random() < pause_mean_s / (pause_mean_s + trip_mean_s):
        corners = [(0.0, *region.point(random))]
        _rest(corners, residual_pause_s(mobility.pause_min_s, mobility.pause_max_s, random.random()))
        return corners, region.point(random), random.uniform(mobility.speed_min_mps, mobility.speed_max_mps)
    while True:
        (from_x_m, from_y_m), destination = region.point(random), region.point(random)
        ahead_m = (destination[0] - from_x_m, destination[1] - from_y_m)
        if random.random() * region.diameter_m < hypot(*ahead_m):
            break
    share = random.random()
    start = (0.0, from_x_m + share * ahead_m[0], from_y_m + share * ahead_m[1])
    slowest_mps, fastest_mps = mobility.speed_min_mps, mobility.speed_max_mps
    return [start], destination, slowest_mps * (fastest_mps / slowest_mps) ** random.random()


def _go(corners: list[Corner], destination: Point, speed_mps: float) -> None:
    t_s, x_m, y_m = corners[-1]
    arrival_s = t_s + hypot(destination[0] - x_m, destination[1] - y_m) / speed_mps
    if arrival_s > t_s:
        corners.append((arrival_s, *destination))


def _rest(corners: list[Corner], pause_s: float) -> None:
    t_s, x_m, y_m = corners[-1]
    if t_s + pause_s > t_s:
        corners.append((t_s + pause_s, x_m, y_m))


def residual_pause_s(pause_min_s: float, pause_max_s: float, share: float) -> float:
    """Inverse of the residual's distribution: flat up to the shortest pause, then falling linearly to the longest."""
    total_s = pause_min_s + pause_max_s
    if share * total_s < 2 * pause_min_s:
        return share * total_s / 2
    return pause_max_s - sqrt((1 - share) * (pause_max_s**2 - pause_min_s**2))


def mean_slowness(speed_min_mps: float, speed_max_mps: float) -> float:
    """E[1/v] of a uniform speed, in seconds per metre."""
    if speed_max_mps - speed_min_mps < 1e-9 * speed_max_mps:
        return 1 / speed_max_mps
    return log(speed_max_mps / speed_min_mps) / (speed_max_mps - speed_min_mps)


def _mean_distance_m(a: float, b: float) -> float:
    """Mean distance of two uniform points of an a × b rectangle."""
    edges = a**3 / b**2 + b**3 / a**2 + hypot(a, b) * (3 - a**2 / b**2 - b**2 / a**2)
    return edges / 15 + (b**2 / a * asinh(a / b) + a**2 / b * asinh(b / a)) / 6
