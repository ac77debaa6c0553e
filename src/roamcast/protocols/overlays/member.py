"""The client component: a node's application in the eyes of the broker network [3.6].

It keeps a home broker: finds the nearest, attaches to it, reports to it every discovery period, and attaches to another
one, in a new epoch, if the home falls silent. Only the client raises its epoch, so it always knows whose word counts.

It holds the two ends of every guarantee. What the application publishes is kept until the home broker says that all
consumers have it, and is brought to each new home. What is delivered is numbered by the site of the modulator; the
client takes deliveries in order, each once, and remembers how far it has got with each publisher, which is where the
next home starts if this one is lost.
"""

from typing import Final

from roamcast.errors import CallerError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host
from roamcast.protocols.overlays.concentrator import Concentrator
from roamcast.protocols.overlays.messages import (
    Attach,
    Attached,
    Delivery,
    DeliveryAck,
    Detach,
    Publish,
    PublishAck,
    Report,
    ReportAck,
    Want,
    Welcome,
    WelcomeAck,
)
from roamcast.protocols.overlays.modulators import compile_modulator
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.repeats import Attempt, Patience, Ticker
from roamcast.protocols.overlays.search import RingSearch, Sighting
from roamcast.protocols.subscriptions import Subscriptions

EARLY_MAX: Final = 256  # deliveries that may wait for an earlier one
SEEK_AGAIN_S: Final = 2.0  # after a search in vain, on average: nodes that search in step drown each other out
DISCOVER: Final = "member.discover"
ACKNOWLEDGE: Final = "member.acknowledge"
RETRY: Final = "member.retry"
SEEK: Final = "member.seek"
EXPIRED: Final = "overlays: publisher's store"
REPEATED: Final = "overlays: repeated delivery"


class _Kept(Attempt):
    __slots__ = ("event", "is_old")

    def __init__(self, event: Event) -> None:
        super().__init__()
        self.event = event
        self.is_old = False  # published before the current home became it


