"""The trace: one schema, long form, for simulated and live nodes alike. Everything downstream reads only this.

| kind | node | peer | event_id | cause_id | value | hops | bytes | count | category | detail |
|---|---|---|---|---|---|---|---|---|---|---|
| `subscribed`, `unsubscribed` | subscriber | | | | | | | | language | the interest's text |
| `advertised` | publisher | | | | | | | | language | the interest's text |
| `published` | publisher | | event | its cause | the number, if it is one | | payload | chains to go on | language | the topic or the document, if it is one |
| `waited` | publisher | | event | its cause | what delay-tolerant links took, s | | | | | |
| `delivered` | subscriber | publisher | event | its cause | latency, s | frames in a row | payload | | | |
| `frame` | sender if raw | receiver if raw and unicast | carried if raw | | airtime, s | | on the air | frames | category | message label |
| `load` | sender | | | | airtime, s | | on the air | frames | category | message label |
| `lost` | | | | | | | | frames | | the radio's reason |
| `dropped` | node | | event | | | | | | | the protocol's reason |
| `structure` | node | peer | | | value | | | | aspect | detail |
| `position` | node | | | | | | | | | |
| `contact` | a | b | | | 1 up, 0 down | | | | | |
| `fault` | node | | | | | | | | | what happened |
| `energy` | node | | | | energy, mJ | | | time, µs | `transmit`, `receive`, `idle` or `sleep` | |
| `battery` | node | | | | share of its battery used | | | | | |
| `end` | | | | | | | | nodes | | |
| `run` | | | | | wall time, s | | | trace rows | `done` or `failed` | the trace's hash, or the error |
| `measure` | | | | | the measure | | | | key, if it is a breakdown | name of the measure |

- `frame` is summed per second and message label (`t` is the start of that second, `node` is null), or one row per frame
  when raw frames were asked for (`node` is the sender). `load` is summed per node over the run, at its end.
- `position` says that the node is at `x_m`, `y_m` (metres east and north) at `t`. Between two rows it moves in a straight
  line at constant speed; before the first and after the last it stays there. So a simulated run needs a row only where a
  node turns. All of them come first in its trace.
- `lost` counts, at the end, receptions that failed at the radio, by reason.
- `shortest_hops` is set on `published` rows of simulated runs only: for each node in order of address, the length of the
  shortest path from the publisher at that instant, -1 where there is none. Reachability and stretch come from it.
- `utility` is set on `published` rows of events that carry a deadline or a utility curve (`roamcast.trace.utility`).
- `count` is set on `published` rows of causal events in simulated runs: how many causal chains should go on from the
  event, 0 if it is the end of one (`roamcast.trace.chains`).
- `waited` accompanies the publication of a causal event whose chain has delay-tolerant links; simulated runs only.
- `energy` is summed per node and state of its radio over the run, at its end; simulated runs only.
- `end` is the last row of a run; its `t` is the run's duration.
- `run` is a campaign's note of how a run went, `measure` what it measured (`roamcast.trace.summary`). They are no part of
  the run's trace: no simulator or node writes them.
"""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

Kind = Literal[
    "subscribed",
    "unsubscribed",
    "advertised",
    "published",
    "waited",
    "delivered",
    "frame",
    "load",
    "lost",
    "dropped",
    "structure",
    "position",
    "contact",
    "fault",
    "energy",
    "battery",
    "end",
    "run",
    "measure",
]


class Record(NamedTuple):
    """One row of a trace, without the run it belongs to. The schema follows from it."""

    t: float
    kind: Kind
    node: int | None = None
    peer: int | None = None
    event_id: int | None = None
    cause_id: int | None = None
    value: float | None = None
    hops: Annotated[int | None, "int32"] = None
    bytes: int | None = None
    count: int | None = None  # type: ignore[assignment]  # hides tuple.count, which is not needed here
    category: str | None = None
    detail: str | None = None
    shortest_hops: Annotated[list[int] | None, "list"] = None
    x_m: float | None = None
    y_m: float | None = None
    utility: str | None = None


class TraceField(NamedTuple):
    """A column of the trace, after the run that the row belongs to."""

    name: str
    type: Literal["float64", "int64", "int32", "text", "list"]  # list: of 16-bit numbers
    optional: bool


_TYPES: dict[Any, Any] = {float: "float64", int: "int64", str: "text"}


def _field(name: str, hint: Any) -> TraceField:
    """The column for a field of `Record`: its type is the annotated one, or that of its Python type."""
    annotated: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, *annotated = get_args(hint)
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    (python,) = (str if get_origin(kind) is Literal else kind for kind in kinds if kind is not NoneType)
    return TraceField(name, annotated[0] if annotated else _TYPES[python], NoneType in kinds)


FIELDS = tuple(_field(name, hint) for name, hint in get_type_hints(Record, include_extras=True).items())
