"""Causal chains and causal graphs of a run, from its `published` and `waited` rows.

A `published` row with a `count` is causal: the number of chains that should go on from it, 0 where a chain ends. A row
without a cause and with a count above 0 is an *initiation*. Following causes from an end back to an initiation gives a
*chain*; the chains that one initiation should set off are its *causal graph*. An event whose causes do not lead back to
an initiation of the same trace belongs to none.

A chain is complete when its last event has been published: then every delivery along it took place. A causal graph is
complete when all its chains are; its time is that of its last chain. Reaction times are included; what delay-tolerant
links took of their own accord (`waited` rows) is not, because that time is allowed.
"""

from typing import Any

import numpy as np

from roamcast.trace.columns import ColumnValues, Rows


def causal_graphs(published: Rows, waited: Rows) -> Rows:
    """One row per initiation, in the order of the trace.

    | column | meaning |
    |---|---|
    | `root_id` | the initiation's event |
    | `expected`, `complete` | chains that should come about, and that did |
    | `times_s` | their times since the initiation, added up |
    | `last_s` | the longest of these; absent if there is none |
    """
    waits_s = dict(zip(waited["event_id"].to_list(), waited["value"].to_list(), strict=True))
    causal = published.taken(np.flatnonzero(published["count"].is_present))
    columns = (causal[name].to_list() for name in ("event_id", "cause_id", "count", "t"))
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
    ends = ends_s.values()
    return Rows.of({
        "root_id": ColumnValues(np.array(list(expected), np.int64)),
        "expected": ColumnValues(np.array(list(expected.values()), np.int64)),
        "complete": ColumnValues(np.array([len(times_s) for times_s in ends], np.int64)),
        "times_s": ColumnValues(np.array([sum(times_s) for times_s in ends], np.float64)),
        "last_s": ColumnValues(
            np.array([max(times_s, default=0.0) for times_s in ends], np.float64),
            np.array([len(times_s) > 0 for times_s in ends], np.bool_),
        ),
    })  # fmt: skip
