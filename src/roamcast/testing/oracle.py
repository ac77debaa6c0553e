"""The oracle over the links of a tiny network: breadth-first search, the lowest address first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from roamcast.events import Event
from roamcast.protocols.api import NOBODY, Oracle

if TYPE_CHECKING:
    from roamcast.testing.tinynet import TinyNet


class LinkOracle(Oracle):
    def __init__(self, net: TinyNet[Any]) -> None:
        self._net = net

    def next_hop(self, source: int, destination: int) -> int:
        distance = self._distances(destination)
        if source == destination or source not in distance:
            return NOBODY
        return min(n for n in self._net.neighbours(source) if distance.get(n, -1) == distance[source] - 1)

    def neighbours(self, node: int) -> list[int]:
        return [n for n in self._net.neighbours(node) if self._net.host(n).alive]

    def hops(self, source: int, destination: int) -> int:
        return self._distances(destination).get(source, -1)

    def subscribers(self, event: Event) -> list[int]:
        return self._net.subscribers(event)

    def _distances(self, destination: int) -> dict[int, int]:
        if destination not in self._net.addresses or not self._net.host(destination).alive:
            return {}
        distance = {destination: 0}
        queue = deque([destination])
        while queue:
            here = queue.popleft()
            for neighbour in self._net.neighbours(here):
                if neighbour not in distance and self._net.host(neighbour).alive:
                    distance[neighbour] = distance[here] + 1
                    queue.append(neighbour)
        return distance
