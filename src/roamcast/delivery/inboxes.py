"""The subscriptions of this node's applications, and which events each of them has had.

- *Plain* subscriptions share one inbox without a name. An event is handed over once, when it arrives.
- A subscription with a name has an inbox of its own. At most `window` events are handed over that it has not
  acknowledged; the rest waits. It may ask for order (`ordering.py`).
- A *durable* subscription has a name and survives the process. Its events, and how far each of them is, are in the
  storage: waiting, handed over, acknowledged. An event that was handed over and not acknowledged when the process ended
  is handed over again and marked so; all others are handed over exactly once.

A subscription gets events that were published since it was made, and for `history_s` before.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from roamcast.delivery.holdings import Holdings
from roamcast.delivery.ordering import Order, Ranges, WaitingEvent
from roamcast.delivery.settings import DeliverySettings
from roamcast.delivery.storage import DurableRow, StorageError
from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest, union_all
from roamcast.protocols.api import PLAIN_CHANNEL
from roamcast.protocols.seen import SeenCache


class Handed(msgspec.Struct, frozen=True):
    """An event for an application."""

    event: Event
    hops: int
    name: str = ""  # of the subscription; empty: for all plain ones
    again: bool = False  # it may have been handed over in an earlier life of the process
    channel: int = PLAIN_CHANNEL  # of a subscription with a modulator, which is none of the layer's


Outlet = Callable[[Handed], None]


class Inbox:
    def __init__(self, name: str, interest: Interest, order: Order | None, *, since_s: float, is_durable: bool) -> None:
        self.name = name
        self.interest = interest
        self.order = order
        self.since_s = since_s  # events published later than this are for it
        self.is_durable = is_durable
        self.is_open = False  # an application takes events
        self.waiting: deque[WaitingEvent] = deque()
        self.again: set[int] = set()
        self.unacknowledged: dict[int, None] = {}


class Inboxes:
    def __init__(
        self,
        settings: DeliverySettings,
        holdings: Holdings,
        outlet: Outlet,
        *,
        now: Callable[[], float],
        progress: Callable[[int], Ranges | None],
    ) -> None:
        self._settings = settings
        self._holdings = holdings
        self._outlet = outlet
        self._now = now
        self._progress = progress
        self._plain: list[tuple[Interest, float]] = []  # with the time since which it gets events
        self._served = SeenCache()  # events that plain subscriptions have had
        self._named: dict[str, Inbox] = {}
        self._is_flushing = False
        self._recall()

    def _recall(self) -> None:
        """Durable subscriptions of an earlier life, which go on collecting until their application returns."""
        storage = self._holdings.storage
        for row in storage.subscriptions():
            since_s = self._now() - row.age_s - self._settings.history_s
            order = self._order() if row.is_ordered else None
            self._named[row.name] = Inbox(row.name, row.interest, order, since_s=since_s, is_durable=True)
        for state in storage.states():
            inbox = self._named.get(state.name)
            if inbox is None:
                continue
            if state.is_done:
                if inbox.order is not None:
                    inbox.order.resume(state.id)
            else:
                self._requeue(inbox, state.id)
                inbox.again.add(state.id)
        for name, event_id in storage.waiting():
            if name in self._named:
                self._requeue(self._named[name], event_id)
        for inbox in self._named.values():  # what was handed over came first then, and does so now
            again = [arrival for arrival in inbox.waiting if arrival.event.id in inbox.again]
            others = [arrival for arrival in inbox.waiting if arrival.event.id not in inbox.again]
            inbox.waiting = deque(sorted(again, key=lambda arrival: arrival.event.id))
            if inbox.order is None:
                inbox.waiting.extend(others)
                continue
            for event_id in sorted(inbox.again):
                inbox.order.resume(event_id)
            for arrival in others:
                inbox.order.add(arrival)

    def _requeue(self, inbox: Inbox, event_id: int) -> None:
        held, event = self._holdings.held(event_id), self._holdings.body(event_id)
        if held is not None and event is not None:  # else its lifetime is over
            self._holdings.pin(event_id)
            inbox.waiting.append(WaitingEvent(event, held.hops, self._now()))

    def _order(self) -> Order:
        return Order(self._settings.order_wait_s, self._progress, lambda event_id: event_id in self._holdings)

    @property
    def interest(self) -> Interest | None:
        """What all of them want."""
        wanted = [interest for interest, _ in self._plain] + [inbox.interest for inbox in self._named.values()]
        return union_all(wanted)

    @property
    def is_ordered(self) -> bool:
        return any(inbox.order is not None for inbox in self._named.values())

    @property
    def durable(self) -> list[Inbox]:
        return [inbox for inbox in self._named.values() if inbox.is_durable]

    def counters(self) -> dict[str, int]:
        orders = [inbox.order for inbox in self._named.values() if inbox.order is not None]
        return {
            "waiting": sum(len(inbox.waiting) for inbox in self._named.values()) + sum(map(len, orders)),
            "unacknowledged": sum(len(inbox.unacknowledged) for inbox in self._named.values()),
            "late": sum(order.late for order in orders),
            "skipped": sum(order.skipped for order in orders),
        }

    # -- Subscribing ---------------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self._plain.append((interest, self._now() - self._settings.history_s))

    def unsubscribe(self, interest: Interest) -> None:
        at = next(at for at, (each, _) in enumerate(self._plain) if each == interest)
        del self._plain[at]

    def attach(self, name: str, interest: Interest, *, is_ordered: bool, is_durable: bool) -> Interest | None:
        """An application takes the events of this subscription, which may be one of an earlier life. Returns the
        interest that it had before, if it was another."""
        inbox = self._named.get(name)
        if inbox is not None and inbox.is_open:
            raise ConfigurationError(f"subscribe: {name!r} is open already")
        before = None if inbox is None else inbox.interest
        if inbox is None or inbox.interest != interest or (inbox.order is not None) != is_ordered:
            since_s = self._now() - self._settings.history_s if inbox is None else inbox.since_s
            if is_durable:
                age_s = max(0.0, self._now() - self._settings.history_s - since_s)
                try:
                    self._holdings.storage.subscribe(DurableRow(name, interest, is_ordered, age_s))
                except StorageError as error:
                    raise ConfigurationError(f"subscribe: {error}") from None
            inbox = self._replaced(inbox, name, interest, is_ordered=is_ordered, since_s=since_s, keeps=is_durable)
            self._named[name] = inbox
        inbox.is_open = True
        return before

    def _replaced(
        self, before: Inbox | None, name: str, interest: Interest, *, is_ordered: bool, since_s: float, keeps: bool
    ) -> Inbox:
        order = self._order() if is_ordered else None
        inbox = Inbox(name, interest, order, since_s=since_s, is_durable=keeps)
        if before is not None:
            inbox.waiting, inbox.again = before.waiting, before.again
        return inbox

    def detach(self, name: str, *, forget: bool) -> Interest | None:
        """The application has gone; with `forget`, for good. Returns the interest if no application has it any more."""
        inbox = self._named.get(name)
        if inbox is None:
            return None
        inbox.is_open = False
        if inbox.is_durable and not forget:
            return None
        del self._named[name]
        for event_id in [*(each.event.id for each in inbox.waiting), *inbox.unacknowledged]:
            self._holdings.unpin(event_id)
        if inbox.is_durable:
            try:
                self._holdings.storage.unsubscribe(name)
            except StorageError as error:
                raise ConfigurationError(f"unsubscribe: {error}") from None
        return inbox.interest

    # -- Events --------------------------------------------------------------------------------------------------

    def takers(self, event: Event, age_s: float) -> list[str]:
        """The durable subscriptions that an event is for: they must not miss it."""
        published_s = self._now() - age_s
        return [
            inbox.name
            for inbox in self._named.values()
            if inbox.is_durable and published_s >= inbox.since_s and inbox.interest.matches(event)
        ]

    def serve(self, event: Event, *, hops: int, age_s: float, stored: bool) -> None:
        """Hands over an event that is new here. Durable subscriptions get only events that are `stored`."""
        published_s = self._now() - age_s
        is_wanted = any(published_s >= since_s and interest.matches(event) for interest, since_s in self._plain)
        if is_wanted and self._served.add(event.id):
            self._outlet(Handed(event, hops))
        for inbox in list(self._named.values()):
            if (stored or not inbox.is_durable) and published_s >= inbox.since_s and inbox.interest.matches(event):
                self._offer(inbox, WaitingEvent(event, hops, self._now()))
        self.flush()

    def _offer(self, inbox: Inbox, arrival: WaitingEvent) -> None:
        if inbox.order is None:
            inbox.waiting.append(arrival)
        elif not inbox.order.add(arrival):
            if inbox.is_durable:
                with suppress(StorageError):  # then it is late once more after a restart
                    self._holdings.storage.done(inbox.name, arrival.event.id)
            return
        if inbox.is_durable:
            self._holdings.pin(arrival.event.id)

    def flush(self) -> None:
        """Hands over what may be handed over now."""
        if self._is_flushing:  # an application acknowledges while it is handed an event: the loop below goes on
            return
        self._is_flushing = True
        try:
            for inbox in list(self._named.values()):
                if inbox.order is not None and len(inbox.order):
                    inbox.waiting.extend(inbox.order.ready(self._now()))
                while inbox.is_open and inbox.waiting and len(inbox.unacknowledged) < self._settings.window:
                    if not self._hand_over(inbox):
                        break
        finally:
            self._is_flushing = False

    def _hand_over(self, inbox: Inbox) -> bool:
        arrival = inbox.waiting[0]
        event_id = arrival.event.id
        if inbox.is_durable:
            try:
                self._holdings.storage.handed(inbox.name, event_id)
            except StorageError:
                return False  # later: it could not be told apart after a crash
        inbox.waiting.popleft()
        inbox.unacknowledged[event_id] = None
        self._outlet(Handed(arrival.event, arrival.hops, inbox.name, event_id in inbox.again))
        return True

    def acknowledge(self, name: str, event_id: int) -> None:
        """The application is through with an event."""
        inbox = self._named.get(name)
        if inbox is None or event_id not in inbox.unacknowledged:
            return
        if inbox.is_durable:
            try:
                self._holdings.storage.done(name, event_id)
            except StorageError as error:
                raise ConfigurationError(f"acknowledge: {error}") from None
            self._holdings.unpin(event_id)
        del inbox.unacknowledged[event_id]
        inbox.again.discard(event_id)
        self.flush()
