"""Custody: events for destinations without a path are kept until there is one.

A node that finds no path to a destination keeps the event for it. A receipt tells the previous node that it is no
longer responsible. The custodian checks periodically whether the graph has a path and then forwards the event; each
time the event comes back, the wait doubles. Events that leave together keep their publisher's order.

An event is kept until it is `custody_s` old, or as long as its utility curve or deadline allows (`roamcast.utility`),
whichever is shorter. All kept events fit into `custody_bytes`: the lowest priority is discarded first, among equals
those that lose their value soonest, then the oldest. With `custody_s = 0` nothing is kept, which favours low latency.

A publisher also remembers for `custody_s` what it has published and for which nodes. If it learns late that a node
already wanted an event when it was published, it sends it. A `durable` node declares that it has had its interests for
`custody_s`, so after an absence it gets what was published in the meantime. It may get events again that it had
received before it went down.
"""

from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Final

from roamcast.events import Event
from roamcast.interests.matching import matches
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.records import Records
from roamcast.utility import priority, worthless_after_s

ROUND_MAX: Final = 65_535
EVENT_BYTES: Final = 64
"""What an event takes beside its content and payload."""


class CustodyTimer(StrEnum):
    LOOK = "custody.look"  # look whether there are paths for what is kept


class Kept:
    """An event in custody, and for whom."""

    __slots__ = ("born_s", "destinations", "event", "hops", "next_s", "round", "size", "until_s")

    def __init__(self, event: Event, hops: int, born_s: float, until_s: float) -> None:
        self.event = event
        self.hops = hops
        self.born_s = born_s
        self.until_s = until_s
        self.round = 0
        self.next_s = inf
        self.destinations: set[int] = set()
        self.size = size_bytes(event)


class Custody(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        graph: Graph,
        on_path: Callable[[Event, set[int], int, int, float], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._graph = graph
        self._on_path = on_path
        self.kept: dict[int, Kept] = {}
        self.kept_bytes = 0
        self._published: dict[int, tuple[Event, set[int], float]] = {}  # event, for whom, when
        self._published_bytes = 0

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(CustodyTimer.LOOK, self._look)

    def until_s(self, event: Event, born_s: float) -> float:
        """Until when it makes sense to send an event that was published at `born_s`."""
        return born_s + worthless_after_s(event.utility) if event.utility else inf

    def keep(self, event: Event, destinations: set[int], hops: int, round_: int, born_s: float) -> None:
        """No other node is responsible for these destinations any more."""
        now = self.host.now()
        until_s = min(born_s + self._parameters.custody_s, self.until_s(event, born_s))
        for _ in destinations:
            self.host.dropped("no-path", event.id)
        if until_s <= now:
            return
        kept = self.kept.get(event.id)
        if kept is None:
            if not self.kept:
                self.host.set_timer(self._parameters.custody_check_s, (CustodyTimer.LOOK, 0))
            kept = self.kept[event.id] = Kept(event, hops, born_s, until_s)
            self.kept_bytes += kept.size
        kept.destinations |= destinations
        kept.round = max(kept.round, round_)
        wait_s = self._parameters.retry_min_s * 2.0 ** min(kept.round, 10)
        kept.next_s = now + min(wait_s, self._parameters.retry_max_s)
        self._make_room()

    def _make_room(self) -> None:
        while self.kept_bytes > self._parameters.custody_bytes:
            first = min(self.kept.values(), key=_worth)
            for _ in first.destinations:
                self.host.dropped("custody-full", first.event.id)
            self._release(first)

    def _release(self, kept: Kept) -> None:
        del self.kept[kept.event.id]
        self.kept_bytes -= kept.size

    def _look(self, key: int) -> None:
        now = self.host.now()
        ready: list[Kept] = []
        for kept in list(self.kept.values()):
            if now >= kept.until_s:
                for _ in kept.destinations:
                    self.host.dropped("custody-over", kept.event.id)
                self._release(kept)
            elif now >= kept.next_s:
                ready.append(kept)
        if ready:
            self._send_ready(ready, now)
        if self.kept:
            self.host.set_timer(self._parameters.custody_check_s, (CustodyTimer.LOOK, 0))

    def _send_ready(self, ready: list[Kept], now: float) -> None:
        connected = self._graph.connected()
        ready.sort(key=_order)
        for kept in ready:
            found = {node for node in kept.destinations if self._graph.bit(node) & connected}
            kept.next_s = now + self._parameters.custody_check_s
            if found:
                kept.destinations -= found
                if not kept.destinations:
                    self._release(kept)
                self._on_path(kept.event, found, kept.hops, min(kept.round + 1, ROUND_MAX), kept.born_s)

    # -- Subscribers that become known late ----------------------------------------------------------------------------

    def published(self, event: Event, destinations: set[int]) -> None:
        """This node has published an event, for these destinations."""
        now = self.host.now()
        self._published[event.id] = (event, set(destinations), now)
        self._published_bytes += size_bytes(event)
        for event_id in list(self._published):
            old, _, born_s = self._published[event_id]
            if born_s + self._parameters.custody_s > now and self._published_bytes <= self._parameters.custody_bytes:
                break
            del self._published[event_id]
            self._published_bytes -= size_bytes(old)

    def learned_want(self, node: int) -> None:
        """A node's want is new here: was there anything for it?"""
        known = self._records.known[node]
        if known.interest is None:
            return
        wanted_since_s = known.wanted_since_s - self._parameters.slack_s
        oldest_s = max(wanted_since_s, self.host.now() - self._parameters.custody_s)
        for event, served, born_s in list(self._published.values()):
            if born_s >= oldest_s and node not in served and matches(known.interest, event):
                served.add(node)
                self._on_path(event, {node}, 1, 0, born_s)


def size_bytes(event: Event) -> int:
    content = event.content
    return EVENT_BYTES + len(event.payload) + (len(content) if isinstance(content, str) else 0)


def _worth(kept: Kept) -> tuple[float, float, float]:
    """What goes first if there is no room."""
    return (priority(kept.event.utility), kept.until_s, kept.born_s)


def _order(kept: Kept) -> int:
    """Events of a publisher in the order of their numbers."""
    return kept.event.id
