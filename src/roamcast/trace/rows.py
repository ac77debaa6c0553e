"""How each kind of trace row is made from what happened, in one place for simulated and live nodes alike.

`roamcast.trace.schema` says what the columns mean. Deliveries have a fast path in the recorder.
"""

from typing import Literal

from roamcast.events import Event
from roamcast.trace.schema import Record
from roamcast.trace.utility import canonical

InterestKind = Literal["subscribed", "unsubscribed", "advertised"]


def interest_row(t: float, kind: InterestKind, node: int, language: str, interest: str) -> Record:
    return Record(t, kind, node, category=language, detail=interest)


def published_row(
    t: float, event: Event, language: str, *, chains: int | None = None, shortest_hops: list[int] | None = None
) -> Record:
    """`chains` and `shortest_hops` are known in simulated runs only."""
    content = event.content
    is_text = isinstance(content, str)
    return Record(
        t,
        "published",
        event.publisher,
        event_id=event.id,
        cause_id=event.cause or None,
        value=None if is_text else float(content),
        bytes=len(event.payload),
        count=chains,
        category=language,
        detail=str(content) if is_text else None,
        shortest_hops=shortest_hops,
        utility=canonical(event.utility) or None,
    )


def delivered_row(t: float, node: int, event: Event, hops: int) -> Record:
    return Record(
        t=t,
        kind="delivered",
        node=node,
        peer=event.publisher,
        event_id=event.id,
        cause_id=event.cause or None,
        value=t - event.time_s,
        hops=hops,
        bytes=len(event.payload),
    )


def traffic_row(
    t: float,
    kind: Literal["frame", "load"],
    node: int | None,
    *,
    frames: int,
    size_bytes: int,
    airtime_s: float,
    category: str,
    label: str,
) -> Record:
    """Frames of one message label, summed over a second (`frame`) or over a node's run (`load`)."""
    return Record(t, kind, node, value=airtime_s, bytes=size_bytes, count=frames, category=category, detail=label)


def run_row(status: Literal["done", "failed"], detail: str, wall_s: float, rows: int) -> Record:
    """A campaign's note of how a run went."""
    return Record(0.0, "run", value=wall_s, count=rows, category=status, detail=detail)


def measure_row(name: str, value: float | None, *, t: float = 0.0, key: str | None = None) -> Record:
    """A stored measure (`roamcast.trace.summary`)."""
    return Record(t, "measure", value=value, category=key, detail=name)
