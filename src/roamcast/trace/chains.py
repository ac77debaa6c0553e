"""Causal chains and causal graphs of a run, from its `published` rows alone.

A `published` row with a `count` is causal: the number of chains that should go on from it, 0 where a chain ends. A row
without a cause and with a count above 0 is an *initiation*. Following causes from an end back to an initiation gives a
*chain*; the chains that one initiation should set off are its *causal graph*. An event whose causes do not lead back to
an initiation of the same trace belongs to none.

`chains`: chains that should have come about, the sum of `count` over initiations. A chain is complete when its last
event has been published: then every delivery along it took place. `chain_completion_ratio`: complete chains / chains.
`chain_time_ms_mean`: mean time from the initiation to that publication, over complete chains.
`causal_graphs`: initiations. A causal graph is complete when all its chains are. `causal_graph_completion_ratio`,
`causal_graph_time_ms_mean`: the same for graphs; a graph's time is that of its last chain. Reaction times are included.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def causal_measures(published: pa.Table) -> dict[str, Any]:
    """All measures of chains and graphs; a ratio or mean of nothing is `None`."""
    causal = published.filter(pc.is_valid(published["count"]))
    columns = (causal[name].to_pylist() for name in ("event_id", "cause_id", "count", "t"))
    rows = {event: (cause, count, t) for event, cause, count, t in zip(*columns, strict=True)}
    expected = {event: count for event, (cause, count, _) in rows.items() if cause is None and count > 0}
    ends_s: dict[int, list[float]] = {event: [] for event in expected}  # since the initiation
    for cause, count, t in rows.values():
        if count > 0:
            continue
        root = cause
        while root in rows and rows[root][0] is not None:
            root = rows[root][0]
        if root in ends_s:
            ends_s[root].append(t - rows[root][2])
    chain_times_s = [time_s for times_s in ends_s.values() for time_s in times_s]
    graph_times_s = [max(ends_s[event]) for event, count in expected.items() if len(ends_s[event]) == count]
    chains = sum(expected.values())
    return {
        "chains": chains,
        "chain_completion_ratio": len(chain_times_s) / chains if chains else None,
        "chain_time_ms_mean": _mean_ms(chain_times_s),
        "causal_graphs": len(expected),
        "causal_graph_completion_ratio": len(graph_times_s) / len(expected) if expected else None,
        "causal_graph_time_ms_mean": _mean_ms(graph_times_s),
    }


def _mean_ms(times_s: list[float]) -> float | None:
    return 1000 * sum(times_s) / len(times_s) if times_s else None
