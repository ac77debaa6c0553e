"""What opportunistic overlays put on the air.

`Seek` and `Found` travel by themselves, hop by hop. Everything else is a payload of the unicast service, either
straight to its destination or inside `Carried`, which follows a source route from broker to broker.

Three numbers order what is said about a client, the more significant first:

- *epoch*: raised by the client whenever it attaches to a broker out of its own need; only the client raises it, so two
  brokers that both believe to serve it can be told apart;
- *generation*: raised by each relocation within an epoch;
- *version*: raised by the client whenever its subscriptions, its modulator or its advertisements change.

A chain orders the events of one producer for one receiver: each event names its `previous` one, the latest earlier
event that the receiver has not acknowledged yet, or 0. A receiver takes an event when it has taken the previous one, so
nothing is reordered or passed over, whatever paths the events took. Numbers that are skipped were not for this
receiver, or have expired.
"""

from typing import Annotated, ClassVar

from msgspec import Meta

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message
from roamcast.protocols.routing import Control, Routed
from roamcast.protocols.routing.messages import Address, Hops

Count = Annotated[int, Meta(ge=0, lt=2**62)]
Load = Annotated[float, Meta(ge=0)]  # share of time that a broker's CPU is busy; above 1 when work piles up
Cursor = tuple[Address, Count]  # a publisher, and the number of its latest event that has been dealt with
Want = tuple[Interest, float]  # a subscription, and when it was made, s
Text = Annotated[str, Meta(max_length=4096)]


class Seek(Message, frozen=True, tag=16):
    """Who is a broker within `ttl` hops? Flooded."""

    origin: Address
    number: Count  # with the origin, names this search
    ttl: Hops  # frames in a row that may still carry it, this one included
    hops: Hops  # frames in a row that brought it to whoever hears this one


class Found(Message, frozen=True, tag=17):
    """A broker answers a search, along the way the search came."""

    origin: Address
    number: Count
    broker: Address
    hops: Hops  # from the origin to the broker
    load: Load


# -- Between clients and their home brokers ------------------------------------------------------------------------


class Attach(Message, frozen=True, tag=16):
    """Be my home broker; or, within an epoch, take note of what changed."""

    category: ClassVar[Category] = "publish_subscribe"

    client: Address
    epoch: Count
    version: Count
    wants: tuple[Want, ...]
    modulator: Text
    produces: bool  # it publishes
    advertised: Interest | None  # what it is going to publish; None: anything
    cursors: tuple[Cursor, ...]  # what it has got of each publisher


class Attached(Message, frozen=True, tag=17):
    """I am your home broker."""

    epoch: Count
    version: Count


class Report(Message, frozen=True, tag=18):
    """A client's periodic word to its home broker: I am here, and no other broker is nearer to me than this one."""

    client: Address
    epoch: Count
    nearest: Address | None
    distance_hops: Hops  # to `nearest`
    load: Load  # of `nearest`


class ReportAck(Message, frozen=True, tag=19):
    epoch: Count
    known: bool  # false: I do not know you


class Welcome(Message, frozen=True, tag=20):
    """After a relocation: I am your home broker from now on."""

    epoch: Count
    generation: Count


class WelcomeAck(Message, frozen=True, tag=21):
    epoch: Count
    generation: Count


class Detach(Message, frozen=True, tag=22):
    """I am not yours any more, in no epoch up to this."""

    epoch: Count
    is_final: bool  # nor anybody else's: forget what I wanted


class Publish(Message, frozen=True, tag=23):
    category: ClassVar[Category] = "publish_subscribe"

    previous: Count
    event: Event
    is_old: bool  # it was published under another home: only consumers that had subscribed by then are to get it


class PublishAck(Message, frozen=True, tag=24):
    category: ClassVar[Category] = "publish_subscribe"

    received: Count  # everything up to this number is with the home broker
    released: Count  # everything up to this number is with all consumers, or has expired: you may forget it


class Delivery(Message, frozen=True, tag=25):
    """What a consumer's modulator made of events, in one sequence per consumer and epoch."""

    category: ClassVar[Category] = "publish_subscribe"

    epoch: Count
    sequence: Count
    site: Address  # the broker where the modulator runs: whom to acknowledge to
    hops: Hops  # that the event took from its producer to the site
    event: Event
    cursors: tuple[Cursor, ...]  # what the modulator has dealt with since the delivery before


class DeliveryAck(Message, frozen=True, tag=26):
    category: ClassVar[Category] = "publish_subscribe"

    epoch: Count
    sequence: Count  # everything up to this arrived


# -- Between brokers -----------------------------------------------------------------------------------------------


class LinkState(Message, frozen=True, tag=27):
    """A broker's own row of the topology table, and what others should know about it."""

    broker: Address
    sequence: Count
    neighbours: tuple[tuple[Address, Hops], ...]  # with the length of the link in hops
    load: Load
    life: Count  # when it started, ms: a broker that returned from a crash knows nothing of what it was told before


class Topology(Message, frozen=True, tag=28):
    """The rows of the sender's topology table that changed since it last said so."""

    rows: tuple[LinkState, ...]
    is_novice: bool  # the sender knows next to nothing yet: tell it everything


class Announce(Message, frozen=True, tag=29):
    """I am a producer's home broker: tell me which of your clients want such events."""

    category: ClassVar[Category] = "publish_subscribe"

    number: Count
    advertised: Interest | None  # None: of any kind
    active: bool  # false: I am not any more


