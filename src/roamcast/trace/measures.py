"""Every measure, declared once: what it is called, what it means, how it is computed and which way is better.

Everything that shows, stores or asks for measures reads this table: the summary of one run, the rows that campaigns
store, Spark, `advise`, campaign files, reports and `roamcast sql`. To add a measure, add one entry to `MEASURES`; no
other file changes. `expressions` has the language, `relations` the tables and their columns.

A *pair* is a publication and a node that should receive it, or did; `roamcast.trace.pairs` says which are expected.
"""

from typing import Literal, NamedTuple

from roamcast.trace.expressions import Expression, col, count, largest, mean, percentile, total

CONTROL = "maintenance"


class Measure(NamedTuple):
    """One number per run."""

    title: str
    meaning: str
    value: Expression
    unit: str = ""
    better: Literal["higher", "lower", ""] = ""  # empty where neither is better in itself
    most: float | None = None  # no run can have more; 1 for shares
    short: str = ""  # what users may call it
    usual: bool = False  # a report shows it unless its campaign file says otherwise
    headline: bool = False  # a report's overview compares it
    scope: Literal["run", "place"] = "run"  # place: needs the runs of all contenders in the same network


EXPECTED = col("expected")
ARRIVED = EXPECTED & (col("arrivals") > 0)
REACHABLE = EXPECTED & (col("shortest") >= 0)
LATENCY_MS = 1000 * col("latency_s")
AIRTIME_S = col("value")  # of `frame` rows
IS_CONTROL = col("category").equals(CONTROL)
IS_WHOLE = col("complete").equals(col("expected"))  # of causal graphs

_publications = count("published")
_expected = count("pairs", EXPECTED)
_delivered = count("pairs", ARRIVED)
_expected_reachable = count("pairs", REACHABLE)
_delivered_reachable = count("pairs", REACHABLE & (col("arrivals") > 0))
_frames = total("frame", col("count"))
_bytes = total("frame", col("bytes"))
_airtime_s = total("frame", AIRTIME_S)
_nodes = total("end", col("count"))
_duration_s = largest("end", col("t"))
_load_s = total("loads", col("airtime_s"))
_chains = total("graphs", col("expected"))
_complete_chains = total("graphs", col("complete"))
_graphs = count("graphs")

RUN_FACTS: dict[str, Expression] = {"nodes": _nodes, "duration_s": _duration_s}
"""What a run is, rather than how it did. In live traces each node has an `end` row that counts itself."""


def _within(seconds: float) -> Expression:
    return count("pairs", EXPECTED & (col("latency_s") <= seconds)) / _expected


