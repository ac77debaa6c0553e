"""Invariants of Waymark: no node speaks for another, no event loops, nothing grows without bounds."""

from roamcast.checkers.watch import InvariantError
from roamcast.protocols.waymark import Waymark
from roamcast.protocols.waymark.links import NEIGHBOURS_MAX
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.records import NODES_MAX, is_newer
from roamcast.world.simulator import Simulation


def waymark_nodes(simulation: Simulation) -> dict[int, Waymark]:
    """The nodes that are up, by address."""
    return {node: p for node, p in enumerate(simulation.protocols) if isinstance(p, Waymark)}


def check_own_words(simulation: Simulation) -> None:
    """What is known of a node is what it said itself: nothing newer than its newest record, and that unchanged."""
    nodes = waymark_nodes(simulation)
    for address, protocol in nodes.items():
        for other, known in protocol.records.known.items():
            if other not in nodes or other == address:
                continue
            own = nodes[other].records.own
            if is_newer(known.want_number, own.want_number) or is_newer(known.where_number, own.where_number):
                raise InvariantError(f"{address} has a record of {other} that it never issued")
            if known.want_number == own.want_number and known.interest != own.interest:
                raise InvariantError(f"{address} takes {other} to want {known.interest}; it wants {own.interest}")


def check_no_circles(simulation: Simulation) -> None:
    """A node accepts the same destination of an event a limited number of times, so no event loops."""
    parameters = simulation.parameters
    assert isinstance(parameters, WaymarkParameters)
    for address, protocol in waymark_nodes(simulation).items():
        for task in protocol.forwarding.tasks.values():
            for destination, times in task.taken.items():
                if times > max(1, parameters.tries_max):
                    raise InvariantError(f"{address} has taken event {task.event.id} for {destination} {times} times")
                if destination == address:
                    raise InvariantError(f"{address} is to pass event {task.event.id} on to itself")


def check_bounds(simulation: Simulation) -> None:
    """State stays within its bounds: neighbours, nodes, and bytes in custody."""
    parameters = simulation.parameters
    assert isinstance(parameters, WaymarkParameters)
    for address, protocol in waymark_nodes(simulation).items():
        custody = protocol.custody
        if custody.kept_bytes > parameters.custody_bytes:
            raise InvariantError(f"{address} keeps {custody.kept_bytes} bytes; {parameters.custody_bytes} are allowed")
        if custody.kept_bytes != sum(kept.size for kept in custody.kept.values()):
            raise InvariantError(f"{address} has lost count of what it keeps")
        if len(protocol.links.known) > NEIGHBOURS_MAX or len(protocol.records.known) > NODES_MAX:
            raise InvariantError(f"{address} knows too many nodes")
