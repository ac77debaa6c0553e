"""What opportunistic overlays put on the air.

`Seek` and `Found` travel by themselves, hop by hop. Everything else is a payload of the unicast service, either
directly to its destination, or inside `Carried` or `Spread`, which follow source routes from broker to broker.

Three numbers order what is said about a client, the more significant first:

- *epoch*: raised by the client when it attaches to a broker without having been handed over; only the client raises it,
  so two brokers that both believe that they serve it can be told apart;
- *generation*: raised by each relocation within an epoch;
- *version*: raised by the client whenever its subscriptions, its modulator or its advertisements change.

A chain orders the events of one producer for one receiver: each event names its `previous` one, the latest earlier
event that the receiver has not acknowledged yet, or 0. A receiver takes an event when it has taken the previous one, so
nothing is reordered or passed over, whatever paths the events took. Numbers that are skipped were not for this
receiver, or have expired.
"""

from typing import Annotated, ClassVar

from msgspec import Meta

from roamcast.events import Event, Signature
from roamcast.fields import Address, Coordinate, Counter, Duration, Hops, Quantity, SmallCounter, Time
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.routing import Control, Routed
from roamcast.protocols.routing.messages import Sequence

BRANCHES_MAX = 64
PATH_MAX = 32
NEIGHBOURS_MAX = 256

Epoch = Sequence  # on a circle (`ranks.py`)
Path = Annotated[tuple[Address, ...], Meta(max_length=PATH_MAX)]  # brokers; the destination is last
Load = Quantity  # share of time that a broker's CPU is busy; above 1 when work piles up
Cursor = tuple[Address, Counter]  # a publisher, and the number of its latest event that has been dealt with
Channel = Counter  # of one consumer; 0: the channel of subscriptions without a function of their own
Want = tuple[Interest, Time, Channel]  # a subscription, when it was made, and the channel of its events
Target = tuple[Address, Epoch, Counter]  # a consumer, its epoch, its previous event of this producer
Branch = tuple[Path, tuple[Target, ...]]  # the path to a broker, and its consumers
TEXT_MAX = 4096
Text = Annotated[str, Meta(max_length=TEXT_MAX)]
CHANNELS_MAX = 16
Modulations = Annotated[tuple[tuple[Channel, Modulation], ...], Meta(max_length=CHANNELS_MAX)]  # channels that have one
Position = tuple[Coordinate, Coordinate]  # m


class Seek(Message, frozen=True, tag=16):
    """Who is a broker within `ttl` hops? Flooded."""

    origin: Address
    number: Counter  # with the origin, names this search
    ttl: Hops  # frames in a row that may still carry it, this one included
    hops: Hops  # frames in a row that brought it to the receiver of this one


class Found(Message, frozen=True, tag=17):
    """A broker answers a search, along the path that the search took."""

    origin: Address
    number: Counter
    broker: Address
    hops: Hops  # from the origin to the broker
    load: Load
    ttl: Hops  # frames in a row that may still carry it, this one included


# -- Between clients and their home brokers ------------------------------------------------------------------------


class Attach(Message, frozen=True, tag=16):
    """Be my home broker; or, within an epoch, take note of what changed."""

    category: ClassVar[Category] = "publish_subscribe"

    client: Address
    epoch: Epoch
    version: Counter
    wants: tuple[Want, ...]
    modulations: Modulations
    produces: bool  # it publishes
    advertised: Interest | None  # what it is going to publish; None: anything
    cursors: tuple[Cursor, ...]  # what it has got of each publisher

    def subscriptions(self) -> tuple[Interest, ...]:
        return tuple([interest for interest, _, _ in self.wants])


class Attached(Message, frozen=True, tag=17):
    """I am your home broker."""

    epoch: Epoch
    version: Counter


class Refused(Message, frozen=True, tag=47):
    """I do not run the modulator of this channel that you told me in this version: I cannot, or it failed."""

    epoch: Epoch
    version: Counter
    channel: Channel
    reason: Text


class Report(Message, frozen=True, tag=18):
    """A client's periodic report to its home broker: I am here, and `nearest` is the nearest other broker."""

    client: Address
    epoch: Epoch
    nearest: Address | None
    distance_hops: Hops  # to `nearest`
    load: Load  # of `nearest`
    position: Position | None = None  # where the client is, if it knows


