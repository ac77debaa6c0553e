"""Causal dependencies as the thesis' chapter 5 puts them, from the specification to a contention, worked by hand."""

import pytest

from roamcast.causal import (
    Coverage,
    Role,
    causal_graphs,
    contention,
    expansion_potential,
    local_expansion_potential,
    node_arcs,
    parse_specification,
)

# The story of section 1.2: a commander asks, aircraft send images, a soldier annotates them, a satellite carries the
# answer, and the commander, who has it back, gives an order that the soldier confirms.
STORY = parse_specification("request => image => note => answer => order => confirmation")
REQUEST, IMAGE, NOTE, ANSWER, ORDER, CONFIRMATION = range(6)
COMMANDER, AIRCRAFT, OTHER_AIRCRAFT, SOLDIER, SATELLITE = 1, 2, 3, 4, 5
ROLES = {
    COMMANDER: Role(publishes=(REQUEST, ORDER), subscribes=(ANSWER,)),
    AIRCRAFT: Role(publishes=(IMAGE,), subscribes=(REQUEST,)),
    OTHER_AIRCRAFT: Role(publishes=(IMAGE,), subscribes=(REQUEST,)),
    SOLDIER: Role(publishes=(NOTE, CONFIRMATION), subscribes=(IMAGE, ORDER)),
    SATELLITE: Role(publishes=(ANSWER,), subscribes=(NOTE,)),
}
GRAPHS = causal_graphs(STORY, ROLES)


def test_events_are_anti_symmetric_but_nodes_are_not() -> None:
    """Section 5.1: the node that asks also gets the answer, so the graph of nodes has a cycle though that of events has
    none."""
    assert node_arcs(STORY, ROLES) == {
        (COMMANDER, AIRCRAFT),
        (COMMANDER, OTHER_AIRCRAFT),
        (AIRCRAFT, SOLDIER),
        (OTHER_AIRCRAFT, SOLDIER),
        (SOLDIER, SATELLITE),
        (SATELLITE, COMMANDER),  # retro-causal
        (COMMANDER, SOLDIER),  # the order: a parent at another level
    }


def test_the_retro_causal_arc_is_split_off() -> None:
    """Section 5.1, assumption 1, and chapter 7. By distance from the commander, aircraft and soldier are at level 1,
    the satellite at 2; its arc back starts a graph of its own. The soldier is a child of both the commander and the
    aircraft, so it has two shadows, and the satellite below it too."""
    levels = {node: GRAPHS.levels(node) for node in ROLES}
    assert levels == {
        COMMANDER: (0, 1),
        AIRCRAFT: (1,),
        OTHER_AIRCRAFT: (1,),
        SOLDIER: (1, 2),
        SATELLITE: (0, 2, 3),
    }
    assert GRAPHS.descendants == {
        COMMANDER: (AIRCRAFT, OTHER_AIRCRAFT, SOLDIER, SATELLITE),
        AIRCRAFT: (SOLDIER, SATELLITE),
        OTHER_AIRCRAFT: (SOLDIER, SATELLITE),
        SOLDIER: (SATELLITE,),
        SATELLITE: (COMMANDER,),
    }


def test_expansion_potential_prefers_early_and_many_causal_nodes() -> None:
    """Equation 5.1 with eta = 1. The commander's tree with one aircraft: shadows at 0, 1, 1; of 4 + 2 descendants one
    is inside. The satellite's tree: shadows at 0, 2, 3; its one descendant is outside."""
    heart, rim = GRAPHS.coverage({COMMANDER, AIRCRAFT, 70, 71}), GRAPHS.coverage({SATELLITE, 72})
    assert heart == Coverage(2, 2 / 3, 1 / 6)
    assert rim == Coverage(1, 5 / 3, 0.0)
    assert expansion_potential(heart) == pytest.approx(3 / ((5 / 3) * (7 / 6)))
    assert expansion_potential(rim) == pytest.approx(2 / (8 / 3))


def test_a_tree_that_covers_all_descendants_gains_less_from_growing() -> None:
    """Section 5.2, observation 4: a greater gamma lowers the potential."""
    few, all_of_them = Coverage(3, 1.0, 0.1), Coverage(3, 1.0, 1.0)
    assert expansion_potential(few) > expansion_potential(all_of_them)


def test_contention_moves_the_border_until_the_band_is_reached() -> None:
    """Equations 5.2 and 5.3: along a row of nodes between two roots, the better tree takes node after node, and stops
    where depth has used up its advantage: 2.4 / (n + 1) <= 1.325 * 1 / (m + 1) with n + m = 9 first holds at n = 7."""
    strong, weak, delta, between = 2.4, 1.0, 0.325, 10
    border = 4  # last level of the strong tree's branch; the weak one's reaches down to between - border - 1
    moves = 0
    while True:
        mine = local_expansion_potential(strong, border)
        theirs = local_expansion_potential(weak, between - border - 1)
        outcome = contention(mine, theirs, delta)
        if outcome != "wins":
            break
        border, moves = border + 1, moves + 1
    assert (outcome, border, moves) == ("rests", 7, 3)
