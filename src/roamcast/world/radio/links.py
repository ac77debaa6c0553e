"""How strong every node is heard by every other one: path loss and shadowing, while nodes move.

Powers are ratios to the weakest signal that can be received, so 1 is just enough. A link whose power falls below
`floor` is left out; one between `floor` and 1 is too weak to be received, but disturbs what its receiver hears.

Shadowing is a Gaussian gain in dB per link (per direction, if links are not symmetric). As the two ends move, it
follows Gudmundson's model: the correlation with the previous value is exp(-d / correlation_m), where d is what both
ends have moved. The gains come from a generator of their own, so links depend on seed and movements alone and every
protocol meets the same ones. A pair that comes into reach again draws anew.

All links of an instant are computed at once, as arrays. Which pairs can be in reach is listed with some slack, and
listed again when a node has moved by half of it.
"""

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roamcast.seeds import Random
from roamcast.world.radio.propagation import PathLoss

if TYPE_CHECKING:
    from roamcast.world.mobility import Movements
    from roamcast.world.radio.signals import AnySignal
    from roamcast.world.scenario import Partition

REACH_DEVIATIONS: Final = 2.5
"""Pairs whose link reaches the floor only by more luck than this many standard deviations count as out of reach."""

SLACK: Final = 0.1
"""Pairs are listed up to this share beyond the reach."""

BLOCK: Final = 1 << 20
"""Distances that are computed at a time to list pairs."""

MOVED_SHARE: Final = 0.25
"""Links are updated when the fastest pair has moved this share of `correlation_m`, or a fortieth of the range."""

PERIOD_MIN_S: Final = 0.05
PERIOD_MAX_S: Final = 1.0


