"""Section 3: the probability of a well placed rendezvous node has a lower bound that does not vanish with size."""

from math import dist

import pytest

from roamcast.errors import CallerError
from roamcast.papers.georendezvous import SIDE_M, range_for_degree
from roamcast.protocols.georendezvous.theorem import (
    Distances,
    detour_bound,
    detour_probability,
    growth_constant,
    hops_mean,
)
from roamcast.seeds import derive
from roamcast.world.topology import Topology


def network(nodes: int, degree: float, seed: int) -> Distances:
    """Hops between all nodes of the largest part of a random network."""
    random = derive(seed, "theorem")
    places = [(random.random() * SIDE_M, random.random() * SIDE_M) for _ in range(nodes)]
    range_m = range_for_degree(nodes, degree)
    pairs = [(a, b) for a in range(nodes) for b in range(a) if dist(places[a], places[b]) <= range_m]
    topology = Topology(nodes)
    topology.load(pairs, [])
    largest = max((topology.distances(node) for node in range(nodes)), key=lambda row: sum(hops >= 0 for hops in row))
    inside = [node for node in range(nodes) if largest[node] >= 0]
    return [[topology.distances(a)[b] for b in inside] for a in inside]


@pytest.mark.parametrize(("nodes", "degree"), [(40, 8), (70, 8), (70, 20), (110, 12)])
@pytest.mark.parametrize("k", [0.25, 0.5, 1.0])
def test_theorem_3_1_the_measured_probability_respects_the_bound(nodes: int, degree: float, k: float) -> None:
    distances = network(nodes, degree, seed=nodes)
    diameter = max(map(max, distances))
    bound = detour_bound(growth_constant(distances, k), k, hops_mean(distances), diameter)
    assert 0 < bound <= detour_probability(distances, k)


def test_the_bound_does_not_vanish_with_the_size_of_the_network() -> None:
    bounds = []
    for nodes in (50, 200):
        distances = network(nodes, 10, 3)
        diameter = max(map(max, distances))
        bounds.append(detour_bound(growth_constant(distances, 1.0), 1.0, hops_mean(distances), diameter))
    assert bounds[1] > bounds[0] / 3


def test_a_line_is_worked_out_by_hand() -> None:
    line = [[abs(a - b) for b in range(3)] for a in range(3)]
    # Of 6 ordered pairs, the 4 of neighbours allow 3 hops with k = 1 and the 2 of the ends allow 6: from 0 to 1 over 2
    # takes 3, so every node serves.
    assert detour_probability(line, 1.0) == 1.0
    # Without a detour: 0 to 1 is served by 0 and 1, from end to end all three serve.
    assert detour_probability(line, 0.0) == pytest.approx((4 * 2 + 2 * 3) / 18)
    assert hops_mean(line) == pytest.approx(4 / 3)
    assert growth_constant(line, 1.0) == 1.5  # from an end, 2 nodes within 1 hop and 3 within 2


def test_the_formula() -> None:
    assert detour_bound(4.0, 1.0, 5.0, 10) == pytest.approx(4.0 ** (-1 - 1))
    assert detour_bound(1.0, 1.0, 5.0, 10) == pytest.approx(0.5)
    with pytest.raises(CallerError, match="k = 3"):
        detour_bound(4.0, 3.0, 5.0, 10)
