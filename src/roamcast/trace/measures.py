"""The measures that are one number per run: their names, what they are called, and which way is better.

`roamcast.trace.summary` defines them to the letter; the analysis of campaigns computes the same with Spark.
"""

from typing import Literal, NamedTuple


class Measure(NamedTuple):
    title: str
    unit: str = ""
    better: Literal["higher", "lower", ""] = ""  # empty where neither is better in itself
    most: float | None = None  # no run can have more


MEASURES: dict[str, Measure] = {
    "delivery_ratio": Measure("Delivery ratio", better="higher", most=1.0),
    "delivery_ratio_reachable": Measure("Delivery ratio among reachable pairs", better="higher", most=1.0),
    "latency_ms_mean": Measure("Mean latency", "ms", "lower"),
    "latency_ms_p50": Measure("Median latency", "ms", "lower"),
    "latency_ms_p95": Measure("95th percentile of latency", "ms", "lower"),
    "latency_ms_p99": Measure("99th percentile of latency", "ms", "lower"),
    "hops_mean": Measure("Mean hops", better="lower"),
    "stretch_mean": Measure("Hops over the shortest path", better="lower"),
    "frames_per_delivery": Measure("Frames per delivery", better="lower"),
    "bytes_per_delivery": Measure("Bytes per delivery", better="lower"),
    "airtime_per_delivery_ms": Measure("Airtime per delivery", "ms", "lower"),
    "control_frames_share": Measure("Maintenance's share of frames", better="lower", most=1.0),
    "control_bytes_share": Measure("Maintenance's share of bytes", better="lower", most=1.0),
    "control_airtime_share": Measure("Maintenance's share of airtime", better="lower", most=1.0),
    "maintenance_ms_per_node_s": Measure("Maintenance airtime per node and second", "ms", "lower"),
    "load_fairness": Measure("Fairness of load (Jain)", better="higher", most=1.0),
    "chain_completion_ratio": Measure("Complete causal chains", better="higher", most=1.0),
    "chain_time_ms_mean": Measure("Time of a complete causal chain", "ms", "lower"),
    "causal_graph_completion_ratio": Measure("Complete causal graphs", better="higher", most=1.0),
    "causal_graph_time_ms_mean": Measure("Time of a complete causal graph", "ms", "lower"),
    "publications": Measure("Publications"),
    "expected": Measure("Expected deliveries"),
    "delivered": Measure("Deliveries", better="higher"),
    "expected_reachable": Measure("Expected reachable deliveries"),
    "delivered_reachable": Measure("Deliveries among reachable pairs", better="higher"),
    "deliveries_per_event": Measure("Deliveries per event"),
    "duplicates": Measure("Duplicate deliveries", better="lower"),
    "unexpected": Measure("Unexpected deliveries", better="lower"),
    "frames_total": Measure("Frames", better="lower"),
    "bytes_total": Measure("Bytes on the air", better="lower"),
    "airtime_s_total": Measure("Airtime", "s", "lower"),
    "chains": Measure("Causal chains"),
    "causal_graphs": Measure("Causal graphs"),
}
