"""The contact plan: which pairs of nodes are within range of each other, and from when until when.

Between corners every node moves on a straight line, so the squared distance of two nodes is a quadratic in time, and
a contact begins and ends at its roots: the plan is exact, nothing is sampled. For each pair of nodes and each pair of
their legs that overlap in time one quadratic is solved; contacts that touch at a corner become one.

It stays fast because only legs that come near each other are looked at (`nearby.py`), and because quadratics are solved
many at once with numpy; how many bounds the memory.

A contact holds for `from_s <= t < until_s`. Time is clipped to the run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np

from roamcast.errors import ConfigurationError
from roamcast.world.mobility import Movements
from roamcast.world.mobility.crossings import border_crossings
from roamcast.world.nearby import Floats, Integers, Legs, near_pairs
from roamcast.world.scenario import Partition, Scenario

Columns = tuple[Integers, Integers, Floats, Floats]

RANGE_SLACK: Final = 1e-9
"""Relative: nodes of a lattice spaced exactly by the range are in range, whatever rounding says."""

TOUCHING_S: Final = 1e-9
"""Contacts of a pair that are closer in time are merged; shorter ones are dropped, because no frame is that short."""


@dataclass(frozen=True, eq=False)
class ContactPlan:
    """Contacts as parallel arrays, sorted by `(from_s, a, b)`; a pair's contacts neither overlap nor touch."""

    nodes: int
    duration_s: float
    a: Integers  # the lower of the two nodes
    b: Integers  # the higher
    from_s: Floats
    until_s: Floats

    def __len__(self) -> int:
        return len(self.a)

    @classmethod
    def from_list(
        cls, contacts: Iterable[tuple[int, int, float, float]], nodes: int, duration_s: float
    ) -> "ContactPlan":
        """From a recorded list of `(a, b, from_s, until_s)` in any order; what overlaps is merged."""
        rows = list(contacts)
        for row in rows:
            _check(row, nodes)
        first, second = (np.array([row[end] for row in rows], dtype=np.int64) for end in (0, 1))
        from_s, until_s = (np.array([row[time] for row in rows], dtype=np.float64) for time in (2, 3))
        a, b = np.minimum(first, second), np.maximum(first, second)
        return _plan(nodes=nodes, duration_s=duration_s, a=a, b=b, from_s=from_s, until_s=until_s)

    def at(self, t_s: float) -> tuple[Integers, Integers]:
        """The pairs that are in contact at `t_s`."""
        held = (self.from_s <= t_s) & (t_s < self.until_s)
        return self.a[held], self.b[held]

    def components(self, t_s: float) -> Integers:
        """Per node, the lowest node that it can reach over any number of contacts that hold at `t_s`."""
        lowest = list(range(self.nodes))

        def root(node: int) -> int:
            while lowest[node] != node:
                lowest[node] = node = lowest[lowest[node]]  # halves the path for later searches
            return node

        for a, b in zip(*(ends.tolist() for ends in self.at(t_s)), strict=True):
            low, high = sorted((root(a), root(b)))
            lowest[high] = low
        return np.array([root(node) for node in range(self.nodes)], dtype=np.int64)

    def while_present(self, present: tuple[tuple[float, float], ...]) -> "ContactPlan":
        """Without the times when one of the two is not there. `present` says from when until when each node is."""
        if not present:
            return self
        begins_s, ends_s = np.array(present, dtype=np.float64).T
        from_s = np.maximum(self.from_s, np.maximum(begins_s[self.a], begins_s[self.b]))
        until_s = np.minimum(self.until_s, np.minimum(ends_s[self.a], ends_s[self.b]))
        return _plan(nodes=self.nodes, duration_s=self.duration_s, a=self.a, b=self.b, from_s=from_s, until_s=until_s)

    def partitioned(self, movements: Movements | None, partitions: tuple[Partition, ...]) -> "ContactPlan":
        """Without the times when a partition separates the two: one inside its rectangle, the other outside."""
        plan = self
        for partition in partitions:
            if movements is None:
                raise ConfigurationError(
                    "faults.partitions, split_s: must be empty if mobility.model = 'contacts' (nodes have no positions)"
                )
            plan = _cut(plan, partition, movements)
        return plan


