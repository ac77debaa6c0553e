"""Causal chains and causal graphs of a run, from its `published` and `waited` rows.

A `published` row with a `count` is causal: the number of chains that should go on from it, 0 where a chain ends. A row
without a cause and with a count above 0 is an *initiation*. Following causes from an end back to an initiation gives a
*chain*; the chains that one initiation should set off are its *causal graph*. An event whose causes do not lead back to
an initiation of the same trace belongs to none.

A chain is complete when its last event has been published: then every delivery along it took place. A causal graph is
complete when all its chains are; its time is that of its last chain. Reaction times are included; what delay-tolerant
links took of their own accord (`waited` rows) is not, since nobody is late who may take that time.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FIELDS: list["pa.Field[Any]"] = [
    pa.field("root_id", pa.int64()),  # the initiation's event
    pa.field("expected", pa.int64()),  # chains that should come about
    pa.field("complete", pa.int64()),  # chains that did
    pa.field("times_s", pa.float64()),  # their times since the initiation, added up
    pa.field("last_s", pa.float64()),  # the longest of these; absent if there is none
]
GRAPH_SCHEMA = pa.schema(_FIELDS)


def causal_graphs(published: pa.Table, waited: pa.Table) -> pa.Table:
    """One row per initiation, in the order of the trace."""
    waits_s = dict(zip(waited["event_id"].to_pylist(), waited["value"].to_pylist(), strict=True))
    causal = published.filter(pc.is_valid(published["count"]))
    columns = (causal[name].to_pylist() for name in ("event_id", "cause_id", "count", "t"))
    rows: dict[Any, Any] = {event: (cause, count, t) for event, cause, count, t in zip(*columns, strict=True)}
    expected = {event: count for event, (cause, count, _) in rows.items() if cause is None and count > 0}
    ends_s: dict[int, list[float]] = {event: [] for event in expected}  # since the initiation
    for event, (cause, count, t) in rows.items():
        if count > 0:
            continue
        root = cause
        while root in rows and rows[root][0] is not None:
            root = rows[root][0]
        if root in ends_s:
            ends_s[root].append(t - rows[root][2] - waits_s.get(event, 0.0))
    graphs = [
        {
            "root_id": event,
            "expected": count,
            "complete": len(ends_s[event]),
            "times_s": sum(ends_s[event]),
            "last_s": max(ends_s[event], default=None),
        }
        for event, count in expected.items()
    ]
    return pa.Table.from_pylist(graphs, schema=GRAPH_SCHEMA)
