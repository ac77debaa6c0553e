"""Expanding ring search: which brokers are nearest? [2.3 step 1, 2.4 step 1]

A search floods `Seek` in rings of 1, 3, 5 and 7 hops. Every broker that hears it answers with `Found`, which returns
along the path that the search took: each relay remembers from which neighbour it heard the search first. The search
ends with the first ring that holds at least one broker, or with the last ring. It needs no routes, so it costs the same
over any unicast service. An answer is carried by no more frames than the search was, and a node takes a bounded number
of searches from each neighbour.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.lives import first_number
from roamcast.protocols.overlays.heard import HeardSearches
from roamcast.protocols.overlays.messages import Found, Seek
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.rings import RING_HOPS_MAX, parse_rings


class SearchTimer(StrEnum):
    RING = "search.ring"  # the current ring had time to answer; key 0
    REPEAT = "search.repeat"  # pass a search on; key: its running number


class Sighting(NamedTuple):
    """A broker that a search found; the order is that of preference."""

    hops: int
    load: float
    broker: int


class RingSearch(Component):
    def __init__(self, host: Host, parameters: OverlaysParameters, load: Callable[[], float] | None) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._rings = parse_rings(parameters.search_rings_hops)
        self._load = load  # this broker's own load; None if this node is no broker
        self._number = first_number(host.life)  # ahead of all searches of a former life
        self._first = 0  # number of the first ring of the search under way
        self._ring = 0
        self._hops_max = 0  # of the search that is running
        self._found: dict[int, Sighting] = {}
        self._waiting: list[Callable[[list[Sighting]], None]] = []
        self._heard = HeardSearches(parameters)
        self._repeats: dict[int, Seek] = {}
        self._repeats_so_far = 0

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Seek, self._on_seek)
        inputs.on(Found, self._on_found)
        inputs.on_timer(SearchTimer.RING, self._next_ring)
        inputs.on_timer(SearchTimer.REPEAT, self._repeat)

    def start(self, on_result: Callable[[list[Sighting]], None], hops_max: int = RING_HOPS_MAX) -> None:
        """Looks for the nearest brokers, this node not among them; the result is sorted and may be empty.

        The search ends with the first ring that reaches `hops_max`."""
        self._hops_max = max(hops_max, self._hops_max) if self._waiting else hops_max
        self._waiting.append(on_result)
        if len(self._waiting) == 1:
            self._ring = 0
            self._first = self._number + 1
            self._found = {}
            self._seek()

    def retire(self) -> None:
        """This node does not offer itself as a broker any more."""
        self._load = None

    def _seek(self) -> None:
        ttl = self._rings[self._ring]
        self._number += 1
        self.host.broadcast(Seek(self.host.address, self._number, ttl, 1))
        self.host.set_timer(2 * self._parameters.hop_time_s * (ttl + 1), (SearchTimer.RING, 0))

    def _next_ring(self, _: int) -> None:
        reached_hops = self._rings[self._ring]
        self._ring += 1
        if not self._found and self._ring < len(self._rings) and reached_hops < self._hops_max:
            self._seek()
            return
        result = sorted(self._found.values())
        waiting, self._waiting = self._waiting, []
        for on_result in waiting:
            on_result(result)

    def _on_seek(self, sender: int, seek: Seek) -> None:
        if seek.origin == self.host.address or seek.hops > self._rings[-1]:
            return
        if not self._heard.add(seek.origin, seek.number, sender, self.host.now()):
            return
        if self._load is not None:
            found = Found(
                origin=seek.origin,
                number=seek.number,
                broker=self.host.address,
                hops=seek.hops,
                load=self._load(),
                ttl=seek.hops,
            )
            self.host.send(sender, found)
        if seek.ttl > 1:
            self._repeats_so_far += 1
            self._repeats[self._repeats_so_far] = Seek(seek.origin, seek.number, seek.ttl - 1, seek.hops + 1)
            self.host.set_timer(
                self.host.random.random() * self._parameters.search_jitter_s, (SearchTimer.REPEAT, self._repeats_so_far)
            )

    def _repeat(self, key: int) -> None:
        self.host.broadcast(self._repeats.pop(key))

    def _on_found(self, sender: int, found: Found) -> None:
        if found.origin != self.host.address:
            back = self._heard.neighbour(found.origin, found.number)
            ttl = min(found.ttl, self._rings[-1])
            if back != NOBODY and ttl > 1:
                self.host.send(back, replace(found, ttl=ttl - 1))
        elif self._first <= found.number <= self._number and self._waiting:  # of this ring, or late of a narrower one
            self._found[found.broker] = Sighting(found.hops, found.load, found.broker)
