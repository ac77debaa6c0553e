"""How each kind of trace row is made from what happened, in one place for simulated and live nodes alike.

`roamcast.trace.schema` says what the columns mean. The most frequent kinds (`delivered`, `dropped`, `structure`)
have fast paths in the recorder; a test holds them equal to the rows made here.
"""

from typing import Literal

from roamcast.events import NO_EVENT, Event
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


def waited_row(t: float, event: Event, waited_s: float) -> Record:
    return Record(t, "waited", event.publisher, event_id=event.id, cause_id=event.cause or None, value=waited_s)


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


def dropped_row(t: float, node: int, reason: str, event: int = NO_EVENT) -> Record:
    return Record(t, "dropped", node, event_id=event or None, detail=reason)


def structure_row(t: float, node: int, aspect: str, *, peer: int, value: float, detail: str) -> Record:
    """A negative `peer` is none."""
    return Record(
        t, "structure", node, peer=None if peer < 0 else peer, value=value, category=aspect, detail=detail
    )


def position_row(t: float, node: int, x_m: float, y_m: float) -> Record:
    return Record(t, "position", node, x_m=x_m, y_m=y_m)


def contact_row(t: float, a: int, b: int, begins: bool) -> Record:
    return Record(t, "contact", a, b, value=1.0 if begins else 0.0)


def fault_row(t: float, node: int, what: str) -> Record:
    return Record(t, "fault", node, detail=what)


def frame_row(
    t: float,
    sender: int,
    receiver: int,
    *,
    event: int | None,
    size_bytes: int,
    airtime_s: float,
    category: str,
    label: str,
) -> Record:
    """A single frame, where raw frames were asked for. A negative `receiver` means a broadcast."""
    return Record(
        t,
        "frame",
        sender,
        None if receiver < 0 else receiver,
        event,
        value=airtime_s,
        bytes=size_bytes,
        count=1,
        category=category,
        detail=label,
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


def lost_row(t: float, reason: str, count: int) -> Record:
    return Record(t, "lost", count=count, detail=reason)


def end_row(t: float, nodes: int) -> Record:
    return Record(t, "end", count=nodes)


def run_row(status: str, detail: str, wall_s: float, rows: int) -> Record:
    """A campaign's note of how a run went: `done` or `failed`."""
    return Record(0.0, "run", value=wall_s, count=rows, category=status, detail=detail)


def measure_row(name: str, value: float | None, *, t: float = 0.0, key: str | None = None) -> Record:
    """A stored measure (`roamcast.trace.summary`)."""
    return Record(t, "measure", value=value, category=key, detail=name)
