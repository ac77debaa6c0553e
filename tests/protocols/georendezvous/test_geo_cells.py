"""Cells: what all nodes agree on without talking."""

from math import dist, hypot

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols.api import Site
from roamcast.protocols.georendezvous.cells import CellGrid, touching

SITES = st.builds(Site, st.floats(50, 5000), st.floats(50, 5000), st.floats(10, 1000))
SHARES = st.tuples(st.floats(0, 1), st.floats(0, 1))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(SITES, SHARES, SHARES)
def test_nodes_in_cells_that_touch_hear_each_other(site: Site, a: tuple[float, float], b: tuple[float, float]) -> None:
    grid = CellGrid(site)
    here = (a[0] * site.width_m, a[1] * site.height_m)
    there = (here[0] + (b[0] - 0.5) * 4 * grid.side_m, here[1] + (b[1] - 0.5) * 4 * grid.side_m)
    if touching(grid.cell(here), grid.cell(there)):
        assert dist(here, there) <= site.range_m * (1 + 1e-9)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(SITES, st.text(max_size=20), st.floats(0, 3))
def test_keys_lie_in_the_area_and_keep_off_its_border(site: Site, key: str, margin_cells: float) -> None:
    grid = CellGrid(site, margin_cells=margin_cells)
    x_m, y_m = grid.point(key)
    assert min(margin_cells * grid.side_m, site.width_m / 4) <= x_m <= site.width_m
    assert min(margin_cells * grid.side_m, site.height_m / 4) <= y_m <= site.height_m
    assert grid.point(key) == CellGrid(site, margin_cells=margin_cells).point(key)


def test_a_whole_number_of_cells_spans_the_width() -> None:
    grid = CellGrid(Site(1000.0, 500.0, 200.0))
    assert (grid.columns, grid.rows) == (15, 8)
    assert grid.columns * grid.side_m == pytest.approx(1000.0)
    assert hypot(2 * grid.side_m, 2 * grid.side_m) <= 200.0
    assert grid.cell((1000.0, 500.0)) == (14, 7)
    assert grid.cell(grid.centre((3, 4))) == (3, 4)
    assert grid.cell((-1.0, 1.0)) == (-1, 0)


def test_keys_spread_evenly() -> None:
    grid = CellGrid(Site(1000.0, 1000.0, 200.0))
    points = [grid.point(f"cars#{index}") for index in range(2000)]
    for quarter in range(4):
        west, south = quarter % 2 * 500, quarter // 2 * 500
        inside = sum(west <= x < west + 500 and south <= y < south + 500 for x, y in points)
        assert 440 <= inside <= 560
