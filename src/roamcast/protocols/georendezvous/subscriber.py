"""The subscriber's part: follow buckets at the nearest points, keep one way per publisher, filter what comes.

For each bucket that the application's interests touch, the node subscribes at the m of the n rendezvous points that are
nearest to it (section 2.4). The first event of a publisher then arrives once per point. After `selection_wait_s` the
node keeps the way with the fewest hops (on a tie the nearer point) and prunes that publisher at the others (2.3). The
prunes travel with every refresh of the subscription, so a lost one heals.

A node that has moved by `reselection_distance_m` chooses its nearest points anew and tries them all again; so it does
every `reselection_period_s`, in case the way it kept has become worse. Points that it leaves keep its subscription for
one more refresh period, so that no event falls between. A node that has moved half the radio range refreshes early, so
that notifications find it.

What does not match any interest of the application is dropped as `unwanted`, copies of known events as `duplicate`.
"""

from math import dist
from typing import Final

from roamcast.interests import Interest
from roamcast.protocols.api import Host, Point, Timer
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.clients import Following, bucket_and_point, encoded, key_of
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import SUBSCRIPTION, Notification, Probe, Prune, Put, Subscription
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions

DROP_UNWANTED: Final = "unwanted"  # the bucket brought it, no interest matches it
DROP_DUPLICATE: Final = "duplicate"  # it came by another way before
PRUNED_MAX: Final = 150  # publishers pruned at one point: more would not fit an entry, the rest is dropped as duplicate

_SELECT: Final = "geo.select "  # followed by the bucket


class Followed:
    """How one bucket is followed."""

    def __init__(self, points: list[int], where: Point, now_s: float) -> None:
        self.points = points
        self.left: list[int] = []  # points of before, until the next refresh
        self.chosen: dict[int, int] = {}  # publisher -> the point that its events come through
        self.trials: dict[int, dict[int, int]] = {}  # publisher -> point -> hops of its first event
        self.where = where  # when the points were chosen
        self.since_s = now_s


