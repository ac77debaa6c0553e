"""Operators on grids: payloads of little-endian doubles, row by row.

| operator | what it does to an event |
|---|---|
| `crop(COLUMNS, LEFT, TOP, RIGHT, BOTTOM)` | cuts a bounding box out of it |
| `downsample(COLUMNS, FACTOR, FUNCTION)` | makes one cell of FACTOR x FACTOR: mean, sum, min or max |
| `stencil(COLUMNS, STEPS, CENTRE, SIDES, CORNERS)` | weighs each cell and its eight neighbours, STEPS times |
| `combine(FUNCTION, INPUT)` | adds, subtracts, multiplies, min or max, cell by cell, with a grid that came along |
| `measure(FUNCTION)` | sets its content to the mean, sum, min or max of all cells; NaN counts nowhere |
| `runoff(COLUMNS, INPUT, SECONDS, STEPS)` | takes rain, mm/h, puts out water depths, m, on a terrain (`runoff.py`) |

INPUT names static data that came with the modulator, a grid of the same size, or is `plane`, ground that every broker
has. A payload that is no grid of these columns, or none of the size of the input, is dropped.
"""

from typing import Any, ClassVar, Final

import numpy as np
from msgspec.structs import replace

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.expression import Parser
from roamcast.protocols.overlays.modulators.operator import (
    BYTE_S,
    CALL_S,
    Fate,
    Operator,
    State,
    one_of,
    seconds,
    signed,
    whole,
    whole_between,
)
from roamcast.protocols.overlays.modulators.runoff import Grid, Runoff, plane

DOUBLE_BYTES: Final = 8
CELLS_MAX: Final = 12_288  # a state or a payload of this many doubles fits a message
COLUMNS_MAX: Final = 4096
STEPS_MAX: Final = 64
CELL_STEP_S: Final = 3e-8  # of a stencil, or of the run-off model, per cell
RUNOFF_S_MAX: Final = 3600.0
PLANE: Final = "plane"

