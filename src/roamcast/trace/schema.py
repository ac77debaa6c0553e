"""The trace: one schema, long form, for simulated and live nodes alike. Everything downstream reads only this.

| kind | node | peer | event_id | cause_id | value | hops | bytes | count | category | detail |
|---|---|---|---|---|---|---|---|---|---|---|
| `subscribed`, `unsubscribed` | subscriber | | | | | | | | language | the interest's text |
| `advertised` | publisher | | | | | | | | language | the interest's text |
| `published` | publisher | | event | its cause | the number, if it is one | | payload | chains to go on | language | the topic or the document, if it is one |
| `delivered` | subscriber | publisher | event | its cause | latency, s | frames in a row | payload | | | |
| `frame` | sender if raw | receiver if raw and unicast | carried if raw | | airtime, s | | on the air | frames | category | message label |
| `load` | sender | | | | airtime, s | | on the air | frames | category | message label |
| `lost` | | | | | | | | frames | | the radio's reason |
| `dropped` | node | | event | | | | | | | the protocol's reason |
| `structure` | node | peer | | | value | | | | aspect | detail |
| `position` | node | | | | | | | | | |
| `contact` | a | b | | | 1 up, 0 down | | | | | |
| `fault` | node | | | | | | | | | what happened |
| `end` | | | | | | | | nodes | | |
| `run` | | | | | wall time, s | | | trace rows | `done` or `failed` | the trace's hash, or the error |

- `frame` is summed per second and message label (`t` is the start of that second, `node` is null), or one row per frame
  when raw frames were asked for (`node` is the sender). `load` is summed per node over the run, at its end.
- `position` says that the node is at `x_m`, `y_m` (metres east and north) at `t`. Between two rows it goes straight at
  constant speed, before the first and after the last it rests there; so a simulated run needs a row only where a node
  turns. They all stand at the beginning of its trace.
- `lost` counts, at the end, receptions that failed at the radio, by reason.
- `shortest_hops` stands on `published` rows of simulated runs only: for each node in order of address, the length of
  the shortest path from the publisher at that instant, -1 where there is none. Reachability and stretch come from it.
- `count` stands on `published` rows of causal events in simulated runs: how many causal chains should go on from the
  event, 0 if it is the end of one (`roamcast.trace.chains`).
- `end` is the last row of a run; its `t` is the run's duration.
- `run` is a campaign's note of how a run went. It is no part of the run's trace: no simulator or node writes it.
"""

from typing import Any, Literal, NamedTuple

import pyarrow as pa

Kind = Literal[
    "subscribed",
    "unsubscribed",
    "advertised",
    "published",
    "delivered",
    "frame",
    "load",
    "lost",
    "dropped",
    "structure",
    "position",
    "contact",
    "fault",
    "end",
    "run",
]


class Record(NamedTuple):
    """One row of a trace, without the run it belongs to. The order is that of the schema."""

    t: float
    kind: Kind
    node: int | None = None
    peer: int | None = None
    event_id: int | None = None
    cause_id: int | None = None
    value: float | None = None
    hops: int | None = None
    bytes: int | None = None
    count: int | None = None  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    category: str | None = None
    detail: str | None = None
    shortest_hops: list[int] | None = None
    x_m: float | None = None
    y_m: float | None = None


_FIELDS: list["pa.Field[Any]"] = [
    pa.field("run_id", pa.string(), nullable=False),
    pa.field("t", pa.float64(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
    pa.field("node", pa.int64()),
    pa.field("peer", pa.int64()),
    pa.field("event_id", pa.int64()),
    pa.field("cause_id", pa.int64()),
    pa.field("value", pa.float64()),
    pa.field("hops", pa.int32()),
    pa.field("bytes", pa.int64()),
    pa.field("count", pa.int64()),
    pa.field("category", pa.string()),
    pa.field("detail", pa.string()),
    pa.field("shortest_hops", pa.list_(pa.int16())),
    pa.field("x_m", pa.float64()),
    pa.field("y_m", pa.float64()),
]
SCHEMA = pa.schema(_FIELDS)
