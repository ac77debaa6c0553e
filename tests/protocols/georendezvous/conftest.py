"""A small network in which who hears whom follows from where the nodes are."""

from collections.abc import Callable, Mapping
from math import dist
from typing import Any

import pytest

from roamcast.protocols.api import Host, Point, Site
from roamcast.protocols.georendezvous.cells import Cell, CellGrid
from roamcast.testing import TinyNet

SITE = Site(1000.0, 1000.0, 200.0)
GRID = CellGrid(SITE, margin_cells=1.0)


class Field:
    def __init__(self, net: TinyNet[Any]) -> None:
        self.net = net

    def move(self, node: int, point: Point) -> None:
        """The node is somewhere else from now on, and hears others."""
        self.net.positions_m[node] = point
        for other in self.net.addresses:
            near = other != node and dist(point, self.net.positions_m[other]) <= SITE.range_m
            if near and not self.net.linked(node, other):
                self.net.link(node, other)
            elif not near and self.net.linked(node, other):
                self.net.unlink(node, other)


@pytest.fixture
def field() -> Callable[..., Field]:
    def build(
        positions: list[Point],
        protocol: str | Callable[[Host], Any],
        parameters: Mapping[str, Any] | None = None,
        seed: int = 1,
    ) -> Field:
        places = dict(enumerate(positions))
        pairs = [(a, b) for a in places for b in places if a < b]
        links = [(a, b) for a, b in pairs if dist(places[a], places[b]) <= SITE.range_m]
        options: dict[str, Any] = {"nodes": len(places), "positions_m": places, "site": SITE, "seed": seed}
        if isinstance(protocol, str):
            return Field(TinyNet(links, protocol, parameters, **options))
        return Field(TinyNet(links, protocol, **options))

    return build


@pytest.fixture
def place() -> Callable[..., Point]:
    """A point in a cell, away from its centre by a share of its side."""

    def point(column: int, row: int, east: float = 0.0, north: float = 0.0) -> Point:
        x_m, y_m = GRID.centre((column, row))
        return x_m + east * GRID.side_m, y_m + north * GRID.side_m

    return point


@pytest.fixture
def key_point() -> Callable[[str], Point]:
    """Where a key lies."""
    return GRID.point


@pytest.fixture
def key_in() -> Callable[[int, int], str]:
    """A key that lies in a cell."""

    def key(column: int, row: int) -> str:
        cell: Cell = (column, row)
        return next(name for name in map(str, range(100_000)) if GRID.cell(GRID.point(name)) == cell)

    return key
