"""The publisher's part: advertise at all points, send events to those with subscribers (sections 2.2, 2.3).

For each point the publisher holds a belief: wanted, not wanted, or unknown. It is unknown from the first advertisement
until the point answers, or until `answer_wait_s` has passed without an answer, which means that there are no
subscribers. Meanwhile events are sent, so that nothing published early is lost. The belief travels with every refresh
of the advertisement, and a point that knows better corrects it, so a lost message heals within a refresh period.

Advertisements are never pruned: they stay for the life of the publisher (2.3).
"""

from math import dist

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Point
from roamcast.protocols.batches import batches_of
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.clients import Publishing, encoded
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import (
    ADVERTISEMENT,
    Advertisement,
    Attract,
    Leg,
    Notification,
    Probe,
    Repel,
    key_of,
)
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters


class Publisher(Component):
    def __init__(
        self, host: Host, parameters: GeoRendezvousParameters, table: CellHashTable, buckets: Buckets, points: int
    ) -> None:
        super().__init__(host)
        self._table = table
        self._buckets = buckets
        self._points = points
        self._answer_wait_s = parameters.answer_wait_s
        self._period_s = parameters.advertisement_period_s
        self._lifetime_s = parameters.advertisement_period_s * parameters.lifetime_periods
        self._moved_m = 2 * parameters.early_refresh_share * table.router.grid.site.range_m
        self._legs_max = parameters.legs_max if parameters.notification_tree else 1
        self._told_at: Point = table.router.point  # where this node was when it last refreshed
        self._told_s = 0.0
        self._wanted: dict[str, bool | None] = {}  # by key of the point
        self._answer_due_s: dict[str, float] = {}  # of points of unknown belief
        table.receive(Attract, self._on_attract)
        table.receive(Repel, self._on_repel)
        table.receive(Probe, self._on_probe)
        table.each_beat(self._refresh_if_due)

    def declare(self, inputs: Inputs) -> None:
        """All its inputs come through the hash table."""

    def advertise(self, interest: Interest) -> None:
        for bucket in self._buckets.of_advertisement(interest):
            self._open(bucket)

    def publish(self, event: Event) -> None:
        router = self._table.router
        for bucket in self._buckets.of_event(event):
            self._open(bucket)
            keys = [(point, key_of(bucket, point)) for point in range(self._points)]
            legs = [Leg(router.target(key), NOBODY, point) for point, key in keys if self._is_wanted(key)]
            notification = Notification(bucket, event, router.here)
            for some in batches_of(legs, self._legs_max):
                router.send(some, notification)

    def _refresh_if_due(self) -> None:
        """Refreshes when it is time, or when answers would no longer find this node."""
        router = self._table.router
        is_due = self.host.now() - self._told_s >= self._period_s
        if self._wanted and (is_due or dist(router.point, self._told_at) >= self._moved_m):
            self._told_at, self._told_s = router.point, self.host.now()
            for key in self._wanted:
                self._advertise(key)

    def _on_attract(self, message: Attract, point: int, hops: int) -> None:
        self._answer(message.key, True)

    def _on_repel(self, message: Repel, point: int, hops: int) -> None:
        self._answer(message.key, False)

    def _on_probe(self, message: Probe, point: int, hops: int) -> None:
        self.host.structure("direct", peer=message.prober, value=float(hops))

    def _open(self, bucket: str) -> None:
        for point in range(self._points):
            key = key_of(bucket, point)
            if key not in self._wanted:
                x_m, y_m = self._table.router.grid.point(key)
                self.host.structure("rendezvous", value=float(point), detail=f"{bucket} {x_m:.1f} {y_m:.1f}")
                if not self._wanted:
                    self._told_at, self._told_s = self._table.router.point, self.host.now()
                self._wanted[key] = None
                self._answer_due_s[key] = self.host.now() + self._answer_wait_s
                self._advertise(key)

    def _advertise(self, key: str) -> None:
        value = encoded(Publishing(self._table.router.here, self._wanted[key]))
        self._table.put(key, value, self._lifetime_s, ADVERTISEMENT, Advertisement)

    def _is_wanted(self, key: str) -> bool:
        wanted = self._wanted[key]
        if wanted is None and self.host.now() >= self._answer_due_s[key]:
            self._answer(key, False)
            return False
        return wanted is not False

    def _answer(self, key: str, wanted: bool) -> None:
        if key in self._wanted:
            self._wanted[key] = wanted
            self._answer_due_s.pop(key, None)
