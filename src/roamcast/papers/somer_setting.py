"""What SOMER's experiments have in common.

Settings follow table 6.1 of the thesis, with the decisions that it leaves open: constant density (a square of 1000 m
for 50 nodes, side growing with the square root of the number), waypoint speeds from 0.1 m/s because 0 has no steady
state, the radio of ns-2, 35 % publishers, subscriptions that match a tenth of all events. Rates are not given: 0.05
events per second and publisher are our low load, 0.2 the high one. Causal nodes are 10 % of all and form disjoint
copies of the dependency example of section 5.1; each initiator begins a causal graph every 20 s, or every 5 s where
causal graphs are what is measured. Structures have 40 s to form before anything is published.

At the quick scale networks are smaller and durations shorter, each figure says which; a claim about 250 nodes
is then undecided unless they are among the sizes. At the sparse scale both are the thesis', at fewer points.
"""

from collections.abc import Iterable
from functools import partial
from math import sqrt

from roamcast.papers.figure import Tables

DEPENDENCIES = "a => b; a => c; a => d; b => e; c => e"
LOW_RATE_PER_S, HIGH_RATE_PER_S = 0.05, 0.2

SIZES = range(50, 251, 20)
QUICK_SIZES = (50, 100, 150)
SPARSE_SIZES = (50, 150, 250)
PAPER_SEEDS, PAPER_DURATION_S = 250, 1000
FIRST_SEED = 5001  # constants of the protocols were chosen, and their faults sought, with lower ones
QUICK_DURATION_S = 160

DELIVERY = "latency_ms_mean"  # the thesis' delivery time: mean over all deliveries
GRAPH = "causal_graph_time_ms_mean"  # from an initiation to the end of its last chain, over complete graphs
GRAPHS = ("causal_graphs", "causal_graph_completion_ratio")  # their product: complete graphs, each of which counts
CHAINS = "chain_completion_ratio"


def campaign(
    contenders: Iterable[Tables],
    grid: Tables,
    *,
    seeds: int,
    duration_s: int,
    nodes: int = 50,
    rate_per_s: float = LOW_RATE_PER_S,
    initiations_per_s: float = 0.05,
) -> Tables:
    """The tables of a campaign under the common settings; rates are per publisher and per initiator."""
    return {
        "protocols": list(contenders),
        "seeds": list(range(FIRST_SEED, FIRST_SEED + seeds)),
        "scenario": {
            **_size(nodes),
            "duration_s": duration_s,
            "radio": {"preset": "ns2"},
            "mobility": {"pause_min_s": 1, "pause_max_s": 3},
            "workload": {
                "publisher_share": 0.35,
                "rate_per_s": rate_per_s,
                "start_s": 40,
                "tail_s": 10,
                "causal": {"dependencies": DEPENDENCIES, "rate_per_s": initiations_per_s},
            },
        },
        "grid": grid,
    }


quick = partial(campaign, seeds=PAPER_SEEDS, duration_s=QUICK_DURATION_S)
full = partial(campaign, seeds=PAPER_SEEDS, duration_s=PAPER_DURATION_S)
"""At the quick scale, and at the thesis' own."""


def sizes(numbers: Iterable[int]) -> Tables:
    """A grid over network sizes at constant density."""
    return {"size": [{f"scenario.{name}": value for name, value in _size(nodes).items()} for nodes in numbers]}


def percents(*range_of: int) -> list[float]:
    """1 %, 2 %, ... as shares; arguments as for `range`."""
    return [percent / 100 for percent in range(*range_of)]


def _size(nodes: int) -> Tables:
    return {"nodes": nodes, "area_m": round(1000 * sqrt(nodes / 50), 1)}
