"""The publisher's part: advertise at all points, send events to those where somebody wants them (sections 2.2, 2.3).

For each point the publisher holds a belief: wanted, not wanted, or unknown. It is unknown from the first advertisement
until the point answers, or until `ANSWER_WITHIN_S` has passed without an answer, which means that nobody is there;
meanwhile events are sent, so that nothing published early is lost. The belief travels with every refresh of the
advertisement, and a point that knows better corrects it: so a lost message heals within a refresh period.

Advertisements are never pruned: they stay for the life of the publisher.
"""

from math import dist
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host, Point
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.clients import Publishing, encoded, key_of
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import ADVERTISEMENT, Advertisement, Attract, Notification, Probe, Repel
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters

ANSWER_WITHIN_S: Final = 2.0


class Publisher:
    def __init__(
        self, host: Host, table: CellHashTable, buckets: Buckets, parameters: GeoRendezvousParameters
    ) -> None:
        self.host = host
        self._table = table
        self._buckets = buckets
        self._points = parameters.rendezvous_points
        self._period_s = parameters.advertisement_period_s
        self._lifetime_s = parameters.advertisement_period_s * (parameters.refresh_losses_max + 1.5)
        self._told_at: Point = table.router.point  # where this node was when it last refreshed
        self._told_s = 0.0
        self._wanted: dict[str, bool | None] = {}  # by key of the point
        self._answer_due_s: dict[str, float] = {}  # of points of unknown belief

    def advertise(self, interest: Interest) -> None:
        for bucket in self._buckets.of_advertisement(interest):
            self._open(bucket)

    def publish(self, event: Event) -> None:
        at = self._table.router.here
        for bucket in self._buckets.of_event(event):
            self._open(bucket)
            for point in range(self._points):
                key = key_of(bucket, point)
                if self._is_wanted(key):
                    target = self._table.router.target(key)
                    self._table.router.send_to_place(target, Notification(key, event, at))

    def on_beat(self) -> None:
        """Refreshes when it is time, or when answers would no longer find this node."""
        router = self._table.router
        is_due = self.host.now() - self._told_s >= self._period_s
        if self._wanted and (is_due or dist(router.point, self._told_at) >= router.grid.site.range_m):
            self._told_at, self._told_s = router.point, self.host.now()
            for key in self._wanted:
                self._advertise(key)

    def on_attract(self, message: Attract) -> None:
        self._answer(message.key, True)

    def on_repel(self, message: Repel) -> None:
        self._answer(message.key, False)

    def on_probe(self, message: Probe, hops: int) -> None:
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
                self._answer_due_s[key] = self.host.now() + ANSWER_WITHIN_S
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
