"""Steering: from everywhere, a packet for a place ends at the one vertex that is nearest to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols.api import Site
from roamcast.protocols.georendezvous.cells import CellGraph, CellGrid, NodeGraph, RoutingGraph, Vertex
from roamcast.protocols.georendezvous.steering import begin_tour, closeness, closer, continue_tour, greedy
from roamcast.protocols.georendezvous.tour import Tour

GRID = CellGrid(Site(1000.0, 1000.0, 200.0))
CELLS = CellGraph(GRID)
NODES = NodeGraph(GRID)

Heard = dict[Vertex, list[Vertex]]
"""What is heard at each vertex."""


def walk(graph: RoutingGraph, heard: Heard, source: Vertex, target: Vertex) -> list[Vertex]:
    """The way of a packet in a network that does not change."""
    way = [source]
    tour: Tour | None = None
    while len(way) < 20_000:
        here = way[-1]
        if here == target:
            return way
        if tour is None or closer(here, tour.start, target):
            nearer = greedy(here, graph.neighbours(here, heard[here]), target)
            if nearer is not None:
                way.append(nearer)
                tour = None
                continue
            if graph.surely_nearest(here, target):
                return way
            step = begin_tour(here, graph.planar(here, heard[here]), target)
        else:
            step = continue_tour(here, graph.planar(here, heard[here]), target, tour)
            assert step is None or step.tour.start == tour.start, "took an edge twice without meeting its start"
        if step is None:
            return way
        way.append(step.vertex)
        tour = step.tour
    raise AssertionError(f"from {source} to {target}: goes in circles")


def connected(graph: RoutingGraph, heard: Heard) -> list[Vertex]:
    """The component of the first vertex."""
    reached = [next(iter(heard))]
    for vertex in reached:
        reached += [other for other in graph.neighbours(vertex, heard[vertex]) if other not in reached]
    return reached


def cells(picture: str) -> list[Vertex]:
    """The populated cells of a picture, north at the top."""
    lines = picture.split()
    return [(x, len(lines) - 1 - y) for y, line in enumerate(lines) for x, sign in enumerate(line) if sign == "#"]


def everyone_finds_the_nearest(graph: RoutingGraph, heard: Heard, targets: list[Vertex]) -> None:
    vertices = connected(graph, heard)
    for target in targets:
        home = min(vertices, key=lambda vertex: closeness(vertex, target))
        for source in vertices:
            assert walk(graph, heard, source, target)[-1] == home


@st.composite
def populated_cells(draw: st.DrawFn) -> list[Vertex]:
    """Random cells of some density, with a rectangular hole and perhaps a bay that opens to one side."""
    side = draw(st.integers(1, 9))
    threshold = draw(st.integers(3, 10))
    filled = draw(st.lists(st.integers(1, 10), min_size=side * side, max_size=side * side))
    west, south, width, height = (draw(st.integers(0, side)) for _ in range(4))
    found: list[Vertex] = [
        (x, y)
        for x in range(side)
        for y in range(side)
        if filled[x * side + y] <= threshold and not (west <= x < west + width and south <= y < south + height)
    ]
    return found or [(0, 0)]


@settings(deadline=None, derandomize=True, max_examples=80)
@given(populated_cells(), st.lists(st.tuples(st.integers(-2, 10), st.integers(-2, 10)), min_size=1, max_size=4))
def test_every_packet_reaches_the_one_home_cell(vertices: list[Vertex], targets: list[Vertex]) -> None:
    everyone_finds_the_nearest(CELLS, dict.fromkeys(vertices, vertices), targets)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 8000)), min_size=1, max_size=40, unique=True),
    st.lists(st.tuples(st.integers(0, 10000), st.integers(0, 10000)), min_size=1, max_size=3),
)
def test_every_packet_reaches_the_one_home_node(positions: list[Vertex], targets: list[Vertex]) -> None:
    heard = {
        a: [b for b in positions if b != a and (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 <= 2000**2] for a in positions
    }
    everyone_finds_the_nearest(NODES, heard, targets)


@pytest.mark.parametrize(
    "picture",
    [
        "#######  #.....#  #.###.#  #.#.#.#  #.#...#  #.#####  #......",  # a spiral
        "##.##  #...#  .....  #...#  ##.##",  # in pieces; the sources are those of one of them
        "#####  #...#  #...#  #...#  #####",  # a hole
        "#...#  #...#  #...#  #...#  #####",  # a bay
        "#.#.#  .#.#.  #.#.#  .#.#.",  # nothing but diagonals
        "####### #.....# #.....# ..###.. #.....# #######",  # a bay in a bay
    ],
)
def test_holes_bays_and_spirals(picture: str) -> None:
    vertices = cells(picture)
    targets: list[Vertex] = [(x, y) for x in range(-1, 8) for y in range(-1, 8)]
    everyone_finds_the_nearest(CELLS, dict.fromkeys(vertices, vertices), targets)


def test_section_2_1_greedy_until_a_local_minimum_then_around_the_face() -> None:
    vertices = cells(
        """
        .####.
        .#..#.
        ##..##
        #....#
        """
    )
    way = walk(CELLS, dict.fromkeys(vertices, vertices), (0, 0), (5, 0))
    assert way[0] == (0, 0)
    assert way[-1] == (5, 0)
    assert (3, 3) in way, "the only way around the bay is over its far end"


def test_two_diagonals_never_cross() -> None:
    block: list[Vertex] = [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert CELLS.planar((0, 0), block) == [(0, 1), (1, 0)]
    assert CELLS.planar((0, 0), [(0, 0), (1, 1)]) == [(1, 1)]
    assert CELLS.planar((0, 0), [(0, 0), (1, 0), (1, 1)]) == [(1, 0)]


def test_no_two_cells_are_equally_close() -> None:
    around: list[Vertex] = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    assert sorted(around, key=lambda vertex: closeness(vertex, (0, 0))) == [(0, 1), (1, 0), (-1, 0), (0, -1)]


def test_a_target_on_an_edge_lies_in_one_face_only() -> None:
    west, east, south = (2500, 4500), (4000, 4500), (2600, 3300)
    positions: list[Vertex] = [west, east, (2500, 3500), south, (1500, 3000), (4000, 4000), (3000, 5500)]
    heard = {
        a: [b for b in positions if b != a and (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 <= 2000**2] for a in positions
    }
    everyone_finds_the_nearest(NODES, heard, [(2750, 4500), (4000, 4250), (3250, 4500)])


def test_a_tour_whose_start_is_gone_begins_anew_instead_of_going_on_for_ever() -> None:
    ring = cells("###  #.#  ###")
    start: Vertex = (7, 7)  # the cell where the tour began has lost its last member meanwhile
    here: Vertex = (0, 0)
    tour = Tour(start, (1, 0), ((1, 0), here), 1)
    for _ in range(40):
        step = continue_tour(here, CELLS.planar(here, ring), (1, 1), tour)
        assert step is not None
        here, tour = step
        if tour.start != start:
            break
    assert tour.start in ring
