"""Route discovery: rings that widen, packets that wait, requests already heard, rate limits.

Plain data structures, without a host; `aodv.py` drives them.
"""

from collections import deque
from collections.abc import Iterator

from roamcast.protocols.api import Message
from roamcast.protocols.routing.messages import Routed
from roamcast.protocols.routing.parameters import AodvParameters

Ring = tuple[int, float]
"""How many hops a request travels, and how many seconds its originator waits for an answer."""

Packet = Routed[Message]


def widening_rings(parameters: AodvParameters, last_hops: int | None) -> Iterator[Ring]:
    """The expanding ring search. A destination that was once `last_hops` away is sought a little beyond that first."""
    ttl = parameters.ttl_start_hops if last_hops is None else last_hops + parameters.ttl_increment_hops
    while ttl <= parameters.ttl_threshold_hops and ttl < parameters.net_diameter_hops:
        yield ttl, parameters.ring_traversal_time_s(ttl)
        ttl += parameters.ttl_increment_hops
    for retry in range(parameters.request_retries + 1):
        yield parameters.net_diameter_hops, parameters.net_traversal_time_s * 2**retry


def repair_ring(parameters: AodvParameters, hops_to_destination: int, hops_to_source: int) -> Iterator[Ring]:
    """The single ring of a local repair: far enough to find the destination, not so far as to wake the whole net."""
    ttl = max(hops_to_destination, hops_to_source // 2) + parameters.local_add_ttl_hops
    ttl = min(ttl, parameters.net_diameter_hops)
    yield ttl, parameters.ring_traversal_time_s(ttl)


class Discovery:
    """The search for one destination and the packets that wait for its end, in the order they came."""

    def __init__(self, destination: int, rings: Iterator[Ring], repair_of_hops: int | None = None) -> None:
        self.destination = destination
        self.rings = rings
        self.repair_of_hops = repair_of_hops  # a local repair: the length of the route that broke
        self._packets: deque[tuple[float, Packet]] = deque()  # with the time at which it has waited too long

    def __len__(self) -> int:
        return len(self._packets)

    def add(self, packet: Packet, deadline_s: float) -> None:
        self._packets.append((deadline_s, packet))

    def next_deadline_s(self) -> float | None:
        return self._packets[0][0] if self._packets else None

    def pop_oldest(self) -> Packet:
        return self._packets.popleft()[1]

    def pop_overdue(self, now_s: float) -> list[Packet]:
        overdue: list[Packet] = []
        while self._packets and self._packets[0][0] <= now_s:
            overdue.append(self._packets.popleft()[1])
        return overdue

    def pop_all(self) -> list[Packet]:
        packets = [packet for _, packet in self._packets]
        self._packets.clear()
        return packets

    def pop_foreign(self, address: int) -> list[Packet]:
        """Takes out the packets that did not start at `address`."""
        foreign = [packet for _, packet in self._packets if packet.source != address]
        self._packets = deque(entry for entry in self._packets if entry[1].source == address)
        return foreign


class SeenRequests:
    """Requests heard within a time, so that each is handled once. Bounded, against floods of invented ones."""

    def __init__(self, memory_s: float, capacity: int) -> None:
        self._memory_s = memory_s
        self._capacity = capacity
        self._until_s: dict[tuple[int, int], float] = {}  # oldest first
        # The request of the last call: a flooded request is heard from many neighbours in a row.
        self._latest_originator = -1
        self._latest_id = -1
        self._latest_until_s = 0.0

    def add(self, originator: int, request_id: int, now_s: float) -> bool:
        """Remembers the request; true if it was new."""
        if request_id == self._latest_id and originator == self._latest_originator and now_s < self._latest_until_s:
            return False
        seen = self._until_s
        key = (originator, request_id)
        until_s = seen.get(key)
        if until_s is not None and now_s < until_s:  # of all that is heard, most
            self._latest_originator, self._latest_id, self._latest_until_s = originator, request_id, until_s
            return False
        while seen:
            oldest = next(iter(seen))
            if now_s < seen[oldest] and len(seen) < self._capacity:
                break
            del seen[oldest]
        until_s = seen[key] = now_s + self._memory_s
        self._latest_originator, self._latest_id, self._latest_until_s = originator, request_id, until_s
        return True


class RateLimit:
    """A limit on how often something happens within any second."""

    def __init__(self, per_s: int) -> None:
        self._recent_s: deque[float] = deque(maxlen=per_s)

    def wait_s(self, now_s: float) -> float:
        """How long until the next may happen; 0 if it may now."""
        recent = self._recent_s
        if len(recent) < (recent.maxlen or 0):
            return 0.0
        wait_s = recent[0] + 1.0 - now_s
        return wait_s if wait_s > 1e-9 else 0.0  # a rounding error is not worth waiting for

    def note(self, now_s: float) -> None:
        self._recent_s.append(now_s)
