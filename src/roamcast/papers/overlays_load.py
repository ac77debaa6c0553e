"""Figures 13 and 14: load balancing (section 4.2).

A modulator that takes CPU time stands for the paper's variable load: with 15 consumers of all that 5 producers publish,
each event makes 15 pieces of work, and its cost is chosen so that 5 brokers are busy for the given share on average.

On the emulator (`overlay-13-emulated`, `overlay-14-emulated`) the modulator is a computation: the run-off model on a
small grid, with more steps for more load. Every machine counts as a fiftieth of a core, so that 20 of them fit one
computer; load is the CPU time that was measured. Routes are AODV's.
"""

from collections.abc import Callable
from functools import partial

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind
from roamcast.emulator.emulation import EmulationSettings
from roamcast.papers.figure import EMULATED, Claim, Figure, Tables, Values, at_least, at_most, between, largest
from roamcast.papers.overlays_setting import (
    OPPORTUNISTIC,
    PAPER,
    STATIC,
    CurveVariant,
    Measure,
    campaign,
    mean_hops,
    rows,
)

BROKERS, PRODUCERS, CONSUMERS = 5, 5, 15
RATE_PER_S = 0.4
SETTLED_S = 20.0
LOADS = tuple(round(0.1 * step, 1) for step in range(1, 11))
QUICK_LOADS = (0.2, 0.3, 0.5, 0.7, 1.0)

BALANCED, UNBALANCED = "with load balancing", "without"
BALANCING: Tables = {"adaptors": "topology,home-broker,load-balancing"}
NEVER = 1e9  # a load that is never reached

EMULATED_LOADS_13, EMULATED_LOADS_14 = (0.2, 0.5, 0.7), (0.5, 1.0)  # those that claims are about
EMULATED_SEEDS = 4
EMULATED_S = 60
CPU_SHARE = 0.02
GRID_COLUMNS = 10
STEPS = 60  # of the run-off model at full load: 3 ms of a core, 0.17 s of a fiftieth
EMULATED_NOTE = (
    "With 20 real nodes in real time, 60 s a run. Modulators compute; loads are measured, and the average load on the "
    "axis is what the computation should take on a machine of 2026."
)
EMULATED_FINDING = (
    "Loads are measured CPU times here, and those of the same computation differ. On the machine of these runs, which "
    "had other work to do, one took 3.5 ms in the median and 7 ms at worst, where 3 ms are assumed. A reading covers "
    "2 s, and the figure shows the highest of all readings of all brokers."
)

PEAKS = (
    "A maximum over ten minutes and five brokers shows peaks: at an average load of 10 % it is 51 %, at 20 % 101 %. "
    "Events come at random, each makes 15 pieces of work, home brokers that clients flock to have most of them, and a "
    "reading covers 2 s. The paper does not say over which time it reads loads; longer readings would have lower "
    "peaks."
)
SETTING = (
    "20 nodes roam 750 x 500 m at 1 to 20 m/s with pauses of 30 s; 5 are brokers, 5 publish, 15 subscribe. Brokers "
    "update every 5 s, clients look for a nearer broker every second; a broker counts as overloaded above 70 %."
)


def _computing(curve: str, load: float, parameters: Tables) -> CurveVariant:
    steps = max(1, round(load * STEPS))
    return CurveVariant(curve, load, {"modulator": f"runoff({GRID_COLUMNS}, plane, 60, {steps})"} | parameters)


def _at(curve: str, load: float, parameters: Tables) -> CurveVariant:
    cost_s = load * BROKERS / (CONSUMERS * PRODUCERS * RATE_PER_S)
    return CurveVariant(curve, load, {"modulator": f"work({cost_s:.6f})"} | parameters)


def _variants(
    curves: dict[str, Tables], loads: tuple[float, ...], at: Callable[[str, float, Tables], CurveVariant] = _at
) -> tuple[CurveVariant, ...]:
    return tuple(at(curve, load, parameters) for curve, parameters in curves.items() for load in loads)


def _difference(values: Values, load: float, curve: str, other: str) -> float:
    """By how much the curve lies below the other at a load."""
    return values[other][load] - values[curve][load]


def _gains(values: Values) -> dict[float, float]:
    """By how much the opportunistic approach has the shorter paths, at loads below 70 %."""
    below = [load for load in values[STATIC] if isinstance(load, float) and load < 0.7]
    return {load: values[STATIC][load] - values[OPPORTUNISTIC][load] for load in below}


def _campaign(variants: tuple[CurveVariant, ...], seeds: int, duration_s: int) -> Tables:
    scenario: Tables = {
        "nodes": 20,
        "area_m": [750.0, 500.0],
        "duration_s": duration_s,
        "radio": {"model": "ideal", "range_m": 250.0},
        "mobility": {"speed_min_mps": 1.0, "speed_max_mps": 20.0, "pause_min_s": 30.0, "pause_max_s": 30.0},
        "workload": {
            "publishers": PRODUCERS,
            "subscribers": CONSUMERS,
            "selectivity": 1.0,
            "rate_per_s": RATE_PER_S,
            "start_s": 10.0,
            "tail_s": 10.0,
        },
    }
    return campaign(
        variants,
        scenario,
        seeds=seeds,
        brokers=f"0-{BROKERS - 1}",
        update_period_s=5.0,
        discovery_period_s=1.0,
    )


