"""Gauss–Markov, the road grid and the golf gallery: where nodes are, how they move, and that no warm-up is needed."""

from itertools import pairwise
from math import hypot, pi
from pathlib import Path

import numpy as np
import pytest

from roamcast.errors import ConfigurationError
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.mobility.gallery import PLAYERS_RADIUS_M, course_m
from roamcast.world.scenario import Mobility, Scenario
from roamcast.world.scenario_file import read_run


def moving(scenario: Scenario, seed: int = 1) -> Movements:
    found = scenario_movements(scenario, seed)
    assert found is not None
    return found


def speeds(where: Movements, t_s: float) -> list[float]:
    return [hypot(*where.velocity(node, t_s)) for node in range(where.nodes)]


@pytest.mark.parametrize("model", ["gauss-markov", "roads", "golf"])
def test_a_path_depends_on_the_seed_and_the_node_only(model: str) -> None:
    mobility = Mobility(model=model, holes=3, flights=1, players=1)  # type: ignore[arg-type]
    few, many = Scenario(nodes=6, mobility=mobility), Scenario(nodes=40, mobility=mobility, duration_s=300.0)
    assert moving(few).positions(80.0).tolist() == moving(many).positions(80.0).tolist()[:6]
    assert moving(few, 1).positions(80.0).tolist() != moving(few, 2).positions(80.0).tolist()


@pytest.mark.parametrize("model", ["gauss-markov", "roads", "golf"])
def test_nodes_stay_in_the_area(model: str) -> None:
    mobility = Mobility(model=model, speed_mean_mps=30.0, holes=5, flights=2, players=2)  # type: ignore[arg-type]
    scenario = Scenario(nodes=60, area_m=(400.0, 300.0), duration_s=120.0, mobility=mobility)
    where = moving(scenario)
    for node in range(60):
        for t_s, x_m, y_m in where.corners(node):
            assert -1e-9 <= x_m <= 400 + 1e-9, (node, t_s)
            assert -1e-9 <= y_m <= 300 + 1e-9, (node, t_s)


def test_gauss_markov_is_uniform_with_rayleigh_speeds_at_any_time() -> None:
    mobility = Mobility(model="gauss-markov", speed_mean_mps=8.0, memory=0.7)
    where = moving(Scenario(nodes=3000, area_m=(500.0, 200.0), duration_s=60.0, mobility=mobility))
    for t_s in (0.0, 1.5, 59.5):
        positions = where.positions(t_s)
        counts, _, _ = np.histogram2d(positions[:, 0], positions[:, 1], bins=(5, 2), range=((0, 500), (0, 200)))
        assert counts.min() > 230, t_s  # 300 each; the standard deviation is 16
        assert np.mean(speeds(where, t_s)) == pytest.approx(8.0, rel=0.04)  # 0.08 is one standard error
        assert np.mean(np.square(speeds(where, t_s))) == pytest.approx(64 * 4 / pi, rel=0.08)


def test_gauss_markov_remembers_its_velocity() -> None:
    mobility = Mobility(model="gauss-markov", speed_mean_mps=1.0, memory=0.8)
    where = moving(Scenario(nodes=3000, area_m=(1e6, 1e6), duration_s=20.0, mobility=mobility))
    before, after = (np.array([where.velocity(node, t_s)[0] for node in range(3000)]) for t_s in (4.5, 7.5))
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(0.8**3, abs=0.05)


def test_cars_keep_to_the_roads_and_turn_only_at_crossings() -> None:
    mobility = Mobility(model="roads", block_m=90.0, speed_min_mps=5.0, speed_max_mps=20.0, pause_max_s=3.0)
    where = moving(Scenario(nodes=200, area_m=(400.0, 300.0), duration_s=100.0, mobility=mobility))  # blocks of 100 m
    for node in range(200):
        corners = where.corners(node)
        for _, x_m, y_m in corners[1:]:
            assert (x_m / 100, y_m / 100) == pytest.approx((round(x_m / 100), round(y_m / 100)))
        for (t_s, x_m, y_m), (to_s, to_x_m, to_y_m) in pairwise(corners):
            assert x_m == pytest.approx(to_x_m) or y_m == pytest.approx(to_y_m)
            speed_mps = hypot(to_x_m - x_m, to_y_m - y_m) / (to_s - t_s)
            assert speed_mps == 0 or 5 - 1e-9 <= speed_mps <= 20 + 1e-9


def test_half_of_the_cars_go_straight_on() -> None:
    mobility = Mobility(model="roads", block_m=100.0, speed_min_mps=20.0, speed_max_mps=20.0)
    where = moving(Scenario(nodes=100, area_m=(2000.0, 2000.0), duration_s=200.0, mobility=mobility))
    straight = turns = 0
    for node in range(100):
        for (_, ax, ay), (_, bx, by), (_, cx, cy) in zip(*(where.corners(node)[at:] for at in range(3)), strict=False):
            if 0 < bx < 2000 and 0 < by < 2000:
                assert (ax, ay) != (cx, cy)  # nobody turns around
                along = (bx - ax) * (cx - bx) + (by - ay) * (cy - by)
                straight, turns = straight + (along > 1e-9), turns + (abs(along) <= 1e-9)
    assert straight / (straight + turns) == pytest.approx(0.5, abs=0.03)


