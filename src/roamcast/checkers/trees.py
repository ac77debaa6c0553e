"""Invariants of trees: no circles, clear roles, ends that agree, interests that cover.

A *link* of a tree exists if both ends know of it: the child names the parent, and the parent lists the child. A node
that came back from a crash knows none of those who still name it; that is no link (see `protocols/trees/standing.py`).
"""

from collections.abc import Iterator

from roamcast.checkers.watch import InvariantError
from roamcast.protocols.api import NOBODY
from roamcast.protocols.trees.tree import TreeProtocol
from roamcast.world.simulator import Simulation


def tree_nodes(simulation: Simulation) -> dict[int, TreeProtocol]:
    """The nodes that are up, by address."""
    return {node: p for node, p in enumerate(simulation.protocols) if isinstance(p, TreeProtocol)}


def links(nodes: dict[int, TreeProtocol]) -> Iterator[tuple[int, int]]:
    """Every link as (child, parent)."""
    for child, protocol in nodes.items():
        parent = nodes.get(protocol.parent)
        if parent is not None and child in parent.children:
            yield child, protocol.parent


def check_no_cycles(simulation: Simulation) -> None:
    """No node is its own ancestor, and every parent stands above its child: the second is why the first holds."""
    check_no_cycles_among(tree_nodes(simulation))


def check_no_cycles_among(nodes: dict[int, TreeProtocol]) -> None:
    """The same for nodes that are given."""
    parents = dict(links(nodes))
    for child, parent in parents.items():
        if not nodes[parent].standing.above(nodes[child].standing):
            raise InvariantError(
                f"parent {parent} at {nodes[parent].standing} does not stand above child {child} "
                f"at {nodes[child].standing}"
            )
    for start in parents:
        seen = {start}
        here = parents.get(start, NOBODY)
        while here != NOBODY:
            if here in seen:
                raise InvariantError(f"{here} is its own ancestor: {sorted(seen)}")
            seen.add(here)
            here = parents.get(here, NOBODY)


def check_roles(simulation: Simulation) -> None:
    """A node is in at most one tree: a root in its own, a member in its parent's, a searching node in none."""
    check_roles_among(tree_nodes(simulation))


def check_roles_among(nodes: dict[int, TreeProtocol]) -> None:
    """The same for nodes that are given."""
    for node, protocol in nodes.items():
        parent, root = protocol.parent, protocol.root
        fits = {
            "root": parent == NOBODY and root == node,
            "member": parent not in (NOBODY, node) and root not in (NOBODY, node),
            "searching": parent == NOBODY and root == NOBODY,
        }
        if not fits[protocol.role]:
            raise InvariantError(f"{node} is {protocol.role} with parent {parent} and root {root}")


class Agreement:
    """Child and parent agree on being so, except for less than `bound_s` at a stretch."""

    def __init__(self, bound_s: float) -> None:
        self._bound_s = bound_s
        self._since_s: dict[tuple[int, int, str], float] = {}

    def __call__(self, simulation: Simulation) -> None:
        now = simulation.scheduler.now
        at_odds = {key: self._since_s.get(key, now) for key in _at_odds(tree_nodes(simulation))}
        self._since_s = at_odds
        for (node, other, what), since_s in at_odds.items():
            if now - since_s > self._bound_s:
                raise InvariantError(f"{node} has taken {other} for its {what} since {since_s:.2f} s, wrongly")


def _at_odds(nodes: dict[int, TreeProtocol]) -> Iterator[tuple[int, int, str]]:
    for node, protocol in nodes.items():
        if protocol.parent != NOBODY:
            parent = nodes.get(protocol.parent)
            if parent is None or node not in parent.children:
                yield node, protocol.parent, "parent"
        for address in protocol.children:
            child = nodes.get(address)
            if child is None or (child.parent != node and node not in child.former):
                yield node, address, "child"


def check_coverage(simulation: Simulation) -> None:
    """What a parent holds of a child's wishes covers them, and so each effective interest covers its subtree's; child
    and parent name the same root. Holds when nothing has changed for a while."""
    for fault in uncovered(tree_nodes(simulation)).values():
        raise InvariantError(fault)


class CoverageChecker:
    """`check_coverage` for networks that never rest: from `from_s` on no link fails it for more than `bound_s` at a
    stretch."""

    def __init__(self, bound_s: float, from_s: float = 0.0) -> None:
        self._bound_s = bound_s
        self._from_s = from_s
        self._since_s: dict[tuple[int, int], float] = {}

    def __call__(self, simulation: Simulation) -> None:
        now = simulation.scheduler.now
        faults = uncovered(tree_nodes(simulation)) if now >= self._from_s else {}
        self._since_s = {link: self._since_s.get(link, now) for link in faults}
        for link, since_s in self._since_s.items():
            if now - since_s > self._bound_s:
                raise InvariantError(f"since {since_s:.2f} s: {faults[link]}")


def uncovered(nodes: dict[int, TreeProtocol]) -> dict[tuple[int, int], str]:
    """The links at which something is missing, each with what it is."""
    faults: dict[tuple[int, int], str] = {}
    for child, parent in links(nodes):
        wanted, held = nodes[child].effective_interest, nodes[parent].children.interest(child)
        effective = nodes[parent].effective_interest
        if wanted is not None and (held is None or not held.covers(wanted)):
            faults[child, parent] = f"{parent} holds {held} for its child {child}, which wants {wanted}"
        elif wanted is not None and (effective is None or not effective.covers(wanted)):
            faults[child, parent] = f"{parent} wants {effective} as a whole, its child {child} {wanted}"
        elif nodes[child].root != nodes[parent].root:
            faults[child, parent] = f"{child} is in the tree of {nodes[child].root}, its parent {parent} is not"
    return faults
