"""Theorem 3.1: how likely a randomly placed rendezvous node is to lie well.

Let l be the hops between two random nodes A and B, and l_r the hops from A over a random node R to B. In a network that
is *growth bounded*, |N(X, 2r)| <= growth * |N(X, r)| for every node X and radius r, where N(X, r) are the nodes within
r hops of X,

    P(l_r <= l + 2 k l)  >=  growth ** (log2(k E[l] / L) - 1),        L the network's diameter in hops,

which does not depend on the size of the network as long as E[l] / L does not.

Why: every node within k l hops of a node M halfway on a shortest path serves. Halving L at most ceil(log2(L / k l))
times leads from the whole network down to N(M, k l), so that holds at least growth ** -ceil(log2(L / k l)) of all
nodes. The mean over l is then bounded by Jensen's inequality, because x ** log2(growth) is convex for growth >= 2.

Where the paper is brief: below 2 the exponent log2(growth) is under 1 and the power is concave; but then x ** exponent
>= x for x up to 1, so an exponent of 1 serves. And the power must not exceed 1 anywhere, so k is at most 2.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import log2

from roamcast.errors import CallerError

Distances = Sequence[Sequence[int]]
"""Hops from every node to every node of a connected network."""


def detour_bound(growth: float, k: float, hops_mean: float, diameter: int) -> float:
    """The least probability that a random rendezvous node lengthens a path by no more than 2 k times itself."""
    if growth < 1 or not 0 < k <= 2 or not 0 < hops_mean <= diameter:
        raise CallerError(
            f"detour_bound: growth = {growth}, k = {k}, hops_mean = {hops_mean}, diameter = {diameter}: must be at "
            "least 1, in (0, 2], and a mean in (0, diameter]"
        )
    if k * hops_mean > diameter:
        return 1 / growth
    return float((k * hops_mean / diameter) ** max(1.0, log2(growth)) / growth)


def detour_probability(distances: Distances, k: float) -> float:
    """The measured probability over all pairs of different nodes and all rendezvous nodes."""
    good = 0
    for a, from_a in enumerate(distances):
        for b in range(a):  # distances are the same in both directions
            most = (1 + 2 * k) * from_a[b]
            good += sum(there + back <= most for there, back in zip(from_a, distances[b], strict=True))
    return 2 * good / (len(distances) ** 2 * (len(distances) - 1))


def growth_constant(distances: Distances, k: float) -> float:
    """The least growth that holds for every node and every radius that the proof uses: k l, 2 k l, 4 k l, ..."""
    diameter = max(map(max, distances))
    reached = {k * hops * 2**doubling for hops in range(1, diameter + 1) for doubling in range(diameter)}
    radii = [radius for radius in reached if radius <= diameter]
    growth = 1.0
    for row in distances:
        ascending = sorted(row)
        for radius in radii:
            growth = max(growth, bisect_right(ascending, 2 * radius) / bisect_right(ascending, radius))
    return growth


def hops_mean(distances: Distances) -> float:
    """E[l] over all pairs of different nodes."""
    return sum(map(sum, distances)) / (len(distances) * (len(distances) - 1))
