"""The subscriber's part: follow buckets at the nearest points, keep one path per publisher, filter what comes.

For each bucket that the application's interests touch, the node subscribes at the m of the n rendezvous points that are
nearest to it (section 2.4). The first event of a publisher then arrives once per point. After `selection_wait_s` the
node keeps the path with the fewest hops (on a tie the nearer point) and prunes that publisher at the others (2.3). The
prunes travel with every refresh of the subscription, so a lost one heals.

With `filter_at_rendezvous` a subscription carries the application's whole interest, if it fits. A wider interest is
told at once, a narrower one with the next refresh.

A node that has moved by `reselection_distance_m` chooses its nearest points again and tries them all; so it does every
`reselection_period_s`, in case the path it kept has become worse. Points that it leaves keep its subscription for one
more refresh period, so that no event is lost in between. A node that has moved `early_refresh_share` of the radio range
refreshes early, so that notifications find it.

Events that match no interest of the application are dropped as `unwanted`, copies of known events as `duplicate`.
"""

from enum import StrEnum
from math import dist
from typing import Final

from roamcast.interests import Interest
from roamcast.protocols.api import Host, Point
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.georendezvous.buckets import Buckets
from roamcast.protocols.georendezvous.clients import Following, encoded
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import (
    SUBSCRIPTION,
    VALUE_BYTES_MAX,
    ForwardedNotification,
    Probe,
    Prune,
    Put,
    Subscription,
    key_of,
)
from roamcast.protocols.georendezvous.parameters import GeoRendezvousParameters
from roamcast.protocols.jitter import jittered
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions

DROP_UNWANTED: Final = "unwanted"  # the bucket brought it, no interest matches it
DROP_DUPLICATE: Final = "duplicate"  # it came by another path before


class SubscriberTimer(StrEnum):
    REFRESH = "georendezvous.refresh"  # subscriptions are due again
    SELECT = "georendezvous.select"  # key: number of a trial; the copies of a publisher's first event are in


class Followed:
    """How one bucket is followed."""

    def __init__(self, points: list[int], where: Point, now_s: float) -> None:
        self.points = points
        self.left: list[int] = []  # former points, until the next refresh
        self.chosen: dict[int, int] = {}  # publisher -> the point that its events come through
        self.trials: dict[int, dict[int, int]] = {}  # publisher -> point -> hops of its first event
        self.where = where  # when the points were chosen
        self.since_s = now_s


