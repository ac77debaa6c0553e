"""Global grouping: how a publishing broker makes multicast channels out of its members' subscriptions (section 3.4).

A *channel* is a set of member brokers with one filter, the summary of all their subscriptions; an event travels on
the channels whose filter it matches. Few channels mean little to maintain; more channels keep an event from members who
do not want it. Three ways, interchangeable, each able to take members in and out one by one:

- `LeastConstrained`: one channel, whose filter keeps only what all subscriptions of a type constrain. Cheap, and right
  where all want much the same; one member who wants everything opens the channel to everything (3.4.1).
- `AggregatedGraph`: one channel, whose filter is the covering graph of all entries; an event is sent if it matches any
  of them, which only the roots need to be asked for (3.4.2).
- `KMeans`: two or three channels of members with similar bits (3.4.3). Where members come and go, a few more rounds are
  run from the present centroids. A cluster that loses its last member begins again with the member that is farthest
  from its own centroid. The number of channels is 2, or 3 if that lowers the mean distance to the centroid by more than
  `kmeans_third_gain`. Distances are exact fractions of whole numbers, so all machines make the same channels.

The paper gives the graph no rule for splitting it into channels, and says that K-means makes more channels than the
graph: hence one channel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.protocols.odmrp.covering import CoveringGraph
from roamcast.protocols.odmrp.index import rows
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.summaries import Family, SummaryEntry, aggregated

NEWCOMERS: Final = 0  # the channel of members that no request has assigned yet

Summary = tuple[SummaryEntry, ...]


@mypyc_attr(allow_interpreted_subclasses=True)
class Grouping(ABC):
    """The channels of one publishing broker. Channels are numbered from 1."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.members: dict[int, Summary] = {}

    def put(self, member: int, summary: Summary) -> None:
        """Adds a member, or changes its subscriptions."""
        if self.members.get(member) != summary:
            self.remove(member)
            self.members[member] = summary
            self._added(member, summary)

    def remove(self, member: int) -> None:
        """Forgets a member; nothing happens if it is not one."""
        if member in self.members:
            self._removed(member, self.members.pop(member))

    @abstractmethod
    def _added(self, member: int, summary: Summary) -> None: ...

    @abstractmethod
    def _removed(self, member: int, summary: Summary) -> None: ...

    @abstractmethod
    def channels(self) -> dict[int, list[int]]:
        """The members of each channel, both ascending; empty channels are left out."""

    @abstractmethod
    def matching(self, digest: Digest) -> list[int]:
        """The channels whose filter an event matches, ascending."""


class LeastConstrained(Grouping):
    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self._filter: Summary = ()

    def _added(self, member: int, summary: Summary) -> None:
        self._filter = aggregated([*self._filter, *summary], 1)

    def _removed(self, member: int, summary: Summary) -> None:
        self._filter = aggregated([entry for each in self.members.values() for entry in each], 1)

    def channels(self) -> dict[int, list[int]]:
        return {1: sorted(self.members)} if self.members else {}

    def matching(self, digest: Digest) -> list[int]:
        return [1] if self.family.matches_any(self._filter, digest) else []


class AggregatedGraph(Grouping):
    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self._graph = CoveringGraph(family)

    def _added(self, member: int, summary: Summary) -> None:
        for entry in summary:
            self._graph.add(entry)

    def _removed(self, member: int, summary: Summary) -> None:
        for entry in summary:
            self._graph.remove(entry)

    def channels(self) -> dict[int, list[int]]:
        return {1: sorted(self.members)} if self.members else {}

    def matching(self, digest: Digest) -> list[int]:
        return [1] if self._graph.matches(digest) else []


