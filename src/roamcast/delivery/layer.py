"""Delivery that applications can count on: a layer above any protocol, which stays as it is.

Theory of operation
-------------------
Goal: an event reaches every node that wants it, exactly once, if there is a chain of contacts within its lifetime:
even if frames are lost, nodes are down or away, or its publisher did not know of the
interest when it published.

The protocol below does what it always did, and most events arrive by it. The layer looks at every message that passes
and repairs what is missing. It has four parts:
- `Registry`: who wants what. Every node passes on what every other asks for.
- `Holdings`: the events that this node has published, or keeps for others that want them.
- `Custody`: tells neighbours what this node holds, and fetches from them what is missing here.
- `Inboxes`: the subscriptions of this node, and which events each has had.

Rules:
1. An event that is published is stored before the protocol sees it. If that fails, the caller is told, and nothing is
   published.
2. An event that passes in any message, and that some node is known to want, is taken into custody.
3. What a neighbour holds and this node does not is fetched from it, unless it comes by itself.
4. An application gets an event once, from the protocol or from the layer, whichever is first. An event that only passed
   in a message of the protocol waits for the next beat: the protocol may deliver it itself, or a changed one.
5. When interests grow, events that no node wanted before are checked again, here and at the neighbours.
6. Ages are counted by those who hold an event, hop by hop. Clocks that disagree, or jump, change nothing.

Events keep their publisher's signature, and a host that checks signatures checks those in the layer's messages too.
"""

from collections.abc import Callable
from typing import Any

from roamcast.delivery.custody import Custody
from roamcast.delivery.holdings import Holdings
from roamcast.delivery.inboxes import Handed, Inboxes, Outlet
from roamcast.delivery.messages import MESSAGES, Carried
from roamcast.delivery.numbers import NumberRanges
from roamcast.delivery.registry import WANT_BYTES_MAX, Registry
from roamcast.delivery.settings import DeliverySettings
from roamcast.delivery.storage import MemoryStorage, Storage, StorageError, UnstoredError
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, NUMBER_BITS, Event
from roamcast.interests import Interest
from roamcast.protocols.api import (
    NOBODY,
    PLAIN_CHANNEL,
    Host,
    Message,
    Modulation,
    Point,
    Protocol,
    Timer,
    Work,
)
from roamcast.protocols.batches import encoded_bytes
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.contents import Contents

CUSTODY_WATCHED_MAX = 4096
"""Own events whose custodians are counted."""

OBSERVED_MAX = 4096
"""Events that passed and wait for the protocol to deliver them."""


class ProtocolHost(Host):
    """The host of the protocol below: all is the real host's but deliveries, which go to the layer."""

    def __init__(self, host: Host, on_delivery: Callable[[Event, int], None]) -> None:
        self.address = host.address
        self.life = host.life
        self.frame_bytes_max = host.frame_bytes_max
        self.message_bytes_max = host.message_bytes_max
        self.random = host.random
        self.site = host.site
        self.oracle = host.oracle
        self._host = host
        self._on_delivery = on_delivery

    def now(self) -> float:
        return self._host.now()

    def position(self) -> Point | None:
        return self._host.position()

    def velocity(self) -> Point | None:
        return self._host.velocity()

    def broadcast(self, message: Message) -> None:
        self._host.broadcast(message)

    def send(self, neighbour: int, message: Message) -> None:
        self._host.send(neighbour, message)

    def backlog(self) -> int:
        return self._host.backlog()

    def work(self, kind: Work) -> None:
        self._host.work(kind)

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        self._host.set_timer(delay_s, timer)

    def cancel_timer(self, timer: Timer) -> None:
        self._host.cancel_timer(timer)

    def deliver(self, event: Event, hops: int, channel: int = PLAIN_CHANNEL) -> None:
        """The output of a modulator cannot be fetched from other nodes, so it is delivered as it is."""
        if channel == PLAIN_CHANNEL:
            self._on_delivery(event, hops)
        else:
            self._host.deliver(event, hops, channel)

    def refused(self, channel: int, reason: str) -> None:
        self._host.refused(channel, reason)

    def cpu_s(self) -> float:
        return self._host.cpu_s()

    def machine_load(self) -> float:
        return self._host.machine_load()

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        self._host.dropped(reason, event_id)

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        self._host.structure(aspect, peer, value, detail)


