"""Invariants of trees that hold once a network has come to rest: one root per tree, one tree where that is the aim."""

from roamcast.checkers.trees import links, tree_nodes
from roamcast.checkers.watch import InvariantError
from roamcast.world.simulator import Simulation


def check_roots_exist(simulation: Simulation) -> None:
    """Whom a member calls its root is a root, and every link stays within one tree."""
    nodes = tree_nodes(simulation)
    for address, protocol in nodes.items():
        if protocol.role != "member":
            continue
        root = nodes.get(protocol.root)
        if root is None or root.role != "root":
            raise InvariantError(f"{address} is in the tree of {protocol.root}, which is no root")
    for child, parent in links(nodes):
        if nodes[child].root != nodes[parent].root:
            raise InvariantError(f"{child} and its parent {parent} are in different trees")


def check_one_tree(simulation: Simulation) -> None:
    """Every connected part of the network has exactly one root, and none of its nodes is still searching."""
    nodes = tree_nodes(simulation)
    seen: set[int] = set()
    for start in nodes:
        if start in seen:
            continue
        part = [node for node, hops in enumerate(simulation.topology.distances(start)) if hops >= 0]
        seen.update(part)
        roots = [node for node in part if node in nodes and nodes[node].role == "root"]
        searching = [node for node in part if node in nodes and nodes[node].role == "searching"]
        if len(roots) != 1 or searching:
            raise InvariantError(f"of the connected nodes {part}, {roots} are roots and {searching} have no tree")
