"""Node causal graphs, coverage, EP, LEP and contention against numbers worked by hand (thesis, chapter 5)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.causal import (
    CausalGraphs,
    Coverage,
    Role,
    Shadow,
    causal_graphs,
    contention,
    expansion_potential,
    local_expansion_potential,
    node_arcs,
    parse_specification,
)
from roamcast.causal.splitting import Arc
from roamcast.errors import CallerError

THESIS = parse_specification("a => b; a => c; a => d; b => e; c => e")
ROLES = {
    10: Role(publishes=(0,)),
    20: Role(publishes=(1,), subscribes=(0,)),
    30: Role(publishes=(2,), subscribes=(0,)),
    40: Role(publishes=(3,), subscribes=(0,)),
    50: Role(publishes=(4,), subscribes=(1, 2)),
}
GRAPHS = causal_graphs(THESIS, ROLES)


def test_a_child_subscribes_to_its_parent_and_publishes_because_of_it() -> None:
    assert node_arcs(THESIS, ROLES) == {(10, 20), (10, 30), (10, 40), (20, 50), (30, 50)}
    others = {60: Role(subscribes=(0, 1)), 70: Role(publishes=(4,)), 80: Role(publishes=(1,), subscribes=(2,))}
    assert node_arcs(THESIS, ROLES | others) == node_arcs(THESIS, ROLES) | {(80, 50)}


def test_levels_and_descendants_of_the_thesis_example() -> None:
    assert GRAPHS.shadows == (
        Shadow(0, 0, 10),
        Shadow(0, 1, 20),
        Shadow(0, 1, 30),
        Shadow(0, 1, 40),
        Shadow(0, 2, 50),
    )
    assert GRAPHS.descendants == {10: (20, 30, 40, 50), 20: (50,), 30: (50,), 40: (), 50: ()}
    assert GRAPHS.depth == 2


@pytest.mark.parametrize(
    ("members", "coverage", "potential"),
    [
        # the initiator and b: levels 0, 1; 10 has 4 descendants of which {20} is inside, 20 has {50} outside: 1 / 5
        ({10, 20, 99}, Coverage(2, 0.5, 0.2), 3 / (1.5 * 1.2)),
        # everything: levels 0, 1, 1, 1, 2; all 6 pairs inside
        ({10, 20, 30, 40, 50}, Coverage(5, 1.0, 1.0), 6 / (2 * 2)),
        # the end alone: nothing left to reach
        ({50}, Coverage(1, 2.0, 1.0), 2 / (3 * 2)),
        # the initiator alone
        ({10}, Coverage(1, 0.0, 0.0), 2 / (1 * 1)),
        # no causal node at all: the deepest level
        ({98, 99}, Coverage(0, 2.0, 1.0), 1 / (3 * 2)),
    ],
)
def test_expansion_potential_by_hand(members: set[int], coverage: Coverage, potential: float) -> None:
    covered = GRAPHS.coverage(members)
    assert covered == coverage
    assert expansion_potential(covered) == pytest.approx(potential)


def test_eta_and_the_local_potential_by_hand() -> None:
    coverage = Coverage(causal_nodes=3, level_mean=1.5, covered_share=0.25)
    potential = expansion_potential(coverage, eta=0.5)
    assert potential == pytest.approx(3.5 / (2.5 * 0.75))
    assert local_expansion_potential(potential, level=4, eta=0.5) == pytest.approx(potential / 4.5)
    assert local_expansion_potential(2.0, level=0) == 2.0
    for eta in (0.0, -1.0):
        with pytest.raises(CallerError):
            expansion_potential(coverage, eta)
        with pytest.raises(CallerError):
            local_expansion_potential(1.0, 1, eta)


def test_shadows_of_a_node_count_for_levels_and_the_node_once() -> None:
    graphs = CausalGraphs.from_arcs([(0, 1), (1, 2), (2, 0), (0, 2)])
    assert [graphs.levels(node) for node in (0, 1, 2)] == [(0, 1), (1,), (0, 1, 2)]
    assert graphs.coverage([0, 2]) == Coverage(2, (0 + 1 + 0 + 1 + 2) / 5, 2 / 3)  # 0 has 1, 2 below; 2 has 0


def test_contention_rests_inside_the_delta_band() -> None:
    assert contention(1.0, 1.0, 0.325) == "rests"
    assert contention(1.325, 1.0, 0.325) == "rests"
    assert contention(1.0, 1.325, 0.325) == "rests"
    assert contention(1.326, 1.0, 0.325) == "wins"
    assert contention(1.0, 1.326, 0.325) == "loses"


numbers = st.floats(1e-6, 1e6)
checked = settings(deadline=None, derandomize=True, max_examples=100)


@given(numbers, numbers, st.floats(0, 2))
@checked
def test_contention_has_one_winner_or_none(mine: float, theirs: float, delta: float) -> None:
    opposite = {"wins": "loses", "loses": "wins", "rests": "rests"}
    assert contention(theirs, mine, delta) == opposite[contention(mine, theirs, delta)]


@given(
    st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15),
    st.sets(st.integers(0, 9), max_size=8),
    st.floats(0.1, 5),
)
@checked
def test_a_tree_with_causal_nodes_beats_one_without(arcs: frozenset[Arc], members: set[int], eta: float) -> None:
    graphs = CausalGraphs.from_arcs(arcs)
    coverage = graphs.coverage(members)
    assert 0 <= coverage.covered_share <= 1
    assert 0 <= coverage.level_mean <= graphs.depth
    barren = expansion_potential(graphs.coverage([]), eta)
    if coverage.causal_nodes:
        assert expansion_potential(coverage, eta) > barren
    else:
        assert expansion_potential(coverage, eta) == barren