class DeliveryLayer(ComposedProtocol):
    """A protocol for its host, made of another protocol and the layer above it."""

    def __init__(
        self,
        host: Host,
        make: Callable[[Host], Protocol],
        settings: DeliverySettings | None = None,
        storage: Storage | None = None,
        outlet: Outlet | None = None,
    ) -> None:
        super().__init__(host)
        self.settings = DeliverySettings() if settings is None else settings
        self._shell = ProtocolHost(host, self._on_delivery)
        self.protocol = make(self._shell)
        self.messages: Any = self.protocol.messages | MESSAGES  # type: ignore[misc]
        self.modulates = self.protocol.modulates  # type: ignore[misc]
        self._contents = Contents(self.protocol.messages)
        self.holdings = Holdings(MemoryStorage() if storage is None else storage, self.settings, host.now)
        self.registry = Registry(host, self.settings, self._on_records)
        self.inboxes = Inboxes(
            self.settings,
            self.holdings,
            self._plain_outlet if outlet is None else outlet,
            now=host.now,
            progress=self.registry.progress,
        )
        self.custody = Custody(
            host,
            self.settings,
            self.holdings,
            digest=lambda: self.registry.digest,
            on_digest=self.registry.compare,
            on_tick=self._tick,
            on_carried=self._on_carried,
            on_custody=self._on_custody,
        )
        self.compose(self.registry, self.custody)
        self._observed: dict[int, tuple[Event, int]] = {}
        self._own = NumberRanges()  # of own events that are offered
        self._custodians: dict[int, set[int]] = {}  # by own event: the neighbours that hold it
        self.on_custody: Callable[[int, int], None] = lambda event_id, neighbours: None
        self._read_again = False
        self._read_again_s = float("-inf")
        self.storage_errors = 0

    def _plain_outlet(self, handed: Handed) -> None:
        """For a node whose applications have no inboxes: an event is done once it is handed over."""
        self.host.deliver(handed.event, handed.hops)
        if handed.name:
            self.inboxes.acknowledge(handed.name, handed.event.id)

    def start(self) -> None:
        self.protocol.start()
        self.registry.start()
        self.custody.start()
        for inbox in self.inboxes.durable:
            self.protocol.subscribe(inbox.interest)
        self._say_interest()
        self._look_through()

    def limit_frames(self, frame_bytes_max: int) -> None:
        """The host's links carry frames of another size than before."""
        self._shell.frame_bytes_max = frame_bytes_max

    # -- The application -----------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self._require_small(interest)
        self.inboxes.subscribe(interest)
        self.protocol.subscribe(interest)
        self._say_interest()

    def unsubscribe(self, interest: Interest) -> None:
        self.protocol.unsubscribe(interest)
        self.inboxes.unsubscribe(interest)
        self._say_interest()

    def advertise(self, interest: Interest) -> None:
        self.protocol.advertise(interest)

    def open_channel(self, channel: int, interest: Interest, modulation: Modulation) -> None:
        self.protocol.open_channel(channel, interest, modulation)

    def close_channel(self, channel: int) -> None:
        self.protocol.close_channel(channel)

    def in_custody(self) -> tuple[int, int]:
        """Of the protocol and of the layer."""
        events, size_bytes = self.protocol.in_custody()
        return events + self.holdings.bodies, size_bytes + self.holdings.bytes

    def attach(self, name: str, interest: Interest, *, is_ordered: bool, is_durable: bool) -> None:
        """An application takes the events of a subscription with a name; `Inboxes.attach` says which."""
        self._require_small(interest)
        before = self.inboxes.attach(name, interest, is_ordered=is_ordered, is_durable=is_durable)
        if before != interest:
            if before is not None:
                self.protocol.unsubscribe(before)
            self.protocol.subscribe(interest)
        self._say_interest()
        self.inboxes.flush()

    def detach(self, name: str, *, forget: bool) -> None:
        """The application is gone; a durable subscription goes on collecting, unless it is to be forgotten."""
        interest = self.inboxes.detach(name, forget=forget)
        if interest is not None:
            self.protocol.unsubscribe(interest)
        self._say_interest()

    def acknowledge(self, name: str, event_id: int) -> None:
        """The application is through with an event of a subscription with a name."""
        self.inboxes.acknowledge(name, event_id)

    def store(self, event: Event) -> None:
        """Keeps an event of this node's application. `UnstoredError` if that is not possible; then nothing was
        published. `publish` follows."""
        try:
            held = self.holdings.add(event, age_s=0.0, hops=0, is_own=True, waiting=[])
        except StorageError as error:
            self.storage_errors += 1
            raise UnstoredError(f"publish: {error}; the event was not published") from None
        if held is None:
            raise ConfigurationError(f"publish: utility = {event.utility!r}: the event is worth nothing from the start")
        self._custodians[event.id] = set()
        if len(self._custodians) > CUSTODY_WATCHED_MAX:
            del self._custodians[next(iter(self._custodians))]
        self._offer_if_wanted(event)

    def publish(self, event: Event) -> None:
        if event.id not in self.holdings:
            self.store(event)
        self.protocol.publish(event)

    def custodians(self, event_id: int) -> int:
        """How many neighbours hold an event that this node published lately."""
        return len(self._custodians.get(event_id, ()))

    def leave(self) -> None:
        self.protocol.leave()

    def counters(self) -> dict[str, Any]:
        return {
            "held": len(self.holdings),
            "held_bytes": self.holdings.bytes,
            "missing": self.custody.missing,
            "fetched": self.custody.fetched,
            "carried": self.custody.carried,
            "evicted": self.holdings.evicted,
            "expired": self.holdings.expired,
            "storage_errors": self.storage_errors,
            **self.inboxes.counters(),
            **self.holdings.storage.counters(),
        }

    # -- What passes ---------------------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) in self.inputs.messages:
            super().on_message(sender, message)
            return
        for event in self._contents.events(message):
            self._observe(event)
        self.protocol.on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        if timer[0] in self.inputs.timers and timer[0].startswith("delivery."):
            super().on_timer(timer)
        else:
            self.protocol.on_timer(timer)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        if type(message) in self.inputs.messages:
            super().on_send_failed(neighbour, message)
        else:
            self.protocol.on_send_failed(neighbour, message)

    def _observe(self, event: Event) -> None:
        if event.id in self.holdings or event.publisher == self.host.address or not self.registry.wanted(event):
            return
        if len(self._observed) < OBSERVED_MAX and self._keep(event, 1, 0.0):
            self._observed[event.id] = (event, 1)

    def _on_delivery(self, event: Event, hops: int) -> None:
        """The protocol delivers."""
        if self._observed.pop(event.id, None) is not None:
            self.inboxes.serve(event, hops=hops, age_s=0.0, stored=True)
        elif event.id not in self.holdings:
            stored = self._keep(event, hops, 0.0)
            self.inboxes.serve(event, hops=hops, age_s=0.0, stored=stored)

    def _on_carried(self, carried: Carried) -> bool:
        """A neighbour has sent an event; false if it is wanted and cannot be stored now."""
        event = carried.event
        if event.id in self.holdings or event.publisher == self.host.address or not self.registry.wanted(event):
            return True
        if not self._keep(event, carried.hops, carried.age_s):
            return event.id in self.holdings
        self.inboxes.serve(event, hops=carried.hops, age_s=carried.age_s, stored=True)
        return True

    def _keep(self, event: Event, hops: int, age_s: float) -> bool:
        """Takes an event into custody, if that is possible."""
        waiting = self.inboxes.takers(event, age_s)
        try:
            held = self.holdings.add(event, age_s=age_s, hops=hops, is_own=False, waiting=waiting)
        except StorageError:
            self.storage_errors += 1
            return False
        self.custody.arrived(event.id)
        if held is not None:
            self._offer_if_wanted(event)
        return held is not None

    def _look_through(self) -> None:
        """Offers what is held and not offered yet, if some node wants it by now."""
        for held in self.holdings.known():
            if held.size_bytes and not self.custody.is_offered(held.id):
                event = self.holdings.body(held.id)
                if event is not None:
                    self._offer_if_wanted(event)

    def _offer_if_wanted(self, event: Event) -> None:
        if self.registry.wanted(event):
            self.custody.offer(event.id)
            if event.publisher == self.host.address:
                self._own.add(event.number)
                self._say_progress()

    # -- From time to time ---------------------------------------------------------------------------------------

    def _tick(self) -> None:
        gone = self.holdings.expire()
        if gone:
            self.custody.gone(gone)
            for each in gone:
                if each >> NUMBER_BITS == self.host.address:
                    self._own.remove(each & (1 << NUMBER_BITS) - 1)
            self._say_progress()
        self.registry.expire()
        observed, self._observed = self._observed, {}
        for event, hops in observed.values():
            self.inboxes.serve(event, hops=hops, age_s=0.0, stored=True)
        if self._read_again and self.host.now() - self._read_again_s >= self.settings.beat_period_s:
            self._read_again, self._read_again_s = False, self.host.now()
            self._look_through()
            self.custody.read_again()
        self.inboxes.flush()

    def _on_records(self, of_interest: bool) -> None:
        self._read_again = self._read_again or of_interest
        if of_interest:
            self._say_progress()

    def _say_interest(self) -> None:
        self.registry.want(self.inboxes.interest, self.inboxes.is_ordered)

    def _say_progress(self) -> None:
        """If some node wants order, publishers announce which of their numbers they offer."""
        if self._own.ranges and self.registry.order_is_wanted:
            self.registry.offer(self._own.ranges)

    def _on_custody(self, event_id: int, neighbour: int) -> None:
        self.holdings.taken_over(event_id)
        custodians = self._custodians.get(event_id)
        if custodians is not None and neighbour not in custodians and len(custodians) < 64:
            custodians.add(neighbour)
            self.on_custody(event_id, len(custodians))

    def _require_small(self, interest: Interest) -> None:
        size_bytes = encoded_bytes(interest)
        if size_bytes > WANT_BYTES_MAX - 1024:
            raise ConfigurationError(f"interest: {size_bytes} bytes; allowed: at most {WANT_BYTES_MAX - 1024}")
