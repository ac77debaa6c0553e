"""The producers' side of a broker: from a producer's event to the brokers whose clients want it.

A broker that is home to a producer announces itself to all brokers it knows of (`announcements`), and each answers with
those of its clients that may want such events. An event goes once to each broker that has consumers of it, along the
shortest path of the overlay, with the list of those consumers; paths that share a stretch share the copy on it. The
event stays in the producer's log until its consumers have it.

`Detour` switches a consumer to another site in one step: what was sent before belongs to the old site and is repeated
there if need be; everything after goes to the new one.
"""

from enum import StrEnum
from typing import Final

from roamcast.interests import Interest, union_all
from roamcast.protocols.api import Host
from roamcast.protocols.batches import batches_of
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.announcements import SourceAnnouncements
from roamcast.protocols.overlays.brokers import BrokerManager
from roamcast.protocols.overlays.channel import SystemChannel
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.log import ProducerLog, StoredEvent
from roamcast.protocols.overlays.messages import (
    BRANCHES_MAX,
    Detour,
    DetourAck,
    Forward,
    Publish,
    PublishAck,
    Receipt,
    Register,
    RegisterAck,
    Registration,
    Spread,
    Target,
)
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import is_newer
from roamcast.protocols.overlays.repeats import Patience, Ticker
from roamcast.protocols.overlays.wants import Wants

EXPIRED: Final = "overlays: store lifetime"
FULL: Final = "overlays: store full"


class SourcesTimer(StrEnum):
    """The key is always 0."""

    ACKNOWLEDGE = "sources.acknowledge"  # tell producers what has been received and what they may forget
    RELEASE = "sources.release"  # tell producers what they may forget, if nothing else had to be told
    RETRY = "sources.retry"  # repeat what was not received
    IDLE = "sources.idle"  # the last producer left some time ago


class Subscriber:
    """A consumer as a producer's home broker sees it."""

    def __init__(self, row: Registration) -> None:
        self.client = row.client
        self.site = row.site
        self.wants = Wants(row.wants)
        self.rank = (row.epoch, row.generation, row.version)
        self.old_site = row.site
        self.waits_since_s: float | None = None  # since when an event waits for its receipt; None: none does
        self.switch: dict[int, int] = {}  # publisher -> the last number that went to the old site

    def site_of(self, publisher: int, number: int) -> int:
        return self.old_site if number <= self.switch.get(publisher, 0) else self.site