class ReportAck(Message, frozen=True, tag=19):
    epoch: Epoch
    known: bool  # false: I do not know you


class Welcome(Message, frozen=True, tag=20):
    """After a relocation: I am your home broker from now on."""

    epoch: Epoch
    generation: Counter


class WelcomeAck(Message, frozen=True, tag=21):
    epoch: Epoch
    generation: Counter


class Detach(Message, frozen=True, tag=22):
    """I am no longer your client, in any epoch up to this one."""

    epoch: Epoch
    is_final: bool  # true: it leaves for good, so forget its subscriptions


class Publish(Message, frozen=True, tag=23):
    category: ClassVar[Category] = "publish_subscribe"

    previous: Counter
    event: Event
    is_old: bool  # it was published under another home: only consumers that had subscribed by then are to get it


class PublishAck(Message, frozen=True, tag=24):
    category: ClassVar[Category] = "publish_subscribe"

    received: Counter  # everything up to this number is with the home broker
    released: Counter  # everything up to this number is with all consumers, or has expired: you may forget it


class ClientDelivery(Message, frozen=True, tag=25):
    """What a consumer's modulator made of events, in one sequence per consumer and epoch."""

    category: ClassVar[Category] = "publish_subscribe"

    epoch: Epoch
    sequence: Counter
    site: Address  # the broker where the modulator runs; it gets the acknowledgement
    hops: Hops  # that the event took from its producer to the site
    event: Event
    cursors: tuple[Cursor, ...]  # what the modulators have dealt with since the delivery before
    channel: Channel = 0
    part: SmallCounter = 0  # of what came of the event, on all channels, counted from 0; cursors come with the last


class DeliveryAck(Message, frozen=True, tag=26):
    category: ClassVar[Category] = "publish_subscribe"

    epoch: Epoch
    sequence: Counter  # everything up to this arrived


# -- Between brokers -----------------------------------------------------------------------------------------------


class LinkState(Message, frozen=True, tag=27):
    """A broker's own row of the topology table, and what others should know about it."""

    broker: Address
    sequence: Sequence  # on a circle, as an epoch is
    neighbours: Annotated[tuple[tuple[Address, Hops], ...], Meta(max_length=NEIGHBOURS_MAX)]  # length of the link, hops
    load: Load
    life: Counter  # when it started, ms: a broker that returned from a crash knows nothing of what it was told before
    signature: Signature | None = None  # of the broker

    signed_by: ClassVar[str] = "broker"
    signed: ClassVar[tuple[str, ...]] = ("broker", "sequence", "neighbours", "load", "life")


class TopologyRows(Message, frozen=True, tag=28):
    """The rows of the sender's topology table that changed since it last said so."""

    rows: tuple[LinkState, ...]
    is_novice: bool  # the sender knows next to nothing yet: tell it everything


class Announce(Message, frozen=True, tag=29):
    """I am a producer's home broker: tell me which of your clients want such events."""

    category: ClassVar[Category] = "publish_subscribe"

    number: Counter
    advertised: Interest | None  # None: of any kind
    active: bool  # false: I am not any more


class Registration(Message, frozen=True, tag=30):
    """What a producer's home broker knows about one consumer."""

    client: Address
    epoch: Epoch
    generation: Counter
    version: Counter
    site: Address  # the broker where its modulator runs: where its events go
    wants: tuple[Want, ...]  # none: it wants nothing any more
    cursors: tuple[Cursor, ...]  # what its site has dealt with


class Registrations(Message, frozen=True, tag=31):
    """The answer to an announcement, whole."""

    category: ClassVar[Category] = "publish_subscribe"

    number: Counter
    rows: tuple[Registration, ...]


class Register(Message, frozen=True, tag=32):
    """A consumer is new, or something about it changed."""

    category: ClassVar[Category] = "publish_subscribe"

    row: Registration


class RegisterAck(Message, frozen=True, tag=33):
    category: ClassVar[Category] = "publish_subscribe"

    client: Address
    epoch: Epoch
    generation: Counter
    version: Counter


class Forward(Message, frozen=True, tag=34):
    """An event, from its producer's home broker to a broker whose clients want it."""

    category: ClassVar[Category] = "publish_subscribe"

    source: Address  # the producer's home broker
    hops: Hops  # from the producer to there
    targets: tuple[Target, ...]
    event: Event


