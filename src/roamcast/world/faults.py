"""The fault plan: which nodes crash, return, join late or leave, and when, drawn before the run.

The nodes of the four kinds are disjoint: consecutive stretches of one shuffled order, whose ends are rounded to whole
nodes. A node's time comes from a generator of its own, uniform over the run. Partitions and frame loss are not here:
they are conditions of the contacts and of the radio, not something that happens to a node.

Incidents (`incident.py`) that begin or end a life are part of the plan. Shares are of the nodes that have none.

Nodes of a recorded movement may be present only for a while. They join and leave with their recording, and nothing else
happens to them: shares are of the other nodes.
"""

import math
from typing import Final, Literal, NamedTuple

from roamcast.seeds import derive
from roamcast.world.scenario import Scenario

What = Literal["crash", "return", "join", "leave"]

GOODBYE_S: Final = 0.5
"""A leaving node's radio stays on for this long, so that its last frames get out."""


class Fault(NamedTuple):
    t_s: float
    node: int
    what: What  # a node that joins is absent until then; every other node is up from the start


def fault_plan(scenario: Scenario, seed: int) -> list[Fault]:
    """All faults of a run, by time and node. What would happen after the run is left out,
    except joins: who joins later is absent all the time."""
    faults = scenario.faults
    plan = _presence(scenario) + _lives(scenario)
    visitors = {fault.node for fault in plan}
    order = [node for node in range(scenario.nodes) if node not in visitors]
    derive(seed, "faults").shuffle(order)
    kinds: list[tuple[What, float]] = [
        ("crash", faults.crash_share),
        ("return", faults.return_share),
        ("join", faults.join_share),
        ("leave", faults.leave_share),
    ]
    total_share, taken = 0.0, 0
    for what, share in kinds:
        total_share += share
        upto = math.floor(total_share * len(order) + 0.5)
        for node in order[taken:upto]:
            t_s = derive(seed, "faults", node).uniform(0, scenario.duration_s)
            plan += _course(what, node, t_s, faults.return_after_s)
        taken = upto
    return sorted(fault for fault in plan if fault.t_s < scenario.duration_s or fault.what == "join")


def _presence(scenario: Scenario) -> list[Fault]:
    """How nodes come and go with their recorded movements."""
    plan: list[Fault] = []
    for node, (from_s, until_s) in enumerate(scenario.mobility.present):
        if from_s > 0:
            plan.append(Fault(from_s, node, "join"))
        if until_s < scenario.duration_s:
            if until_s - GOODBYE_S > from_s:
                plan.append(Fault(until_s - GOODBYE_S, node, "leave"))
            else:
                plan.append(Fault(until_s, node, "crash"))
    return plan


def _lives(scenario: Scenario) -> list[Fault]:
    """How nodes come and go by incidents."""
    plan: list[Fault] = []
    for incident in scenario.faults.incidents:
        if incident.what == "crash":
            plan.append(Fault(incident.from_s, incident.node, "crash"))
            if incident.until_s < scenario.duration_s:
                plan.append(Fault(incident.until_s, incident.node, "return"))
        elif incident.what == "join":
            plan.append(Fault(incident.from_s, incident.node, "join"))
        elif incident.what == "leave":
            plan.append(Fault(incident.from_s, incident.node, "leave"))
    return plan


def _course(what: What, node: int, t_s: float, return_after_s: float) -> list[Fault]:
    if what == "return":
        return [Fault(t_s, node, "crash"), Fault(t_s + return_after_s, node, "return")]
    return [Fault(t_s, node, what)]