class RadioLinks:
    def __init__(
        self, signal: "AnySignal", range_m: float, floor_db: float, movements: "Movements", random: Random
    ) -> None:
        self.nodes = movements.nodes
        self._path_loss: PathLoss = signal.path_loss(range_m)
        self._movements = movements
        self._normal: Any = np.random.RandomState(random.getrandbits(32)).standard_normal  # the same in every numpy
        self._deviation_db = signal.shadowing_db
        self._correlation_m = signal.correlation_m
        self._floor_db = floor_db
        self._measured: dict[tuple[int, int], float] = {(a, b): db for a, b, db in signal.links_db}
        if signal.symmetric:
            self._measured = {(b, a): db for (a, b), db in self._measured.items()} | self._measured
        self._symmetric = signal.symmetric and all(self._measured[b, a] == db for (a, b), db in self._measured.items())
        luck_db = max(self._measured.values(), default=REACH_DEVIATIONS * signal.shadowing_db)
        self._reach_m = self._path_loss.distance_m(-floor_db - max(0.0, luck_db))
        # What was listed: channels, which have a gain of their own, and the links that use them. A channel is a pair of
        # nodes if links are symmetric, else a link. A link has a direction; links are ordered by sender and receiver.
        self._channel_from: Any = np.empty(0, np.int64)
        self._channel_to: Any = np.empty(0, np.int64)
        self._gains_db: Any = np.empty(0)  # shadowing, by channel
        self._senders: Any = np.empty(0, np.int64)
        self._receivers: Any = np.empty(0, np.int64)
        self._reverse: Any = np.empty(0, np.int64)  # of each link, the place of the other direction
        self._channels: Any = np.empty(0, np.int64)  # of each link, its channel
        self._is_near: Any = np.empty(0, bool)  # of each link, whether it can be received
        self._listed_at: Any = None  # where nodes were when links were listed
        self._places: Any = None  # at the last update
        self._near = _Table(self.nodes)
        self._far = _Table(self.nodes)

    def update(self, t_s: float, partitions: "tuple[Partition, ...]") -> None:
        """Computes all powers for `t_s`."""
        before, places = self._places, self._movements.positions(t_s)
        self._places = places
        self._list(places)
        if before is not None and self._deviation_db and not self._measured:
            self._decorrelate(np.hypot(*(places - before).T))
        x_m, y_m = places[:, 0], places[:, 1]
        a, b = self._channel_from, self._channel_to
        east_m, north_m = x_m[b] - x_m[a], y_m[b] - y_m[a]
        distances_m = np.sqrt(east_m * east_m + north_m * north_m)
        margins_db = self._path_loss.margins_db(distances_m) + self._gains_db
        margins_db[distances_m > self._reach_m] = -math.inf
        sides = _sides(places, t_s, partitions)
        if sides is not None:
            margins_db[sides[a] != sides[b]] = -math.inf
        followed = np.nonzero((margins_db >= -self._floor_db)[self._channels])[0]
        margins_db = margins_db[self._channels[followed]]
        powers = 10 ** (margins_db / 10)
        near = margins_db >= 0
        self._is_near = np.zeros(len(self._channels), bool)
        self._is_near[followed] = near
        senders, receivers = self._senders[followed], self._receivers[followed]
        self._near.fill(senders, receivers, powers, near)
        self._far.fill(senders, receivers, powers, ~near)

    def _list(self, places: Any) -> None:
        """Lists the pairs that can come into reach, unless the old list still holds."""
        if self._listed_at is not None:
            moved = places - self._listed_at
            if (moved * moved).sum(axis=1).max() <= (SLACK * self._reach_m / 2) ** 2:
                return
        nodes = self.nodes
        listed_m = (1 + SLACK) * self._reach_m
        found = []
        rows = max(1, BLOCK // nodes)
        for first in range(0, nodes, rows):
            some = places[first : first + rows]
            east, north = (some[:, None, axis] - places[None, :, axis] for axis in (0, 1))
            a, b = np.nonzero(east * east + north * north <= listed_m * listed_m)
            found.append((a + first) * nodes + b)
        keys = np.concatenate(found)
        senders, receivers = keys // nodes, keys % nodes
        others = senders != receivers
        keys, senders, receivers = keys[others], senders[others], receivers[others]
        reverse = np.searchsorted(keys, receivers * nodes + senders)
        if self._symmetric:
            forward = senders < receivers
            channels = np.cumsum(forward) - 1
            channels = np.where(forward, channels, channels[reverse])
            keys = keys[forward]
        else:
            channels = np.arange(len(keys))
        self._gains_db = self._shadowing(keys)
        self._channel_from, self._channel_to = keys // nodes, keys % nodes
        self._senders, self._receivers, self._reverse, self._channels = senders, receivers, reverse, channels
        self._listed_at = places

    def _shadowing(self, keys: Any) -> Any:
        """The gain of every channel: as it was, for those listed before."""
        if self._measured:
            return np.array([self._measured.get(divmod(key, self.nodes), 0.0) for key in keys.tolist()])
        if not self._deviation_db:
            return np.zeros(len(keys))
        gains_db = self._normal(len(keys)) * self._deviation_db
        known = self._channel_from * self.nodes + self._channel_to
        if len(known):
            places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            gains_db = np.where(known[places] == keys, self._gains_db[places], gains_db)
        return gains_db

    def _decorrelate(self, moved_m: Any) -> None:
        """Nodes have moved by `moved_m` metres each since the last update."""
        if not moved_m.any():
            return
        shares = np.exp(moved_m / -self._correlation_m)
        correlation = shares[self._channel_from] * shares[self._channel_to]
        spread_db = self._deviation_db * np.sqrt(1 - correlation * correlation)
        self._gains_db = correlation * self._gains_db + spread_db * self._normal(len(correlation))

    def powers(self, sender: int, reached: list[int]) -> list[float]:
        """How strong the sender is at each of these nodes, which are among those of `lists`."""
        nodes = self._near.receivers(sender) + self._far.receivers(sender)
        powers = self._near.powers(sender) + self._far.powers(sender)
        if nodes == reached:
            return powers
        by_node = dict(zip(nodes, powers, strict=True))  # some are switched off
        return [by_node[node] for node in reached]

    def gains_db(self, t_s: float) -> dict[tuple[int, int], float]:
        """By sender and receiver, every link at `t_s` in dB above the weakest signal that can be received."""
        self.update(t_s, ())
        return {
            (node, receiver): 10 * math.log10(power)
            for node in range(self.nodes)
            for table in (self._near, self._far)
            for receiver, power in zip(table.receivers(node), table.powers(node), strict=True)
        }

    def lists(self) -> tuple[list[list[int]], list[list[int]]]:
        """Per sender, who can receive it, and who is only disturbed by it."""
        return self._near.lists(), self._far.lists()

    def contacts(self) -> set[tuple[int, int]]:
        """Pairs that can receive each other, the lower address first."""
        near = self._is_near
        mutual = near & near[self._reverse] & (self._senders < self._receivers)
        return set(zip(self._senders[mutual].tolist(), self._receivers[mutual].tolist(), strict=True))


class _Table:
    """Some of the links, by sender."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._begins: list[int] = [0] * (nodes + 1)  # of each sender, and the end
        self._receivers: list[int] = []
        self._powers: list[float] = []

    def fill(self, senders: Any, receivers: Any, powers: Any, chosen: Any) -> None:
        self._begins = np.searchsorted(senders[chosen], np.arange(self._nodes + 1)).tolist()
        self._receivers = receivers[chosen].tolist()
        self._powers = powers[chosen].tolist()

    def receivers(self, sender: int) -> list[int]:
        return self._receivers[self._begins[sender] : self._begins[sender + 1]]

    def powers(self, sender: int) -> list[float]:
        return self._powers[self._begins[sender] : self._begins[sender + 1]]

    def lists(self) -> list[list[int]]:
        return [self.receivers(node) for node in range(self._nodes)]


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


def _sides(places: Any, t_s: float, partitions: "tuple[Partition, ...]") -> Any:
    """For every node a number that says inside which of the partitions of `t_s` it is; none if there are none."""
    sides = None
    for place, part in enumerate(part for part in partitions if part.from_s <= t_s < part.until_s):
        x_m, y_m = places[:, 0], places[:, 1]
        inside = (part.west_m <= x_m) & (x_m < part.east_m) & (part.south_m <= y_m) & (y_m < part.north_m)
        sides = inside.astype(np.int64) << place if sides is None else sides | inside.astype(np.int64) << place
    return sides
