"""Where nodes are, at every instant: a scenario and a seed become `Movements`.

Every model produces corners per node, with straight legs at constant speed between them. That makes the contact plan
exact (`world/contacts.py`) and a position cheap to look up in the radio's hot path. There is one module per model, each
a function from a scenario and a seed to corners; `scenario_movements` chooses among them.

A node's path depends only on the seed and its own number. Adding nodes or lengthening a run leaves the other paths
unchanged. (With `golf`, spectators are dealt out to flights in order, so this holds while the course is the same.)
"""

from roamcast.errors import ConfigurationError
from roamcast.world.mobility import gallery, gauss_markov, group, lattice, roads, static, waypoint
from roamcast.world.mobility.movements import Corner, Movements
from roamcast.world.scenario import Scenario

__all__ = ["Corner", "Movements", "scenario_movements"]


def scenario_movements(scenario: Scenario, seed: int) -> Movements | None:
    """How the nodes of `scenario` move under `seed`; None if it knows only contacts, no places."""
    mobility = scenario.mobility
    match mobility.model:
        case "static":
            return Movements(static.paths(scenario, seed))
        case "grid":
            return Movements(lattice.grid(scenario))
        case "beehive":
            return Movements(lattice.beehive(scenario))
        case "waypoint":
            return Movements(waypoint.paths(scenario, seed))
        case "group":
            return Movements(group.paths(scenario, seed))
        case "gauss-markov":
            return Movements(gauss_markov.paths(scenario, seed))
        case "roads":
            return Movements(roads.paths(scenario, seed))
        case "golf":
            return Movements(gallery.paths(scenario, seed))
        case "movements":
            if not mobility.paths:
                raise ConfigurationError("mobility.paths = (): model 'movements' needs the corners of every node")
            return Movements(mobility.paths)
        case "contacts":
            return None
