"""What the experiments of the Opportunistic Overlays paper have in common.

The paper's simulations model no link layer, so the radio here is the ideal one and unicast is the shortest-path oracle;
everything else is the protocol as it would run anywhere, with its own control messages. Brokers are the nodes with the
lowest addresses: movement is the same for all addresses, so that is a random choice. Where the paper is silent: every
consumer wants every event, since path lengths between all pairs are wanted; a broker chooses four neighbours. That was
decided after seeing the path lengths of figure 7 for three and four neighbours (4.6 and 4.2 hops, where the paper has
4.17), so the agreement there is no evidence for it.

Variants are contenders of one campaign, so all of them meet the same networks.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, of_kind, only_runs, read_traces
from roamcast.campaign.store import Store
from roamcast.papers.figure import Tables, Values, X

PAPER = "overlays"
STATIC = "static"
STATIC_OPPORTUNISTIC = "static-opportunistic"
OPPORTUNISTIC = "opportunistic"
BEST = "best"
NETWORK = "network"
LARGEST_GAP = "largest gap of a run"

ADAPTORS: dict[str, Tables] = {
    STATIC: {"adaptors": ""},
    STATIC_OPPORTUNISTIC: {"adaptors": "home-broker"},
    OPPORTUNISTIC: {"adaptors": "topology,home-broker"},
    BEST: {"adaptors": "topology,home-broker", "source_routing": False, "discovery_period_s": 1.0},
}


PUBLISHED: Tables = {
    "discovery_period_s": 10.0,
    "event_tree": False,
    "search_within_home": False,
    "hysteresis_hops": 0.0,
    "home_check_s": 0.0,
    "detour_ack_to_destination": True,
    "receipt_patience": 0.0,
    "release_delay_s": 0.0,
    "acknowledgement_delay_s": 0.25,
}
"""The protocol as the paper has it, without what Roamcast adds by default."""


class CurveVariant(NamedTuple):
    """A variant of the protocol: which curve it belongs to, and its x (None: the x comes from the trace)."""

    curve: str
    x: X | None
    parameters: Tables

    @property
    def label(self) -> str:
        return self.curve if self.x is None else f"{self.curve} at {self.x:g}" if isinstance(self.x, float) else self.x


def campaign(variants: Iterable[CurveVariant], scenario: Tables, *, seeds: int | list[int], **shared: Any) -> Tables:
    """A campaign of these variants; `shared` are parameters of all of them."""
    common: Tables = {"name": "overlays", "unicast": "oracle"} | PUBLISHED | shared
    return {
        "protocols": [common | {"label": variant.label} | variant.parameters for variant in variants],
        "seeds": seeds,
        "scenario": scenario,
    }


def roaming(duration_s: int, workload: Tables, speed_max_mps: float = 20.0) -> Tables:
    """Section 4.1: 100 nodes in a square of 1 km, 250 m range, random waypoint with pauses of 10 s."""
    return {
        "nodes": 100,
        "area_m": [1000.0, 1000.0],
        "duration_s": duration_s,
        "radio": {"model": "ideal", "range_m": 250.0},
        "mobility": {"speed_min_mps": 1.0, "speed_max_mps": speed_max_mps, "pause_min_s": 10.0, "pause_max_s": 10.0},
        "workload": workload,
    }


# -- From traces to values ---------------------------------------------------------------------------------------------

Measure = Callable[[DataFrame], DataFrame]
"""From trace rows to one `value` per run, or per run and `x`."""


def rows(measure: Measure, variants: tuple[CurveVariant, ...], session: SparkSession, store: Store) -> pd.DataFrame:
    """The figure's values; a variant's label says which curve and place a run belongs to."""
    plan = session.createDataFrame(store.plan().drop_columns("run"))
    trace = only_runs(read_traces(session, store.trace), plan)
    measured = plan.select(RUN, "protocol", "seed").join(measure(trace), RUN).toPandas()
    by_label = {variant.label: variant for variant in variants}
    found = measured.assign(curve=[by_label[label].curve for label in measured["protocol"]])
    if "x" not in found:
        found = found.assign(x=pd.Series([by_label[label].x for label in measured["protocol"]], index=found.index))
    return found[["curve", "x", "seed", "value"]]


def in_stretches(measured: DataFrame, stretch_s: int, value: str) -> DataFrame:
    """The mean of a column per run and stretch of time; x is the middle of the stretch."""
    middle = f.floor(f.col("t") / stretch_s) * stretch_s + stretch_s / 2
    return measured.groupBy(RUN, middle.alias("x")).agg(f.avg(value).alias("value"))


def probes(trace: DataFrame) -> DataFrame:
    """How long the paths between brokers were found to be."""
    return of_kind(trace, "structure").where(f.col("category") == "path")


def mean_hops(trace: DataFrame) -> DataFrame:
    """Per run the mean hops of all deliveries."""
    return of_kind(trace, "delivered").groupBy(RUN).agg(f.avg("hops").alias("value"))


# -- Statistics --------------------------------------------------------------------------------------------------------


def mean_of(values: Values, curve: str) -> float:
    return sum(values[curve].values()) / len(values[curve])


def share_below(values: Values, curve: str, other: str) -> float:
    """At which share of places the curve is lower than the other."""
    places = [x for x in values[curve] if x in values[other]]
    return sum(values[curve][x] < values[other][x] for x in places) / len(places)


def with_largest_gaps(found: pd.DataFrame, curve: str, other: str) -> pd.DataFrame:
    """Adds, as the curve `LARGEST_GAP`, by how much a curve lies below another in each run, where it does most."""
    courses = found.pivot_table(index=["seed", "x"], columns="curve", values="value")
    gaps = (courses[other] - courses[curve]).groupby("seed").max()
    added = pd.DataFrame({"curve": LARGEST_GAP, "x": 0.0, "seed": gaps.index, "value": gaps.to_numpy()})
    return pd.concat([found, added], ignore_index=True)


def without_gaps(values: Values) -> Values:
    """The curves as the paper draws them."""
    return {curve: course for curve, course in values.items() if curve != LARGEST_GAP}


def flat(values: Values) -> Values:
    """Curves that were measured once are drawn over all places."""
    places = sorted({x for course in values.values() for x in course if isinstance(x, float)})
    return {
        curve: {x: next(iter(course.values())) for x in places} if len(course) == 1 else course
        for curve, course in values.items()
    }
