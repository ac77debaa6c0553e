"""Section 3: the probability of a well placed rendezvous node has a lower bound that does not vanish with size."""

import numpy as np
import pytest

from roamcast.errors import CallerError
from roamcast.papers.georendezvous import SIDE_M, range_for_degree
from roamcast.papers.georendezvous_theorem import (
    Distances,
    bound_label,
    detour_bound,
    detour_probability,
    growth_constant,
    hop_distances,
    hops_mean,
    measured_label,
    network_rows,
)
from roamcast.seeds import derive
from roamcast.world.topology import Topology


def places(nodes: int, seed: int) -> list[tuple[float, float]]:
    random = derive(seed, "theorem")
    return [(random.random() * SIDE_M, random.random() * SIDE_M) for _ in range(nodes)]


def network(nodes: int, degree: float, seed: int) -> Distances:
    """Hops between all nodes of the largest part of a random network."""
    return hop_distances(np.array(places(nodes, seed)), range_for_degree(nodes, degree))


@pytest.mark.parametrize(("nodes", "degree"), [(60, 4), (70, 12)])
def test_hops_are_those_of_a_search(nodes: int, degree: float) -> None:
    at, range_m = np.array(places(nodes, nodes)), range_for_degree(nodes, degree)
    apart = np.hypot(at[:, None, 0] - at[None, :, 0], at[:, None, 1] - at[None, :, 1])
    topology = Topology(nodes)
    topology.load([(a, b) for a in range(nodes) for b in range(a) if apart[a, b] <= range_m], [])
    searched = [topology.distances(node) for node in range(nodes)]
    largest = max(searched, key=lambda row: sum(hops >= 0 for hops in row))
    inside = [node for node in range(nodes) if largest[node] >= 0]
    assert hop_distances(at, range_m).tolist() == [[searched[a][b] for b in inside] for a in inside]


def test_a_network_has_both_curves_for_every_k() -> None:
    rows = dict(network_rows(np.array(places(60, 1)), range_for_degree(60, 12)))
    for k in (0.25, 0.5, 1.0):
        assert 0 < rows[bound_label(k)] <= rows[measured_label(k)] <= 1


@pytest.mark.parametrize(("nodes", "degree"), [(40, 8), (70, 8), (70, 20), (110, 12)])
@pytest.mark.parametrize("k", [0.25, 0.5, 1.0])
def test_theorem_3_1_the_measured_probability_respects_the_bound(nodes: int, degree: float, k: float) -> None:
    distances = network(nodes, degree, seed=nodes)
    diameter = int(distances.max())
    bound = detour_bound(growth_constant(distances, k), k, hops_mean(distances), diameter)
    assert 0 < bound <= detour_probability(distances, k)


def test_the_bound_does_not_vanish_with_the_size_of_the_network() -> None:
    bounds = []
    for nodes in (50, 200):
        distances = network(nodes, 10, 3)
        diameter = int(distances.max())
        bounds.append(detour_bound(growth_constant(distances, 1.0), 1.0, hops_mean(distances), diameter))
    assert bounds[1] > bounds[0] / 3


def test_a_line_is_worked_out_by_hand() -> None:
    line = np.array([[abs(a - b) for b in range(3)] for a in range(3)])
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