_REDUCTIONS: Final[dict[str, Any]] = {"mean": np.mean, "sum": np.sum, "min": np.min, "max": np.max}
_MEASURES: Final[dict[str, Any]] = {"mean": np.nanmean, "sum": np.nansum, "min": np.nanmin, "max": np.nanmax}
_PAIRS: Final[dict[str, Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def grid_of(payload: bytes, columns: int) -> Grid | None:
    """A payload as a grid that must not be changed; None if it is none."""
    if not payload or len(payload) % (columns * DOUBLE_BYTES) or len(payload) > CELLS_MAX * DOUBLE_BYTES:
        return None
    return np.frombuffer(payload, dtype="<f8").reshape(-1, columns)


def payload_of(grid: Grid) -> bytes:
    return np.ascontiguousarray(grid, dtype="<f8").tobytes()


class Crop(Operator):
    name: ClassVar[str] = "crop"

    def __init__(self, columns: int, left: int, top: int, right: int, bottom: int) -> None:
        if not (0 <= left < right <= columns and 0 <= top < bottom):
            raise ConfigurationError(
                f"modulator: crop({columns}, {left}, {top}, {right}, {bottom}): must be a box within the columns"
            )
        self._columns = columns
        self._left, self._top, self._right, self._bottom = left, top, right, bottom

    @classmethod
    def parse(cls, parser: Parser) -> "Crop":
        numbers = [whole(parser)]
        while parser.accept(","):
            numbers.append(whole(parser))
        if len(numbers) != 5:
            raise ConfigurationError(f"modulator: crop takes 5 numbers, not {len(numbers)}")
        return cls(*numbers)

    def apply(self, event: Event) -> Event | Fate:
        width = self._columns * DOUBLE_BYTES
        if not event.payload or len(event.payload) % width:
            return Fate.DROPPED
        rows = range(self._top, min(self._bottom, len(event.payload) // width))
        first, last = self._left * DOUBLE_BYTES, self._right * DOUBLE_BYTES
        box = b"".join(event.payload[row * width + first : row * width + last] for row in rows)
        return replace(event, payload=box)

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class Downsample(Operator):
    name: ClassVar[str] = "downsample"

    def __init__(self, columns: int, factor: int, function: str) -> None:
        self._columns = columns
        self._factor = factor
        self._reduce = _REDUCTIONS[function]

    @classmethod
    def parse(cls, parser: Parser) -> "Downsample":
        columns = _columns(parser)
        factor = whole_between(parser, 1, COLUMNS_MAX)
        parser.expect(",")
        return cls(columns, factor, one_of(parser, tuple(_REDUCTIONS)))

    def apply(self, event: Event) -> Event | Fate:
        grid = grid_of(event.payload, self._columns)
        if grid is None:
            return Fate.DROPPED
        rows = range(0, grid.shape[0], self._factor)
        columns = range(0, self._columns, self._factor)
        factor = self._factor
        cells = [[self._reduce(grid[y : y + factor, x : x + factor]) for x in columns] for y in rows]
        return replace(event, payload=payload_of(np.array(cells)))

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class Stencil(Operator):
    name: ClassVar[str] = "stencil"

    def __init__(self, columns: int, steps: int, centre: float, sides: float, corners: float) -> None:
        self._columns = columns
        self._steps = steps
        self._centre, self._sides, self._corners = centre, sides, corners

    @classmethod
    def parse(cls, parser: Parser) -> "Stencil":
        columns = _columns(parser)
        steps = whole_between(parser, 1, STEPS_MAX)
        weights = []
        for _ in range(3):
            parser.expect(",")
            weights.append(signed(parser))
        return cls(columns, steps, *weights)

    def apply(self, event: Event) -> Event | Fate:
        grid = grid_of(event.payload, self._columns)
        if grid is None:
            return Fate.DROPPED
        with np.errstate(all="ignore"):
            for _ in range(self._steps):
                wide = np.pad(grid, 1, mode="edge")
                sides = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
                corners = wide[:-2, :-2] + wide[:-2, 2:] + wide[2:, :-2] + wide[2:, 2:]
                grid = self._centre * grid + self._sides * sides + self._corners * corners
        return replace(event, payload=payload_of(grid))

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) / DOUBLE_BYTES * self._steps * CELL_STEP_S


class Combine(Operator):
    name: ClassVar[str] = "combine"

    def __init__(self, function: str, other: bytes) -> None:
        self._combine = _PAIRS[function]
        self._other = np.frombuffer(other, dtype="<f8")

    @classmethod
    def parse(cls, parser: Parser) -> "Combine":
        function = one_of(parser, tuple(_PAIRS))
        parser.expect(",")
        return cls(function, _input(parser))

    def apply(self, event: Event) -> Event | Fate:
        if len(event.payload) != self._other.nbytes:
            return Fate.DROPPED
        with np.errstate(all="ignore"):
            combined = self._combine(np.frombuffer(event.payload, dtype="<f8"), self._other)
        return replace(event, payload=payload_of(combined))

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class MeasureOperator(Operator):
    name: ClassVar[str] = "measure"

    def __init__(self, function: str) -> None:
        self._measure = _MEASURES[function]

    @classmethod
    def parse(cls, parser: Parser) -> "MeasureOperator":
        return cls(one_of(parser, tuple(_MEASURES)))

    def apply(self, event: Event) -> Event | Fate:
        cells = grid_of(event.payload, 1)
        if cells is None or not np.isfinite(cells).any():
            return Fate.DROPPED
        value = float(self._measure(np.where(np.isfinite(cells), cells, np.nan)))
        return replace(event, content=value) if abs(value) <= 1e300 else Fate.DROPPED

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class RunoffDepths(Operator):
    name: ClassVar[str] = "runoff"

    def __init__(self, columns: int, terrain_m: Grid, seconds_: float, steps: int) -> None:
        self._columns = columns
        self._model = Runoff(terrain_m)
        self._seconds = seconds_
        self._steps = steps

    @classmethod
    def parse(cls, parser: Parser) -> "RunoffDepths":
        columns = _columns(parser)
        terrain: Grid | None = None
        if parser.accept(PLANE):
            if columns * columns <= CELLS_MAX:
                terrain = plane(columns, columns)
        else:
            terrain = grid_of(_input(parser), columns)
        if terrain is None or not np.all(np.abs(terrain) < 1e6):
            raise ConfigurationError(f"modulator: runoff: its terrain is no grid of {columns} columns, in metres")
        parser.expect(",")
        period_s = seconds(parser, RUNOFF_S_MAX)
        parser.expect(",")
        return cls(columns, terrain, period_s, whole_between(parser, 1, STEPS_MAX))

    def apply(self, event: Event) -> Event | Fate:
        rain = grid_of(event.payload, self._columns)
        if rain is None or rain.shape != self._model.terrain_m.shape or not np.all(np.abs(rain) < 1e6):
            return Fate.DROPPED
        self._model.advance(rain, self._seconds, self._steps)
        return replace(event, payload=payload_of(self._model.depth_m))

    def cost_s(self, event: Event) -> float:
        return CALL_S + self._model.terrain_m.size * self._steps * CELL_STEP_S

    def state(self) -> State:
        return payload_of(self._model.depth_m)

    def restore(self, state: State) -> None:
        depths = grid_of(state, self._columns) if isinstance(state, bytes) else None
        if depths is None or depths.shape != self._model.terrain_m.shape:
            raise ValueError("not the depths of this terrain")
        if not (np.all(depths >= 0) and np.all(depths < 1e6)):
            raise ValueError("depths must be between 0 and a million metres")
        self._model.depth_m = depths.copy()


def _columns(parser: Parser) -> int:
    columns = whole_between(parser, 1, COLUMNS_MAX)
    parser.expect(",")
    return columns


def _input(parser: Parser) -> bytes:
    """Static data of whole doubles."""
    name = parser.token.text
    data = parser.input()
    if not data or len(data) % DOUBLE_BYTES or len(data) > CELLS_MAX * DOUBLE_BYTES:
        raise ConfigurationError(f"modulator: input {name} is no grid of at most {CELLS_MAX} doubles")
    return data