def _emulated(figure: Figure, variants: tuple[CurveVariant, ...], measure: Measure) -> Figure:
    """The figure on the emulator: the same network and claims, real nodes and computations."""
    tables = _campaign(variants, EMULATED_SEEDS, EMULATED_S)
    tables["scenario"]["workload"]["payload_bytes"] = 8 * GRID_COLUMNS**2
    for contender in tables["protocols"]:
        contender.update(unicast="aodv", machine_load=False)
    claims = figure.claims
    if measure is maximum_load:
        explained = (msgspec.structs.replace(claim, finding=EMULATED_FINDING) for claim in claims[:2])
        claims = (*explained, *claims[2:])
    return msgspec.structs.replace(
        figure,
        claims=claims,
        id=figure.id + EMULATED,
        title=f"{figure.title}, emulated",
        quick=tables,
        paper_scale=tables,
        quick_note=EMULATED_NOTE,
        rows=partial(rows, measure, variants),
        emulation=EmulationSettings(cpu_share=CPU_SHARE),
    )


def maximum_load(trace: DataFrame) -> DataFrame:
    """Per run the highest load that any broker had at any time, once the start is over."""
    readings = of_kind(trace, "structure").where((f.col("category") == "load") & (f.col("t") >= SETTLED_S))
    return readings.groupBy(RUN).agg(f.max("value").alias("value"))


_CURVES_13: dict[str, Tables] = {
    BALANCED: BALANCING,
    UNBALANCED: {"adaptors": "topology,home-broker", "overload_threshold": NEVER},
}
_CURVES_14: dict[str, Tables] = {OPPORTUNISTIC: BALANCING, STATIC: {"adaptors": ""}}


def _figure_13() -> Figure:
    variants = partial(_variants, _CURVES_13)
    relief = partial(_difference, curve=BALANCED, other=UNBALANCED)
    return Figure(
        id="overlay-13",
        title="Maximum load of a broker by average load",
        paper=PAPER,
        section="section 4.2, figure 13",
        setting=f"{SETTING} The highest load of any broker during the run. A reading covers 2 s and is smoothed with "
        "the one before; the paper does not say how it reads loads.",
        quick=_campaign(variants(QUICK_LOADS), seeds=20, duration_s=200),
        paper_scale=_campaign(variants(LOADS), seeds=20, duration_s=600),
        quick_note="200 s, five loads.",
        rows=partial(rows, maximum_load, variants(LOADS)),
        x_title="average load",
        y_title="maximum load",
        x_format="%",
        y_format="%",
        claims=(
            Claim(
                "Below 30 % no broker is ever overloaded: at 20 % the maximum stays below 70 %",
                reported="no overloaded brokers below 30 %",
                statistic=lambda values: values[UNBALANCED][0.2],
                region=at_most(0.7),
                finding=PEAKS,
            ),
            Claim(
                "There both behave the same",
                reported="the same",
                statistic=partial(relief, load=0.2),
                region=between(-0.02, 0.02),
                finding=PEAKS,
            ),
            Claim(
                "At 50 % load balancing lowers the maximum load",
                reported="ameliorates",
                statistic=partial(relief, load=0.5),
                region=at_least(0.0),
            ),
            Claim(
                "At 70 % load balancing lowers the maximum load",
                reported="ameliorates",
                statistic=partial(relief, load=0.7),
                region=at_least(0.0),
            ),
        ),
    )


def _figure_14() -> Figure:
    variants = partial(_variants, _CURVES_14)
    gain = partial(_difference, curve=OPPORTUNISTIC, other=STATIC)
    return Figure(
        id="overlay-14",
        title="Paths from producers to consumers by average load",
        paper=PAPER,
        section="section 4.2, figure 14",
        setting=f"{SETTING} Hops of the deliveries themselves. Events that an overloaded broker has not got to before "
        "the run ends have no path and do not count.",
        quick=_campaign(variants(QUICK_LOADS), seeds=20, duration_s=200),
        paper_scale=_campaign(variants(LOADS), seeds=20, duration_s=600),
        quick_note="200 s, five loads.",
        rows=partial(rows, mean_hops, variants(LOADS)),
        x_title="average load",
        y_title="hops",
        x_format="%",
        claims=(
            Claim(
                "Below 70 % load paths can be more than one hop shorter than in the static approach",
                reported="more than 1 hop below 70 %",
                statistic=largest(_gains),
                region=at_least(1.0),
            ),
            Claim(
                "Load balancing lengthens paths: 100 % against 50 % load",
                reported="increased path lengths",
                statistic=lambda values: values[OPPORTUNISTIC][1.0] - values[OPPORTUNISTIC][0.5],
                region=at_least(0.0),
            ),
            Claim(
                "Even at full load they are shorter than in the static approach",
                reported="outperforms even at 100 %",
                statistic=partial(gain, load=1.0),
                region=at_least(0.0),
            ),
        ),
    )


FIGURES = (
    _figure_13(),
    _figure_14(),
    _emulated(_figure_13(), _variants(_CURVES_13, EMULATED_LOADS_13, _computing), maximum_load),
    _emulated(_figure_14(), _variants(_CURVES_14, EMULATED_LOADS_14, _computing), mean_hops),
)
