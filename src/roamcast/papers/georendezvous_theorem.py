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

The figure measures the probability in the networks that the paper simulates (45 neighbours per node), and computes the
bound from each network's own growth, mean distance and diameter.
"""

from math import log2
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from roamcast.analysis.traces import RUN, of_kind, only_runs, read_traces
from roamcast.campaign.store import Store
from roamcast.errors import CallerError
from roamcast.papers.figure import Claim, Figure, Tables, Values, X, at_least, least

Distances = NDArray[np.int64]
"""Hops from every node to every node of a connected network."""

FACTORS = (0.25, 0.5, 1.0)  # k
SIDE_M = 1000.0
ENDS_MAX = 600


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
    """The measured probability over all pairs of different nodes and all rendezvous nodes. In large networks A is one
    of the first `ENDS_MAX` nodes: nodes are numbered at random, so they are a random sample."""
    nodes = len(distances)
    ends = min(nodes, ENDS_MAX)
    hops = distances.astype(np.int16)  # a quarter of the memory that must pass through the processor
    good = 0
    for a in range(ends):
        most = np.floor((1 + 2 * k) * hops[a]).astype(np.int16)
        through = hops[a][None, :] + hops  # to b over r: from_a[r] + hops[b][r]
        good += int(np.count_nonzero(through <= most[:, None]) - np.count_nonzero(through[a] <= most[a]))
    return good / (ends * nodes * (nodes - 1))


def growth_constant(distances: Distances, k: float) -> float:
    """The least growth that holds for every node and every radius that the proof uses: k l, 2 k l, 4 k l, ..."""
    diameter = int(distances.max())
    within = np.stack([(distances <= hops).sum(axis=1) for hops in range(diameter + 1)])  # [hops, node]
    growth = 1.0
    reached = {k * hops * 2**doubling for hops in range(1, diameter + 1) for doubling in range(diameter)}
    for radius in reached:
        if radius <= diameter:
            larger = within[min(diameter, int(2 * radius))]
            growth = max(growth, float((larger / within[int(radius)]).max()))
    return growth


def hops_mean(distances: Distances) -> float:
    """E[l] over all pairs of different nodes."""
    return float(distances.sum() / (len(distances) * (len(distances) - 1)))


def hop_distances(places: NDArray[np.float64], range_m: float) -> Distances:
    """Hops between all nodes of the largest connected part of a network."""
    apart = np.hypot(*(places[:, None, axis] - places[None, :, axis] for axis in (0, 1)))
    linked = (apart <= range_m).astype(np.float32)
    distances = np.where(np.eye(len(places), dtype=bool), 0, -1)
    reached = np.eye(len(places), dtype=np.float32)
    for hops in range(1, len(places)):
        wider = ((reached @ linked + reached) > 0).astype(np.float32)
        fresh = (wider > 0) & (distances < 0)
        if not fresh.any():
            break
        distances[fresh] = hops
        reached = wider
    sizes = (distances >= 0).sum(axis=1)
    inside = np.flatnonzero(distances[int(sizes.argmax())] >= 0)
    return np.asarray(distances[np.ix_(inside, inside)], dtype=np.int64)


# -- The figure ------------------------------------------------------------------------------------------------------


def measured_label(k: float) -> str:
    return f"measured, k = {k:g}"


def bound_label(k: float) -> str:
    return f"bound, k = {k:g}"


def network_rows(places: NDArray[np.float64], range_m: float) -> list[tuple[str, float]]:
    """Curve and value of one network."""
    distances = hop_distances(places, range_m)
    mean, diameter = hops_mean(distances), int(distances.max())
    rows: list[tuple[str, float]] = []
    for k in FACTORS:
        rows.append((measured_label(k), detour_probability(distances, k)))
        rows.append((bound_label(k), detour_bound(growth_constant(distances, k), k, mean, diameter)))
    return rows


def theorem_rows(session: SparkSession, store: Store) -> pd.DataFrame:
    plan = session.createDataFrame(store.plan().drop_columns("run"))
    trace = only_runs(read_traces(session, store.trace), plan)
    places = of_kind(trace, "position").select(RUN, "node", "x_m", "y_m").toPandas()
    runs = plan.toPandas()
    rows: list[dict[str, Any]] = []
    for run in runs.to_dict("records"):
        mine = places[places[RUN] == run[RUN]].sort_values("node")
        for curve, value in network_rows(mine[["x_m", "y_m"]].to_numpy(dtype=np.float64), float(run["range_m"])):
            rows.append({"curve": curve, "x": float(run["nodes"]), "seed": run["seed"], "value": value})
    return pd.DataFrame(rows)


def _campaign(seeds: int, sizes: list[Tables]) -> Tables:
    """Networks that do nothing: only their places count."""
    return {
        "protocols": ["flooding"],
        "seeds": seeds,
        "scenario": {
            "area_m": [SIDE_M, SIDE_M],
            "duration_s": 2.0,
            "mobility": {"model": "static"},
            "radio": {"model": "ideal"},
            "workload": {"publishers": 0, "subscribers": 0, "start_s": 0.5, "tail_s": 0.5},
        },
        "grid": {"size": sizes},
    }


def _margins(values: Values) -> dict[tuple[float, X], float]:
    return {
        (k, nodes): value / values[bound_label(k)][nodes]
        for k in FACTORS
        for nodes, value in values[measured_label(k)].items()
    }


def _changes(values: Values) -> dict[float, float]:
    """The probability in the largest network as a share of that in the smallest, by k."""
    shares = {}
    for k in FACTORS:
        course = values[measured_label(k)]
        sizes = sorted(course, key=float)
        shares[k] = course[sizes[-1]] / course[sizes[0]]
    return shares


def theorem_figure(
    quick_sizes: list[Tables], sparse_sizes: list[Tables], paper_sizes: list[Tables], seeds: int
) -> Figure:
    return Figure(
        id="geo-theorem",
        title="How likely a random rendezvous node lies well, and theorem 3.1's bound",
        paper="georendezvous",
        section="section 3, theorem 3.1",
        setting="The theorem: in a network in which no node has more than c times as many others within 2 r hops as "
        "within r, a path of l hops over a random rendezvous node has at most l + 2 k l hops with probability "
        "c^(log2(k E[l] / L) - 1) or more, where L is the network's diameter. Measured over all pairs and all "
        "rendezvous nodes of uniform static networks with 45 neighbours per node, with more than 600 nodes over the "
        "pairs of 600 of them with all others; c, E[l] and L are each network's own.",
        quick=_campaign(seeds, quick_sizes),
        sparse=_campaign(seeds, sparse_sizes),
        paper_scale=_campaign(seeds, paper_sizes),
        quick_note="Networks of up to 600 nodes.",
        sparse_note="Networks of 80, 600 and 3000 nodes.",
        rows=theorem_rows,
        x="nodes",
        x_title="nodes",
        y_title="probability",
        claims=(
            Claim(
                "The probability is never below the bound: the least ratio of the two, over all sizes and k",
                reported="P(l_r <= l + 2 k l) is bounded from below",
                statistic=least(_margins),
                region=at_least(1.0),
            ),
            Claim(
                "It does not vanish with the size of the network: the largest network against the smallest",
                reported="does not vanish with the network size and seems nearly constant",
                statistic=least(_changes),
                region=at_least(0.8),
            ),
        ),
    )
