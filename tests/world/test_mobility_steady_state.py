"""Random waypoint starts in its steady state: what is seen at time 0 and much later has the same distribution.

Samples are compared by the two-sample Kolmogorov–Smirnov statistic. The same comparison must find the drift of the
usual, naive start, or it would prove nothing.
"""

from math import hypot, log

import numpy as np
import pytest
from numpy.typing import NDArray

from roamcast.seeds import derive
from roamcast.world.mobility import Corner, Movements, scenario_movements
from roamcast.world.mobility.waypoint import DiscRegion, Rectangle
from roamcast.world.scenario import Mobility, Scenario

NODES = 3000
AREA_M = (1500.0, 600.0)
LATER_S = 500.0
DRIFTS = 1.95  # Kolmogorov–Smirnov, in the units below: 0.1 % of fair samples exceed it

ROAMING = Mobility(speed_min_mps=0.5, speed_max_mps=20.0)
PAUSING = Mobility(speed_min_mps=1.0, speed_max_mps=20.0, pause_min_s=50.0, pause_max_s=120.0)
RESTING = Mobility(speed_min_mps=5.0, speed_max_mps=5.0, pause_min_s=60.0, pause_max_s=60.0)
GROUPED = Mobility(model="group", groups=NODES, speed_min_mps=1.0, speed_max_mps=20.0, group_radius_m=100.0)


def scenario(mobility: Mobility) -> Scenario:
    return Scenario(nodes=NODES, area_m=AREA_M, duration_s=LATER_S + 1, mobility=mobility)


def steady(mobility: Mobility, seed: int) -> Movements:
    where = scenario_movements(scenario(mobility), seed)
    assert where is not None
    return where


def naive(mobility: Mobility, seed: int) -> Movements:
    """Uniform places and uniform speeds at time 0, as simulators used to start."""
    paths: list[list[Corner]] = []
    for node in range(NODES):
        random = derive(seed, "naive", node)
        corners: list[Corner] = [(0.0, random.uniform(0, AREA_M[0]), random.uniform(0, AREA_M[1]))]
        while corners[-1][0] < LATER_S + 1:
            t_s, x_m, y_m = corners[-1]
            next_m = random.uniform(0, AREA_M[0]), random.uniform(0, AREA_M[1])
            speed_mps = random.uniform(mobility.speed_min_mps, mobility.speed_max_mps)
            t_s += hypot(next_m[0] - x_m, next_m[1] - y_m) / speed_mps
            corners.append((t_s, *next_m))
            pause_s = random.uniform(mobility.pause_min_s, mobility.pause_max_s)
            if pause_s:
                corners.append((t_s + pause_s, *next_m))
        paths.append(corners)
    return Movements(paths)


def speeds_mps(where: Movements, t_s: float) -> NDArray[np.float64]:
    return np.array([hypot(*where.velocity(node, t_s)) for node in range(where.nodes)])


def kolmogorov_smirnov(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest distance of the empirical distributions, times √(nm / (n + m)), which makes its law independent of
    the sizes. Values are rounded so that equal speeds tie whatever the last bit says."""
    one, other = np.sort(one.round(6)), np.sort(other.round(6))
    everywhere = np.concatenate((one, other))
    shares = [np.searchsorted(sample, everywhere, side="right") / len(sample) for sample in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max() * np.sqrt(len(one) * len(other) / (len(one) + len(other))))


def drift(where: Movements) -> dict[str, float]:
    """How far apart the distributions at time 0 and later are: of x, y, distance from the middle, and speed."""
    early, late = where.positions(0.0), where.positions(LATER_S)
    middle = np.array(AREA_M) / 2
    return {
        "x": kolmogorov_smirnov(early[:, 0], late[:, 0]),
        "y": kolmogorov_smirnov(early[:, 1], late[:, 1]),
        "middle": kolmogorov_smirnov(np.hypot(*(early - middle).T), np.hypot(*(late - middle).T)),
        "speed": kolmogorov_smirnov(speeds_mps(where, 0.0), speeds_mps(where, LATER_S)),
    }


@pytest.mark.parametrize("mobility", [ROAMING, PAUSING, RESTING, GROUPED], ids=["roam", "pause", "rest", "group"])
def test_places_and_speeds_at_the_start_are_those_of_later(mobility: Mobility) -> None:
    found = drift(steady(mobility, seed=11))
    assert max(found.values()) < DRIFTS, found


@pytest.mark.parametrize("mobility", [ROAMING, PAUSING], ids=["roam", "pause"])
def test_the_naive_start_would_fail_the_same_comparison(mobility: Mobility) -> None:
    found = drift(naive(mobility, seed=11))
    assert found["middle"] > DRIFTS, found
    assert found["speed"] > DRIFTS, found


def test_the_start_has_the_speeds_and_rests_that_theory_gives() -> None:
    speeds = speeds_mps(steady(ROAMING, seed=5), 0.0)
    assert speeds.mean() == pytest.approx((20.0 - 0.5) / log(20.0 / 0.5), rel=0.04)
    resting_share = (speeds_mps(steady(RESTING, seed=5), 0.0) == 0).mean()
    trip_mean_s = Rectangle(0.0, 0.0, *AREA_M).mean_trip_m / 5.0
    assert resting_share == pytest.approx(60.0 / (60.0 + trip_mean_s), rel=0.06)


def test_the_start_is_biased_to_long_trips_and_long_pauses_as_theory_says() -> None:
    where = steady(PAUSING, seed=8)
    ahead_m: list[float] = []
    rest_s: list[float] = []
    for node in range(NODES):
        (_, x_m, y_m), (next_s, next_x_m, next_y_m) = where.corners(node)[:2]
        if where.velocity(node, 0.0) == (0.0, 0.0):
            rest_s.append(next_s)
        else:
            ahead_m.append(hypot(next_x_m - x_m, next_y_m - y_m))
    # Inspection paradox: what remains of X at a random instant has moments E[X²] / 2E[X] and E[X³] / 3E[X].
    length_squared_mean = (AREA_M[0] ** 2 + AREA_M[1] ** 2) / 6
    ahead_mean_m = length_squared_mean / (2 * Rectangle(0.0, 0.0, *AREA_M).mean_trip_m)
    assert np.mean(ahead_m) == pytest.approx(ahead_mean_m, rel=0.05)
    least_s, most_s = PAUSING.pause_min_s, PAUSING.pause_max_s
    pause_mean, pause_squared, pause_cubed = (
        (most_s**power - least_s**power) / (power * (most_s - least_s)) for power in (2, 3, 4)
    )
    assert np.mean(rest_s) == pytest.approx(pause_squared / (2 * pause_mean), rel=0.05)
    assert np.mean(np.square(rest_s)) == pytest.approx(pause_cubed / (3 * pause_mean), rel=0.08)


def test_mean_distances_of_regions_agree_with_drawing() -> None:
    assert Rectangle(0.0, 0.0, 1.0, 1.0).mean_trip_m == pytest.approx(0.521405, abs=1e-6)
    random = derive(3, "distances")
    for region in (Rectangle(100.0, 50.0, 300.0, 40.0), DiscRegion(70.0)):
        ends = [(region.point(random), region.point(random)) for _ in range(20_000)]
        lengths_m = [hypot(there[0] - here[0], there[1] - here[1]) for here, there in ends]
        assert float(np.mean(lengths_m)) == pytest.approx(region.mean_trip_m, rel=0.015)
        assert max(lengths_m) <= region.diameter_m
