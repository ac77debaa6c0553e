"""The analytic model behind SOMER (thesis, chapter 3): how much longer than a straight line is a path through roots?

Nodes stand evenly in the plane, so each has 4 neighbours (a grid) or 6 (a beehive), and trees tile the plane in the
same pattern: each tree reaches R hops from its root and has as many neighbouring trees as a node has neighbours. An
event climbs from its publisher to its root (R / 2 on average), goes from root to root with at most one turn, and
descends to the subscriber (again R / 2). The turn has 90 degrees on a grid and 120 in a beehive, and two sides of a
triangle that enclose the angle beta are at most 1 / sin(beta / 2) times the third: sqrt(2) and 2 / sqrt(3), which is
2 sqrt(2 / n) for n neighbours.

All lengths are in units of the distance between neighbours, that is in hops along a row. The text of equation 3.2
gives the grid's angle illegibly; 90 degrees is what equations 3.4 to 3.7 follow from.
"""

from math import radians, sin, sqrt

from roamcast.errors import CallerError

TURN_DEGREES = {4: 90.0, 6: 120.0}
"""Neighbours -> the angle at which a path from root to root turns (3.2)."""


def detour_factor(neighbours: int) -> float:
    """The largest ratio of a path with one turn to the straight line."""
    if neighbours not in TURN_DEGREES:
        raise CallerError(f"neighbours = {neighbours!r}: must be 4 (grid) or 6 (beehive), equation 3.1")
    return 1 / sin(radians(TURN_DEGREES[neighbours] / 2))


def path_length_bound(distance: float, radius: float, neighbours: int) -> float:
    """The longest path between nodes at this straight-line distance, averaged over their places in the end trees
    (3.5)."""
    return radius + detour_factor(neighbours) * distance


def path_overhead_bound(distance: float, radius: float, neighbours: int) -> float:
    """The path overhead ratio: by which share the path may exceed the straight line (3.6)."""
    if distance <= 0:
        raise CallerError(f"distance = {distance!r}: must be above 0")
    return path_length_bound(distance, radius, neighbours) / distance - 1


def path_overhead_limit(neighbours: int) -> float:
    """The same in networks that are large against their trees (3.7)."""
    return 2 * sqrt(2 / neighbours) - 1