class Subscriber:
    def __init__(
        self, host: Host, table: CellHashTable, buckets: Buckets, parameters: GeoRendezvousParameters
    ) -> None:
        self.host = host
        self.subscriptions = Subscriptions()
        self.followed: dict[str, Followed] = {}
        self._table = table
        self._buckets = buckets
        self._parameters = parameters
        self._lifetime_s = parameters.refresh_period_s * (parameters.refresh_losses_max + 1.5)
        self._reselection_distance_m = parameters.reselection_distance_m or table.router.grid.site.range_m
        self._seen = SeenCache()
        self._told_at: Point = table.router.point  # where this node was when it last refreshed

    # -- The application -----------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        for bucket in self._buckets.of_interest(interest):
            if bucket not in self.followed:
                self._follow(bucket)

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        needed = {bucket for open_interest in self.subscriptions for bucket in self._buckets.of_interest(open_interest)}
        for bucket in self._buckets.of_interest(interest):
            if bucket in self.followed and bucket not in needed:
                followed = self.followed.pop(bucket)
                for point in followed.points + followed.left:
                    self._withdraw(bucket, point)

    # -- Events --------------------------------------------------------------------------------------------------

    def on_notification(self, message: Notification, hops: int) -> None:
        event = message.event
        if not self._seen.add(event.id):
            self.host.dropped(DROP_DUPLICATE, event.id)
        elif self.subscriptions.match(event):
            self.host.deliver(event, hops)
        else:
            self.host.dropped(DROP_UNWANTED, event.id)
        bucket, point = bucket_and_point(message.key)
        followed = self.followed.get(bucket)
        if followed is None:
            self._withdraw(bucket, point)
        elif event.publisher not in followed.chosen:
            self._try(bucket, followed, point, message, hops)
        elif point in followed.points and point != followed.chosen[event.publisher]:
            self._put(bucket, followed, point, Prune)

    def on_timer(self, timer: Timer) -> bool:
        if not timer[0].startswith(_SELECT):
            return False
        bucket = timer[0].removeprefix(_SELECT)
        followed = self.followed.get(bucket)
        if followed is not None and timer[1] in followed.trials:
            self._select(bucket, followed, timer[1])
        return True

    def _try(self, bucket: str, followed: Followed, point: int, message: Notification, hops: int) -> None:
        publisher = message.event.publisher
        trial = followed.trials.get(publisher)
        if trial is None:
            trial = followed.trials[publisher] = {}
            self.host.set_timer(self._parameters.selection_wait_s, (_SELECT + bucket, publisher))
            if self._parameters.probe_direct_path:
                probe = Probe(self.host.address)
                self._table.router.send_to_node(publisher, message.publisher_at, probe)
        if point in followed.points:
            trial.setdefault(point, hops)

    def _select(self, bucket: str, followed: Followed, publisher: int) -> None:
        trial = followed.trials.pop(publisher)
        if not trial:
            return  # only points of before brought it: the next event is another trial
        point = min(trial, key=lambda candidate: (trial[candidate], self._distance_m(bucket, candidate), candidate))
        followed.chosen[publisher] = point
        self.host.structure("selected", peer=publisher, value=float(point), detail=bucket)
        for other in followed.points:
            if other != point:
                self._put(bucket, followed, other, Prune)

    # -- Keeping subscriptions -----------------------------------------------------------------------------------

    def on_beat(self) -> None:
        here = self._table.router.point
        for bucket, followed in self.followed.items():
            if dist(here, followed.where) >= self._reselection_distance_m:
                self._reselect(bucket, followed)
        if self.followed and dist(here, self._told_at) >= self._table.router.grid.site.range_m / 2:
            self._renew()

    def refresh(self) -> None:
        now_s = self.host.now()
        for bucket, followed in self.followed.items():
            for point in followed.left:
                self._withdraw(bucket, point)
            followed.left.clear()
            if now_s - followed.since_s >= self._parameters.reselection_period_s:
                self._reselect(bucket, followed)
        self._renew()

    def _renew(self) -> None:
        self._told_at = self._table.router.point
        for bucket, followed in self.followed.items():
            for point in followed.points:
                self._put(bucket, followed, point, Subscription)

    def _follow(self, bucket: str) -> None:
        self.followed[bucket] = Followed(self._nearest(bucket), self._table.router.point, self.host.now())
        for point in self.followed[bucket].points:
            self._put(bucket, self.followed[bucket], point, Subscription)

    def _reselect(self, bucket: str, followed: Followed) -> None:
        points = self._nearest(bucket)
        followed.left = sorted({*followed.left, *followed.points} - set(points))
        followed.points = points
        followed.chosen.clear()
        followed.trials.clear()
        followed.where = self._table.router.point
        followed.since_s = self.host.now()
        for point in points:
            self._put(bucket, followed, point, Subscription)

    def _nearest(self, bucket: str) -> list[int]:
        points = range(self._parameters.rendezvous_points)
        by_distance = sorted(points, key=lambda point: (self._distance_m(bucket, point), point))
        return by_distance[: self._parameters.nearest_points]

    def _distance_m(self, bucket: str, point: int) -> float:
        return dist(self._table.router.point, self._table.router.grid.point(key_of(bucket, point)))

    def _put(self, bucket: str, followed: Followed, point: int, message: type[Put]) -> None:
        pruned = [publisher for publisher, chosen in followed.chosen.items() if chosen != point]
        value = encoded(Following(self._table.router.here, tuple(pruned[-PRUNED_MAX:])))
        self._table.put(key_of(bucket, point), value, self._lifetime_s, SUBSCRIPTION, message)

    def _withdraw(self, bucket: str, point: int) -> None:
        self._table.put(key_of(bucket, point), None, self._lifetime_s, SUBSCRIPTION, Subscription)
