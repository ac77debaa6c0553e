"""Custody: events for destinations without a path are kept until there is one."""

from collections.abc import Callable
from enum import StrEnum

from roamcast.events import Event
from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.sender_tree import indices
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.records import Records


class CustodyTimer(StrEnum):
    LOOK = "custody.look"  # look whether there is a path now


class Kept:
    __slots__ = ("destinations", "event", "hops", "next_s", "until_s", "wait_s")

    def __init__(self, event: Event, hops: int, now: float, until_s: float) -> None:
        self.event = event
        self.hops = hops
        self.destinations: set[int] = set()
        self.until_s = until_s
        self.wait_s = 0.5
        self.next_s = now + self.wait_s


class Custody(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        graph: Graph,
        on_path: Callable[[Event, set[int], int], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._graph = graph
        self._on_path = on_path
        self._kept: dict[int, Kept] = {}
        self._published: dict[int, tuple[Event, set[int]]] = {}

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(CustodyTimer.LOOK, self._look)

    def keep(self, event: Event, destinations: set[int], hops: int) -> None:
        custody_s = self._parameters.custody_s
        for _ in destinations:
            self.host.dropped("no-path", event.id)
        if custody_s <= 0:
            return
        now = self.host.now()
        kept = self._kept.get(event.id)
        if kept is None:
            if not self._kept:
                self.host.set_timer(0.5, (CustodyTimer.LOOK, 0))
            kept = self._kept[event.id] = Kept(event, hops, now, now + custody_s)
        kept.destinations |= destinations

    def _look(self, key: int) -> None:
        now = self.host.now()
        ready: list[Kept] = []
        for event_id in list(self._kept):
            kept = self._kept[event_id]
            if now >= kept.until_s:
                del self._kept[event_id]
            elif now >= kept.next_s:
                kept.wait_s = min(2 * kept.wait_s, 4.0)
                kept.next_s = now + kept.wait_s
                ready.append(kept)
        if ready:
            connected = self._connected()
            for kept in ready:
                found = {d for d in kept.destinations if self._graph.bit(d) & connected}
                if found:
                    kept.destinations -= found
                    if not kept.destinations:
                        del self._kept[kept.event.id]
                    self._on_path(kept.event, found, kept.hops)
        if self._kept:
            self.host.set_timer(0.5, (CustodyTimer.LOOK, 0))

    def _connected(self) -> int:
        graph = self._graph
        graph.refresh()
        connected = fresh = 1 << self._records.own.index
        while fresh:
            step = 0
            for index in indices(fresh):
                step |= graph.adjacent(index, True)
            fresh = step & ~connected
            connected |= fresh
        return connected

    # -- Subscribers that become known late ----------------------------------------------------------------------------

    def published(self, event: Event, destinations: set[int]) -> None:
        custody_s = self._parameters.custody_s
        if custody_s <= 0:
            return
        for event_id in list(self._published):
            if self._published[event_id][0].time_s + custody_s >= event.time_s:
                break
            del self._published[event_id]
        self._published[event.id] = (event, set(destinations))

    def learned_want(self, node: int) -> None:
        known = self._records.known[node]
        if known.interest is None:
            return
        for event, served in list(self._published.values()):
            late = node not in served and known.wanted_since_s <= event.time_s
            if late and event.time_s + self._parameters.custody_s >= self.host.now() and known.interest.matches(event):
                served.add(node)
                self.keep(event, {node}, 1)
