"""Splitting a general causal graph into layered ones.

The thesis' numbers (levels, descendants) are defined on causal graphs in which no node is its own descendant and all
causal parents of a node are at one level; it leaves the general graph as future work (section 5.1, assumptions 1 and 2,
and chapter 7). Real nodes break both assumptions: a commander who asks a question also gets the answer.

`split` turns any graph of arcs parent -> child into layered graphs, in which a node may occur several times, as
*shadows* at different levels:

1. *Retro-causal arcs.* Level every node by its distance from the nodes without parents; in a cycle that no such node
   leads to, the smallest node counts as one. Order nodes by (level, address). An arc inside a strongly connected
   component that does not lead forward in this order is retro-causal and is cut out. The rest has no cycle: an arc
   between components cannot be on one, and an arc inside leads forward in a total order.
2. *Parents at different levels.* The rest is unrolled: nodes without parents get a shadow at level 0, and every shadow
   at level n gives each child a shadow at level n + 1 (one, however many parents it has there). So all parents of a
   shadow are one level above it, and the paths down from level 0 are exactly the paths of the original graph, with
   their lengths.
3. The retro-causal arcs are a causal graph of their own and are split in the same manner: a node that sends events
   backward is the initiator of what they cause, not the end of the graph that it belongs to.

Termination. Step 2 ends because the longest path in an acyclic graph of n nodes has n - 1 arcs. Step 3 is applied to
fewer arcs each time: every cycle contains an arc that leads forward in the total order and is kept, so the arcs cut out
are a proper subset. Without arcs there is nothing to do.

Every arc is in exactly one of the graphs of step 3, and there in at least one place. Nothing depends on the order in
which arcs are given.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Arc = tuple[int, int]
"""From causal parent to causal child."""


class Layers(NamedTuple):
    """A layered graph: the nodes that have a shadow at each level, ascending, and the arcs between them."""

    levels: tuple[tuple[int, ...], ...]
    arcs: frozenset[Arc]


def split(arcs: Iterable[Arc]) -> tuple[Layers, ...]:
    """The layered graphs of a general one, that of the original initiators first. Arcs from a node to itself are no
    dependency between nodes and are left out."""
    left = frozenset(arc for arc in arcs if arc[0] != arc[1])
    found: list[Layers] = []
    while left:
        backward = retro_causal(left)
        found.append(layered(left - backward))
        left = backward
    return tuple(found)


def layered(arcs: frozenset[Arc]) -> Layers:
    """An acyclic graph unrolled by levels (step 2)."""
    children = successors(arcs)
    fed = {child for _, child in arcs}
    levels: list[tuple[int, ...]] = []
    here = sorted(node for node in children if node not in fed)
    while here:
        levels.append(tuple(here))
        here = sorted({child for node in here for child in children[node]})
    return Layers(tuple(levels), arcs)


def retro_causal(arcs: frozenset[Arc]) -> frozenset[Arc]:
    """The arcs that step 1 cuts out."""
    component = components(successors(arcs))
    level = _distances(arcs, component)
    return frozenset(
        (parent, child)
        for parent, child in arcs
        if component[parent] == component[child] and (level[parent], parent) > (level[child], child)
    )


def successors(arcs: Iterable[Arc]) -> dict[int, list[int]]:
    """Each node of the graph, ascending, with its children, ascending."""
    known = sorted(set(arcs))
    children: dict[int, list[int]] = {node: [] for node in sorted({node for arc in known for node in arc})}
    for parent, child in known:
        children[parent].append(child)
    return children


def components(children: Mapping[int, list[int]]) -> dict[int, int]:
    """Each node with its strongly connected component, named by its smallest node (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    open_nodes: list[int] = []
    for start in children:
        if start in order:
            continue
        work = [(start, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                order[node] = low[node] = len(order)
                open_nodes.append(node)
            elif children[node][at - 1] not in component:
                low[node] = min(low[node], low[children[node][at - 1]])
            descended = False
            for index in range(at, len(children[node])):
                child = children[node][index]
                if child not in order:
                    work += [(node, index + 1), (child, 0)]
                    descended = True
                    break
                if child not in component:
                    low[node] = min(low[node], order[child])
            if not descended and low[node] == order[node]:
                members = open_nodes[open_nodes.index(node) :]
                del open_nodes[-len(members) :]
                component.update(dict.fromkeys(members, min(members)))
    return component


def _distances(arcs: frozenset[Arc], component: Mapping[int, int]) -> dict[int, int]:
    """Each node's distance from the initiators: the smallest node of every component that nothing outside feeds."""
    children = successors(arcs)
    fed = {component[child] for parent, child in arcs if component[parent] != component[child]}
    here = [node for node in children if component[node] == node and node not in fed]
    level: dict[int, int] = {}
    distance = 0
    while here:
        level.update(dict.fromkeys(here, distance))
        distance += 1
        here = sorted({child for node in here for child in children[node]} - level.keys())
    return level
