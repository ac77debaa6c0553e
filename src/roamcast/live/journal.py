"""What a live node records about itself: running counters, and the same trace records as the simulator.

Times in a live trace are Unix time on the node's own clock, so the traces of several nodes can be laid side by side;
the network's name is the run. Shortest paths are not known outside the simulator and stay empty; airtime counts as 0.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from roamcast.errors import PeerError
from roamcast.events import NO_EVENT, Event
from roamcast.live.codec import DropReason
from roamcast.protocols.api import NOBODY, Category, Message, Point

if TYPE_CHECKING:
    from roamcast.live.trace_log import TraceLog
    from roamcast.trace.rows import InterestKind

_INT64_MAX = 2**63 - 1
_HOPS_MAX = 2**31 - 1
_ASPECTS_MAX = 32
_PLACE_CHARACTERS_MAX = 64


class ToldStanding(NamedTuple):
    """What the protocol last said of one aspect of this node, such as its home broker."""

    peer: int  # `NOBODY` if it is about no other node
    value: float
    detail: str


class Journal:
    """Counts, and records if a trace is kept. Refuses with `PeerError` what a peer's message put out of range."""

    def __init__(self, node: int, now: Callable[[], float], trace: "TraceLog | None" = None) -> None:
        self._node = node
        self._now = now
        self._trace = trace
        self._second = math.floor(now())
        self._this_second: dict[tuple[str, Category], list[int]] = {}  # frames and bytes sent
        self._frames: Counter[tuple[str, Category]] = Counter()
        self._bytes: Counter[tuple[str, Category]] = Counter()
        self.lost: Counter[DropReason] = Counter()  # datagrams that were dropped, by reason
        self._dropped: Counter[str] = Counter()
        self.standing: dict[str, ToldStanding] = {}  # what the node is in the protocol's structure, by aspect
        self._published = 0
        self._delivered = 0
        self.frames_received = 0
        self._sends_failed = 0
        self._system_refused = 0

    def subscribed(self, language: str, interest: str) -> None:
        self._interest("subscribed", language, interest)

    def unsubscribed(self, language: str, interest: str) -> None:
        self._interest("unsubscribed", language, interest)

    def advertised(self, language: str, interest: str) -> None:
        self._interest("advertised", language, interest)

    def _interest(self, kind: "InterestKind", language: str, interest: str) -> None:
        if self._trace is not None:
            self._trace.interest(self._now(), kind, self._node, language, interest)

    def moved(self, to: Point) -> None:
        if self._trace is not None:
            self._trace.position(self._now(), self._node, *to)

    def published(self, language: str, event: Event) -> None:
        self._published += 1
        if self._trace is not None:
            self._trace.published(self._now(), event, language)

    def delivered(self, event: Event, hops: int) -> float:
        """Returns the latency in seconds."""
        if not (0 < event.id <= _INT64_MAX and NO_EVENT <= event.cause <= _INT64_MAX and 0 <= hops <= _HOPS_MAX):
            raise PeerError(f"event {event.id!r}, cause {event.cause!r}, {hops!r} hops: out of range")
        now_s = self._now()
        latency_s = now_s - event.time_s
        if not math.isfinite(latency_s):
            raise PeerError(f"event.time_s = {event.time_s!r}: must be finite")
        self._delivered += 1
        if self._trace is not None:
            self._trace.delivered(now_s, self._node, event, hops)
        return latency_s

    def frame_sent(self, message: Message, size_bytes: int) -> None:
        if not 0.0 <= self._now() - self._second < 1.0:
            self._close_second()
        key = (message.label, message.category)
        sent = self._this_second.get(key)
        if sent is None:
            sent = self._this_second[key] = [0, 0]
        sent[0] += 1
        sent[1] += size_bytes

    def frame_lost(self, reason: DropReason) -> None:
        self.lost[reason] += 1

    def send_failed(self) -> None:
        self._sends_failed += 1

    def system_refused(self) -> None:
        """The operating system did not take a datagram: no route, no buffer, a link that is down."""
        self._system_refused += 1

    def dropped(self, reason: str, event_id: int) -> None:
        _require_range("event.id", event_id, NO_EVENT, _INT64_MAX)
        self._dropped[reason] += 1
        if self._trace is not None:
            self._trace.dropped(self._now(), self._node, reason, event_id)

    def structure(self, aspect: str, peer: int, value: float, detail: str) -> None:
        _require_range("peer", peer, NOBODY, _INT64_MAX)
        if aspect in self.standing or len(self.standing) < _ASPECTS_MAX:
            self.standing[aspect] = ToldStanding(peer, value, detail)
        if self._trace is not None:
            self._trace.structure(self._now(), self._node, aspect, peer=peer, value=value, detail=detail)

    def counters(self) -> dict[str, Any]:
        by_label: Counter[str] = Counter()
        for (label, _), count in self._frames.items():
            by_label[label] += count
        for (label, _), (count, _) in self._this_second.items():
            by_label[label] += count
        return {
            "published": self._published,
            "delivered": self._delivered,
            "frames_sent": dict(sorted(by_label.items())),
            "bytes_sent": self._bytes.total() + sum(size_bytes for _, size_bytes in self._this_second.values()),
            "frames_received": self.frames_received,
            "frames_lost": {reason.value: self.lost[reason] for reason in DropReason if self.lost[reason]},
            "dropped": dict(sorted(self._dropped.items())),
            "sends_failed": self._sends_failed,
            "system_refused": self._system_refused,
            "structure": {aspect: _words(standing) for aspect, standing in sorted(self.standing.items())},
            "trace_rows_lost": 0 if self._trace is None else self._trace.rows_lost,
        }

    def flush(self) -> None:
        """Writes what was recorded since the last time as complete files."""
        self._close_second()
        if self._trace is not None:
            self._trace.flush()

    def close(self) -> None:
        """The totals that stand at the end of every trace."""
        self._end_second()
        if self._trace is not None:
            now_s = self._now()
            for (label, category), count in self._frames.items():
                size_bytes = self._bytes[label, category]
                self._trace.traffic(
                    now_s, self._node, frames=count, size_bytes=size_bytes, category=category, label=label
                )
            for reason in DropReason:
                if self.lost[reason]:
                    self._trace.lost(now_s, reason.value, self.lost[reason])
            self._trace.end(now_s)
        self.flush()

    def _close_second(self) -> None:
        """Once a second has passed, its frames become rows."""
        second = math.floor(self._now())
        if second != self._second:
            self._end_second()
            self._second = second

    def _end_second(self) -> None:
        for key, (count, size_bytes) in self._this_second.items():
            self._frames[key] += count
            self._bytes[key] += size_bytes
            if self._trace is not None:
                label, category = key
                self._trace.traffic(
                    float(self._second), None, frames=count, size_bytes=size_bytes, category=category, label=label
                )
        self._this_second.clear()


def _words(standing: ToldStanding) -> str:
    """An aspect of the structure in a few words, such as `peer 4, 2, root 7`."""
    peer, value, detail = standing
    parts = (f"peer {peer}" if peer != NOBODY else "", f"{value:g}" if value else "", detail)
    return ", ".join(filter(None, parts))[:_PLACE_CHARACTERS_MAX]


def _require_range(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise PeerError(f"{field} = {value!r}: must be between {low} and {high}")
