"""What Pub/Sub ODMRP puts on the air.

Between brokers, through the mesh: `JoinRequest` floods outwards from a publishing broker, `JoinTable` comes back hop by
hop and turns the nodes on its way into the forwarding group, `JoinAck` confirms a table where no passed-on table does,
`Data` carries an event through the forwarding group. Between clients and brokers: `Seek` looks for a broker; all else
is unicast.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message
from roamcast.protocols.odmrp.packed import Digest, PackedEntry
from roamcast.protocols.routing import Control, Routed

Address = Annotated[int, Meta(ge=0, lt=2**32)]
Hops = Annotated[int, Meta(ge=1, le=255)]
Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Lifetime = Annotated[float, Meta(ge=0)] | None  # seconds until a route is expected to break; None: not foreseeable
Motion = tuple[float, float, float, float]  # x, y, m; velocity, m/s


KINDS_MAX: Final = 64  # types of events that a client announces, so that they fit a frame


class JoinRequest(Message, frozen=True, tag=16):
    """A broker is about to publish: whoever has subscribers for this, answer."""

    publisher: Address  # the broker
    sequence: Sequence  # newer requests of a publisher have higher numbers
    hops: Hops  # frames in a row that brought it to whoever hears this one
    questions: tuple[Digest, ...]  # of the events to come
    channels: tuple[tuple[int, tuple[tuple[Address, int], ...]], ...]  # channel, its members, the version of each
    events: tuple[int, ...] = ()  # ids of events that members known before should have got: who has not, say so
    motion: Motion | None = None  # of whoever sends this frame
    lifetime_s: Lifetime = None  # of the route so far


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber broker in a Join Table."""

    address: Address
    version: int  # of its summary
    entries: tuple[PackedEntry, ...] | None  # None: the publisher knows this version
    arrived: tuple[int, ...] = ()  # those of the events that the request named that are here


class JoinTable(Message, frozen=True, tag=17):
    """Subscriber brokers answer; whoever is named as next hop joins the forwarding group and passes it on."""

    publisher: Address
    next_hop: Address
    members: tuple[Member, ...]
    lifetime_s: Lifetime = None  # of the shortest-lived route among the members'


class JoinAck(Message, frozen=True, tag=18):
    """I have these members. Sent where the table that brought them is not passed on."""

    publisher: Address
    members: tuple[Address, ...]


class Data(Message, frozen=True, tag=19):
    """An event for the members of some channels; sent again, for those that are listed."""

    category: ClassVar[Category] = "publish_subscribe"

    publisher: Address  # the broker
    channels: tuple[int, ...]
    hops: Hops  # frames in a row that brought it to whoever hears this one, those to the broker included
    event: Event
    sending: Annotated[int, Meta(ge=0, le=255)] = 0  # how often the broker had sent this event before
    members: tuple[Address, ...] = ()  # whom this sending is for; none: all members of the channels


class Seek(Message, frozen=True, tag=20):
    """A client looks for a broker within `ttl` hops."""

    client: Address
    number: Sequence  # newer searches of a client have higher numbers
    ttl: Hops  # frames in a row that may still carry it, this one included
    hops: Hops


class Offer(Message, frozen=True, tag=21):
    """A broker answers a client's search."""

    number: Sequence  # of the search
    hops: Hops  # from the client to the broker, as the search came


class Attach(Message, frozen=True, tag=22):
    """A client's subscriptions and advertisements, in parts that fit a frame; they replace all earlier ones when the
    last part is here."""

    category: ClassVar[Category] = "publish_subscribe"

    version: Sequence
    part: Annotated[int, Meta(ge=0, lt=1024)]
    parts: Annotated[int, Meta(ge=1, le=1024)]
    interests: tuple[Interest, ...]
    kinds: Annotated[tuple[int, ...], Meta(max_length=KINDS_MAX)] = ()  # types of events to come; in part 0

    def __post_init__(self) -> None:
        if self.part >= self.parts:
            raise PeerError(f"attach: part {self.part} of {self.parts}: must be below the number of parts")


class Attached(Message, frozen=True, tag=23):
    """The broker has the client's subscriptions."""

    version: Sequence


class Post(Message, frozen=True, tag=24):
    """A client publishes."""

    category: ClassVar[Category] = "publish_subscribe"

    event: Event


class Notice(Message, frozen=True, tag=25):
    """The broker brings its client an event."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Annotated[int, Meta(ge=0, le=1024)]  # of the event so far
    event: Event


Unicasts = Offer | Attach | Attached | Post | Notice
Messages = Control | JoinRequest | JoinTable | JoinAck | Data | Seek | Routed[Unicasts]