class Subscriber(Component):
    _inputs: Inputs

    def __init__(
        self, host: Host, parameters: GeoRendezvousParameters, table: CellHashTable, buckets: Buckets, points: int
    ) -> None:
        super().__init__(host)
        self.subscriptions = Subscriptions()
        self.followed: dict[str, Followed] = {}
        self._table = table
        self._buckets = buckets
        self._points = points
        self._parameters = parameters
        self._lifetime_s = parameters.refresh_period_s * parameters.lifetime_periods
        self._reselection_distance_m = parameters.reselection_distance_m or table.router.grid.site.range_m
        self._moved_m = parameters.early_refresh_share * table.router.grid.site.range_m
        self._seen = SeenCache()
        self._told_at: Point = table.router.point  # where this node was when it last refreshed
        self._widened: dict[str, None] = {}  # buckets whose points do not know the whole interest yet
        self._trials: dict[int, tuple[str, int]] = {}  # by number: bucket and publisher
        self._trials_so_far = 0
        table.receive(ForwardedNotification, self._on_notification)
        table.each_beat(self._follow_movement)

    def declare(self, inputs: Inputs) -> None:
        self._inputs = inputs
        inputs.on_timer(SubscriberTimer.REFRESH, self._refresh)
        inputs.on_timer(SubscriberTimer.SELECT, self._select)

    def start(self) -> None:
        self._refresh_later()

    # -- The application -----------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        for bucket in self._buckets.of_interest(interest):
            if bucket not in self.followed:
                self.followed[bucket] = Followed(self._nearest(bucket), self._table.router.point, self.host.now())
            elif not self._parameters.filter_at_rendezvous:
                continue
            if not self._widened:
                self._inputs.later(self._tell_widened)
            self._widened[bucket] = None

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        needed = {bucket for open_interest in self.subscriptions for bucket in self._buckets.of_interest(open_interest)}
        for bucket in self._buckets.of_interest(interest):
            if bucket in self.followed and bucket not in needed:
                followed = self.followed.pop(bucket)
                for point in followed.points + followed.left:
                    self._withdraw(bucket, point)

    def _tell_widened(self) -> None:
        widened, self._widened = self._widened, {}
        for bucket in widened:
            followed = self.followed.get(bucket)
            if followed is not None:
                self._put_all(bucket, followed)

    # -- Events --------------------------------------------------------------------------------------------------

    def _on_notification(self, message: ForwardedNotification, point: int, hops: int) -> None:
        event = message.event
        if not self._seen.add(event.id):
            self.host.dropped(DROP_DUPLICATE, event.id)
        elif event.publisher != self.host.address and self.subscriptions.match(event):  # its own: of an earlier life
            self.host.deliver(event, hops)
        else:
            self.host.dropped(DROP_UNWANTED, event.id)
        bucket = message.bucket
        followed = self.followed.get(bucket)
        if followed is None:
            self._withdraw(bucket, point)
        elif event.publisher not in followed.chosen:
            self._try(message, followed, point, hops)
        elif point in followed.points and point != followed.chosen[event.publisher]:
            self._put(bucket, followed, point, Prune)

    def _try(self, message: ForwardedNotification, followed: Followed, point: int, hops: int) -> None:
        publisher = message.event.publisher
        trial = followed.trials.get(publisher)
        if trial is None:
            if len(followed.trials) + len(followed.chosen) >= self._parameters.publishers_max:
                return  # its events go on coming through every point
            trial = followed.trials[publisher] = {}
            self._trials_so_far += 1
            self._trials[self._trials_so_far] = message.bucket, publisher
            self.host.set_timer(
                self._parameters.selection_wait_s, (SubscriberTimer.SELECT.value, self._trials_so_far)
            )
            if self._parameters.probe_direct_path:
                probe = Probe(self.host.address)
                self._table.router.send_to_node(publisher, message.publisher_at, probe)
        if point in followed.points:
            trial.setdefault(point, hops)

    def _select(self, number: int) -> None:
        bucket, publisher = self._trials.pop(number)
        followed = self.followed.get(bucket)
        trial = None if followed is None else followed.trials.pop(publisher, None)
        if followed is None or not trial:
            return  # only former points brought it: the next event is another trial
        point = min(trial, key=lambda candidate: (trial[candidate], self._distance_m(bucket, candidate), candidate))
        followed.chosen[publisher] = point
        self.host.structure("selected", peer=publisher, value=float(point), detail=bucket)
        for other in followed.points:
            if other != point:
                self._put(bucket, followed, other, Prune)

    # -- Keeping subscriptions -----------------------------------------------------------------------------------

    def _follow_movement(self) -> None:
        here = self._table.router.point
        for bucket, followed in self.followed.items():
            if dist(here, followed.where) >= self._reselection_distance_m:
                self._reselect(bucket, followed)
        if self.followed and dist(here, self._told_at) >= self._moved_m:
            self._renew()

    def _refresh(self, key: int) -> None:
        now_s = self.host.now()
        for bucket, followed in self.followed.items():
            for point in followed.left:
                self._withdraw(bucket, point)
            followed.left.clear()
            if now_s - followed.since_s >= self._parameters.reselection_period_s:
                self._reselect(bucket, followed)
        self._renew()
        self._refresh_later()

    def _refresh_later(self) -> None:
        parameters = self._parameters
        delay_s = jittered(parameters.refresh_period_s, parameters.jitter, self.host.random)
        self.host.set_timer(delay_s, (SubscriberTimer.REFRESH.value, 0))

    def _renew(self) -> None:
        self._told_at = self._table.router.point
        for bucket, followed in self.followed.items():
            self._put_all(bucket, followed)

    def _reselect(self, bucket: str, followed: Followed) -> None:
        points = self._nearest(bucket)
        followed.left = sorted({*followed.left, *followed.points} - set(points))
        followed.points = points
        followed.chosen.clear()
        followed.trials.clear()
        followed.where = self._table.router.point
        followed.since_s = self.host.now()
        self._put_all(bucket, followed)

    def _nearest(self, bucket: str) -> list[int]:
        by_distance = sorted(range(self._points), key=lambda point: (self._distance_m(bucket, point), point))
        return by_distance[: self._parameters.nearest_points]

    def _distance_m(self, bucket: str, point: int) -> float:
        return dist(self._table.router.point, self._table.router.grid.point(key_of(bucket, point)))

    def _put_all(self, bucket: str, followed: Followed) -> None:
        for point in followed.points:
            self._put(bucket, followed, point, Subscription)

    def _put(self, bucket: str, followed: Followed, point: int, message: type[Put]) -> None:
        pruned = [publisher for publisher, chosen in followed.chosen.items() if chosen != point]
        pruned = pruned[-self._parameters.pruned_max :]
        at = self._table.router.here
        interest = self.subscriptions.interest if self._parameters.filter_at_rendezvous else None
        value = encoded(Following(at, tuple(pruned), interest))
        if len(value) > VALUE_BYTES_MAX:
            value = encoded(Following(at, tuple(pruned)))  # without a filter everything is forwarded
        self._table.put(key_of(bucket, point), value, self._lifetime_s, SUBSCRIPTION, message)

    def _withdraw(self, bucket: str, point: int) -> None:
        self._table.put(key_of(bucket, point), None, self._lifetime_s, SUBSCRIPTION, Subscription)
