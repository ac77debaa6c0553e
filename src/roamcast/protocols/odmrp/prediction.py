"""When a link will break: the link expiration time of ODMRP's mobility prediction.

Two nodes that keep their velocities are in range until their distance has grown to the radio range; that instant is the
larger root of a quadratic.
"""

from math import inf, sqrt

from roamcast.protocols.api import Host
from roamcast.protocols.odmrp.messages import Motion


def own_motion(host: Host) -> Motion | None:
    """Where this node is and how it moves, if it knows both and the range that a prediction needs."""
    position, velocity = host.position(), host.velocity()
    return None if position is None or velocity is None or host.site is None else (*position, *velocity)


def link_expiration_s(one: Motion, other: Motion, range_m: float) -> float:
    """Seconds until two nodes lose each other; infinite if they never do, 0 if they are out of range already."""
    x, y = one[0] - other[0], one[1] - other[1]
    vx, vy = one[2] - other[2], one[3] - other[3]
    if x * x + y * y > range_m * range_m:
        return 0.0
    speed_squared = vx * vx + vy * vy
    if speed_squared == 0:
        return inf
    root = speed_squared * range_m * range_m - (x * vy - y * vx) ** 2
    return max(0.0, (-(x * vx + y * vy) + sqrt(max(0.0, root))) / speed_squared)


def shorter(one: float | None, other: float | None) -> float | None:
    """The lifetime of a route of two parts; None is not foreseeable, and infinite is the same."""
    if one is None or one == inf:
        return None if other == inf else other
    return one if other is None or one < other else other


def lasts_longer(one: float | None, other: float | None) -> bool:
    return (inf if one is None else one) > (inf if other is None else other)
