"""The movements of a network as characters: paths in braille dots, nodes on top, for a terminal.

Each character is two dots wide and four high, and about twice as high as wide, so a dot is a square. North is up.
"""

from itertools import pairwise
from math import ceil
from typing import Final

from roamcast.world.mobility import Movements
from roamcast.world.scenario import Scenario

COLUMNS_MAX: Final = 100
ROWS_MAX: Final = 40
_BRAILLE: Final = 0x2800
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column within a character
NODE: Final = "●"


def terminal_map(scenario: Scenario, movements: Movements | None, at_s: float, columns: int) -> str:
    """The paths until the end of the run, and where the nodes that are present are at `at_s`."""
    if movements is None:
        return ""
    canvas = _Canvas(scenario.area_m, min(columns, COLUMNS_MAX) - 2)
    for node in range(movements.nodes):
        corners = movements.until(node, scenario.duration_s)
        for (_, x_m, y_m), (_, to_x_m, to_y_m) in pairwise(corners):
            canvas.line(x_m, y_m, to_x_m, to_y_m)
    present = scenario.mobility.present
    for node in range(movements.nodes):
        if not present or present[node][0] <= at_s < present[node][1]:
            canvas.node(*movements.position(node, at_s))
    return canvas.text()


class _Canvas:
    def __init__(self, area_m: tuple[float, float], columns: int) -> None:
        width_m, height_m = area_m
        self._columns = max(4, columns)
        self._rows = max(1, ceil(self._columns / 2 * height_m / width_m))
        if self._rows > ROWS_MAX:
            self._rows = ROWS_MAX
            self._columns = max(4, ceil(2 * ROWS_MAX * width_m / height_m))
        self._area_m = area_m
        self._cells = [[0] * self._columns for _ in range(self._rows)]
        self._nodes: set[tuple[int, int]] = set()  # row and column of characters; only asked for members

    def line(self, x_m: float, y_m: float, to_x_m: float, to_y_m: float) -> None:
        x, y, to_x, to_y = *self._dot(x_m, y_m), *self._dot(to_x_m, to_y_m)
        steps = max(1, ceil(max(abs(to_x - x), abs(to_y - y))))
        for step in range(steps + 1):
            self._set(int(x + (to_x - x) * step / steps), int(y + (to_y - y) * step / steps))

    def node(self, x_m: float, y_m: float) -> None:
        x, y = (int(place) for place in self._dot(x_m, y_m))
        self._nodes.add((y // 4, x // 2))

    def text(self) -> str:
        edge = "─" * self._columns
        rows = [
            "".join(
                NODE if (row, column) in self._nodes else chr(_BRAILLE + cell) if cell else " "
                for column, cell in enumerate(cells)
            )
            for row, cells in enumerate(self._cells)
        ]
        return "\n".join([f"┌{edge}┐", *(f"│{row}│" for row in rows), f"└{edge}┘"])

    def _dot(self, x_m: float, y_m: float) -> tuple[float, float]:
        """In dots from the north-west; what lies outside the area is drawn at its border."""
        width_m, height_m = self._area_m
        x = min(max(x_m / width_m, 0.0), 1.0) * (2 * self._columns - 1)
        y = min(max(1 - y_m / height_m, 0.0), 1.0) * (4 * self._rows - 1)
        return x, y

    def _set(self, x: int, y: int) -> None:
        self._cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
