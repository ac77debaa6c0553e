"""Invariants of Waymark: no node speaks for another, no event loops, nothing grows without bounds."""

from roamcast.checkers.watch import InvariantError
from roamcast.protocols.waymark import Waymark
from roamcast.protocols.waymark.links import NEIGHBOURS_MAX
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.records import CIRCLE, NODES_MAX, Known, is_newer
from roamcast.world.simulator import Simulation

UNSEEN = 1000  # records of a life that may have been issued after the last look at it


def waymark_nodes(simulation: Simulation) -> dict[int, Waymark]:
    """The nodes that are up, by address."""
    return {node: p for node, p in enumerate(simulation.protocols) if isinstance(p, Waymark)}


class OwnWords:
    """What is known of a node is what it said itself: nothing newer than its newest record, and that unchanged.

    A node's records count up from its life times `2**LIFE_BITS`. After a longer life than that has room for, the next
    one begins below its last records; until the node has heard of these, and issued newer ones, others hold them.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int, int]] = {}  # life, and the newest numbers seen of it
        self._former: dict[int, tuple[int, int]] = {}  # the newest numbers of the life before

    def __call__(self, simulation: Simulation) -> None:
        nodes = waymark_nodes(simulation)
        for address, protocol in nodes.items():
            self._note(address, protocol)
        for address, protocol in nodes.items():
            for other, known in protocol.records.known.items():
                if other not in nodes or other == address:
                    continue
                own = nodes[other].records.own
                want, where = self._newest(other, own)
                if is_newer(known.want_number, want) or is_newer(known.where_number, where):
                    raise InvariantError(f"{address} has a record of {other} that it never issued")
                if known.want_number == own.want_number == want and known.interest != own.interest:
                    raise InvariantError(f"{address} takes {other} to want {known.interest}; it wants {own.interest}")

    def _note(self, node: int, protocol: Waymark) -> None:
        life, own = protocol.host.life, protocol.records.own
        before = self._last.get(node)
        if before is not None and before[0] != life:
            self._former[node] = before[1:]
        self._last[node] = (life, own.want_number, own.where_number)

    def _newest(self, node: int, own: Known) -> tuple[int, int]:
        """The newest numbers of a want and a where that others may hold."""
        want, where = self._former.get(node, (own.want_number, own.where_number))
        return _later(own.want_number, want), _later(own.where_number, where)


def _later(own: int, former: int) -> int:
    """The former life may have gone on a little after it was last looked at."""
    return (former + UNSEEN) % CIRCLE if is_newer(former, own) else own


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
