"""Why a node did not get an event: the story of one pair, told from the trace alone, for any protocol.

The questions are asked in order, and the first that has an answer gives the *verdict*:

    delivered     it did get it
    own           it published the event itself
    unwanted      its application did not want it when it was published
    down          the node was down when it was published, and for how long
    unreachable   no chain of contacts led there at that instant; `path_s` says when one over time did, which a protocol
                  that keeps events could have used
    stopped       there was a path, but no frame with the event was sent in range of the node
    missed        frames with the event were sent in its range, and it received none of them
    silent        there was a path, and the trace has no row for each frame, so more cannot be said (--raw-frames)

Beside the verdict stand the facts: how far the event came, which nodes sent it, what was dropped and why.
"""

import heapq
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.errors import ConfigurationError
from roamcast.interests import parse_interest
from roamcast.trace.arrow import rows_of_table
from roamcast.trace.pairs import subscriptions

Verdict = Literal["delivered", "own", "unwanted", "down", "unreachable", "stopped", "missed", "silent"]
Row = dict[str, Any]

_UP = {"return", "join"}


class SentFrame(msgspec.Struct, frozen=True):
    """A frame with the event."""

    t: float
    node: int
    peer: int | None  # None: a broadcast
    label: str
    in_range: bool  # of the node in question


class DroppedEvent(msgspec.Struct, frozen=True):
    t: float
    node: int
    reason: str


class Why(msgspec.Struct, frozen=True):
    verdict: Verdict
    event_id: int
    node: int
    publisher: int
    published_s: float
    shortest_hops: int | None  # from the publisher at that instant; -1: no path; None: the trace does not say
    latency_s: float | None  # of the delivery, if there was one
    path_s: (
        float | None
    )  # when a chain of contacts over time reached the node first; None: never
    down_until_s: float | None  # if the node was down: when it came back; None: never, or it was up
    delivered_to: list[int]  # others that got the event
    sent: list[SentFrame]  # by any node, in order; only in traces with a row per frame
    dropped: list[DroppedEvent]  # by any node, of this event, in order


def explain(trace: pa.Table, event_id: int, node: int) -> Why:
    """The story of one pair. `trace` holds one run."""
    rows = _Rows(trace)
    published = next(iter(rows.of("published", event_id)), None)
    if published is None:
        raise ConfigurationError(f"event: {event_id} was not published in this run")
    hops = _hops_to(published, node)
    start_s = published["t"]
    delivered = {row["node"]: row["value"] for row in reversed(rows.of("delivered", event_id))}
    contacts = _Contacts(rows.of("contact"))
    frames = [
        SentFrame(row["t"], row["node"], row["peer"], row["detail"], contacts.linked(row["node"], node, row["t"]))
        for row in rows.of("frame", event_id)
        if row["node"] is not None
    ]
    is_down, back_s = _down(rows.of("fault"), node, start_s)
    verdict = _verdict(rows, published, node, delivered=delivered, is_down=is_down, hops=hops, frames=frames)
    return Why(
        verdict=verdict,
        event_id=event_id,
        node=node,
        publisher=published["node"],
        published_s=start_s,
        shortest_hops=hops,
        latency_s=delivered.get(node),
        path_s=contacts.arrival_s(published["node"], node, start_s),
        down_until_s=back_s,
        delivered_to=sorted(set(delivered) - {node}),
        sent=frames,
        dropped=[DroppedEvent(row["t"], row["node"], row["detail"]) for row in rows.of("dropped", event_id)],
    )


def _verdict(
    rows: "_Rows",
    published: Row,
    node: int,
    delivered: dict[int, float],
    is_down: bool,
    hops: int | None,
    frames: list[SentFrame],
) -> Verdict:
    if node in delivered:
        return "delivered"
    if node == published["node"]:
        return "own"
    if not _wanted(rows, published, node):
        return "unwanted"
    if is_down:
        return "down"
    if hops == -1:
        return "unreachable"
    if not frames:
        return "silent"
    return "missed" if any(frame.in_range for frame in frames) else "stopped"


def _wanted(rows: "_Rows", published: Row, node: int) -> bool:
    content = published["detail"] if published["value"] is None else published["value"]
    return any(
        each.node == node
        and each.language == published["category"]
        and each.from_s <= published["t"] < each.until_s
        and parse_interest(each.language, each.interest).contains(content)
        for each in subscriptions(rows_of_table(rows.table("subscribed", "unsubscribed")))
    )


def _hops_to(published: Row, node: int) -> int | None:
    hops = published["shortest_hops"]
    if hops is None:
        return None
    if not 0 <= node < len(hops):
        raise ConfigurationError(f"node: there is no {node}; there are {len(hops)}, from 0")
    return int(hops[node])


def _down(faults: list[Row], node: int, at_s: float) -> tuple[bool, float | None]:
    """Whether the node was down then, and when it came back."""
    is_down = False
    mine = [row for row in faults if row["node"] == node]
    if any(row["detail"] == "join" for row in mine):
        is_down = True  # it is switched on only during the run
    for row in mine:
        if row["t"] > at_s:
            if is_down and row["detail"] in _UP:
                return True, row["t"]
            continue
        is_down = row["detail"] not in _UP
    return is_down, None


class _Rows:
    """A trace by kind."""

    def __init__(self, trace: pa.Table) -> None:
        self._trace = trace

    def table(self, *kinds: str) -> pa.Table:
        return self._trace.filter(pc.is_in(self._trace["kind"], value_set=pa.array(kinds)))

    def of(self, kind: str, event_id: int | None = None) -> list[Row]:
        """In the order of their times."""
        rows = self.table(kind)
        if event_id is not None:
            rows = rows.filter(pc.equal(rows["event_id"], pa.scalar(event_id)))
        found: list[Row] = rows.to_pylist()
        found.sort(key=lambda row: row["t"])
        return found


class _Contacts:
    """Who could hear whom, when."""

    def __init__(self, rows: list[Row]) -> None:
        self._periods: dict[tuple[int, int], list[tuple[float, float]]] = {}
        begun: dict[tuple[int, int], float] = {}
        for row in rows:
            pair = (min(row["node"], row["peer"]), max(row["node"], row["peer"]))
            if row["value"]:
                begun.setdefault(pair, row["t"])
            elif pair in begun:
                self._periods.setdefault(pair, []).append((begun.pop(pair), row["t"]))
        for pair, since_s in begun.items():
            self._periods.setdefault(pair, []).append((since_s, float("inf")))
        self._near: dict[int, list[tuple[int, float, float]]] = {}
        for (a, b), periods in self._periods.items():
            for since_s, until_s in periods:
                self._near.setdefault(a, []).append((b, since_s, until_s))
                self._near.setdefault(b, []).append((a, since_s, until_s))

    def linked(self, a: int, b: int, at_s: float) -> bool:
        return any(since_s <= at_s <= until_s for since_s, until_s in self._periods.get((min(a, b), max(a, b)), []))

    def arrival_s(self, source: int, destination: int, start_s: float) -> float | None:
        """The earliest arrival of something that starts at `start_s` and waits at each node for the next contact."""
        reached = {source: start_s}
        queue = [(start_s, source)]
        while queue:
            now_s, node = heapq.heappop(queue)
            if node == destination:
                return now_s
            if now_s > reached[node]:
                continue
            for other, since_s, until_s in self._near.get(node, []):
                there_s = max(now_s, since_s)
                if there_s <= until_s and there_s < reached.get(other, float("inf")):
                    reached[other] = there_s
                    heapq.heappush(queue, (there_s, other))
        return None
