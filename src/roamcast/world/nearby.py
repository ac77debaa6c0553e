"""Which legs of different nodes may come within range of each other: a search by cells of space and windows of time.

Looking at all pairs of nodes is quadratic in their number. Instead, the run is cut into windows in which nodes move
about as far as a radio reaches. In each window every leg, as far as it lies in the window, has a bounding box, which is
widened by half the reach on all sides. Two legs can come within reach only where their widened boxes overlap, so the
boxes are entered into a grid of cells, and only boxes that share a cell are compared. A pair that shares several cells
is found once, in the cell with the south-west corner of the overlap.

The search only proposes pairs. `contacts.py` computes the contacts from whole legs, so the plan does not depend on
cells and windows.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roamcast.world.mobility import Movements

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOGETHER: Final = 100_000
"""Pairs that are looked at in one go: bounds the memory to some 15 MB."""

CELLS_PER_BOX: Final = 16
"""On average at most: where legs are longer, as those of an aircraft, cells are larger."""

PAIRS_PER_WINDOW: Final = 100_000
"""Comparing this many legs costs about as much as a window does."""


class Legs:
    """All legs of all nodes that start within the run, as parallel arrays in order of node and time."""

    def __init__(self, movements: Movements, duration_s: float) -> None:
        rows: list[tuple[float, float, float, float, float, float]] = []
        counts: list[int] = []
        for node in range(movements.nodes):
            legs = movements.legs(node)
            ends_s = [leg[0] for leg in legs[1:]] + [duration_s]
            before = len(rows)
            for leg, end_s in zip(legs, ends_s, strict=True):
                if leg[0] < duration_s:
                    rows.append((*leg, min(end_s, duration_s)))
            counts.append(len(rows) - before)
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 6)
        self.start_s, self.x_m, self.y_m, self.vx_mps, self.vy_mps, self.end_s = np.ascontiguousarray(table.T)
        self.node: Integers = np.repeat(np.arange(movements.nodes), counts)
        self.nodes = movements.nodes
        arrived_m = self.x_m + self.vx_mps * (self.end_s - self.start_s)
        first: Integers = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
        west_m = np.minimum.reduceat(np.minimum(self.x_m, arrived_m), first) if counts else np.empty(0)
        self.order: Integers = np.argsort(np.argsort(west_m, kind="stable"))  # of nodes, from west to east
        self.duration_s = duration_s

    def __len__(self) -> int:
        return len(self.node)


class _Boxes(NamedTuple):
    """What of some legs lies in a window: bounding boxes, widened by half the reach, and times."""

    leg: Integers
    west_m: Floats
    east_m: Floats
    south_m: Floats
    north_m: Floats
    from_s: Floats
    until_s: Floats


def near_pairs(legs: Legs, reach_m: float) -> Iterator[tuple[Integers, Integers]]:
    """Pairs of legs of different nodes that overlap in time and may come within reach, each once, about `TOGETHER` at
    a time. The leg of the node that gets farther west is the first of a pair: the last bits of a contact's times depend
    on it."""
    keys: list[Integers] = [np.empty(0, np.int64)]
    for active, from_s, until_s in _windows(legs, reach_m):
        boxes = _boxes(legs, active, from_s, until_s, reach_m)
        for one, other in _sharing(boxes, reach_m):
            met = _overlap(boxes, one, other) & (legs.node[boxes.leg[one]] != legs.node[boxes.leg[other]])
            first, second = boxes.leg[one[met]], boxes.leg[other[met]]
            forward = legs.order[legs.node[first]] < legs.order[legs.node[second]]
            keys.append(np.where(forward, first, second) * len(legs) + np.where(forward, second, first))
    found = np.unique(np.concatenate(keys))  # a pair may have met in several windows
    for start in range(0, len(found), TOGETHER):
        part = found[start : start + TOGETHER]
        yield part // len(legs), part % len(legs)


def _windows(legs: Legs, reach_m: float) -> Iterator[tuple[Integers, float, float]]:
    """The windows of the run with the legs in each. In one, nodes move about as far as the reach, or turn twice."""
    moved_m = np.hypot(legs.vx_mps, legs.vy_mps) * (legs.end_s - legs.start_s)
    wanted = max(float(moved_m.sum()) / reach_m, 0.5 * len(legs)) / max(1, legs.nodes)
    worthwhile = len(legs) ** 2 / PAIRS_PER_WINDOW  # few legs are compared faster than sorted
    count = int(max(1.0, np.ceil(min(wanted, worthwhile)))) if moved_m.any() else 1
    by_start = np.argsort(legs.start_s, kind="stable")
    starts_s = legs.start_s[by_start]
    active = by_start[:0]
    begun = 0
    for number in range(count):
        from_s, until_s = legs.duration_s * number / count, legs.duration_s * (number + 1) / count
        upto = int(np.searchsorted(starts_s, until_s, side="left"))
        active = np.concatenate((active[legs.end_s[active] > from_s], by_start[begun:upto]))
        begun = upto
        yield active, from_s, until_s


def _boxes(legs: Legs, leg: Integers, from_s: float, until_s: float, reach_m: float) -> _Boxes:
    begin_s, end_s = np.maximum(legs.start_s[leg], from_s), np.minimum(legs.end_s[leg], until_s)
    margin_m = reach_m / 2 * (1 + 1e-9)  # a hair more, lest rounding lose a pair

    def sides(at_m: Floats, speed_mps: Floats) -> tuple[Floats, Floats]:
        enters_m = at_m + speed_mps * (begin_s - legs.start_s[leg])
        leaves_m = at_m + speed_mps * (end_s - legs.start_s[leg])
        return np.minimum(enters_m, leaves_m) - margin_m, np.maximum(enters_m, leaves_m) + margin_m

    west_m, east_m = sides(legs.x_m[leg], legs.vx_mps[leg])
    south_m, north_m = sides(legs.y_m[leg], legs.vy_mps[leg])
    return _Boxes(
        leg=leg, west_m=west_m, east_m=east_m, south_m=south_m, north_m=north_m, from_s=begin_s, until_s=end_s
    )


def _sharing(boxes: _Boxes, reach_m: float) -> Iterator[tuple[Integers, Integers]]:
    """Pairs of boxes that share a cell, each in the cell with the corner of their overlap only."""
    cell_m = 2 * reach_m
    while True:
        west, east, south, north = (np.floor(side / cell_m) for side in boxes[1:5])
        if float(((east - west + 1) * (north - south + 1)).sum()) <= CELLS_PER_BOX * len(west):
            break
        cell_m *= 2
    west, east = _from_zero(west, east)
    south, north = _from_zero(south, north)
    wide, high = east - west + 1, north - south + 1
    box = np.repeat(np.arange(len(west)), wide * high)
    place = ranges(np.zeros(len(west), np.int64), wide * high)
    column, row = west[box] + place % wide[box], south[box] + place // wide[box]
    cell = column * (int(north.max(initial=0)) + 1) + row
    order = np.argsort(cell, kind="stable")
    box, column, row, cell = box[order], column[order], row[order], cell[order]
    after = np.searchsorted(cell, cell, side="right")  # where the entries of the same cell end
    partners = after - np.arange(len(cell)) - 1
    for start, stop in _batches(partners):
        some = np.arange(start, stop)
        first = np.repeat(some, partners[start:stop])
        second = ranges(some + 1, after[start:stop])
        one, other = box[first], box[second]
        is_corner = (np.maximum(west[one], west[other]) == column[first]) & (
            np.maximum(south[one], south[other]) == row[first]
        )
        yield one[is_corner], other[is_corner]


def _from_zero(low: Floats, high: Floats) -> tuple[Integers, Integers]:
    """Numbers of cells, the lowest 0. Very far apart they are only told apart as far as numbers reach, which proposes
    pairs that are not near, and loses none."""
    least = float(low.min()) if len(low) else 0.0
    first, last = (np.minimum(side - least, 2.0**31 - 1).astype(np.int64) for side in (low, high))
    return first, last


def _batches(counts: Integers) -> Iterator[tuple[int, int]]:
    """Stretches of entries with about `TOGETHER` pairs each."""
    sums = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(sums[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(sums, done + TOGETHER, side="right")))
        yield start, stop
        start = stop


def _overlap(boxes: _Boxes, one: Integers, other: Integers) -> NDArray[np.bool_]:
    in_space = (boxes.west_m[one] <= boxes.east_m[other]) & (boxes.west_m[other] <= boxes.east_m[one])
    in_space &= (boxes.south_m[one] <= boxes.north_m[other]) & (boxes.south_m[other] <= boxes.north_m[one])
    in_time = np.maximum(boxes.from_s[one], boxes.from_s[other]) < np.minimum(boxes.until_s[one], boxes.until_s[other])
    found: NDArray[np.bool_] = in_space & in_time
    return found


def ranges(starts: Integers, stops: Integers) -> Integers:
    """The concatenation of `arange(start, stop)` for each pair."""
    counts = stops - starts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Integers = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return numbers
