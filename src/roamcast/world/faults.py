"""The fault plan: which nodes crash, return, join late or leave, and when, drawn before the run.

The nodes of the four kinds are disjoint: consecutive stretches of one shuffled order, whose ends are rounded to whole
nodes. A node's time comes from a generator of its own, uniform over the run. Partitions and frame loss are not here:
they are conditions of the contacts and of the radio, not something that happens to a node.
"""

import math
from typing import Literal, NamedTuple

from roamcast.seeds import derive
from roamcast.world.scenario import Scenario

What = Literal["crash", "return", "join", "leave"]


class Fault(NamedTuple):
    t_s: float
    node: int
    what: What  # a node that joins is absent until then; every other node is up from the start


def fault_plan(scenario: Scenario, seed: int) -> list[Fault]:
    """All faults of a run, by time and node. What would fall behind the end of the run is left out."""
    faults = scenario.faults
    order = list(range(scenario.nodes))
    derive(seed, "faults").shuffle(order)
    kinds: list[tuple[What, float]] = [
        ("crash", faults.crash_share),
        ("return", faults.return_share),
        ("join", faults.join_share),
        ("leave", faults.leave_share),
    ]
    plan: list[Fault] = []
    total_share, taken = 0.0, 0
    for what, share in kinds:
        total_share += share
        upto = math.floor(total_share * scenario.nodes + 0.5)
        for node in order[taken:upto]:
            t_s = derive(seed, "faults", node).uniform(0, scenario.duration_s)
            plan += _course(what, node, t_s, faults.return_after_s)
        taken = upto
    return sorted(fault for fault in plan if fault.t_s < scenario.duration_s)


def _course(what: What, node: int, t_s: float, return_after_s: float) -> list[Fault]:
    if what == "return":
        return [Fault(t_s, node, "crash"), Fault(t_s + return_after_s, node, "return")]
    return [Fault(t_s, node, what)]
