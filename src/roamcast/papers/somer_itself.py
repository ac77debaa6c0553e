"""SOMER against itself: the density of roots and awareness of causal dependencies (thesis, 6.2.1 to 6.2.3)."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from roamcast.papers import somer_setting as setting
from roamcast.papers.figure import Claim, Curve, Figure, Tables, Values, at_least, at_most, between, largest
from roamcast.papers.shapes import (
    excess,
    growing_saving,
    mean_lead,
    mean_saving,
    pairwise_excesses,
    saving,
    to_minimum,
    to_smallest_of_all,
)
from roamcast.papers.somer_setting import CHAINS, DELIVERY, GRAPH, GRAPHS, SIZES, SPARSE_SIZES, percents, sizes

FIXED_ROOTS = {"merging": False, "new_roots": False}
BEST_DENSITY = 0.09
SINGLE, WHOLE_GRAPH = "single publish hop", "complete causal graph"
ADAPTING, FIXED = "merging and new roots", "roots fixed"
AWARE, UNAWARE, PLACEBO = "aware", "unaware", "placebo"

quick = partial(setting.quick, initiations_per_s=0.2)
full = partial(setting.full, initiations_per_s=0.2)


def _somer(label: str, **parameters: Any) -> Tables:
    return {"name": "somer", "label": label, **parameters}


def _awareness(**parameters: Any) -> list[Tables]:
    return [
        _somer(AWARE, causality=True, **parameters),
        _somer(PLACEBO, causality=True, equal_potentials=True, **parameters),
        _somer(UNAWARE, causality=False, **parameters),
    ]


def _over_placebo(statistic: Callable[..., float], statement: str) -> Claim:
    """Whether awareness does better than contention by levels alone; the thesis has no such control."""
    return Claim(
        statement,
        reported="not compared",
        statistic=partial(statistic, curve=AWARE, baseline=PLACEBO),
        region=at_least(0),
        of_paper=False,
    )


def _rises(curve: str, density: float, side: str, finding: str = "") -> Claim:
    return Claim(
        f"{curve.capitalize()}: delivery takes longer with {side} roots ({density:.0%}) than with 9 %",
        reported="minimum at 9 %, rising on both sides",
        statistic=excess(curve, density, [BEST_DENSITY]),
        region=at_least(0),
        finding=finding,
    )


_MORE_ROOTS = (
    "With 12 % of roots events take 12 % less time than with 9 %, and causal graphs, too. What the thesis puts against "
    "more roots, the effort of getting from root to root, is small here, at a load that leaves most of the channel "
    "free. That 5 % is slower stays undecided because of a fault of ours, which this figure brings to light. Events "
    "that a node publishes before it has ever been in a tree wait without limit; others wait for a parent for 4 s at "
    "most. With roots fixed this can be minutes. Of 16 networks with 5 % one has two such nodes, whose events arrive "
    "after up to 272 s: graphs take 11.9 s on average there, and 0.2 to 0.5 s in the others."
)

FIGURE_6_1 = Figure(
    id="somer-6.1",
    title="Delivery time over the density of roots, roots fixed",
    paper="somer",
    section="Thesis, section 6.2.1, figure 6.1",
    setting="250 nodes; no merging, no new roots, no causality awareness, so the roots drawn at the start stay. Each "
    "curve is drawn as multiples of its minimum.",
    quick=quick(
        [_somer("somer", causality=False, **FIXED_ROOTS)],
        {"somer.root_density": [0.03, 0.05, 0.09, 0.12, 0.18]},
        nodes=120,
    ),
    paper_scale=full(
        [_somer("somer", causality=False, **FIXED_ROOTS)],
        {"somer.root_density": percents(3, 19)},
        nodes=250,
    ),
    quick_note="120 nodes, 160 s, five densities.",
    sparse=full(
        [_somer("somer", causality=False, **FIXED_ROOTS)],
        {"somer.root_density": [0.05, 0.09, 0.12]},
        nodes=250,
    ),
    sparse_note="Three of 16 densities.",
    curves=(Curve(SINGLE, "somer", DELIVERY), Curve(WHOLE_GRAPH, "somer", GRAPH, weight=GRAPHS)),
    x="root_density",
    shown=to_minimum,
    x_title="density of roots",
    y_title="delivery time over its minimum",
    x_format="%",
    claims=(
        _rises(SINGLE, 0.05, "fewer", _MORE_ROOTS),
        _rises(SINGLE, 0.12, "more", _MORE_ROOTS),
        _rises(WHOLE_GRAPH, 0.05, "fewer", _MORE_ROOTS),
        _rises(WHOLE_GRAPH, 0.12, "more", _MORE_ROOTS),
    ),
)

_CONTENDERS_6_2 = (_somer(ADAPTING, causality=False), _somer(FIXED, causality=False, **FIXED_ROOTS))

FIGURE_6_2 = Figure(
    id="somer-6.2",
    title="Merging and new roots make the initial density of roots unimportant",
    paper="somer",
    section="Thesis, section 6.2.2, figure 6.2",
    setting="200 nodes; delivery time of single publish hops with and without merging and new roots, as multiples of "
    "the smallest value.",
    quick=quick(_CONTENDERS_6_2, {"somer.root_density": [0.01, 0.04, 0.09, 0.16]}, nodes=100),
    paper_scale=full(
        _CONTENDERS_6_2,
        {"somer.root_density": percents(1, 17)},
        nodes=200,
    ),
    quick_note="100 nodes, 160 s, four densities.",
    sparse=full(_CONTENDERS_6_2, {"somer.root_density": [0.01, 0.04, 0.09, 0.16]}, nodes=200),
    sparse_note="Four of 16 densities.",
    curves=(Curve(ADAPTING, ADAPTING, DELIVERY), Curve(FIXED, FIXED, DELIVERY)),
    x="root_density",
    shown=to_smallest_of_all,
    x_title="initial density of roots",
    y_title="delivery time over the smallest",
    x_format="%",
    claims=(
        Claim(
            "With both mechanisms delivery time hardly depends on the initial density: extremes are within 25 %",
            reported="stable from 1 % to 16 %",
            statistic=largest(partial(pairwise_excesses, curve=ADAPTING)),
            region=at_most(0.25),
            finding="From an initial density of 1 % events take 24 % longer than from 16 %, 172 against 139 ms. With "
            "fixed roots it takes twice as long, 279 against 140 ms. So the mechanisms do what they are for. That "
            "stable means within 25 % is our reading, and the difference is just about that large. From 1 % it takes a "
            "while until distant nodes have become roots, since each draws once per refresh period.",
        ),
        Claim(
            "On average over densities, delivery is no slower with both mechanisms than with fixed roots",
            reported="lower",
            statistic=partial(mean_saving, curve=ADAPTING, baseline=FIXED),
            region=at_least(0),
        ),
    ),
)


_AWARE_CURVES = tuple(Curve(label, label, GRAPH, weight=GRAPHS) for label in (AWARE, PLACEBO, UNAWARE))

_PLACEBO = "Placebo: trees contend, but all potentials are equal, so that levels alone decide."

_CONTENTION = (
    "Awareness makes trees deep. The potentials of neighbouring trees differ widely: at a median contention by a "
    "factor of 2.5, where delta lets 1.3 rest. So trees with causal nodes grow until their levels make up for it, and "
    "their neighbours shrink. At a density of 9 % nodes are 3.5 levels below their root, averaged over time, against "
    "2.7 without contention and 2.3 with the placebo, which moves nodes toward the nearer root. For 9 % of the time "
    "they are deeper than 7, against 5 and 2 %. So paths become longer, and every node on them costs the same. "
    "Contention also makes trees restless, aware or not: a node changes its parent 29 times in 1000 s, 28 times with "
    "the placebo, and 14 times without. (Rows `parent` and `contention` of the traces, with `roamcast sql`.) Delivery "
    "suffers from it, graphs in time do not: the placebo's are no slower."
)
_RESTLESS = (
    "Contention loses chains whether trees are aware or not: the placebo completes nearly as few. Nodes change their "
    "parents twice as often as without contention (somer-6.3a), and each change may lose the event that is under way."
)
_AS_A_WHOLE = (
    "As with fixed roots (somer-6.3a), awareness makes trees deeper, and contention makes them restless. Merging and "
    "new roots limit the depth. So less time is lost than there, 2 % with 8 seeds, but a gain of a tenth is not in "
    "sight."
)


FIGURE_6_3A = Figure(
    id="somer-6.3a",
    title="Causality awareness and the time of causal graphs",
    paper="somer",
    section="Thesis, section 6.2.3, figure 6.3(a)",
    setting="250 nodes, roots fixed; trees contend for nodes by their expansion potential, or do not. As multiples of "
    f"the smallest value. {_PLACEBO}",
    quick=quick(_awareness(**FIXED_ROOTS), {"somer.root_density": [0.06, 0.09, 0.12]}, nodes=80),
    paper_scale=full(
        _awareness(**FIXED_ROOTS),
        {"somer.root_density": percents(5, 13)},
        nodes=250,
    ),
    quick_note="80 nodes, 160 s, three densities.",
    sparse=full(_awareness(**FIXED_ROOTS), {"somer.root_density": [0.06, 0.09, 0.12]}, nodes=250),
    sparse_note="Three of eight densities.",
    curves=_AWARE_CURVES,
    x="root_density",
    shown=to_smallest_of_all,
    x_title="density of roots",
    y_title="causal graph time over the smallest",
    x_format="%",
    claims=(
        Claim(
            "Awareness shortens causal graphs, on average over densities",
            reported="shorter at every density",
            statistic=partial(mean_saving, curve=AWARE, baseline=UNAWARE),
            region=at_least(0),
            finding=_CONTENTION,
        ),
        Claim(
            "At the best density, 9 %, it saves more than 15 %",
            reported="over 15 %",
            statistic=partial(saving, curve=AWARE, baseline=UNAWARE, x=BEST_DENSITY),
            region=at_least(0.15),
            finding=_CONTENTION,
        ),
        _over_placebo(mean_saving, "It shortens them more than the placebo does, on average over densities"),
    ),
)

FIGURE_6_3B = Figure(
    id="somer-6.3b",
    title="Causality awareness and the completion of causal chains under failures",
    paper="somer",
    section="Thesis, section 6.2.3, figure 6.3(b)",
    setting="250 nodes, roots fixed at a density of 9 %; a share of the nodes crashes for good at random times. A "
    f"chain is complete when its last event has been published. {_PLACEBO}",
    quick=quick(
        _awareness(**FIXED_ROOTS),
        {"scenario.faults.crash_share": [0.02, 0.12, 0.24]},
        nodes=80,
    ),
    paper_scale=full(
        _awareness(**FIXED_ROOTS),
        {"scenario.faults.crash_share": percents(2, 25, 2)},
        nodes=250,
    ),
    quick_note="80 nodes, 160 s, three failure rates.",
    sparse=full(
        _awareness(**FIXED_ROOTS),
        {"scenario.faults.crash_share": [0.02, 0.12, 0.24]},
        nodes=250,
    ),
    sparse_note="Three of twelve failure rates.",
    curves=tuple(Curve(label, label, CHAINS) for label in (AWARE, PLACEBO, UNAWARE)),
    x="crash_share",
    x_title="nodes that fail",
    y_title="complete causal chains",
    x_format="%",
    y_format="%",
    claims=(
        Claim(
            "Awareness completes more chains, on average over failure rates",
            reported="higher at every rate",
            statistic=partial(mean_lead, curve=AWARE, baseline=UNAWARE),
            region=at_least(0),
            finding=_RESTLESS,
        ),
        _over_placebo(mean_lead, "It completes more than the placebo does, on average over failure rates"),
    ),
)

DELTAS = (0.2, 0.25, 0.3, 0.325, 0.35, 0.4)
QUICK_DELTAS = (0.2, 0.325, 0.4)


def _delta_label(delta: float) -> str:
    return f"delta {delta:g}"


def _deltas(deltas: Iterable[float]) -> list[Tables]:
    return [_somer(UNAWARE, causality=False), *(_somer(_delta_label(delta), delta=delta) for delta in deltas)]


def gain_by_delta(values: Values) -> Values:
    """The mean saving over sizes, by delta."""
    return {
        "gain": {
            float(label.removeprefix("delta ")): mean_saving(values, label, UNAWARE)
            for label in values
            if label != UNAWARE
        }
    }


def peak(values: Values) -> float:
    """How much higher the gain is at delta = 0.325 than on average at 0.2 and 0.4."""
    gain = gain_by_delta(values)["gain"]
    return gain[0.325] - (gain[0.2] + gain[0.4]) / 2


FIGURE_6_4A = Figure(
    id="somer-6.4a",
    title="The gain from causality awareness over the severity of contention",
    paper="somer",
    section="Thesis, section 6.2.3, figure 6.4(a)",
    setting="Everything of SOMER at work. The gain is the share of the causal graph time that awareness saves, "
    "averaged over network sizes.",
    quick=quick(_deltas(QUICK_DELTAS), sizes((50, 80))),
    paper_scale=full(_deltas(DELTAS), sizes(SIZES)),
    quick_note="50 and 80 nodes, 160 s, three values of delta.",
    sparse=full(_deltas(QUICK_DELTAS), sizes(SPARSE_SIZES)),
    sparse_note="50, 150 and 250 nodes, three values of delta.",
    curves=tuple(Curve(label, label, GRAPH, weight=GRAPHS) for label in (UNAWARE, *map(_delta_label, DELTAS))),
    x="nodes",
    shown=gain_by_delta,
    x_title="delta",
    y_title="gain",
    y_format="%",
    claims=(
        Claim(
            "The gain at delta = 0.325 exceeds that at 0.2 and 0.4",
            reported="peak around 0.325",
            statistic=peak,
            region=at_least(0),
            finding=_AS_A_WHOLE,
        ),
        Claim(
            "At delta = 0.325 awareness saves time",
            reported="about 10 %",
            statistic=partial(mean_saving, curve=_delta_label(0.325), baseline=UNAWARE),
            region=at_least(0),
            finding=_AS_A_WHOLE,
        ),
    ),
)


def gain_by_size(values: Values) -> Values:
    """What awareness and placebo save over neither."""
    return {
        label: {x: saving(values, curve, UNAWARE, x) for x in values[curve]}
        for label, curve in (("gain", AWARE), ("gain of the placebo", PLACEBO))
    }


FIGURE_6_4B = Figure(
    id="somer-6.4b",
    title="The gain from causality awareness over network size",
    paper="somer",
    section="Thesis, section 6.2.3, figure 6.4(b)",
    setting="Everything of SOMER at work, delta = 0.325. The gain is the share of the causal graph time that awareness "
    f"saves. {_PLACEBO}",
    quick=quick(_awareness(), sizes((50, 80, 120))),
    paper_scale=full(_awareness(), sizes(SIZES)),
    quick_note="50, 80 and 120 nodes, 160 s.",
    sparse=full(_awareness(), sizes(SPARSE_SIZES)),
    sparse_note="50, 150 and 250 nodes.",
    curves=_AWARE_CURVES,
    x="nodes",
    shown=gain_by_size,
    x_title="nodes",
    y_title="gain",
    y_format="%",
    claims=(
        Claim(
            "On average over sizes awareness saves about a tenth (5 % to 20 %)",
            reported="around 10 %",
            statistic=partial(mean_saving, curve=AWARE, baseline=UNAWARE),
            region=between(0.05, 0.20),
            finding=_AS_A_WHOLE,
        ),
        Claim(
            "The gain is greater in the largest network than in the smallest",
            reported="grows with size",
            statistic=partial(growing_saving, curve=AWARE, baseline=UNAWARE),
            region=at_least(0),
            finding=_AS_A_WHOLE,
        ),
        _over_placebo(mean_saving, "Awareness saves more than the placebo, on average over sizes"),
    ),
)


COSTS_S = (0.0, 0.005, 0.02)
PAPER_COSTS_S = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)


def _root_costs(costs_s: Iterable[float]) -> Tables:
    return {"scenario.processing.root_s": list(costs_s)}


def slow_nodes(tables: Tables) -> Tables:
    """The same campaign in nodes that take time and differ."""
    return tables | {"scenario": tables["scenario"] | {"processing": {"match_s": 0.0005, "spread": 0.5}}}


FIGURE_PROCESSING = Figure(
    id="somer-processing",
    title="The gain from causality awareness over the cost of a root",
    paper="somer",
    section="Not in the thesis, which takes nodes to cost nothing (chapter 7)",
    setting="As figure 6.3(a) at a density of 9 %, in nodes that take time: half a millisecond per match, a passed "
    "root as shown, and nodes differ (standard deviation of the logarithm 0.5). The gain is the share of the causal "
    f"graph time that is saved. {_PLACEBO}",
    quick=slow_nodes(quick(_awareness(**FIXED_ROOTS), _root_costs(COSTS_S), nodes=80)),
    paper_scale=slow_nodes(full(_awareness(**FIXED_ROOTS), _root_costs(PAPER_COSTS_S), nodes=250)),
    quick_note="80 nodes, 160 s, three costs.",
    sparse=slow_nodes(full(_awareness(**FIXED_ROOTS), _root_costs(COSTS_S), nodes=250)),
    sparse_note="Three of seven costs.",
    curves=_AWARE_CURVES,
    x="root_s",
    shown=gain_by_size,
    x_title="time per passed root (s)",
    y_title="gain",
    y_format="%",
    claims=(
        Claim(
            "Awareness saves more where a root costs 20 ms than where it costs nothing",
            reported="not measured",
            statistic=partial(growing_saving, curve=AWARE, baseline=UNAWARE),
            region=at_least(0),
            of_paper=False,
        ),
        _over_placebo(mean_saving, "It saves more than the placebo, on average over costs"),
    ),
)