class Member:
    def __init__(
        self,
        host: Host,
        concentrator: Concentrator,
        search: RingSearch,
        parameters: OverlaysParameters,
        is_broker: bool,
    ) -> None:
        self.subscriptions = Subscriptions()
        self.home = NOBODY
        self.epoch = 0
        self.cursors: dict[int, int] = {}  # publisher -> number of its latest event that came of here
        self._host = host
        self._concentrator = concentrator
        self._search = search
        self._parameters = parameters
        self._is_broker = is_broker
        self._wants: list[Want] = []
        self._modulator = ""
        self._produces = False
        self._advertised: Interest | None = None
        self._version = 0
        self._generation = 0
        self._candidate = NOBODY  # the broker that is asked to become the home
        self._is_joined = False
        self._is_seeking = False
        self._home_heard_s = 0.0
        self._reports = 0
        self.received = 0  # published events up to this number are with the home broker
        self._kept: dict[int, _Kept] = {}  # published and not yet settled, by number
        self._patience = Patience(parameters.retry_s)
        self._ticker = Ticker(host, RETRY, parameters.retry_s, self._repeat)
        self._expected = 1  # sequence of the next delivery
        self._early: dict[int, tuple[Delivery, int]] = {}
        self._acknowledge_to: dict[int, None] = {}
        self.set_modulator(parameters.modulator)
        concentrator.on_all(
            {
                Attached: self._on_attached,
                ReportAck: self._on_report_ack,
                Welcome: self._on_welcome,
                Delivery: self._on_delivery,
                PublishAck: self._on_publish_ack,
            }
        )
        concentrator.on_tick(DISCOVER, self._discover)
        concentrator.on_tick(ACKNOWLEDGE, self._acknowledge)
        concentrator.on_tick(RETRY, self._ticker.tick)
        concentrator.on_tick(SEEK, lambda _: self._seek_home())

    # -- The application ---------------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        self._wants.append((interest, self._host.now()))
        self._change()

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        self._wants.remove(next(want for want in self._wants if want[0] == interest))
        self._change()

    def set_modulator(self, text: str) -> None:
        """What the home broker shall do to this consumer's events from now on; nothing passes them on as they are."""
        if text:
            compile_modulator(text)  # refuses nonsense here rather than at the broker
        if text != self._modulator:
            self._modulator = text
            self._change()

    def advertise(self, interest: Interest) -> None:
        if self._produces and (self._advertised is None or self._advertised.covers(interest)):
            return
        self._advertised = interest if self._advertised is None else self._advertised.union(interest)
        self._produces = True
        self._change()

    def publish(self, event: Event) -> None:
        if event.publisher != self._host.address:
            raise CallerError(f"publish: event {event.id} belongs to node {event.publisher}")
        if not self._produces or (self._advertised is not None and not self._advertised.matches(event)):
            self._produces, self._advertised = True, None
            self._change()
        self._kept[event.number] = _Kept(event)
        if len(self._kept) > self._parameters.store_events:
            oldest = next(iter(self._kept))
            self._host.dropped(EXPIRED, self._kept.pop(oldest).event.id)
        if self.home != NOBODY:
            self._send(event.number)
        self._ticker.start()

    def leave(self) -> None:
        if self.home != NOBODY:
            self._concentrator.send(self.home, Detach(self.epoch, is_final=True))

    # -- The home broker ---------------------------------------------------------------------------------------------

    def _change(self) -> None:
        """The brokers must learn what changed; the first change makes the node a client at all."""
        self._version += 1
        if not self._is_joined:
            if not (self._wants or self._produces):
                return
            self._is_joined = True
            period_s = self._parameters.discovery_period_s
            self._host.set_timer(period_s * (0.5 + self._host.random.random()), (DISCOVER, 0))
            self._seek_home()
        elif self._candidate != NOBODY:
            self._attach()

    def _seek_home(self) -> None:
        """Looks for a broker to attach to, in a new epoch."""
        if self._is_seeking:
            return
        self._become_homeless()
        if self._is_broker:
            self._attach_anew(self._host.address)
            return
        self._is_seeking = True
        self._search.start(self._on_brokers)

    def _become_homeless(self) -> None:
        if self.home != NOBODY:
            self._host.structure("home")
        self.home = self._candidate = NOBODY
        self._concentrator.answered("attach")

    def _on_brokers(self, sightings: list[Sighting]) -> None:
        self._is_seeking = False
        threshold = self._parameters.overload_threshold
        able = [sighting for sighting in sightings if sighting.load <= threshold] or sightings
        if able:
            self._attach_anew(able[0].broker)
        else:
            self._host.set_timer(SEEK_AGAIN_S * (0.5 + self._host.random.random()), (SEEK, 0))

    def _attach_anew(self, broker: int) -> None:
        self.epoch = max(self.epoch + 1, int(self._host.now() * 1000))  # ahead of all epochs of a former life
        self._generation = 0
        self._expected = 1
        self._early.clear()
        self._candidate = broker
        self._attach()

    def _attach(self) -> None:
        message = Attach(
            self._host.address,
            self.epoch,
            self._version,
            tuple(self._wants),
            self._modulator,
            self._produces,
            self._advertised,
            tuple(self.cursors.items()),
        )
        self._concentrator.ask("attach", self._candidate, message, 3, self._seek_home)

    def _on_attached(self, source: int, message: Attached, hops: int) -> None:
        if message.epoch != self.epoch or self._candidate == NOBODY:
            return
        if message.version == self._version:
            self._concentrator.answered("attach")
        if self.home == NOBODY and source == self._candidate:
            self._become_homed(source)

    def _become_homed(self, broker: int) -> None:
        self.home = self._candidate = broker
        self._home_heard_s = self._host.now()
        self._host.structure("home", peer=broker, value=1.0)
        self.received = 0
        for kept in self._kept.values():
            kept.tries = 0
            kept.is_old = True
        for number in self._kept:
            self._send(number)

    def _on_welcome(self, source: int, message: Welcome, hops: int) -> None:
        if message.epoch != self.epoch:
            self._concentrator.send(source, Detach(message.epoch, is_final=False))
            return
        self._concentrator.send(source, WelcomeAck(message.epoch, message.generation))
        if message.generation > self._generation:
            self._generation = message.generation
            changes_pending = self._concentrator.answered("attach")
            self._become_homed(source)
            if changes_pending:
                self._attach()

    def _discover(self, _: int) -> None:
        self._host.set_timer(self._parameters.discovery_period_s, (DISCOVER, 0))
        if self.home == NOBODY:
            return
        if self._host.now() - self._home_heard_s > self._parameters.home_timeout_s:
            self._seek_home()
        elif self._is_broker:
            own = None if self.home == self._host.address else Sighting(0, 0.0, self._host.address)
            self._report(own)
        else:
            self._search.start(self._on_vicinity)

    def _on_vicinity(self, sightings: list[Sighting]) -> None:
        if self.home == NOBODY:
            return
        # Several may be equally near, the home among them; each gets its turn to be compared with the home.
        nearest = [each for each in sightings if each.hops == sightings[0].hops and each.broker != self.home]
        self._reports += 1
        self._report(nearest[self._reports % len(nearest)] if nearest else None)

    def _report(self, nearest: Sighting | None) -> None:
        if nearest is None:
            report = Report(self._host.address, self.epoch, None, 0, 0.0)
        else:
            report = Report(self._host.address, self.epoch, nearest.broker, nearest.hops, nearest.load)
        self._concentrator.send(self.home, report)

    def _on_report_ack(self, source: int, message: ReportAck, hops: int) -> None:
        if self.home == NOBODY or message.epoch != self.epoch:
            return
        if message.known:
            self._home_heard_s = self._host.now()
        else:
            self._seek_home()

    # -- Publishing --------------------------------------------------------------------------------------------------

    def _send(self, number: int) -> None:
        kept = self._kept[number]
        self._patience.tried(kept, self._host.now())
        previous = 0
        for earlier in self._kept:
            if earlier >= number:
                break
            if earlier > self.received:
                previous = earlier
        self._concentrator.send(self.home, Publish(previous, kept.event, kept.is_old))

    def _on_publish_ack(self, source: int, message: PublishAck, hops: int) -> None:
        if source == self.home:
            self._home_heard_s = self._host.now()
            for number, kept in self._kept.items():
                if self.received < number <= message.received:
                    self._patience.answered(kept, self._home_heard_s)
            self.received = max(self.received, message.received)
        for number in [number for number in self._kept if number <= message.released]:
            del self._kept[number]

    def _repeat(self, now_s: float) -> bool:
        old_s = now_s - self._parameters.store_lifetime_s
        for number, kept in list(self._kept.items()):
            if kept.event.time_s < old_s:
                del self._kept[number]
                if number > self.received:
                    self._host.dropped(EXPIRED, kept.event.id)
            elif self.home != NOBODY and number > self.received and kept.due_s <= now_s:
                self._send(number)
        return bool(self._kept)

    # -- Deliveries --------------------------------------------------------------------------------------------------

    def _on_delivery(self, source: int, message: Delivery, hops: int) -> None:
        if message.epoch != self.epoch:
            if message.epoch < self.epoch:
                self._concentrator.send(message.site, Detach(message.epoch, is_final=False))
            return
        self._home_heard_s = self._host.now()
        if message.sequence >= self._expected and len(self._early) < EARLY_MAX:
            self._early[message.sequence] = (message, message.hops + hops)
        while self._expected in self._early:
            self._take(*self._early.pop(self._expected))
            self._expected += 1
        if not self._acknowledge_to:
            self._host.set_timer(self._parameters.acknowledgement_delay_s, (ACKNOWLEDGE, 0))
        self._acknowledge_to[message.site] = None

    def _take(self, delivery: Delivery, hops: int) -> None:
        event = delivery.event
        is_new = event.number > self.cursors.get(event.publisher, 0)
        for publisher, number in delivery.cursors:
            self.cursors[publisher] = max(number, self.cursors.get(publisher, 0))
        if not is_new:
            self._host.dropped(REPEATED, event.id)
        elif self._modulator or self.subscriptions.match(event):
            self._host.deliver(event, hops)

    def _acknowledge(self, _: int) -> None:
        for site in self._acknowledge_to:
            self._concentrator.send(site, DeliveryAck(self.epoch, self._expected - 1))
        self._acknowledge_to.clear()
