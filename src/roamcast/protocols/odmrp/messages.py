"""What Pub/Sub ODMRP sends.

Between brokers, through the mesh: `JoinRequest` floods outwards from a publishing broker, `JoinTable` comes back hop by
hop and turns the nodes on its path into the forwarding group, `JoinAck` confirms a table that is not forwarded further,
`Data` carries an event through the forwarding group. Between clients and brokers: `Seek` looks for a broker; all else
is unicast.

The mesh's packets carry *context* for the middleware as bytes that the mesh does not read (`middleware.py`).

Every number has a range that is checked at decoding, and every list a longest length.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.errors import PeerError
from roamcast.events import Event, Signature
from roamcast.fields import HOPS_MAX, Address
from roamcast.fields import EventIdOrNone as EventId
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message
from roamcast.protocols.odmrp.packed import PackedEntry, Token
from roamcast.protocols.routing import Control, Routed

KINDS_MAX: Final = 64  # types of events that a client announces
LISTED_MAX: Final = 4096  # members in one Join Request
FILTERS_MAX: Final = 64  # in one message of a constrained client; more are merged
MEMBERS_MAX: Final = 256  # in one Join Table
CONTEXT_BYTES_MAX: Final = 16384

Hops = Annotated[int, Meta(ge=1, le=HOPS_MAX)]
Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Life = Annotated[int, Meta(ge=0, le=2**53)]
Channel = Annotated[int, Meta(ge=0, le=65535)]
Version = Annotated[int, Meta(ge=0, le=65535)]
Lifetime = Annotated[float, Meta(ge=0, le=86400)] | None  # seconds until a route is expected to break; None: unknown
Metres = Annotated[float, Meta(ge=-1e9, le=1e9)]
Motion = tuple[Metres, Metres, Metres, Metres]  # x, y, m; velocity, m/s
Context = Annotated[bytes, Meta(max_length=CONTEXT_BYTES_MAX)]
Listed = Annotated[tuple[tuple[Address, Version], ...], Meta(max_length=LISTED_MAX)]
Channels = Annotated[tuple[tuple[Channel, Listed], ...], Meta(max_length=64)]
EventIds = Annotated[tuple[EventId, ...], Meta(max_length=64)]


class JoinRequest(Message, frozen=True, tag=16):
    """A broker is about to publish: brokers with subscribers for this, answer."""

    publisher: Address  # the broker
    life: Life  # of the publisher
    sequence: Annotated[int, Meta(ge=0, lt=2**31)]  # newer requests of a life have higher numbers
    hops: Hops  # hops so far, this one included
    context: Context  # what is asked for
    listing: Version  # number of the newest list of members
    channels: Channels | None  # that list: channels, their members, the version of each; None: as in an earlier request
    events: EventIds = ()  # events that known members should have got: a member that has not, says so
    motion: Motion | None = None  # of the node that sends this frame
    lifetime_s: Lifetime = None  # of the route so far
    signature: Signature | None = None  # of the publisher, over what relays do not change

    signed_by: ClassVar[str] = "publisher"
    signed: ClassVar[tuple[str, ...]] = ("publisher", "life", "sequence", "context", "listing", "channels", "events")


class MemberEntry(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber broker in a Join Table."""

    address: Address
    version: Version  # of its context
    context: Context | None  # what it wants; None: the publisher knows this version
    arrived: EventIds = ()  # those of the events that the request named that are here
    signature: Signature | None = None  # of the member

    signed_by: ClassVar[str] = "address"
    signed: ClassVar[tuple[str, ...]] = ("address", "version", "context", "arrived")


class JoinTable(Message, frozen=True, tag=17):
    """Subscriber brokers answer; the node that is named as next hop joins the forwarding group and forwards it."""

    publisher: Address
    next_hop: Address
    members: Annotated[tuple[MemberEntry, ...], Meta(max_length=MEMBERS_MAX)]
    lifetime_s: Lifetime = None  # of the shortest-lived route among the members'


class JoinAck(Message, frozen=True, tag=18):
    """The sender has these members. Sent where the table that brought them is not forwarded."""

    publisher: Address
    members: Annotated[tuple[Address, ...], Meta(max_length=1024)]


class Data(Message, frozen=True, tag=19):
    """An event for the members of some channels; if it is sent again, for those that are listed."""

    category: ClassVar[Category] = "publish_subscribe"

    publisher: Address  # the broker
    channels: Annotated[tuple[Channel, ...], Meta(max_length=64)]
    hops: Hops  # hops so far, this one and those to the broker included
    event: Event
    sending: Annotated[int, Meta(ge=0, le=255)] = 0  # how often the broker had sent this event before
    members: Annotated[tuple[Address, ...], Meta(max_length=256)] = ()  # none: all members of the channels


class Seek(Message, frozen=True, tag=20):
    """A client looks for a broker within `ttl` hops."""

    client: Address
    number: Sequence  # a client numbers its searches
    ttl: Hops  # frames in a row that may still carry it, this one included
    hops: Hops


class Offer(Message, frozen=True, tag=21):
    """A broker answers a client's search."""

    number: Sequence  # of the search
    hops: Hops  # from the client to the broker, on the path of the search


class Attach(Message, frozen=True, tag=22):
    """A client's subscriptions and advertisements, in parts; they replace all earlier ones when all parts are here. A
    constrained client sends Bloom filters instead of interests."""

    category: ClassVar[Category] = "publish_subscribe"

    version: Sequence
    part: Annotated[int, Meta(ge=0, lt=1024)]
    parts: Annotated[int, Meta(ge=1, le=1024)]
    interests: Annotated[tuple[Interest, ...], Meta(max_length=64)]
    kinds: Annotated[tuple[Token, ...], Meta(max_length=KINDS_MAX)] = ()  # types of events to come; in part 0
    filters: Annotated[tuple[PackedEntry, ...], Meta(max_length=FILTERS_MAX)] = ()

    def __post_init__(self) -> None:
        if self.part >= self.parts:
            raise PeerError(f"attach: part {self.part} of {self.parts}: must be below the number of parts")

    def subscriptions(self) -> tuple[Interest, ...]:
        return self.interests


class Attached(Message, frozen=True, tag=23):
    """The broker has the client's subscriptions."""

    version: Sequence


class Post(Message, frozen=True, tag=24):
    """A client publishes."""

    category: ClassVar[Category] = "publish_subscribe"

    event: Event


class EventNotice(Message, frozen=True, tag=25):
    """The broker brings its client an event."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Annotated[int, Meta(ge=0, le=1024)]  # of the event so far
    event: Event


Unicasts = Offer | Attach | Attached | Post | EventNotice
Messages = Control | JoinRequest | JoinTable | JoinAck | Data | Seek | Routed[Unicasts]