class Registration(Message, frozen=True, tag=30):
    """What a producer's home broker knows about one consumer."""

    client: Address
    epoch: Count
    generation: Count
    version: Count
    site: Address  # the broker where its modulator runs: where its events go
    wants: tuple[Want, ...]  # none: it wants nothing any more
    cursors: tuple[Cursor, ...]  # what its site has dealt with


class Registrations(Message, frozen=True, tag=31):
    """The answer to an announcement, whole."""

    category: ClassVar[Category] = "publish_subscribe"

    number: Count
    rows: tuple[Registration, ...]


class Register(Message, frozen=True, tag=32):
    """A consumer is new, or something about it changed."""

    category: ClassVar[Category] = "publish_subscribe"

    row: Registration


class RegisterAck(Message, frozen=True, tag=33):
    category: ClassVar[Category] = "publish_subscribe"

    client: Address
    epoch: Count
    generation: Count
    version: Count


class Forward(Message, frozen=True, tag=34):
    """An event, from its producer's home broker to a broker whose clients want it."""

    category: ClassVar[Category] = "publish_subscribe"

    source: Address  # the producer's home broker
    hops: Hops  # from the producer to there
    targets: tuple[tuple[Address, Count, Count], ...]  # consumer, its epoch, its previous event of this producer
    event: Event


class Receipt(Message, frozen=True, tag=35):
    """How far consumers have got: processed at their site, settled with the consumers themselves."""

    category: ClassVar[Category] = "publish_subscribe"

    rows: tuple[tuple[Address, Count, Address, Count, Count], ...]  # client, epoch, publisher, processed, settled


class Probe(Message, frozen=True, tag=36):
    """How long is the path that my routing table gives?"""


# -- Relocation ----------------------------------------------------------------------------------------------------


class HandoffRequest(Message, frozen=True, tag=37):
    """Will you take this client's modulator?"""

    client: Address
    epoch: Count
    generation: Count  # that it would begin


class HandoffAck(Message, frozen=True, tag=38):
    client: Address
    epoch: Count
    generation: Count
    accepted: bool


class Detour(Message, frozen=True, tag=39):
    """To the producers' home brokers: from now on send this client's events there."""

    client: Address
    epoch: Count
    generation: Count
    site: Address


class DetourAck(Message, frozen=True, tag=40):
    """Switched. To the old site: these are the last events that I sent you for the client."""

    client: Address
    epoch: Count
    generation: Count
    known: bool  # false: the client is not registered here
    last: tuple[Cursor, ...]


class HandoffState(Message, frozen=True, tag=41):
    """Everything that makes the destination the client's site: its modulator and the point it has reached."""

    client: Address
    epoch: Count
    generation: Count
    version: Count
    registered: Count  # the version that the producers' home brokers know
    home: Address
    wants: tuple[Want, ...]
    modulator: Text
    state: bytes | None  # of the modulator; None: it starts afresh
    produces: bool
    advertised: Interest | None
    cursors: tuple[Cursor, ...]  # processed
    settled: tuple[Cursor, ...]
    unsettled: tuple[tuple[Address, Count, Count], ...]  # publisher, number, the delivery that settles it; 0: unknown
    unreported: tuple[Cursor, ...]  # processed, and not yet told to the client
    sequence: Count  # of the next delivery
    deliveries: tuple[Delivery, ...]  # not yet acknowledged
    origins: tuple[tuple[Address, Address], ...]  # publisher, and the home broker its events come from
    sources: tuple[Address, ...]  # producers' home brokers that have switched
    consumers: tuple[Registration, ...]  # of what the client publishes, if it does and its home changes
    held_s: float  # for so long its events must be held for consumers that may have no home at the moment


class HandoffDone(Message, frozen=True, tag=42):
    client: Address
    epoch: Count
    generation: Count


class Served(Message, frozen=True, tag=43):
    """To a client's home broker: its modulator runs at the sender, so send me what concerns it."""

    client: Address
    epoch: Count
    generation: Count


# -- Envelopes -----------------------------------------------------------------------------------------------------


class Fragment(Message, frozen=True, tag=44):
    """A piece of a message that is too long for one frame."""

    category: ClassVar[Category] = "publish_subscribe"

    number: Count  # names the message, counted by its sender
    index: Annotated[int, Meta(ge=0, lt=1024)]
    count: Annotated[int, Meta(ge=1, le=1024)]
    data: bytes


Relayed = Forward | Delivery | Probe | Announce | Registrations | Register | RegisterAck | Receipt | Detour | DetourAck


class Carried(Message, frozen=True, tag=45):
    """A payload on a source route. In the trace it goes by the name and the category of its payload."""

    origin: Address  # the broker that sent it
    path: tuple[Address, ...]  # where it goes after the receiver of this frame; ends with its destination
    hops: Hops  # frames in a row that brought it to the sender of this frame
    detours: Hops  # how often a relay had to find a way of its own
    payload: Relayed

    @property
    def label(self) -> str:  # type: ignore[override]  # a class constant for every other message
        return self.payload.label

    @property
    def category(self) -> Category:  # type: ignore[override]
        return self.payload.category


Payload = (
    Attach
    | Attached
    | Report
    | ReportAck
    | Welcome
    | WelcomeAck
    | Detach
    | Publish
    | PublishAck
    | DeliveryAck
    | Topology
    | HandoffRequest
    | HandoffAck
    | HandoffState
    | HandoffDone
    | Served
    | Fragment
    | Carried
)
Messages = Control | Routed[Payload] | Seek | Found
