"""What a node holds: the events in its custody and the ids of events it need not be told of again, within bounds.

An event's body is kept until its lifetime is over: what its utility says (`roamcast.utility`), but at most `age_max_s`
after its publication. Its id is kept for `age_max_s` longer, so that a copy that was late is known for what it is.

If there is no room for an event, others lose their bodies: of the events that this node did not publish, or that a
neighbour has taken over, those that are worth least, the oldest of them first. Events that wait for a durable
subscription of this node are not among them. If that is not enough, the new event is refused.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from roamcast.delivery.settings import DeliverySettings
from roamcast.delivery.storage import Row, Storage, StorageError
from roamcast.events import Event
from roamcast.protocols.batches import encoded_bytes
from roamcast.utility import priority, worthless_after_s


class Held:
    """An event that this node holds, or knows of."""

    def __init__(self, event_id: int, *, published_s: float, worth: float, is_own: bool, hops: int) -> None:
        self.id = event_id
        self.published_s = published_s  # on this node's clock
        self.expires_s = published_s
        self.size_bytes = 0  # 0: the body is gone
        self.worth = worth
        self.is_own = is_own
        self.is_safe = not is_own  # a neighbour holds it too, or it is not this node's to keep
        self.pins = 0  # subscriptions of this node that have not acknowledged it
        self.hops = hops


class Holdings:
    def __init__(self, storage: Storage, settings: DeliverySettings, now: Callable[[], float]) -> None:
        self.storage = storage
        self._settings = settings
        self._now = now
        self._held: dict[int, Held] = {}  # in the order in which they came
        self._ends: list[tuple[float, int]] = []  # when a body expires or an id is forgotten: the next one first
        self._spare: list[tuple[float, int, int]] = []  # what may lose its body: worth, order, id
        self._order = 0
        self.bytes = 0
        self.bodies = 0
        self.evicted = 0
        self.expired = 0
        for row in storage.rows():
            held = Held(
                row.id, published_s=now() - row.age_s, worth=row.worth, is_own=row.is_own, hops=row.hops
            )
            held.size_bytes = row.size_bytes
            held.expires_s = now() + row.left_s - settings.age_max_s
            self._enter(held)

    def __contains__(self, event_id: int) -> bool:
        return event_id in self._held

    def __len__(self) -> int:
        return len(self._held)

    def known(self) -> Iterable[Held]:
        """Everything, in the order in which it came."""
        return list(self._held.values())

    def held(self, event_id: int) -> Held | None:
        """The event, if its body is here."""
        held = self._held.get(event_id)
        return held if held is not None and held.size_bytes else None

    def body(self, event_id: int) -> Event | None:
        return None if self.held(event_id) is None else self.storage.body(event_id)

    def add(self, event: Event, *, age_s: float, hops: int, is_own: bool, waiting: list[str]) -> Held | None:
        """Takes an event into custody; None: its lifetime is over. `StorageError` if there is no room for it."""
        settings = self._settings
        left_s = lifetime_s(event, settings) - age_s
        if left_s <= 0:
            self.expired += 1
            return None
        held = Held(event.id, published_s=self._now() - age_s, worth=priority(event.utility), is_own=is_own, hops=hops)
        held.expires_s = self._now() + left_s
        held.size_bytes = encoded_bytes(event)
        self._make_room(held.size_bytes)
        row = Row(
            id=event.id,
            left_s=left_s + settings.age_max_s,
            age_s=age_s,
            size_bytes=held.size_bytes,
            worth=held.worth,
            is_own=is_own,
            hops=hops,
        )
        self.storage.put(row, event, waiting)
        self._enter(held)
        return held

    def taken_over(self, event_id: int) -> None:
        """A neighbour holds this event too."""
        held = self.held(event_id)
        if held is not None and not held.is_safe:
            held.is_safe = True
            self._spares(held)

    def pin(self, event_id: int) -> None:
        """A durable subscription of this node still needs the event."""
        held = self.held(event_id)
        if held is not None:
            held.pins += 1

    def unpin(self, event_id: int) -> None:
        held = self.held(event_id)
        if held is not None and held.pins:
            held.pins -= 1
            if not held.pins and held.is_safe:
                self._spares(held)

    def expire(self) -> list[int]:
        """Forgets what is over; returns the ids of events whose bodies went."""
        now_s = self._now()
        bodies: list[int] = []
        ids: list[int] = []
        while self._ends and self._ends[0][0] <= now_s:
            _, event_id = heappop(self._ends)
            held = self._held.get(event_id)
            if held is None:
                continue
            if held.size_bytes:
                bodies.append(event_id)
            if now_s >= held.expires_s + self._settings.age_max_s:
                ids.append(event_id)
            else:
                heappush(self._ends, (held.expires_s + self._settings.age_max_s, event_id))
        try:
            if bodies:
                self.storage.drop_bodies(bodies)
            if ids:
                self.storage.forget(ids)
        except StorageError:
            pass  # they are expired all the same, and will be when they are read again
        for event_id in bodies:
            self._lose_body(self._held[event_id])
        for event_id in ids:
            del self._held[event_id]
        self.expired += len(bodies)
        return bodies

    def age_s(self, held: Held) -> float:
        return max(0.0, self._now() - held.published_s)

    def _make_room(self, size_bytes: int) -> None:
        settings = self._settings
        if size_bytes > settings.bytes_max:
            raise StorageError(f"an event of {size_bytes} bytes; the journal has room for {settings.bytes_max}")
        gone: list[int] = []
        while self.bytes + size_bytes > settings.bytes_max and (spare := self._next_spare()) is not None:
            gone.append(spare.id)
            self._lose_body(spare)
        if gone:
            self.evicted += len(gone)
            self.storage.drop_bodies(gone)
        if len(self._held) >= settings.events_max:
            self._forget_some()
        if self.bytes + size_bytes > settings.bytes_max or len(self._held) >= settings.events_max:
            raise StorageError(
                f"the journal is full: {len(self._held)} events, {self.bytes} bytes that no neighbour has taken yet"
            )

    def _forget_some(self) -> None:
        """Makes room for more ids: the oldest without a body are forgotten; if there are none, an event is."""
        many = 1 + self._settings.events_max // 64
        ids = [held.id for held in self._held.values() if not held.size_bytes][:many]
        if not ids and (spare := self._next_spare()) is not None:
            self._lose_body(spare)
            self.evicted += 1
            ids = [spare.id]
        if ids:
            self.storage.forget(ids)
            for event_id in ids:
                del self._held[event_id]

    def _next_spare(self) -> Held | None:
        while self._spare:
            _, _, event_id = heappop(self._spare)
            held = self.held(event_id)
            if held is not None and held.is_safe and not held.pins:
                return held
        return None

    def _enter(self, held: Held) -> None:
        self._held[held.id] = held
        self.bytes += held.size_bytes
        self.bodies += held.size_bytes > 0
        heappush(self._ends, (held.expires_s, held.id))
        if held.is_safe and held.size_bytes:
            self._spares(held)

    def _spares(self, held: Held) -> None:
        self._order += 1
        heappush(self._spare, (held.worth, self._order, held.id))

    def _lose_body(self, held: Held) -> None:
        self.bytes -= held.size_bytes
        self.bodies -= held.size_bytes > 0
        held.size_bytes = 0


def lifetime_s(event: Event, settings: DeliverySettings) -> float:
    """How long after its publication an event is worth keeping."""
    return min(worthless_after_s(event.utility), settings.age_max_s)