def test_traffic_starts_in_its_steady_state() -> None:
    mobility = Mobility(
        model="roads", block_m=100.0, speed_min_mps=2.0, speed_max_mps=20.0, pause_min_s=2.0, pause_max_s=10.0
    )
    where = moving(Scenario(nodes=4000, area_m=(500.0, 300.0), duration_s=300.0, mobility=mobility))
    measured = []
    for t_s in (0.0, 290.0):
        positions = where.positions(t_s)
        resting = np.mean(np.array(speeds(where, t_s)) == 0)
        inner = np.mean((np.abs(positions[:, 0] - 250) < 150) & (np.abs(positions[:, 1] - 150) < 100))
        moving_mps = np.mean([speed for speed in speeds(where, t_s) if speed > 0])
        measured.append((resting, inner, moving_mps))
    (rest, inner, speed), (later_rest, later_inner, later_speed) = measured
    assert rest == pytest.approx(6 / (6 + 100 * np.log(10) / 18), abs=0.025)
    assert later_rest == pytest.approx(rest, abs=0.03)
    assert later_inner == pytest.approx(inner, abs=0.03)
    assert later_speed == pytest.approx(speed, rel=0.05)


@pytest.mark.parametrize("area_m", [(50.0, 50.0), (1000.0, 20.0)])
def test_a_single_block_or_a_single_street_has_roads_too(area_m: tuple[float, float]) -> None:
    mobility = Mobility(model="roads", block_m=100.0, speed_min_mps=5.0)
    where = moving(Scenario(nodes=10, area_m=area_m, duration_s=50.0, mobility=mobility))
    assert max(speeds(where, 25.0)) > 0


GOLF = Mobility(
    model="golf", holes=9, flights=3, players=3, group_radius_m=40.0, speed_min_mps=1.0, speed_max_mps=1.5,
    pause_min_s=20.0, pause_max_s=60.0, follow_delay_s=15.0,
)  # fmt: skip


def golf(nodes: int = 60) -> Scenario:
    return Scenario(nodes=nodes, area_m=(900.0, 700.0), duration_s=1800.0, mobility=GOLF)


def test_announcers_stay_at_the_greens() -> None:
    where = moving(golf())
    course = course_m(golf())
    assert len(course) == 9
    for node, (tee, green) in enumerate(course):
        assert where.corners(node) == ((0.0, *green),)
        assert hypot(green[0] - tee[0], green[1] - tee[1]) > 50


def test_players_walk_from_hole_to_hole_together() -> None:
    where = moving(golf())
    course = course_m(golf())
    for flight in range(3):
        players = [9 + 3 * flight + each for each in range(3)]
        greens: list[int] = []
        for t_s in np.arange(0.0, 1800.0, 1.0).tolist():
            places = [where.position(player, t_s) for player in players]
            spread_m = max(hypot(a[0] - b[0], a[1] - b[1]) for a in places for b in places)
            assert spread_m <= 2 * PLAYERS_RADIUS_M + 1e-9
            near = [
                hole
                for hole, (_, green) in enumerate(course)
                if hypot(places[0][0] - green[0], places[0][1] - green[1]) <= PLAYERS_RADIUS_M
            ]
            if near and greens[-1:] != near:
                greens += near
        assert greens[0] == 3 * flight  # a shotgun start: a third of the course apart
        assert len(greens) >= 3
        assert all(after == (before + 1) % 9 for before, after in pairwise(greens))


def test_the_gallery_follows_its_flight() -> None:
    where = moving(golf())
    for spectator in range(18, 60):
        player = 9 + 3 * ((spectator - 18) % 3)
        for t_s in (20.0, 400.0, 1000.0, 1700.0):
            x_m, y_m = where.position(spectator, t_s)
            before = where.position(player, t_s - 15.0)
            assert hypot(x_m - before[0], y_m - before[1]) <= 40 + PLAYERS_RADIUS_M + 1e-9


def test_a_course_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nodes = 17: must be at least 9 announcers and 9 players"):
        moving(golf(nodes=17))
    narrow = Scenario(nodes=60, area_m=(900.0, 70.0), mobility=GOLF)
    with pytest.raises(ConfigurationError, match=r"group_radius_m = 40.0: must be below half of the area's shorter"):
        moving(narrow)


def test_the_example_of_a_tournament_is_one() -> None:
    run = read_run(Path(__file__).parents[2] / "examples" / "golf.toml")
    assert moving(run.scenario).nodes == run.scenario.nodes == 120
