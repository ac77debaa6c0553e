"""What travels: beacons between neighbours, packets over several hops, and what the members of a cell tell each other.

A packet is an envelope: in the trace it has the name and the category of its payload. It goes to one destination or to
several; each destination is a *leg*. Legs that share a path share its frames, so a packet with several legs is a tree.

Every number has a range that is checked at decoding, and every list a longest length.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.events import NO_EVENT, Event, Signature
from roamcast.fields import Address, AddressOrNobody, Counter
from roamcast.fields import SmallCounter as Count
from roamcast.protocols.api import Category, Message
from roamcast.protocols.georendezvous.tour import Coordinate, Place, Tour

VALUE_BYTES_MAX: Final = 1024  # of an entry
ENTRIES_MAX: Final = 256  # in one frame
LEGS_MAX: Final = 64  # of one packet
POINTS_MAX: Final = 64  # rendezvous points of one topic

Key = Annotated[str, Meta(max_length=300)]
Bucket = Annotated[str, Meta(max_length=290)]
Seconds = Annotated[float, Meta(ge=0, le=86400)]
Value = Annotated[bytes, Meta(max_length=VALUE_BYTES_MAX)]
PointNumber = Annotated[int, Meta(ge=0, lt=POINTS_MAX)]

PLAIN, ADVERTISEMENT, SUBSCRIPTION = 0, 1, 2
"""Slots of an owner under a key."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What one owner keeps in one slot under a key. The higher version replaces the lower."""

    owner: Address
    slot: Annotated[int, Meta(ge=0, lt=256)]
    version: Counter
    lifetime_s: Seconds  # from when this was sent
    value: Value | None  # None: withdrawn; remembered so that no older copy returns
    signature: Signature | None = None  # of the owner; the lifetime is not signed

    signed_by: ClassVar[str] = "owner"
    signed: ClassVar[tuple[str, ...]] = ("owner", "slot", "version", "value")


Entries = Annotated[tuple[Entry, ...], Meta(max_length=ENTRIES_MAX)]


def key_of(bucket: str, point: int) -> str:
    """The name under which point number `point` of a bucket is hashed."""
    return f"{bucket}#{point}"


class Payload(Message, frozen=True):
    """Base of what a packet carries."""

    @property
    def event_id(self) -> int:
        """The event it is about, for counting what is lost."""
        return NO_EVENT

    def key_at(self, point: int) -> str:
        """The key whose home a leg with this point number goes to; empty if the leg does not go to a key's home."""
        return ""


class Keyed(Payload, frozen=True):
    """Base of what goes to the home of one key."""

    key: Key

    def key_at(self, point: int) -> str:
        return self.key


class Put(Keyed, frozen=True, tag=0):
    """To the home of `key`: keep these entries."""

    category: ClassVar[Category] = "publish_subscribe"

    entries: Entries


class Advertisement(Put, frozen=True, tag=1):
    """A publisher's entry at a rendezvous point."""


class Subscription(Put, frozen=True, tag=2):
    """A subscriber's entry at a rendezvous point."""


class Prune(Put, frozen=True, tag=3):
    """A subscriber's entry again, with a publisher that it hears better through another rendezvous point."""


class Handover(Keyed, frozen=True, tag=4):
    """To the home of `key`: all that a node keeps under it."""

    entries: Entries
    origin: Place | None  # the cell that takes itself for the home and checks that; None: no cell does any more


class Moved(Payload, frozen=True, tag=5):
    """To the cell `origin`, and there to all who hear: the home of `key` is `home`."""

    key: Key
    origin: Place
    home: Place


class Get(Keyed, frozen=True, tag=6):
    """To the home of `key`: tell me what is kept there."""

    category: ClassVar[Category] = "publish_subscribe"

    request: Annotated[int, Meta(ge=0, lt=2**32)]
    asker: Address
    asker_at: Place


class Found(Payload, frozen=True, tag=7):
    """The answer to `Get`, or a part of it; no entries if there are none."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key
    request: Annotated[int, Meta(ge=0, lt=2**32)]
    entries: Entries


class Notification(Payload, frozen=True, tag=8):
    """An event on its way to rendezvous points."""

    category: ClassVar[Category] = "publish_subscribe"

    bucket: Bucket  # with a leg's point number, the key of the rendezvous point
    event: Event
    publisher_at: Place  # for answers to the publisher

    @property
    def event_id(self) -> int:
        return self.event.id

    def key_at(self, point: int) -> str:
        return key_of(self.bucket, point)


class ForwardedNotification(Notification, frozen=True, tag=12):
    """An event on its way from a rendezvous point to subscribers."""


class Attract(Payload, frozen=True, tag=9):
    """To a publisher: there are subscribers for your events at the rendezvous point of `key` from now on."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key


class Repel(Payload, frozen=True, tag=10):
    """To a publisher: there are no subscribers for your events at the rendezvous point of `key` any more. This is the
    prune that a rendezvous point forwards."""

    category: ClassVar[Category] = "publish_subscribe"

    key: Key


class Probe(Payload, frozen=True, tag=11):
    """To a publisher: measures the direct path, which the paper compares with the path through a rendezvous point."""

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
    """The sender is here."""

    x_dm: Coordinate  # decimetres east of the area's corner
    y_dm: Coordinate  # decimetres north of it
    asks: bool = False  # the sender is new and wants to hear its neighbours' beacons soon
    leaves: bool = False  # the sender is about to go


class Leg(msgspec.Struct, frozen=True, array_like=True):
    """One destination of a packet."""

    target: Place  # the vertex of a place, or the one where the addressee was last known
    addressee: AddressOrNobody  # `NOBODY`: the home of the place
    point: PointNumber = 0  # which of a bucket's rendezvous points it goes to, or came from
    tour: Tour | None = None  # None: greedy


class Packet(Message, frozen=True, tag=17):
    """A payload on its way to one or several destinations."""

    legs: Annotated[tuple[Leg, ...], Meta(min_length=1, max_length=LEGS_MAX)]
    hops: Count  # hops so far, this one included; from the publisher if it is an event
    hops_left: Count
    payload: AnyPayload

    @property
    def label(self) -> str:  # type: ignore[override]  # a class constant for every other message
        return self.payload.label

    @property
    def category(self) -> Category:  # type: ignore[override]
        return self.payload.category


class Replica(Message, frozen=True, tag=18):
    """To the members of `home` and to all cells around it: this is kept under `key`."""

    home: Place
    key: Key
    entries: Entries


class MovedNearby(Message, frozen=True, tag=19):
    """`Moved`, repeated by one broadcast to the members of the former home."""

    moved: Moved


Messages = Beacon | Packet | Replica | MovedNearby
