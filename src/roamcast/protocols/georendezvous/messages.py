"""What travels: beacons between neighbours, packets over several hops, and what the members of a cell tell each other.

A packet is an envelope: in the trace it goes by the name and the category of its payload.
"""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from roamcast.events import NO_EVENT, Event
from roamcast.protocols.api import NOBODY, Category, Message
from roamcast.protocols.georendezvous.cells import Cell, Vertex
from roamcast.protocols.georendezvous.tour import Tour

Address = Annotated[int, Meta(ge=0, lt=2**31)]
Count = Annotated[int, Meta(ge=0, lt=2**16)]
Key = Annotated[str, Meta(max_length=300)]
Seconds = Annotated[float, Meta(ge=0)]

PLAIN, ADVERTISEMENT, SUBSCRIPTION = 0, 1, 2
"""Slots of an owner under a key."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What one owner keeps in one slot under a key. The higher version replaces the lower."""

    owner: Address
    slot: Annotated[int, Meta(ge=0, lt=256)]
    version: Annotated[int, Meta(ge=0, lt=2**62)]
    lifetime_s: Seconds  # still to live when this was sent; infinite: until replaced
    value: bytes | None  # None: taken back, remembered so that no older copy returns


class Payload(Message, frozen=True):
    """Base of what a packet carries."""

    @property
    def event_id(self) -> int:
        """The event it is about, for counting what is lost."""
        return NO_EVENT


class Put(Payload, frozen=True, tag=0):
    """To the home of `key`: keep these entries."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key
    entries: tuple[Entry, ...]


class Advertisement(Put, frozen=True, tag=1):
    """A publisher's entry at a rendezvous point."""


class Subscription(Put, frozen=True, tag=2):
    """A subscriber's entry at a rendezvous point."""


class Prune(Put, frozen=True, tag=3):
    """A subscriber's entry again, with a publisher that it hears better through another rendezvous point."""


class Handover(Payload, frozen=True, tag=4):
    """To the home of `key`: all that a node keeps under it."""

    key: Key
    entries: tuple[Entry, ...]
    origin: Cell | None  # the cell that takes itself for the home and wants to know; None: nobody does any more


class Moved(Payload, frozen=True, tag=5):
    """To `origin`, and there to all who hear: the home of `key` is `home`."""

    key: Key
    origin: Cell
    home: Cell


class Get(Payload, frozen=True, tag=6):
    """To the home of `key`: tell me what is kept there."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key
    request: Annotated[int, Meta(ge=0, lt=2**32)]
    asker: Address
    asker_at: Vertex


class Found(Payload, frozen=True, tag=7):
    """The answer to `Get`, or a part of it; no entries if there are none."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key
    request: Annotated[int, Meta(ge=0, lt=2**32)]
    entries: tuple[Entry, ...]


class Notification(Payload, frozen=True, tag=8):
    """An event on its way to a rendezvous point."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key  # of the rendezvous point
    event: Event
    publisher_at: Vertex  # for answers to the publisher

    @property
    def event_id(self) -> int:
        return self.event.id


class ForwardedNotification(Notification, frozen=True, tag=12):
    """An event on its way from a rendezvous point to a subscriber."""


class Attract(Payload, frozen=True, tag=9):
    """To a publisher: somebody at the rendezvous point of `key` wants your events from now on."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key


class Repel(Payload, frozen=True, tag=10):
    """To a publisher: nobody at the rendezvous point of `key` wants your events any more. The forwarded prune."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key


class Probe(Payload, frozen=True, tag=11):
    """To a publisher: measures the direct path, which the paper compares with the way through a rendezvous point."""

    prober: Address


AnyPayload = (
    Put
    | Advertisement
    | Subscription
    | Prune
    | Handover
    | Moved
    | Get
    | Found
    | Notification
    | ForwardedNotification
    | Attract
    | Repel
    | Probe
)


class Beacon(Message, frozen=True, tag=16):
    """I am here."""

    x_m: float
    y_m: float
    asks: bool = False  # the sender is new and wants to hear its neighbours' beacons soon
    leaves: bool = False  # the sender is about to go


class Packet(Message, frozen=True, tag=17):
    """A payload under way to the home of a place, or to a node that was last known there."""

    target: Vertex
    addressee: Annotated[int, Meta(ge=NOBODY, lt=2**31)]  # `NOBODY`: whoever is at home there
    hops: Count  # frames in a row that brought it to whoever hears this one, from the publisher if it is an event
    hops_left: Count
    tour: Tour | None  # None: greedy
    payload: AnyPayload

    @property
    def label(self) -> str:  # type: ignore[override]  # a class constant for every other message
        return self.payload.label

    @property
    def category(self) -> Category:  # type: ignore[override]
        return self.payload.category


class Replica(Message, frozen=True, tag=18):
    """To the members of `home` and to all cells around it: this is kept under `key`."""

    home: Cell
    key: Key
    entries: tuple[Entry, ...]


class MovedNearby(Message, frozen=True, tag=19):
    """`Moved`, passed on to the members of the former home by one broadcast."""

    moved: Moved


Messages = Beacon | Packet | Replica | MovedNearby
