"""The measures of one run, computed from nothing but its trace.

The campaign's analysis computes the same figures with Spark, so they are defined here to the letter. A *pair* is a
publication and a node; which pairs are *expected* is defined in `roamcast.trace.pairs`. A ratio, mean or percentile of
nothing is `None`.

Delivery
    `publications`: `published` rows. `expected`: expected pairs. A pair *arrived* if there is a `delivered` row with
    its event and node. `delivered`: expected pairs that arrived. `delivery_ratio`: delivered / expected.
    A pair is *reachable* if `shortest_hops` of its publication has a value of at least 0 for its node (never without
    `shortest_hops`). `expected_reachable`, `delivered_reachable`, `delivery_ratio_reachable`: the same three over
    reachable pairs only.
    `unexpected`: pairs that arrived though not expected (events that were never published included). `duplicates`:
    `delivered` rows minus pairs that arrived. So `delivered` rows = delivered + unexpected + duplicates.
    `deliveries_per_event`: delivered / publications.
How well
    The *first* delivery of a pair is its `delivered` row with the smallest t, among these the one with the fewest hops.
    Over the first deliveries of the expected pairs that arrived: `latency_ms_mean`, `latency_ms_p50`, `_p95`, `_p99`
    (1000 times `value`), `hops_mean`. The p-th percentile of n values is the one of rank ceil(p n / 100) in ascending
    order, from 1: always a value that occurred (SQL's `percentile_disc`, numpy's `inverted_cdf`).
    `stretch_mean`: mean of hops / shortest hops over the reachable ones among them (shortest hops of at least 1).
Cost
    Over `frame` rows, sums of `count`, `bytes` and `value`: `frames`, `bytes`, `airtime_s` by `detail` (the message
    label), the same with `_by_category` by `category`, with `_total` over all. `control_frames_share`,
    `control_bytes_share`, `control_airtime_share`: the category `maintenance` / total. (What the link itself sends,
    such as acknowledgements, is a category of its own and part of the total.)
    `frames_per_delivery`, `bytes_per_delivery`, `airtime_per_delivery_ms`: total / delivered.
    `maintenance_ms_per_node_s`: airtime of the category `maintenance`, in ms, / (nodes times duration).
    `load_fairness`: Jain's index (sum x)^2 / (n sum x^2), where x is a node's sum of `value` over its `load` rows and n
    is the number of nodes; nodes without rows have 0. 1 is an even load, 1/n means that one node carries all.
Causality
    `chains`, `chain_completion_ratio`, `chain_time_ms_mean`, `causal_graphs`, `causal_graph_completion_ratio`,
    `causal_graph_time_ms_mean`: as defined in `roamcast.trace.chains`.
Losses
    `frames_lost`: sums of `count` over `lost` rows by `detail`. `dropped`: numbers of `dropped` rows by `detail`.
The run
    `nodes` and `duration_s`: `count` and `t` of the `end` row, `None` without one.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.errors import CallerError
from roamcast.trace.chains import causal_measures
from roamcast.trace.pairs import ExpectedPairs, Floats, Integers, expected_pairs, subscriptions

CONTROL = "maintenance"


def summarise(table: pa.Table) -> dict[str, Any]:
    """All measures of the one run that `table` holds, ready for JSON."""
    runs = pc.unique(table["run_id"])
    if len(runs) > 1:
        raise CallerError(f"summarise: the table holds {len(runs)} runs; one is allowed")
    end = _rows(table, "end")
    nodes = end["count"][0].as_py() if len(end) else None
    duration_s = end["t"][0].as_py() if len(end) else None
    delivery = _delivery(table)
    cost = _cost(table)
    delivered = delivery["delivered"]
    return {
        "nodes": nodes,
        "duration_s": duration_s,
        **delivery,
        **cost,
        "frames_per_delivery": _ratio(cost["frames_total"], delivered),
        "bytes_per_delivery": _ratio(cost["bytes_total"], delivered),
        "airtime_per_delivery_ms": _ratio(1000 * cost["airtime_s_total"], delivered),
        "maintenance_ms_per_node_s": _ratio(
            1000 * cost["airtime_s_by_category"].get(CONTROL, 0), (nodes or 0) * (duration_s or 0)
        ),
        "load_fairness": _fairness(_rows(table, "load"), nodes or 0),
        **causal_measures(_rows(table, "published")),
        "frames_lost": _sums(_rows(table, "lost"), "detail", "count"),
        "dropped": _counts(_rows(table, "dropped")),
    }


def percentile(ascending: Floats, percent: int) -> float | None:
    """The value of rank ceil(percent n / 100); in whole numbers, so that no rounding moves the rank."""
    rank = -(-percent * len(ascending) // 100)
    return float(ascending[rank - 1]) if len(ascending) else None


def _delivery(table: pa.Table) -> dict[str, Any]:
    published = _rows(table, "published")
    expected = expected_pairs(published, subscriptions(_rows(table, "subscribed", "unsubscribed")))
    first = _first_deliveries(_rows(table, "delivered"), published)
    shortest = _shortest_hops(published, expected)
    # Both lists are ascending and without repetition, so each expected pair finds its delivery by bisection.
    width = 1 + int(max(expected.node.max(initial=0), first.node.max(initial=0)))
    keys = first.publication * width + first.node
    wanted = expected.publication * width + expected.node
    at = np.searchsorted(keys, wanted)
    arrived = np.zeros(len(wanted), dtype=np.bool_)
    inside = at < len(keys)
    arrived[inside] = keys[at[inside]] == wanted[inside]
    reachable = shortest >= 0
    both = arrived & reachable
    apart = arrived & (shortest >= 1)
    latency_ms = np.sort(1000 * first.latency_s[at[arrived]])
    hops = first.hops[at[arrived]]
    delivered = int(arrived.sum())
    return {
        "publications": len(published),
        "expected": len(wanted),
        "delivered": delivered,
        "delivery_ratio": _ratio(delivered, len(wanted)),
        "expected_reachable": int(reachable.sum()),
        "delivered_reachable": int(both.sum()),
        "delivery_ratio_reachable": _ratio(int(both.sum()), int(reachable.sum())),
        "deliveries_per_event": _ratio(delivered, len(published)),
        "duplicates": first.rows - first.pairs,
        "unexpected": first.pairs - delivered,
        "latency_ms_mean": _mean(latency_ms),
        "latency_ms_p50": percentile(latency_ms, 50),
        "latency_ms_p95": percentile(latency_ms, 95),
        "latency_ms_p99": percentile(latency_ms, 99),
        "hops_mean": _mean(hops),
        "stretch_mean": _mean(first.hops[at[apart]] / shortest[apart]),
    }


class _FirstDeliveries(NamedTuple):
    """The first delivery of each pair that arrived, by publication and node, both ascending."""

    rows: int  # all deliveries
    pairs: int  # all pairs that arrived, those of events that were never published included; the rest is without
    publication: Integers  # its place among the `published` rows
    node: Integers
    latency_s: Floats
    hops: Integers


def _first_deliveries(delivered: pa.Table, published: pa.Table) -> _FirstDeliveries:
    event, node, t, hops, latency_s = (_numbers(delivered, name) for name in ("event_id", "node", "t", "hops", "value"))
    order = np.lexsort((hops, t, node, event))
    event, node = event[order], node[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (event[1:] != event[:-1]) | (node[1:] != node[:-1])
    order, event, node = order[is_first], event[is_first], node[is_first]

    published_events = _numbers(published, "event_id")
    by_event = np.argsort(published_events, kind="stable")
    place = np.searchsorted(published_events, event, sorter=by_event)
    known = place < len(by_event)
    known[known] = published_events[by_event[place[known]]] == event[known]
    publication = by_event[place[known]]
    order, node = order[known], node[known]
    ascending = np.lexsort((node, publication))
    order = order[ascending]
    return _FirstDeliveries(
        len(delivered), len(event), publication[ascending], node[ascending], latency_s[order], hops[order]
    )


def _shortest_hops(published: pa.Table, pairs: ExpectedPairs) -> Integers:
    """For each pair the length of the shortest path when it was published, -1 if there was none or it is unknown."""
    lists = published["shortest_hops"]
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    values = pc.list_flatten(lists).to_numpy()
    starts = np.cumsum(lengths) - lengths
    shortest = np.full(len(pairs.node), -1, dtype=np.int64)
    known = pairs.node < lengths[pairs.publication]
    shortest[known] = values[starts[pairs.publication[known]] + pairs.node[known]]
    return shortest


def _cost(table: pa.Table) -> dict[str, Any]:
    rows = _rows(table, "frame")
    cost: dict[str, Any] = {}
    for measure, column in (("frames", "count"), ("bytes", "bytes"), ("airtime_s", "value")):
        by_category = _sums(rows, "category", column)
        total = sum(by_category.values())
        cost[measure] = _sums(rows, "detail", column)
        cost[f"{measure}_by_category"] = by_category
        cost[f"{measure}_total"] = total
        share = f"control_{measure.removesuffix('_s')}_share"
        cost[share] = _ratio(by_category.get(CONTROL, 0), total)
    return cost


def _fairness(load: pa.Table, nodes: int) -> float | None:
    airtime_s = np.array(list(_sums(load, "node", "value").values()), dtype=np.float64)
    return _ratio(float(airtime_s.sum()) ** 2, nodes * float((airtime_s**2).sum()))


def _rows(table: pa.Table, *kinds: str) -> pa.Table:
    return table.filter(pc.is_in(table["kind"], value_set=pa.array(kinds)))


def _numbers(rows: pa.Table, column: str) -> Any:
    return rows[column].to_numpy()


def _sums(rows: pa.Table, key: str, column: str) -> dict[Any, Any]:
    sums = rows.group_by(key).aggregate([(column, "sum")]).sort_by(key)
    return dict(zip(sums[key].to_pylist(), sums[f"{column}_sum"].to_pylist(), strict=True))


def _counts(rows: pa.Table) -> dict[Any, Any]:
    counts = rows.group_by("detail").aggregate([([], "count_all")]).sort_by("detail")
    return dict(zip(counts["detail"].to_pylist(), counts["count_all"].to_pylist(), strict=True))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: Floats | Integers) -> float | None:
    return float(values.mean()) if len(values) else None