def contact_plan(movements: Movements, range_m: float, duration_s: float) -> ContactPlan:
    """Every contact of nodes at most `range_m` apart in `[0, duration_s]`."""
    legs = Legs(movements, duration_s)
    reach_m = range_m * (1 + RANGE_SLACK)
    found = [_contacts(one, other, legs, reach_m) for one, other in near_pairs(legs, reach_m)]
    a, b = (np.concatenate([np.empty(0, np.int64), *(contacts[end] for contacts in found)]) for end in (0, 1))
    from_s, until_s = (np.concatenate([np.empty(0), *(contacts[time] for contacts in found)]) for time in (2, 3))
    return _plan(nodes=movements.nodes, duration_s=duration_s, a=a, b=b, from_s=from_s, until_s=until_s)


def scenario_contacts(scenario: Scenario, movements: Movements | None) -> ContactPlan:
    """The contacts of a scenario whose nodes move like this (None: it lists its contacts), without those of absent
    nodes and without those that partitions cut."""
    if movements is None:
        plan = ContactPlan.from_list(scenario.mobility.contacts, scenario.nodes, scenario.duration_s)
    else:
        plan = contact_plan(movements, scenario.radio.range_m, scenario.duration_s)
        plan = plan.while_present(scenario.mobility.present)
    return plan.partitioned(movements, scenario.partitions())


def _contacts(one: Integers, other: Integers, legs: Legs, reach_m: float) -> Columns:
    """When the nodes on the legs `one` and `other` are within reach of each other."""
    begin_s = np.maximum(legs.start_s[one], legs.start_s[other])
    end_s = np.minimum(legs.end_s[one], legs.end_s[other])
    since_s, other_since_s = begin_s - legs.start_s[one], begin_s - legs.start_s[other]
    x_m = legs.x_m[one] + legs.vx_mps[one] * since_s - legs.x_m[other] - legs.vx_mps[other] * other_since_s
    y_m = legs.y_m[one] + legs.vy_mps[one] * since_s - legs.y_m[other] - legs.vy_mps[other] * other_since_s
    vx_mps, vy_mps = legs.vx_mps[one] - legs.vx_mps[other], legs.vy_mps[one] - legs.vy_mps[other]
    enter_s, leave_s = _within(x_m, y_m, vx_mps, vy_mps, reach_m)
    from_s, until_s = np.maximum(begin_s + enter_s, begin_s), np.minimum(begin_s + leave_s, end_s)

    met = until_s > from_s
    node, peer = legs.node[one[met]], legs.node[other[met]]
    return np.minimum(node, peer), np.maximum(node, peer), from_s[met], until_s[met]


def _within(x_m: Floats, y_m: Floats, vx_mps: Floats, vy_mps: Floats, reach_m: float) -> tuple[Floats, Floats]:
    """When a point that moves on a line is within reach of the origin, from now on; enter = leave if it never is.

    |p + v·t|² = reach² is a·t² + 2·b·t + c = 0. The root of larger magnitude is computed first and gives the other as
    c / (a·root), so that neither suffers from cancellation.
    """
    a = vx_mps * vx_mps + vy_mps * vy_mps
    b = x_m * vx_mps + y_m * vy_mps
    c = x_m * x_m + y_m * y_m - reach_m * reach_m
    discriminant = b * b - a * c
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        larger = -(b + np.copysign(np.sqrt(np.maximum(discriminant, 0.0)), b))
        roots = larger / a, c / larger
        enter_s, leave_s = np.fmin(*roots), np.fmax(*roots)
    resting = a == 0
    enter_s[resting] = -np.inf
    leave_s[resting] = np.where(c[resting] <= 0, np.inf, -np.inf)
    missed = (discriminant <= 0) & ~resting
    enter_s[missed] = leave_s[missed] = 0.0
    return enter_s, leave_s


