"""The analytic model of the thesis' chapter 3, and SOMER on the lattices it speaks of."""

from math import hypot, sqrt

import pytest

from roamcast.errors import CallerError
from roamcast.papers.somer_model import detour_factor, path_length_bound, path_overhead_bound, path_overhead_limit
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation

SPACING_M = 100.0


def test_the_turn_costs_what_the_triangle_says() -> None:
    """Section 3.1, equations 3.2 to 3.4: no point on the turn's side makes the way longer than the bound."""
    assert detour_factor(4) == pytest.approx(sqrt(2))
    assert detour_factor(6) == pytest.approx(2 / sqrt(3))
    for neighbours, cosine in ((4, 0.0), (6, -0.5)):
        for first in range(1, 20):
            for second in range(1, 20):
                straight = sqrt(first**2 + second**2 - 2 * first * second * cosine)
                assert first + second <= detour_factor(neighbours) * straight + 1e-9


def test_the_overhead_falls_to_its_limit_in_large_networks() -> None:
    """Section 3.2, equations 3.6 and 3.7."""
    assert path_length_bound(10, 3, 4) == pytest.approx(3 + 10 * sqrt(2))
    assert path_overhead_limit(4) == pytest.approx(sqrt(2) - 1)
    assert path_overhead_limit(6) == pytest.approx(2 / sqrt(3) - 1)
    for neighbours in (4, 6):
        overheads = [path_overhead_bound(distance, 5, neighbours) for distance in (1, 10, 100, 1e6)]
        assert overheads == sorted(overheads, reverse=True)
        assert overheads[-1] == pytest.approx(path_overhead_limit(neighbours), abs=1e-4)


def test_other_lattices_and_distances_are_refused() -> None:
    with pytest.raises(CallerError, match="neighbours = 5"):
        detour_factor(5)
    with pytest.raises(CallerError, match="distance = 0"):
        path_overhead_bound(0, 5, 4)


class Ways:
    """The ways that events took on a lattice with SOMER."""

    def __init__(self, neighbours: int, side: int) -> None:
        beehive = neighbours == 6
        width_m = (side - 1 + 0.5 * beehive) * SPACING_M + 1
        height_m = (side - 1) * SPACING_M * (sqrt(3) / 2 if beehive else 1) + 1
        scenario = Scenario(
            nodes=side * side,
            area_m=(width_m, height_m),
            duration_s=45,
            mobility=Mobility(model="beehive" if beehive else "grid", spacing_m=SPACING_M),
            radio=Ideal(range_m=1.2 * SPACING_M),
            workload=Workload(publishers=10, rate_per_s=0.2, start_s=25, tail_s=5),
        )
        simulation = Simulation(Run(scenario=scenario, protocol="somer", seed=2))
        simulation.run_until(scenario.duration_s)
        rows = [row for row in simulation.recorder.table().to_pylist() if row["kind"] in ("structure", "delivered")]
        levels = {row["node"]: row["value"] for row in rows if row["category"] == "parent"}  # the last one counts
        self.radius = max(levels.values())
        assert simulation.movements is not None
        places = simulation.movements.positions(0.0) / SPACING_M
        self.ways: list[tuple[float, int]] = [
            (hypot(*(places[row["node"]] - places[row["peer"]])), row["hops"])
            for row in rows
            if row["kind"] == "delivered"
        ]

    def overhead(self, least_distance: float = 0.0) -> float:
        """The path overhead ratio over all ways at least this long in a straight line."""
        far = [(distance, hops) for distance, hops in self.ways if distance >= least_distance]
        assert len(far) > 100
        return sum(hops for _, hops in far) / sum(distance for distance, _ in far) - 1


@pytest.mark.parametrize("neighbours", [4, 6])
def test_somer_respects_the_bound_on_lattices(neighbours: int) -> None:
    """Section 3.2. The model takes the mean way from a node to its root, so the bound is one of means; and the farther
    events go, the less does the way through roots matter."""
    network = Ways(neighbours, side=18)
    bounds = [path_length_bound(distance, network.radius, neighbours) for distance, _ in network.ways]
    assert sum(hops for _, hops in network.ways) <= sum(bounds)
    far = 2 * network.radius
    assert network.overhead(far) < path_overhead_bound(far, network.radius, neighbours)
    assert network.overhead(far) < network.overhead()