class SourceManager(Component):
    def __init__(
        self,
        host: Host,
        *,
        concentrator: Concentrator,
        channel: SystemChannel,
        brokers: BrokerManager,
        parameters: OverlaysParameters,
    ) -> None:
        super().__init__(host)
        self.logs: dict[int, ProducerLog] = {}  # by publisher, of those whose home this is, or was while events last
        self.subscribers: dict[int, Subscriber] = {}  # by client
        self._concentrator = concentrator
        self._brokers = brokers
        self._parameters = parameters
        self._hosted: dict[int, Interest | None] = {}  # publisher -> what it advertised
        self._acknowledgements: dict[int, None] = {}
        self._unacknowledged = 0  # events of producers
        self._releases: dict[int, None] = {}  # publishers that are to be told what they may forget
        self._patience = Patience(parameters)
        self._ticker = Ticker(host, SourcesTimer.RETRY, parameters.retry_s, self._tick)
        self._announcements = SourceAnnouncements(
            host,
            concentrator=concentrator,
            channel=channel,
            brokers=brokers,
            enrol=self._enrol,
            parameters=parameters,
        )

    def declare(self, inputs: Inputs) -> None:
        self._announcements.declare(inputs)
        self._concentrator.on(Publish, self._on_publish)
        self._concentrator.on(Register, self._on_register)
        self._concentrator.on(Receipt, self._on_receipt)
        self._concentrator.on(Detour, self._on_detour)
        inputs.on_timer(SourcesTimer.ACKNOWLEDGE, self._acknowledge)
        inputs.on_timer(SourcesTimer.RELEASE, self._on_release)
        inputs.on_timer(SourcesTimer.RETRY, self._ticker.tick)
        inputs.on_timer(SourcesTimer.IDLE, self._idle)

    # -- For the client manager ------------------------------------------------------------------------------------

    def host_producer(self, publisher: int, advertised: Interest | None, held_s: float | None = None) -> None:
        """A client that publishes has this broker as its home.

        One that was not relocated here may have lost its home broker, and with it all knowledge of consumers that lost
        theirs too. So its events are held for as long as the store holds anything: consumers that find a home by then
        get them.
        """
        if publisher not in self._hosted:
            held_until_s = self.host.now() + (self._parameters.store_lifetime_s if held_s is None else held_s)
            log = self.logs.setdefault(publisher, ProducerLog(publisher, held_until_s, self._parameters.intake_max))
            log.held_until_s = max(log.held_until_s, held_until_s)
        elif self._hosted[publisher] == advertised:
            return
        self._hosted[publisher] = advertised
        self.host.cancel_timer((SourcesTimer.IDLE, 0))
        offer = self._offer()
        if not self._announcements.is_source or offer != self._announcements.offered:
            self._announcements.announce(offer)

    def drop_producer(self, publisher: int) -> None:
        """The client has another home, or none. It will bring there what is not settled, if it lives to do so; what it
        left here stays until that is settled, and consumers get it from whichever is first."""
        if publisher not in self._hosted:
            return
        del self._hosted[publisher]
        if not self._hosted:
            self.host.set_timer(self._parameters.source_idle_s, (SourcesTimer.IDLE, 0))

    def held_s(self, publisher: int) -> float:
        """For how long the producer's events must still be held; as long as possible if another broker is its home,
        since that one may be gone."""
        if publisher not in self._hosted:
            return self._parameters.store_lifetime_s
        return max(0.0, self.logs[publisher].held_until_s - self.host.now())

    def consumers_of(self, publisher: int) -> tuple[Registration, ...]:
        """Who wants what a producer publishes, for its next home: some of them may have no home at the moment."""
        log = self.logs.get(publisher)
        if log is None:
            return ()
        return tuple(
            Registration(
                client=client,
                epoch=subscriber.rank[0],
                generation=subscriber.rank[1],
                version=subscriber.rank[2],
                site=subscriber.site,
                wants=subscriber.wants.rows,
                cursors=((publisher, log.received(client)),),
            )
            for client, subscriber in self.subscribers.items()
        )

    def adopt(self, consumers: tuple[Registration, ...]) -> None:
        """What the former home of a producer knew; consumers that have been heard of here are known better."""
        for row in consumers:
            if row.client not in self.subscribers:
                self._enrol(row)

    # -- Consumers -------------------------------------------------------------------------------------------------

    def _offer(self) -> Interest | None:
        advertised = list(self._hosted.values())
        return None if None in advertised else union_all(interest for interest in advertised if interest is not None)

    def _idle(self, _: int) -> None:
        if any(log.entries for log in self.logs.values()):
            self.host.set_timer(self._parameters.source_idle_s, (SourcesTimer.IDLE, 0))
            return
        self.logs.clear()
        self._announcements.withdraw()
        self.subscribers.clear()

    def _on_register(self, source: int, message: Register, hops: int) -> None:
        row = message.row
        if self._announcements.is_source:
            self._enrol(row)
        self._concentrator.send(source, RegisterAck(row.client, row.epoch, row.generation, row.version))

    def _enrol(self, row: Registration) -> None:
        known = self.subscribers.get(row.client)
        rank = (row.epoch, row.generation, row.version)
        if known is not None and is_newer(known.rank, rank):
            return
        if known is None and len(self.subscribers) >= self._parameters.subscribers_max:
            return
        if not row.wants:
            self.subscribers.pop(row.client, None)
            for log in self.logs.values():
                log.forget(row.client)
            return
        subscriber = self.subscribers[row.client] = Subscriber(row)
        if known is not None and known.rank[:2] == rank[:2]:
            subscriber.old_site, subscriber.switch = known.old_site, known.switch
        cursors = dict(row.cursors)
        starts_over = known is None or known.rank[0] != row.epoch
        for publisher, log in self.logs.items():
            cursor = cursors.get(publisher, 0)
            if starts_over:
                log.restart(row.client, cursor)
            for number, entry in log.entries.items():
                if number <= cursor or row.client == publisher:
                    continue
                is_missing = starts_over or row.client not in entry.unsettled
                if is_missing and subscriber.wants.matches(entry.event, by_time=True):
                    log.demand(entry, row.client)
                    self._send(log, entry, [row.client])

    # -- Events ----------------------------------------------------------------------------------------------------

    def _on_publish(self, source: int, message: Publish, hops: int) -> None:
        if source not in self._hosted or message.event.publisher != source:
            return
        log = self.logs[source]
        log.intake.offer(message.event, message.previous, hops, message.is_old)
        while (arrival := log.intake.take()) is not None:
            self._store(log, StoredEvent(arrival.event, arrival.hops, self.host.now()), arrival.is_old)
        self._acknowledge_soon(source)

    def _store(self, log: ProducerLog, entry: StoredEvent, is_old: bool) -> None:
        event = entry.event
        publisher = event.publisher
        wanting = [
            client
            for client, subscriber in self.subscribers.items()
            if client != publisher and subscriber.wants.matches(event, by_time=is_old)
        ]
        previous = log.append(entry, wanting)
        by_site: dict[int, list[Target]] = {}
        for client in wanting:
            subscriber = self.subscribers[client]
            if subscriber.waits_since_s is None:
                subscriber.waits_since_s = self.host.now()
            by_site.setdefault(subscriber.site, []).append((client, subscriber.rank[0], previous[client]))
        self._forward(entry, by_site)
        self._patience.tried(entry, self.host.now())
        for expired in log.expire(float("-inf"), self._parameters.store_events):
            if expired.unsettled:
                self.host.dropped(FULL, expired.event.id)
        self._ticker.start()

    def _send(self, log: ProducerLog, entry: StoredEvent, clients: list[int]) -> None:
        """Sends an event that is in the log already."""
        number = entry.event.number
        by_site: dict[int, list[Target]] = {}
        for client in clients:
            subscriber = self.subscribers.get(client)
            if subscriber is not None:
                site = subscriber.site_of(log.publisher, number)
                by_site.setdefault(site, []).append((client, subscriber.rank[0], log.previous(client, number)))
        self._forward(entry, by_site)
        self._ticker.start()

    def _forward(self, entry: StoredEvent, by_site: dict[int, list[Target]]) -> None:
        if self._parameters.event_tree:
            branches = [(self._brokers.path(site), tuple(targets)) for site, targets in by_site.items()]
            for some in batches_of(branches, BRANCHES_MAX):
                self._concentrator.spread(Spread(self.host.address, entry.hops, 0, some, entry.event))
            return
        for site, targets in by_site.items():
            message = Forward(self.host.address, entry.hops, tuple(targets), entry.event)
            self._concentrator.carry(self._brokers.path(site), message)

    def _on_receipt(self, source: int, message: Receipt, hops: int) -> None:
        for client, epoch, publisher, processed, settled in message.rows:
            subscriber = self.subscribers.get(client)
            log = self.logs.get(publisher)
            if log is not None and subscriber is not None and subscriber.rank[0] == epoch:
                now_s = self.host.now()
                subscriber.waits_since_s = None
                for entry in log.acknowledge(client, processed, settled):
                    self._patience.answered(entry, now_s)
        self._release()

    def _release(self) -> None:
        if not self._announcements.is_complete:
            return
        now_s = self.host.now()
        for publisher, log in self.logs.items():
            if now_s >= log.held_until_s and log.release(now_s - self._parameters.linger_s):
                self._acknowledge_release(publisher)

    def _acknowledge_soon(self, publisher: int) -> None:
        if not self._acknowledgements:
            self.host.set_timer(self._parameters.acknowledgement_delay_s, (SourcesTimer.ACKNOWLEDGE, 0))
        self._acknowledgements[publisher] = None
        self._unacknowledged += 1
        if self._unacknowledged >= self._parameters.acknowledgements_max:
            self.host.cancel_timer((SourcesTimer.ACKNOWLEDGE, 0))
            self._acknowledge(0)

    def _acknowledge_release(self, publisher: int) -> None:
        """The producer may forget events: it is told with the next acknowledgement, or after a while."""
        if not self._parameters.release_delay_s:
            self._acknowledge_soon(publisher)
            return
        if not self._releases:
            self.host.set_timer(self._parameters.release_delay_s, (SourcesTimer.RELEASE, 0))
        self._releases[publisher] = None

    def _on_release(self, _: int) -> None:
        releases, self._releases = self._releases, {}
        for publisher in releases:
            self._acknowledge_soon(publisher)

    def _acknowledge(self, _: int) -> None:
        for publisher in self._acknowledgements:
            if publisher in self._hosted:
                log = self.logs[publisher]
                received = log.intake.taken.get(publisher, 0)
                self._concentrator.send(publisher, PublishAck(received, log.released))
                self._releases.pop(publisher, None)
        self._acknowledgements.clear()
        self._unacknowledged = 0

    def _tick(self, now_s: float) -> bool:
        """Repeats what was not received, and forgets what is settled or too old."""
        self._announcements.check_complete()
        for log in self.logs.values():
            for entry in log.expire(now_s - self._parameters.store_lifetime_s, self._parameters.store_events):
                for _client in entry.unreceived:
                    self.host.dropped(EXPIRED, entry.event.id)
                self._acknowledge_release(log.publisher)
            for entry in log.entries.values():
                if entry.unreceived and entry.due_s <= now_s:
                    self._patience.tried(entry, now_s)
                    self._send(log, entry, list(entry.unreceived))
        self._forget_silent(now_s)
        self._release()
        for publisher in [publisher for publisher, log in self.logs.items() if not log.entries]:
            if publisher not in self._hosted:
                del self.logs[publisher]
        return any(log.entries for log in self.logs.values())

    def _forget_silent(self, now_s: float) -> None:
        """Drops consumers whose site has long been silent although events wait for its receipt. If the site is heard
        of again, it is asked for its consumers again."""
        silent_s = now_s - self._parameters.silent_lifetimes * self._parameters.store_lifetime_s
        for client, subscriber in list(self.subscribers.items()):
            if subscriber.waits_since_s is not None and subscriber.waits_since_s < silent_s:
                del self.subscribers[client]
                self._announcements.ask_again(subscriber.site)
                for log in self.logs.values():
                    log.forget(client)

    # -- Relocation ------------------------------------------------------------------------------------------------

    def _on_detour(self, source: int, message: Detour, hops: int) -> None:
        """Switches a consumer, if it is known as it was right before this relocation. Otherwise its new site has to
        say how far the consumer has got, by registering it."""
        subscriber = self.subscribers.get(message.client)
        last: tuple[tuple[int, int], ...] = ()
        known = False
        if subscriber is not None:
            if subscriber.rank[:2] == (message.epoch, message.generation - 1):
                subscriber.old_site, subscriber.site = subscriber.site, message.site
                subscriber.rank = (message.epoch, message.generation, subscriber.rank[2])
                subscriber.switch = {
                    publisher: log.last_unreceived(message.client) for publisher, log in self.logs.items()
                }
            known = subscriber.rank[:2] == (message.epoch, message.generation)
            if known:
                last = tuple((publisher, number) for publisher, number in subscriber.switch.items() if number)
        answer = DetourAck(message.client, message.epoch, message.generation, known, last)
        self._concentrator.send(source, answer)
        if message.site != source and self._parameters.detour_ack_to_destination:
            self._concentrator.send(message.site, answer)
