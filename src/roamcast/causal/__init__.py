"""Causal dependencies: receiving one event makes its receiver publish another.

The package turns a dependency specification and what nodes publish and subscribe to into causal graphs, and these into
the numbers by which SOMER lets its trees contend for nodes (thesis, chapter 5). It knows no protocol, no clock and no
network: pure functions over frozen structs. In the order of use:

1. `parse_specification("a => b; a => c; b => e [0.6]")` is the `Specification`: event types, each an interest that
   matches exactly its events, and which type causes which, how surely and how soon. A network's operator tells it to
   every node: `Site.dependencies`.
2. `specification.role(publishes, subscribes)` is a node's part in it: the numbers of the types that it publishes and
   subscribes to, small enough for a message. A node whose role `is_empty` takes no part in causality.
3. `causal_graphs(specification, roles)`, with the roles of all known nodes by address, are the node causal graphs after
   splitting: `CausalGraphs`, in which every node has levels and descendants.
4. `graphs.coverage(members)` is what a set of nodes, say a physical tree, covers of them: the thesis' N_Causal, mean
   level and gamma.
5. `expansion_potential(coverage, eta)` and `local_expansion_potential(potential, level, eta)` are the thesis' EP and
   LEP; `contention(mine, theirs, delta)` says who wins when two leaves compare them.
"""

from roamcast.causal.graphs import CausalGraphs, Coverage, Shadow, causal_graphs, node_arcs
from roamcast.causal.potential import Outcome, contention, expansion_potential, local_expansion_potential
from roamcast.causal.specification import EventType, Link, Role, Specification, parse_specification
from roamcast.causal.splitting import layered, split

__all__ = [
    "CausalGraphs",
    "Coverage",
    "EventType",
    "Link",
    "Outcome",
    "Role",
    "Shadow",
    "Specification",
    "causal_graphs",
    "contention",
    "expansion_potential",
    "layered",
    "local_expansion_potential",
    "node_arcs",
    "parse_specification",
    "split",
]
