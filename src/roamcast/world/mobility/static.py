"""Nodes that stay where they are: at given positions, or drawn uniformly over the area."""

from roamcast.seeds import derive
from roamcast.world.mobility.movements import Corner
from roamcast.world.scenario import Scenario


def paths(scenario: Scenario, seed: int) -> list[list[Corner]]:
    given = scenario.mobility.positions_m
    if given:
        return [[(0.0, x_m, y_m)] for x_m, y_m in given]
    width_m, height_m = scenario.area_m
    corners: list[list[Corner]] = []
    for node in range(scenario.nodes):
        random = derive(seed, "mobility", node)
        corners.append([(0.0, random.uniform(0, width_m), random.uniform(0, height_m))])
    return corners
