"""When a moving node is inside a rectangle that exists for a while: exact, leg by leg."""

from math import inf

from roamcast.world.mobility.movements import Leg
from roamcast.world.scenario import Partition


def border_crossings(legs: list[Leg], partition: Partition) -> list[float]:
    """The times at which the node enters, leaves, enters, leaves, … while the partition exists. A node that is inside
    when the partition begins or ends enters or leaves then; at a corner inside it does both. The border is inside."""
    times_s: list[float] = []
    ends_s = [leg[0] for leg in legs[1:]] + [inf]
    for (start_s, x_m, y_m, vx_mps, vy_mps), end_s in zip(legs, ends_s, strict=True):
        west_east = _between(x_m, vx_mps, partition.west_m, partition.east_m)
        south_north = _between(y_m, vy_mps, partition.south_m, partition.north_m)
        in_s = max(start_s, partition.from_s, start_s + west_east[0], start_s + south_north[0])
        out_s = min(end_s, partition.until_s, start_s + west_east[1], start_s + south_north[1])
        if in_s < out_s:
            times_s += [in_s, out_s]
    return times_s


def _between(at_m: float, speed_mps: float, low_m: float, high_m: float) -> tuple[float, float]:
    """From when until when, in seconds from now, a coordinate is in `[low_m, high_m]`; empty if the end comes first."""
    if speed_mps == 0:
        return (-inf, inf) if low_m <= at_m <= high_m else (inf, -inf)
    times_s = (low_m - at_m) / speed_mps, (high_m - at_m) / speed_mps
    return min(times_s), max(times_s)
