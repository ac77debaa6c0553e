"""General causal graphs become layered ones: by hand, and for every small graph Hypothesis can think of."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.causal.splitting import Arc, Layers, components, layered, retro_causal, split, successors

GRAPHS = st.frozensets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=24)
checked = settings(deadline=None, derandomize=True, max_examples=150)


def shadow_arcs(graph: Layers) -> set[tuple[int, int, int]]:
    """The arcs between shadows: (level, parent, child)."""
    return {
        (level, parent, child)
        for level, nodes in enumerate(graph.levels)
        for parent in nodes
        for origin, child in graph.arcs
        if origin == parent
    }


def ways(arcs: frozenset[Arc], starts: Iterable[int]) -> set[tuple[int, ...]]:
    """Every way from one of `starts` to an end, by brute force; for acyclic graphs."""
    children = successors(arcs)
    found: set[tuple[int, ...]] = set()
    work: list[tuple[int, ...]] = [(start,) for start in starts]
    while work:
        way = work.pop()
        further = children[way[-1]]
        work += [(*way, child) for child in further]
        if not further:
            found.add(way)
    return found


def test_a_layered_graph_stays_whole() -> None:
    (graph,) = split([(1, 2), (1, 3), (1, 4), (2, 5), (3, 5)])  # thesis, figure 5.1
    assert graph.levels == ((1,), (2, 3, 4), (5,))


def test_the_retro_causal_arc_becomes_a_graph_of_its_own() -> None:
    # Commander 0 asks agents 1, 2; soldier 3; satellite 4 answers the commander.
    forward, backward = split([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 0)])
    assert forward.levels == ((0,), (1, 2), (3,), (4,))
    assert backward.levels == ((4,), (0,))


def test_parents_at_different_levels_give_two_shadows() -> None:
    (graph,) = split([(0, 1), (1, 2), (0, 2), (2, 3)])
    assert graph.levels == ((0,), (1, 2), (2, 3), (3,))


def test_two_initiators_that_share_a_child() -> None:
    (graph,) = split([(0, 2), (1, 2), (9, 8)])
    assert graph.levels == ((0, 1, 9), (2, 8))


def test_a_pure_circle_starts_at_its_smallest_node() -> None:
    forward, backward = split([(5, 7), (7, 3), (3, 5)])
    assert forward.levels == ((3,), (5,), (7,))
    assert backward.levels == ((7,), (3,))


def test_nobody_depends_on_himself() -> None:
    assert split([(4, 4)]) == ()


@given(GRAPHS)
@checked
def test_every_arc_is_in_exactly_one_layered_graph(arcs: frozenset[Arc]) -> None:
    graphs = split(arcs)
    kept = [arc for graph in graphs for arc in graph.arcs]
    assert sorted(kept) == sorted(arc for arc in arcs if arc[0] != arc[1])
    for graph in graphs:
        placed = {(parent, child) for _, parent, child in shadow_arcs(graph)}
        assert placed == graph.arcs


@given(GRAPHS)
@checked
def test_parents_are_one_level_up_and_circles_are_gone(arcs: frozenset[Arc]) -> None:
    for graph in split(arcs):
        parents: dict[tuple[int, int], set[int]] = {}
        for level, parent, child in shadow_arcs(graph):
            assert child in graph.levels[level + 1]
            parents.setdefault((level + 1, child), set()).add(parent)
        for level, nodes in enumerate(graph.levels):
            assert list(nodes) == sorted(set(nodes))
            for node in nodes:
                assert (level == 0) == ((level, node) not in parents)
        component = components(successors(graph.arcs))
        assert all(node == name for node, name in component.items())


@given(GRAPHS)
@checked
def test_unrolling_keeps_every_way_with_its_length(arcs: frozenset[Arc]) -> None:
    real = frozenset(arc for arc in arcs if arc[0] != arc[1])
    acyclic = real - retro_causal(real)
    graph = layered(acyclic)
    fed = {child for _, child in acyclic}
    before = ways(acyclic, [node for node in successors(acyclic) if node not in fed])
    for way in before:
        assert all(node in graph.levels[level] for level, node in enumerate(way))
    starts = graph.levels[0] if graph.levels else ()
    after: set[tuple[int, ...]] = set()
    work: list[tuple[int, ...]] = [(node,) for node in starts]
    while work:
        way = work.pop()
        further = [child for level, parent, child in shadow_arcs(graph) if (level, parent) == (len(way) - 1, way[-1])]
        work += [(*way, child) for child in further]
        if not further:
            after.add(way)
    assert after == before


@given(GRAPHS)
@checked
def test_only_circles_are_cut_and_each_of_them(arcs: frozenset[Arc]) -> None:
    real = frozenset(arc for arc in arcs if arc[0] != arc[1])
    cut = retro_causal(real)
    component = components(successors(real))
    assert all(component[parent] == component[child] for parent, child in cut)
    assert cut < real or not real


@given(GRAPHS)
@checked
def test_components_are_mutual_reach(arcs: frozenset[Arc]) -> None:
    children = successors(arcs)
    reach = {node: {node} for node in children}
    for _ in children:
        for node, below in children.items():
            for child in below:
                reach[node] |= reach[child]
    component = components(children)
    for node in children:
        mutual = {other for other in children if other in reach[node] and node in reach[other]}
        assert component[node] == min(mutual)


def test_a_long_chain_needs_no_recursion() -> None:
    chain = list(pairwise(range(5000)))
    (graph,) = split(chain)
    assert len(graph.levels) == 5000