class KMeans(Grouping):
    """Clusters of members by the bits of their summaries."""

    def __init__(
        self, family: Family, iterations_max: int = 10, third_gain: float = 0.2, entries_max: int = 256
    ) -> None:
        super().__init__(family)
        self._iterations_max = iterations_max
        self._third_gain = third_gain
        self._entries_max = entries_max
        self._bits: dict[int, int] = {}
        self._clusters: list[list[int]] = []
        self._filters: list[Summary] = []
        self._is_stale = False

    def _added(self, member: int, summary: Summary) -> None:
        self._bits[member] = _vector(summary, self.family.bits)
        self._is_stale = True

    def _removed(self, member: int, summary: Summary) -> None:
        del self._bits[member]
        self._is_stale = True

    def channels(self) -> dict[int, list[int]]:
        self._rebalance()
        return {number: cluster for number, cluster in enumerate(self._clusters, 1) if cluster}

    def matching(self, digest: Digest) -> list[int]:
        self._rebalance()
        return [
            number for number, entries in enumerate(self._filters, 1) if self.family.matches_any(entries, digest)
        ]

    def _rebalance(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        kept = [[member for member in cluster if member in self._bits] for cluster in self._clusters]
        two = self._settled([cluster for cluster in kept if cluster], 2)
        three = self._settled(two, 3)
        gain = _mean_distance(two, self._bits) - _mean_distance(three, self._bits)
        self._clusters = three if gain > self._third_gain * _mean_distance(two, self._bits) else two
        self._filters = [
            aggregated([entry for member in cluster for entry in self.members[member]], self._entries_max)
            for cluster in self._clusters
        ]

    def _settled(self, start: list[list[int]], count: int) -> list[list[int]]:
        """Up to `count` clusters after some rounds from the centroids of `start`, nearly always in few."""
        members = sorted(self._bits)
        centroids = [_Centroid([self._bits[member] for member in cluster]) for cluster in start[:count]]
        while len(centroids) < min(count, len(set(self._bits.values()))):
            centroids.append(_Centroid([self._bits[self._farthest(members, centroids)]]))
        clusters: list[list[int]] = []
        for _ in range(self._iterations_max):
            before = clusters
            clusters = [[] for _ in centroids]
            for member in members:
                distances = [centroid.distance(self._bits[member]) for centroid in centroids]
                clusters[distances.index(min(distances))].append(member)
            self._reseed(clusters, centroids)
            if clusters == before:
                break
            centroids = [_Centroid([self._bits[member] for member in cluster]) for cluster in clusters]
        return clusters

    def _reseed(self, clusters: list[list[int]], centroids: Sequence[_Centroid]) -> None:
        """Gives each empty cluster the member that is farthest from its own centroid, out of the clusters that have
        different members; clusters that stay empty are removed."""
        for empty in [number for number, cluster in enumerate(clusters) if not cluster]:
            farthest, giver = -1, -1
            distance = 0.0
            for number, cluster in enumerate(clusters):
                for member in cluster if len(cluster) > 1 else ():
                    away = centroids[number].distance(self._bits[member])
                    if away > distance:
                        farthest, giver, distance = member, number, away
            if giver >= 0:
                clusters[giver].remove(farthest)
                clusters[empty].append(farthest)
        clusters[:] = [cluster for cluster in clusters if cluster]

    def _farthest(self, members: list[int], centroids: Sequence[_Centroid]) -> int:
        """The member farthest from its centroid, the first of several: where a new cluster begins. Without centroids,
        the member with the most bits, which is the least constrained."""
        if not centroids:
            return max(members, key=lambda member: (self._bits[member].bit_count(), -member))
        return max(
            members, key=lambda member: (min(each.distance(self._bits[member]) for each in centroids), -member)
        )


class _Centroid:
    """The mean of bit vectors, as a count for each bit."""

    def __init__(self, vectors: list[int]) -> None:
        self._size = len(vectors)
        counts: dict[int, int] = {}  # by place of the bit
        for vector in vectors:
            for place in rows(vector):
                counts[place] = counts.get(place, 0) + 1
        self._masks: dict[int, int] = {}  # count -> the bits that this many vectors have
        self._of_nothing = 0  # how far a vector without bits is, times the square of the size
        self._known = 0  # the bits that some vector has
        for place, count in counts.items():
            bit = 1 << place
            self._masks[count] = self._masks.get(count, 0) | bit
            self._of_nothing += count * count
            self._known |= bit

    def distance(self, vector: int) -> float:
        """Squared Euclidean distance, from whole numbers: a bit that c of n vectors have is (c/n)^2 from a 0 and
        ((n-c)/n)^2 from a 1, which is n(n-2c)/n^2 more."""
        size = self._size
        total = self._of_nothing + (vector & ~self._known).bit_count() * size * size
        for count, bits in self._masks.items():
            total += (vector & bits).bit_count() * size * (size - 2 * count)
        return total / (size * size)


def _mean_distance(clusters: list[list[int]], bits: dict[int, int]) -> float:
    total = 0.0
    for cluster in clusters:
        centroid = _Centroid([bits[member] for member in cluster])
        total += sum(centroid.distance(bits[member]) for member in cluster)
    return total / max(1, len(bits))


def _vector(summary: Summary, bits: int) -> int:
    """The marks and all filters of a summary side by side; entries lie on top of each other, as do string leaves."""
    vector = 0
    for entry in summary:
        parts = [entry.enumerated, entry.arithmetic, 0, 0, 0]
        for text in entry.texts:
            parts[2:] = [parts[2] | text.left, parts[3] | text.right, parts[4] | text.exact]
        whole = entry.leaves
        for number, part in enumerate(parts):
            whole |= part << 64 + number * bits
        vector |= whole
    return vector


def grouping(parameters: OdmrpParameters) -> Grouping:
    """The grouping that the parameters name."""
    family = Family(parameters.bloom_bits, parameters.bloom_hashes)
    if parameters.grouping == "least-constrained":
        return LeastConstrained(family)
    if parameters.grouping == "graph":
        return AggregatedGraph(family)
    return KMeans(
        family, parameters.kmeans_iterations_max, parameters.kmeans_third_gain, parameters.channel_entries_max
    )
