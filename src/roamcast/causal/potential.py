"""Expansion potential and contention (thesis, section 5.2).

Trees contend for nodes: a tree whose expansion would do more for causal events wins the leaves at its border. With
N, lev and gamma of `Coverage`, and eta > 0 keeping factors from vanishing:

    EP(T)  = (N + eta) / ((lev + 1) (gamma + eta))                     (5.1)
    LEP(v) = EP(T(v)) / (level(v) + eta)                               (5.2), level(v) in its physical tree

Equation 5.2 and the journal version write `lev + eta` where 5.1 writes `lev + 1`; for eta = 1, the value we use, they
are the same. We follow 5.1.

Two neighbouring leaves u and v of different trees compare: the greater LEP wins, the loser joins the winner's tree as
its child. Between 1 / (1 + delta) and 1 + delta, bounds included, the ratio is close enough and both rest (5.3).
"""

from typing import Literal

from roamcast.causal.graphs import Coverage
from roamcast.errors import CallerError

Outcome = Literal["wins", "loses", "rests"]


def expansion_potential(coverage: Coverage, eta: float = 1.0) -> float:
    """EP of a tree that covers this much; larger means that its growth does more for causal events."""
    if eta <= 0:
        raise CallerError(f"eta = {eta!r}: must be above 0")
    return (coverage.causal_nodes + eta) / ((coverage.level_mean + 1) * (coverage.covered_share + eta))


def local_expansion_potential(potential: float, level: int, eta: float = 1.0) -> float:
    """LEP of a node at `level` of a tree with this potential (the physical root is at level 0)."""
    if eta <= 0:
        raise CallerError(f"eta = {eta!r}: must be above 0")
    return potential / (level + eta)


def contention(mine: float, theirs: float, delta: float) -> Outcome:
    """How a contention ends for the node whose LEP is `mine`; for the other node the result is the opposite."""
    if mine > theirs * (1 + delta):
        return "wins"
    if theirs > mine * (1 + delta):
        return "loses"
    return "rests"
