"""Node causal graphs: from who publishes and subscribes to what, to levels, descendants and coverage.

A node v is a causal child of u (thesis, section 5.1) if v subscribes to something u publishes and its receipt makes v
publish: there is a dependency x => y, u publishes x, and v subscribes to x and publishes y. The graph of these arcs is
split into layered graphs (`splitting`); a node's place in one of them is a *shadow*.

For a set of nodes, such as a physical tree T, `coverage` gives the variables of the expansion potential:

- N_Causal(T): how many nodes of T are in some causal graph, each counted once.
- Avg_lev_Causal(T): the mean level over the shadows of these nodes, in all graphs.
- gamma: of all (causal node of T, node that descends from it) pairs, the share whose descendant is in T too; a fraction
  between 0 and 1. Descendants are those in the same layered graph, so no node is its own descendant.

Where the thesis would take the mean of an empty set, we follow its aim that trees with more and earlier causal nodes
should grow. Without descendants gamma is 1, since nothing is left to reach. A tree without causal nodes gets the level
of the deepest shadow. So a tree with a causal node always has more potential than one without.
"""

from collections.abc import Collection, Mapping

import msgspec

from roamcast.causal.specification import Role, Specification
from roamcast.causal.splitting import Arc, Layers, split, successors


class Shadow(msgspec.Struct, frozen=True, order=True):
    """A node's place in a causal graph."""

    graph: int
    level: int
    node: int


class Coverage(msgspec.Struct, frozen=True):
    """What a set of nodes covers of all causal graphs."""

    causal_nodes: int  # N_Causal
    level_mean: float  # Avg_lev_Causal
    covered_share: float  # gamma, 0..1


class CausalGraphs(msgspec.Struct, frozen=True):
    """All layered causal graphs of a network. Made by `causal_graphs` or `from_arcs`."""

    shadows: tuple[Shadow, ...]  # ascending
    descendants: dict[int, tuple[int, ...]]  # every causal node, ascending -> its descendants, ascending

    @staticmethod
    def from_arcs(arcs: Collection[Arc]) -> "CausalGraphs":
        """The graphs of arcs parent -> child."""
        graphs = split(arcs)
        shadows = tuple(
            Shadow(number, level, node)
            for number, graph in enumerate(graphs)
            for level, nodes in enumerate(graph.levels)
            for node in nodes
        )
        below: dict[int, set[int]] = {node: set() for node in sorted({shadow.node for shadow in shadows})}
        for graph in graphs:
            for node, found in _descendants(graph).items():
                below[node] |= found - {node}
        return CausalGraphs(shadows, {node: tuple(sorted(found)) for node, found in below.items()})

    @property
    def depth(self) -> int:
        """The deepest level; 0 without any graph."""
        return max((shadow.level for shadow in self.shadows), default=0)

    def levels(self, node: int) -> tuple[int, ...]:
        """The levels of the node's shadows, ascending; none if it is not causal."""
        return tuple(sorted(shadow.level for shadow in self.shadows if shadow.node == node))

    def coverage(self, members: Collection[int]) -> Coverage:
        """What `members` cover."""
        inside = set(members)
        causal = [node for node in self.descendants if node in inside]
        if not causal:
            return Coverage(0, float(self.depth), 1.0)
        levels = [shadow.level for shadow in self.shadows if shadow.node in inside]
        pairs = sum(len(self.descendants[node]) for node in causal)
        covered = sum(below in inside for node in causal for below in self.descendants[node])
        return Coverage(len(causal), sum(levels) / len(levels), covered / pairs if pairs else 1.0)


def causal_graphs(specification: Specification, roles: Mapping[int, Role]) -> CausalGraphs:
    """The node causal graphs of a network in which the node at each address plays this role."""
    return CausalGraphs.from_arcs(node_arcs(specification, roles))


def node_arcs(specification: Specification, roles: Mapping[int, Role]) -> frozenset[Arc]:
    """The causal children of each node, before any splitting."""
    publishers: list[list[int]] = [[] for _ in specification.types]
    for node, role in roles.items():
        for number in role.publishes:
            publishers[number].append(node)
    arcs: set[Arc] = set()
    for cause, effect in specification.dependencies:
        reacting = [node for node in publishers[effect] if cause in roles[node].subscribes]
        arcs.update((parent, child) for parent in publishers[cause] for child in reacting if parent != child)
    return frozenset(arcs)


def _descendants(graph: Layers) -> dict[int, set[int]]:
    """The descendants of each node of a layered graph; shadows of a node have the same descendants."""
    children = successors(graph.arcs)
    found: dict[int, set[int]] = {}
    for nodes in reversed(graph.levels):  # deepest first, so that the children of a node are known before it
        for node in nodes:
            if node not in found:
                found[node] = {below for child in children[node] for below in (child, *found[child])}
    return found