MEASURES: dict[str, Measure] = {
    "delivery_ratio": Measure(
        "Delivery ratio", "Expected pairs that arrived / expected pairs.",
        _delivered / _expected, better="higher", most=1.0, short="delivery", usual=True, headline=True,
    ),
    "delivery_ratio_reachable": Measure(
        "Delivery ratio among reachable pairs",
        "The same over pairs that a path connected when the event was published; simulated runs only.",
        _delivered_reachable / _expected_reachable,
        better="higher", most=1.0, short="delivery_reachable", usual=True,
    ),
    "within_100ms": Measure(
        "Delivered within 100 ms", "Expected pairs that arrived within 100 ms / expected pairs.",
        _within(0.1), better="higher", most=1.0, short="within(100ms)", usual=True,
    ),
    "within_250ms": Measure(
        "Delivered within 250 ms", "Expected pairs that arrived within 250 ms / expected pairs.",
        _within(0.25), better="higher", most=1.0, short="within(250ms)", usual=True, headline=True,
    ),
    "within_1s": Measure(
        "Delivered within 1 s", "Expected pairs that arrived within 1 s / expected pairs.",
        _within(1.0), better="higher", most=1.0, short="within(1s)", usual=True,
    ),
    "within_own": Measure(
        "Delivered in time",
        "Expected pairs that arrived while their event was worth something / expected pairs; over events that carry a "
        "deadline or a utility curve.",
        count("pairs", EXPECTED & (col("utility") > 0)) / count("pairs", EXPECTED & col("utility_max").is_present),
        better="higher", most=1.0, short="within(own)", usual=True,
    ),
    "utility_ratio": Measure(
        "Accrued utility",
        "What the receipts were worth / what they could have been worth at most; over expected pairs of events that "
        "carry a deadline or a utility curve.",
        total("pairs", col("utility")) / total("pairs", col("utility_max")),
        better="higher", most=1.0, short="utility", usual=True,
    ),
    "latency_common_ms_mean": Measure(
        "Mean latency of what all delivered",
        "Mean latency over pairs that every contender at the same place delivered under the same seed.",
        mean("common", LATENCY_MS), "ms", "lower", scope="place", usual=True,
    ),
    "latency_common_ms_p95": Measure(
        "95th percentile of latency of what all delivered", "The same pairs' 95th percentile.",
        percentile(95, "common", LATENCY_MS), "ms", "lower", scope="place",
    ),
    "common_share": Measure(
        "Share of pairs that all delivered",
        "Pairs that every contender at the same place delivered under the same seed / expected pairs.",
        count("common") / _expected, most=1.0, scope="place",
    ),
    "latency_ms_mean": Measure(
        "Mean latency", "Over expected pairs that arrived, from publication to first delivery. What is lost counts for "
        "nothing here: see the shares within a deadline.",
        mean("pairs", LATENCY_MS, ARRIVED), "ms", "lower", short="latency", usual=True,
    ),
    "latency_ms_p50": Measure(
        "Median latency", "Over expected pairs that arrived.",
        percentile(50, "pairs", LATENCY_MS, ARRIVED), "ms", "lower", short="latency_p50",
    ),
    "latency_ms_p95": Measure(
        "95th percentile of latency", "Over expected pairs that arrived.",
        percentile(95, "pairs", LATENCY_MS, ARRIVED), "ms", "lower", short="latency_p95", usual=True, headline=True,
    ),
    "latency_ms_p99": Measure(
        "99th percentile of latency", "Over expected pairs that arrived.",
        percentile(99, "pairs", LATENCY_MS, ARRIVED), "ms", "lower", short="latency_p99",
    ),
    "hops_mean": Measure(
        "Mean hops", "Of first deliveries of expected pairs.",
        mean("pairs", col("hops"), ARRIVED), better="lower", short="hops", usual=True,
    ),
    "stretch_mean": Measure(
        "Hops over the shortest path",
        "Mean of hops / shortest hops over reachable pairs that arrived; simulated runs only.",
        mean("pairs", col("hops") / col("shortest"), ARRIVED & (col("shortest") >= 1)),
        better="lower", short="stretch", usual=True,
    ),
    "frames_per_delivery": Measure(
        "Frames per delivery", "All frames / expected pairs that arrived.",
        _frames / _delivered, better="lower", short="frames", usual=True, headline=True,
    ),
    "bytes_per_delivery": Measure(
        "Bytes per delivery", "All bytes on the air / expected pairs that arrived.",
        _bytes / _delivered, better="lower", short="bytes",
    ),
    "airtime_per_delivery_ms": Measure(
        "Airtime per delivery", "All airtime / expected pairs that arrived.",
        1000 * _airtime_s / _delivered, "ms", "lower", short="airtime", usual=True, headline=True,
    ),
    "energy_mj_per_delivery": Measure(
        "Energy per delivery",
        "What all radios took from their batteries, idle and asleep too / expected pairs that arrived; simulated runs "
        "only.",
        mean("energy", col("value")) * count("energy") / _delivered, "mJ", "lower", short="energy", usual=True,
    ),
    "lifetime_first_node_s": Measure(
        "Lifetime of the first node",
        "When the first battery is empty if every node goes on as in this run; simulated runs only.",
        _duration_s / largest("battery", col("value")), "s", "higher", short="lifetime",
    ),
    "control_frames_share": Measure(
        "Maintenance's share of frames", "Frames of the category maintenance / all frames.",
        total("frame", col("count"), IS_CONTROL) / _frames, better="lower", most=1.0, usual=True,
    ),
    "control_bytes_share": Measure(
        "Maintenance's share of bytes", "Bytes of the category maintenance / all bytes.",
        total("frame", col("bytes"), IS_CONTROL) / _bytes, better="lower", most=1.0,
    ),
    "control_airtime_share": Measure(
        "Maintenance's share of airtime", "Airtime of the category maintenance / all airtime.",
        total("frame", AIRTIME_S, IS_CONTROL) / _airtime_s, better="lower", most=1.0,
    ),
    "maintenance_ms_per_node_s": Measure(
        "Maintenance airtime per node and second", "Airtime of the category maintenance / (nodes times duration).",
        1000 * total("frame", AIRTIME_S, IS_CONTROL) / (_nodes * _duration_s), "ms", "lower", short="maintenance",
    ),
    "startup_ms_per_node": Measure(
        "Start-up airtime per node",
        "Airtime of the category maintenance in the whole seconds before the first publication / nodes.",
        1000 * total("startup", AIRTIME_S, IS_CONTROL) / _nodes, "ms", "lower", short="startup",
    ),
    "load_fairness": Measure(
        "Fairness of load (Jain)",
        "Jain's index of the nodes' airtime, (sum x)² / (n sum x²): 1 if all send equally long, 1/n if one sends all.",
        _load_s * _load_s / (_nodes * total("loads", col("airtime_s") * col("airtime_s"))),
        better="higher", most=1.0, short="fairness", usual=True,
    ),
    "chain_completion_ratio": Measure(
        "Complete causal chains", "Chains whose last event was published / chains that should have come about.",
        _complete_chains / _chains, better="higher", most=1.0, short="chains", usual=True,
    ),
    "chain_time_ms_mean": Measure(
        "Time of a complete causal chain",
        "From its initiation to the publication of its last event, less what delay-tolerant links took.",
        1000 * total("graphs", col("times_s")) / _complete_chains, "ms", "lower", short="chain_time", usual=True,
    ),
    "causal_graph_completion_ratio": Measure(
        "Complete causal graphs", "Initiations all of whose chains are complete / initiations.",
        count("graphs", IS_WHOLE) / _graphs, better="higher", most=1.0,
    ),
    "causal_graph_time_ms_mean": Measure(
        "Time of a complete causal graph", "That of its last chain.",
        mean("graphs", 1000 * col("last_s"), IS_WHOLE), "ms", "lower",
    ),
    "publications": Measure("Publications", "`published` rows.", _publications),
    "expected": Measure("Expected deliveries", "Expected pairs.", _expected),
    "delivered": Measure("Deliveries", "Expected pairs that arrived.", _delivered, better="higher"),
    "expected_reachable": Measure("Expected reachable deliveries", "Expected reachable pairs.", _expected_reachable),
    "delivered_reachable": Measure(
        "Deliveries among reachable pairs", "Reachable pairs that arrived.", _delivered_reachable, better="higher"
    ),
    "deliveries_per_event": Measure(
        "Deliveries per event", "Expected pairs that arrived / publications.", _delivered / _publications
    ),
    "duplicates": Measure(
        "Duplicate deliveries", "`delivered` rows beyond the first of each pair.",
        total("pairs", col("arrivals")) - count("pairs", col("arrivals") > 0), better="lower",
    ),
    "unexpected": Measure(
        "Unexpected deliveries", "Pairs that arrived though not expected.",
        count("pairs", ~EXPECTED & (col("arrivals") > 0)), better="lower",
    ),
    "frames_total": Measure("Frames", "Sent, acknowledgements included.", _frames, better="lower"),
    "bytes_total": Measure("Bytes on the air", "Of all frames.", _bytes, better="lower"),
    "airtime_s_total": Measure("Airtime", "Of all frames.", _airtime_s, "s", "lower"),
    "chains": Measure("Causal chains", "Chains that should have come about.", _chains),
    "causal_graphs": Measure("Causal graphs", "Initiations.", _graphs),
}  # fmt: skip

RUN_MEASURES = {name: measure for name, measure in MEASURES.items() if measure.scope == "run"}
PLACE_MEASURES = {name: measure for name, measure in MEASURES.items() if measure.scope == "place"}


class Breakdown(NamedTuple):
    """A sum over trace rows of one kind, split by one of their columns."""

    kind: str
    key: str
    column: str | None  # none: counts rows


BREAKDOWNS: dict[str, Breakdown] = {
    "frames": Breakdown("frame", "detail", "count"),
    "frames_by_category": Breakdown("frame", "category", "count"),
    "bytes": Breakdown("frame", "detail", "bytes"),
    "bytes_by_category": Breakdown("frame", "category", "bytes"),
    "airtime_s": Breakdown("frame", "detail", "value"),
    "airtime_s_by_category": Breakdown("frame", "category", "value"),
    "frames_lost": Breakdown("lost", "detail", "count"),
    "dropped": Breakdown("dropped", "detail", None),
}
"""What was sent, by message and category; receptions lost at the radio and events dropped by protocols, by reason."""
