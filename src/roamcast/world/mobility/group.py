"""Reference-point group mobility (Hong, Gerla, Pei and Chiang, MSWiM 1999): nodes roam around their group's centre.

Each group has a reference point, which is no node itself and does a random waypoint over the area. Each member does a
random waypoint of its own inside a disc of `group_radius_m` around it. Both are independent and start in their steady
state, so their sum does too. Reference points stay that radius away from the border, so members never leave the area.

The speeds and pauses of the scenario apply to both movements. A member's velocity over ground is the sum of the two, so
its speed is at most twice `speed_max_mps`.
"""

from roamcast.errors import ConfigurationError
from roamcast.seeds import derive
from roamcast.world.mobility.movements import Corner, Movements
from roamcast.world.mobility.waypoint import DiscRegion, Rectangle, trips
from roamcast.world.scenario import Scenario


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    centres, offsets = centres_and_offsets(scenario, seed)
    groups = scenario.mobility.groups
    return [added(centres, node % groups, offsets, node) for node in range(scenario.nodes)]


def centres_and_offsets(scenario: Scenario, seed: int) -> tuple[Movements, Movements]:
    """The reference points by group, and the members' movements relative to theirs by node."""
    mobility, (width_m, height_m) = scenario.mobility, scenario.area_m
    radius_m = mobility.group_radius_m
    if 2 * radius_m >= min(width_m, height_m):
        allowed = f"below half of the area's shorter side ({min(width_m, height_m) / 2:g})"
        raise ConfigurationError(f"mobility.group_radius_m = {radius_m}: must be {allowed}")
    inner = Rectangle(radius_m, radius_m, width_m - 2 * radius_m, height_m - 2 * radius_m)
    disc = DiscRegion(radius_m)
    centres = Movements(
        trips(inner, mobility, scenario.duration_s, derive(seed, "mobility", "group", group))
        for group in range(mobility.groups)
    )
    offsets = Movements(
        trips(disc, mobility, scenario.duration_s, derive(seed, "mobility", node)) for node in range(scenario.nodes)
    )
    return centres, offsets


def added(centres: Movements, group: int, offsets: Movements, node: int) -> list[Corner]:
    """The sum of two piecewise linear movements, which turns wherever one of them does."""
    times_s = sorted({corner[0] for corner in (*centres.corners(group), *offsets.corners(node))})
    corners: list[Corner] = []
    for t_s in times_s:
        (centre_x_m, centre_y_m), (offset_x_m, offset_y_m) = centres.position(group, t_s), offsets.position(node, t_s)
        corners.append((t_s, centre_x_m + offset_x_m, centre_y_m + offset_y_m))
    return corners