def _plan(nodes: int, duration_s: float, a: Integers, b: Integers, from_s: Floats, until_s: Floats) -> ContactPlan:
    """Clips to the run, merges what touches, drops what is too short to matter, sorts."""
    from_s, until_s = np.maximum(from_s, 0.0), np.minimum(until_s, duration_s)
    kept = until_s > from_s
    a, b, from_s, until_s = _merged(a[kept], b[kept], from_s[kept], until_s[kept])
    order = np.lexsort((b, a, from_s))
    order = order[(until_s - from_s)[order] > TOUCHING_S]
    return ContactPlan(
        nodes=nodes, duration_s=duration_s, a=a[order], b=b[order], from_s=from_s[order], until_s=until_s[order]
    )


def _merged(a: Integers, b: Integers, from_s: Floats, until_s: Floats) -> Columns:
    """Joins contacts of a pair that overlap or touch."""
    order = np.lexsort((from_s, b, a))
    a, b, from_s, until_s = a[order], b[order], from_s[order], until_s[order]
    while len(a):
        # A contact that spans several later ones absorbs one per round, so repeat until all stand apart.
        joins = (a[1:] == a[:-1]) & (b[1:] == b[:-1]) & (from_s[1:] <= until_s[:-1] + TOUCHING_S)
        if not joins.any():
            break
        heads = np.flatnonzero(np.concatenate(([True], ~joins)))
        a, b, from_s, until_s = a[heads], b[heads], from_s[heads], np.maximum.reduceat(until_s, heads)
    return a, b, from_s, until_s


def _check(contact: tuple[int, int, float, float], nodes: int) -> None:
    first, second, from_s, until_s = contact
    if not (0 <= first < nodes and 0 <= second < nodes and first != second):
        raise ConfigurationError(f"contact {contact}: must join two different nodes between 0 and {nodes - 1}")
    if not (from_s < until_s and isfinite(from_s) and isfinite(until_s)):
        raise ConfigurationError(f"contact {contact}: must end after it begins")


def _cut(plan: ContactPlan, partition: Partition, movements: Movements) -> ContactPlan:
    """The plan without the times when exactly one of the two is inside. A node's crossings of the border are the times
    at which "it is inside" changes; those of both nodes together are the times at which "exactly one is" changes."""
    crossings = [border_crossings(movements.legs(node), partition) for node in range(plan.nodes)]
    crosses = np.array([bool(times) for times in crossings], dtype=np.bool_)
    meanwhile = (plan.from_s < partition.until_s) & (plan.until_s > partition.from_s)
    concerned = (crosses[plan.a] | crosses[plan.b]) & meanwhile
    rows: list[tuple[int, int, float, float]] = []
    for index in np.flatnonzero(concerned).tolist():
        a, b, from_s, until_s = int(plan.a[index]), int(plan.b[index]), plan.from_s[index], plan.until_s[index]
        for apart_from_s, apart_until_s in _pairs(sorted(crossings[a] + crossings[b])):
            rows.append((a, b, from_s, min(apart_from_s, until_s)))
            from_s = max(from_s, apart_until_s)
        rows.append((a, b, from_s, until_s))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 4).T
    whole = ~concerned
    return _plan(
        nodes=plan.nodes,
        duration_s=plan.duration_s,
        a=np.concatenate((plan.a[whole], table[0].astype(np.int64))),
        b=np.concatenate((plan.b[whole], table[1].astype(np.int64))),
        from_s=np.concatenate((plan.from_s[whole], table[2])),
        until_s=np.concatenate((plan.until_s[whole], table[3])),
    )


def _pairs(times_s: list[float]) -> Iterator[tuple[float, float]]:
    return zip(times_s[::2], times_s[1::2], strict=True)
