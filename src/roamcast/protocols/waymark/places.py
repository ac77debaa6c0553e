"""Places: which links positions predict, and how far the radio reaches.

The reach is learned from the distances at which neighbours are heard; the configured value is only the starting point.
Near the reach no prediction is made: a node is expected to be heard only within `reach_near` of it, and expected not to
be heard only beyond `reach_far`.

Where walls and hills decide which nodes hear each other, positions mislead. Every frame that should not have been heard
counts against them, as does every nearby node that could not be reached. If the share of such surprises exceeds
`surprises_max`, this node stops using its position for `distrust_s`, and lists its links instead.
"""


from roamcast.protocols.api import Host
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.records import Known, Records


class Places:
    def __init__(self, host: Host, parameters: WaymarkParameters, records: Records) -> None:
        self._host = host
        self._parameters = parameters
        self._records = records
        self.reach_m = 0.0 if host.site is None else host.site.range_m
        self._distances_m: list[float] = []
        self._surprises = 0.0  # share of frames that places did not foretell, smoothed
        self._distrusted_until_s = -1.0

    def heard(self, node: int) -> None:
        """A frame came from a node: how far away is it?"""
        own, known = self._records.own, self._records.known.get(node)
        if known is None or not known.has_place or not own.has_place:
            return
        distances_m = self._distances_m
        distances_m.append(self.distance_m(own, known))
        is_surprise = distances_m[-1] > self._parameters.reach_far * self.reach_m > 0
        self._count(1.0 if is_surprise else 0.0, self._parameters.heard_weight)
        if len(distances_m) > self._parameters.reach_samples:
            del distances_m[0]
        if self._host.site is None:
            self.reach_m = max(distances_m)

    def missed(self, node: int) -> None:
        """A frame did not reach a node: should it have?"""
        if self.is_near(node):
            self._count(1.0, self._parameters.missed_weight)

    def _count(self, surprise: float, weight: float) -> None:
        self._surprises += weight * (surprise - self._surprises)
        if self._surprises > self._parameters.surprises_max:
            self._distrusted_until_s = self._host.now() + self._parameters.distrust_s
            self._surprises = 0.0

    def are_trusted(self) -> bool:
        """Whether this node should go by places."""
        return self._host.now() >= self._distrusted_until_s

    def distance_m(self, one: Known, other: Known) -> float:
        now = self._host.now()
        one_s, other_s = now - one.place_s, now - other.place_s
        dx = one.x + one.vx * one_s - other.x - other.vx * other_s
        dy = one.y + one.vy * one_s - other.y - other.vy * other_s
        return float((dx * dx + dy * dy) ** 0.5)

    def is_near(self, node: int) -> bool:
        """Whether this node should hear it."""
        known = self._records.known.get(node)
        own = self._records.own
        if known is None or not known.has_place or not own.has_place:
            return False
        return self.distance_m(own, known) < self._parameters.reach_near * self.reach_m

    def is_far(self, node: int) -> bool:
        """Whether this node should not hear it."""
        known = self._records.known.get(node)
        own = self._records.own
        if known is None or not known.has_place or not own.has_place:
            return False
        return self.distance_m(own, known) > self._parameters.reach_far * self.reach_m

    def explains(self, node: int) -> bool:
        """Whether places say anything about the link with it."""
        known = self._records.known.get(node)
        return known is not None and known.has_place and self._records.own.has_place