class Spread(Message, frozen=True, tag=46):
    """An event on a tree of source routes, from its producer's home broker to all brokers whose clients want it."""

    category: ClassVar[Category] = "publish_subscribe"

    source: Address  # the producer's home broker
    base_hops: Hops  # from the producer to there
    hops: Hops  # frames in a row that brought it from there to the sender of this frame
    branches: Annotated[tuple[Branch, ...], Meta(max_length=BRANCHES_MAX)]  # behind the receiver of this frame
    event: Event


class Receipt(Message, frozen=True, tag=35):
    """How far consumers have got: processed at their site, settled with the consumers themselves."""

    category: ClassVar[Category] = "publish_subscribe"

    rows: tuple[tuple[Address, Epoch, Address, Counter, Counter], ...]  # client, epoch, publisher, processed, settled


class Probe(Message, frozen=True, tag=36):
    """How long is the path that my routing table gives?"""


# -- Relocation ----------------------------------------------------------------------------------------------------


class HandoffRequest(Message, frozen=True, tag=37):
    """Will you take this client's modulator?"""

    client: Address
    epoch: Epoch
    generation: Counter  # that it would begin
    modulations: Modulations


class HandoffAck(Message, frozen=True, tag=38):
    client: Address
    epoch: Epoch
    generation: Counter
    accepted: bool


class Detour(Message, frozen=True, tag=39):
    """To the producers' home brokers: from now on send this client's events there."""

    client: Address
    epoch: Epoch
    generation: Counter
    site: Address


class DetourAck(Message, frozen=True, tag=40):
    """Switched. To the old site: these are the last events that I sent you for the client."""

    client: Address
    epoch: Epoch
    generation: Counter
    known: bool  # false: the client is not registered here
    last: tuple[Cursor, ...]


class HandoffState(Message, frozen=True, tag=41):
    """Everything that makes the destination the client's site: its modulator and the point it has reached."""

    client: Address
    epoch: Epoch
    generation: Counter
    version: Counter
    registered: Counter  # the version that the producers' home brokers know
    home: Address
    wants: tuple[Want, ...]
    modulations: Modulations
    states: tuple[tuple[Channel, bytes], ...]  # of modulators; those that are missing start afresh
    produces: bool
    advertised: Interest | None
    cursors: tuple[Cursor, ...]  # processed
    settled: tuple[Cursor, ...]
    # Publisher, number, delivery that settles it (0: unknown), channels whose modulators keep it.
    unsettled: tuple[tuple[Address, Counter, Counter, tuple[Channel, ...]], ...]
    unreported: tuple[Cursor, ...]  # processed, and not yet told to the client
    sequence: Counter  # of the next delivery
    deliveries: tuple[ClientDelivery, ...]  # not yet acknowledged
    origins: tuple[tuple[Address, Address], ...]  # publisher, and the home broker its events come from
    sources: tuple[Address, ...]  # producers' home brokers that have switched
    consumers: tuple[Registration, ...]  # of what the client publishes, if it does and its home changes
    held_s: Duration  # how long its events must be held for consumers that may have no home at the moment


class HandoffDone(Message, frozen=True, tag=42):
    client: Address
    epoch: Epoch
    generation: Counter


class Served(Message, frozen=True, tag=43):
    """To a client's home broker: its modulator runs at the sender, so send me what concerns it."""

    client: Address
    epoch: Epoch
    generation: Counter


# -- Envelopes -----------------------------------------------------------------------------------------------------


Relayed = (
    Forward | ClientDelivery | Probe | Announce | Registrations | Register | RegisterAck | Receipt | Detour | DetourAck
)


class Carried(Message, frozen=True, tag=45):
    """A payload on a source route. In the trace it goes by the name and the category of its payload."""

    origin: Address  # the broker that sent it
    path: Path  # where it goes after the receiver of this frame
    hops: Hops  # frames in a row that brought it to the sender of this frame
    detours: Hops  # how often a relay had to compute another path
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
    | Refused
    | Report
    | ReportAck
    | Welcome
    | WelcomeAck
    | Detach
    | Publish
    | PublishAck
    | DeliveryAck
    | TopologyRows
    | HandoffRequest
    | HandoffAck
    | HandoffState
    | HandoffDone
    | Served
    | Carried
    | Spread
)
Messages = Control | Routed[Payload] | Seek | Found
