"""A grid of roads (the Manhattan model of Bai, Sadagopan and Helmy, INFOCOM 2003): nodes drive along streets.

Roads run north and east, `block_m` apart (to the nearest distance that fits the area), also along the border. A node
takes a new uniform speed at every crossing, rests there for a uniform pause, and then goes straight on with probability
1/2, or takes one of the turns, all equally likely. Where it cannot go straight on it takes one of the turns. It turns
around only at a dead end, which an area with a single road has.

With these probabilities all stretches of road between crossings are driven on equally often in both directions. So the
steady state is known, and nodes start in it: a stretch is chosen with probability proportional to its length, the place
on it is uniform, and the density of the speed is proportional to 1/v, as for the random waypoint.
"""

from roamcast.seeds import Random, derive
from roamcast.world.mobility.movements import Corner
from roamcast.world.mobility.waypoint import mean_slowness, residual_pause_s
from roamcast.world.scenario import Mobility, Scenario

Crossing = tuple[int, int]  # column and row
HEADINGS: tuple[Crossing, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))


class _Grid:
    def __init__(self, area_m: tuple[float, float], block_m: float) -> None:
        self.columns, self.rows = (max(1, round(side_m / block_m)) for side_m in area_m)  # blocks
        self.block_m = (area_m[0] / self.columns, area_m[1] / self.rows)
        self._area_m = area_m

    def point(self, crossing: Crossing) -> tuple[float, float]:
        """Exactly on the border where it should be."""
        column, row = crossing
        return self._area_m[0] * column / self.columns, self._area_m[1] * row / self.rows

    def length_m(self, heading: Crossing) -> float:
        return self.block_m[0] if heading[0] else self.block_m[1]

    def has(self, crossing: Crossing) -> bool:
        return 0 <= crossing[0] <= self.columns and 0 <= crossing[1] <= self.rows

    def next_heading(self, at: Crossing, heading: Crossing, random: Random) -> Crossing:
        ahead = self.has((at[0] + heading[0], at[1] + heading[1]))
        turns = [
            turn
            for turn in HEADINGS
            if turn[0] * heading[0] + turn[1] * heading[1] == 0 and self.has((at[0] + turn[0], at[1] + turn[1]))
        ]
        if ahead and (not turns or random.random() < 0.5):
            return heading
        if not turns:
            return -heading[0], -heading[1]
        return turns[random.randrange(len(turns))]

    def random_stretch(self, random: Random, by_length: bool) -> tuple[Crossing, Crossing]:
        """The crossing where a stretch begins and its heading. All are equally likely, or longer ones more likely."""
        across = float(self.columns * (self.rows + 1))  # stretches of road that run east
        upward = float(self.rows * (self.columns + 1))
        if by_length:
            across, upward = across * self.block_m[0], upward * self.block_m[1]
        if random.random() * (across + upward) < across:
            start, heading = (random.randrange(self.columns), random.randrange(self.rows + 1)), HEADINGS[0]
        else:
            start, heading = (random.randrange(self.columns + 1), random.randrange(self.rows)), HEADINGS[1]
        if random.random() < 0.5:
            return start, heading
        return (start[0] + heading[0], start[1] + heading[1]), (-heading[0], -heading[1])


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    grid = _Grid(scenario.area_m, scenario.mobility.block_m)
    return [
        _path(grid, scenario.mobility, scenario.duration_s, derive(seed, "mobility", node))
        for node in range(scenario.nodes)
    ]


def _path(grid: _Grid, mobility: Mobility, duration_s: float, random: Random) -> list[Corner]:
    slowest_mps, fastest_mps = mobility.speed_min_mps, mobility.speed_max_mps
    is_paused = random.random() < _paused_share(grid, mobility)
    start, heading = grid.random_stretch(random, by_length=not is_paused)
    at = (start[0] + heading[0], start[1] + heading[1])
    if is_paused:
        corners = [(0.0, *grid.point(at))]
        t_s = residual_pause_s(mobility.pause_min_s, mobility.pause_max_s, random.random())
    else:
        (x_m, y_m), length_m = grid.point(start), grid.length_m(heading)
        driven_m = random.random() * length_m
        corners = [(0.0, x_m + heading[0] * driven_m, y_m + heading[1] * driven_m)]
        speed_mps = slowest_mps * (fastest_mps / slowest_mps) ** random.random()
        _append(corners, (length_m - driven_m) / speed_mps, grid.point(at))
        t_s = corners[-1][0] + random.uniform(mobility.pause_min_s, mobility.pause_max_s)
    while corners[-1][0] < duration_s:
        _append(corners, t_s - corners[-1][0], grid.point(at))
        heading = grid.next_heading(at, heading, random)
        at = (at[0] + heading[0], at[1] + heading[1])
        _append(corners, grid.length_m(heading) / random.uniform(slowest_mps, fastest_mps), grid.point(at))
        t_s = corners[-1][0] + random.uniform(mobility.pause_min_s, mobility.pause_max_s)
    return corners


def _append(corners: list[Corner], after_s: float, point: tuple[float, float]) -> None:
    t_s = corners[-1][0]
    if t_s + after_s > t_s:
        corners.append((t_s + after_s, *point))


def _paused_share(grid: _Grid, mobility: Mobility) -> float:
    """Of the time that a node rests at crossings."""
    across, upward = grid.columns * (grid.rows + 1), grid.rows * (grid.columns + 1)
    mean_m = (across * grid.block_m[0] + upward * grid.block_m[1]) / (across + upward)
    pause_s = (mobility.pause_min_s + mobility.pause_max_s) / 2
    return pause_s / (pause_s + mean_m * mean_slowness(mobility.speed_min_mps, mobility.speed_max_mps))
