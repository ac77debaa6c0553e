"""Nodes on a regular lattice: `grid` (inner nodes have 4 nearest neighbours) and `beehive` (6).

These are the two evenly distributed plane networks of the SOMER thesis, section 3.1: the nearest neighbours of a node
sit on the corners of a square, or of a hexagon with the node itself in its centre. So a beehive is the triangular
lattice, its rows √3/2 of the spacing apart and every other row shifted by half the spacing; each node is the centre of
a hexagonal cell. Only nearest neighbours hear each other while the radio range is at least the spacing and below √2
(grid) or √3 (beehive) of it.

Rows are filled from the south-west; if the number of nodes does not fill the last row, its east end stays empty. The
lattice is centred in the area. Without a given spacing, the number of rows is the one that allows the widest spacing.
"""

from math import ceil, inf, sqrt
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.world.mobility.movements import Corner
from roamcast.world.scenario import Scenario

ROUNDING: Final = 1e-9  # a lattice may exceed the area by this share of its spacing


def grid(scenario: Scenario) -> list[list[Corner]]:
    return _lattice(scenario, row_height=1.0, shift=0.0)


def beehive(scenario: Scenario) -> list[list[Corner]]:
    return _lattice(scenario, row_height=sqrt(3) / 2, shift=0.5)


def _lattice(scenario: Scenario, row_height: float, shift: float) -> list[list[Corner]]:
    """`row_height` and `shift` (of every other row, eastward) are in units of the spacing."""
    nodes, (width_m, height_m) = scenario.nodes, scenario.area_m
    rows, widest_m = _widest(scenario, row_height, shift)
    given_m = scenario.mobility.spacing_m
    if given_m is not None and given_m > widest_m * (1 + ROUNDING):
        raise ConfigurationError(
            f"mobility.spacing_m = {given_m}: must be at most {widest_m:.6g} for {nodes} nodes "
            f"in an area of {width_m:g} m × {height_m:g} m"
        )
    spacing_m = given_m if given_m is not None else min(widest_m, max(width_m, height_m))
    columns = ceil(nodes / rows)
    west_m = (width_m - spacing_m * _width(nodes, columns, shift)) / 2
    south_m = (height_m - spacing_m * (rows - 1) * row_height) / 2
    corners: list[list[Corner]] = []
    for node in range(nodes):
        row, column = divmod(node, columns)
        x_m, y_m = west_m + spacing_m * (column + shift * (row % 2)), south_m + spacing_m * row * row_height
        # Rounding must not put the outermost nodes outside the area.
        corners.append([(0.0, min(max(x_m, 0.0), width_m), min(max(y_m, 0.0), height_m))])
    return corners


def _widest(scenario: Scenario, row_height: float, shift: float) -> tuple[int, float]:
    """The number of rows with the widest spacing that keeps all nodes in the area, and that spacing."""
    width_m, height_m = scenario.area_m
    best = (1, 0.0)
    for rows in range(1, scenario.nodes + 1):
        width = _width(scenario.nodes, ceil(scenario.nodes / rows), shift)
        across_m = width_m / width if width else inf
        upward_m = height_m / ((rows - 1) * row_height) if rows > 1 else inf
        if min(across_m, upward_m) > best[1]:
            best = (rows, min(across_m, upward_m))
    return best


def _width(nodes: int, columns: int, shift: float) -> float:
    """From the westmost to the eastmost node. The first shifted row decides; it may be short if it is also the last."""
    second_row = min(nodes - columns, columns)
    return max(columns - 1, shift + second_row - 1)
