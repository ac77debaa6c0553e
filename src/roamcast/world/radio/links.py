"""How strong every node is heard by every other one: path loss and shadowing, while nodes move.

Powers are ratios to the weakest signal that can be received, so 1 is just enough. A link whose power falls below
`floor` is left out; one between `floor` and 1 is too weak to be received, but disturbs what its receiver hears.

Shadowing is a Gaussian gain in dB per link (per direction, if links are not symmetric). As the two ends move, it
follows Gudmundson's model: the correlation with the previous value is exp(-d / correlation_m), where d is what both
ends have moved. Pairs are visited in order and draw from a generator of their own, so links depend on seed and
movements alone and every protocol meets the same ones. A pair that comes into range again draws again.
"""

import math
from typing import TYPE_CHECKING, Final

from roamcast.seeds import Random
from roamcast.world.radio.propagation import PathLoss

if TYPE_CHECKING:
    from roamcast.world.mobility import Movements
    from roamcast.world.radio.signals import AnySignal
    from roamcast.world.scenario import Partition

REACH_DEVIATIONS: Final = 2.5
"""Pairs whose link reaches the floor only by more luck than this many standard deviations count as out of reach."""

MOVED_SHARE: Final = 0.25
"""Links are updated when the fastest pair has moved this share of `correlation_m`, or a fortieth of the range."""

PERIOD_MIN_S: Final = 0.05
PERIOD_MAX_S: Final = 1.0


class Links:
    def __init__(
        self, signal: "AnySignal", range_m: float, floor_db: float, movements: "Movements", random: Random
    ) -> None:
        self.nodes = movements.nodes
        self.powers: list[dict[int, float]] = [{} for _ in range(self.nodes)]  # by sender: receiver -> power
        self._path_loss: PathLoss = signal.path_loss(range_m)
        self._movements = movements
        self._random = random
        self._deviation_db = signal.shadowing_db
        self._symmetric = signal.symmetric
        self._correlation_m = signal.correlation_m
        self._floor = 10 ** (-floor_db / 10)
        self._measured: dict[tuple[int, int], float] = {(a, b): db for a, b, db in signal.links_db}
        luck_db = max(self._measured.values(), default=REACH_DEVIATIONS * signal.shadowing_db)
        self._reach_m = self._path_loss.distance_m(-floor_db - max(0.0, luck_db))
        self._gains_db: dict[tuple[int, int], float] = {}  # shadowing of the pairs in reach
        self._places: list[tuple[float, float]] = []  # at the last update

    def update(self, t_s: float, partitions: "tuple[Partition, ...]") -> None:
        """Computes all powers for `t_s`."""
        before = self._places
        places = self._places = [self._movements.position(node, t_s) for node in range(self.nodes)]
        moved_m = [math.dist(*ends) for ends in zip(before, places, strict=True)] if before else [0.0] * self.nodes
        sides = [_side(place, t_s, partitions) for place in places] if partitions else []
        gains_db: dict[tuple[int, int], float] = {}
        powers: list[dict[int, float]] = [{} for _ in range(self.nodes)]
        for a, b, distance_m in self._pairs(places):
            margin_db = self._path_loss.margin_db(distance_m)
            moved = moved_m[a] + moved_m[b]
            there_db = back_db = self._gain_db(a, b, moved, gains_db)
            if not self._symmetric:
                back_db = self._gain_db(b, a, moved, gains_db)
            if sides and sides[a] != sides[b]:
                continue
            self._place(powers, a, b, margin_db + there_db)
            self._place(powers, b, a, margin_db + back_db)
        self.powers = powers
        self._gains_db = gains_db

    def _place(self, powers: list[dict[int, float]], sender: int, receiver: int, margin_db: float) -> None:
        power = 10 ** (margin_db / 10)
        if power >= self._floor:
            powers[sender][receiver] = power

    def _gain_db(self, a: int, b: int, moved_m: float, gains_db: dict[tuple[int, int], float]) -> float:
        """The shadowing from `a` to `b` after they have moved by so much; notes it for the next time."""
        if self._measured:
            return self._measured.get((a, b), self._measured.get((b, a), 0.0) if self._symmetric else 0.0)
        if not self._deviation_db:
            return 0.0
        gain_db = self._gains_db.get((a, b))
        if gain_db is None:
            gain_db = self._random.gauss(0.0, self._deviation_db)
        elif moved_m > 0:
            correlation = math.exp(-moved_m / self._correlation_m)
            spread_db = self._deviation_db * math.sqrt(1 - correlation * correlation)
            gain_db = correlation * gain_db + self._random.gauss(0.0, spread_db)
        gains_db[(a, b)] = gain_db
        return gain_db

    def _pairs(self, places: list[tuple[float, float]]) -> list[tuple[int, int, float]]:
        """The pairs within reach with their distance, in order; found by cells as wide as the reach."""
        reach_m = self._reach_m
        cells: dict[tuple[int, int], list[int]] = {}
        for node, (x_m, y_m) in enumerate(places):
            cells.setdefault((int(x_m // reach_m), int(y_m // reach_m)), []).append(node)
        pairs = []
        for a, (x_m, y_m) in enumerate(places):
            column, row = int(x_m // reach_m), int(y_m // reach_m)
            others: list[tuple[int, int, float]] = []
            for cell in [(column + right, row + up) for right in (-1, 0, 1) for up in (-1, 0, 1)]:
                for b in cells.get(cell, ()):
                    if b > a:
                        distance_m = math.hypot(places[b][0] - x_m, places[b][1] - y_m)
                        if distance_m <= reach_m:
                            others.append((a, b, distance_m))
            others.sort()
            pairs += others
        return pairs

    def gains_db(self, t_s: float) -> dict[tuple[int, int], float]:
        """By sender and receiver, every link at `t_s` in dB above the weakest signal that can be received."""
        self.update(t_s, ())
        return {(a, b): 10 * math.log10(power) for a, powers in enumerate(self.powers) for b, power in powers.items()}

    def lists(self) -> tuple[list[list[int]], list[list[int]]]:
        """Per sender, who can receive it, and who is only disturbed by it."""
        near = [sorted(node for node, power in powers.items() if power >= 1) for powers in self.powers]
        far = [sorted(node for node, power in powers.items() if power < 1) for powers in self.powers]
        return near, far


def update_period_s(signal: "AnySignal", range_m: float, movements: "Movements", duration_s: float) -> float:
    """Time between changes of links; infinite if no node moves."""
    fastest_mps = 0.0
    for node in range(movements.nodes):
        for start_s, _, _, vx_mps, vy_mps in movements.legs(node):
            if start_s < duration_s:
                fastest_mps = max(fastest_mps, math.hypot(vx_mps, vy_mps))
    if not fastest_mps:
        return math.inf
    if signal.update_period_s is not None:
        return signal.update_period_s
    step_m = min(MOVED_SHARE * signal.correlation_m, range_m / 40)
    return min(PERIOD_MAX_S, max(PERIOD_MIN_S, step_m / (2 * fastest_mps)))


def _side(place: tuple[float, float], t_s: float, partitions: "tuple[Partition, ...]") -> tuple[bool, ...]:
    """Whether the place is inside each partition that stands at `t_s`."""
    x_m, y_m = place
    return tuple(
        part.west_m <= x_m < part.east_m and part.south_m <= y_m < part.north_m
        for part in partitions
        if part.from_s <= t_s < part.until_s
    )
