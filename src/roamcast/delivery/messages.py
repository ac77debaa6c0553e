"""The messages of the delivery layer. They travel beside those of any protocol, so their tags, from 112 on, are unlike
all of theirs; a test compares them."""

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.events import Event, Signature
from roamcast.fields import Address, Counter, Duration, EventId, EventIdOrNone, Hops
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message

IDS_MAX: Final = 128
"""Events that one message lists or asks for."""

RECORDS_MAX: Final = 64
"""Records in one message."""

RANGES_MAX: Final = 64
"""Ranges of numbers in one `PublisherProgress`."""

EventNumber = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Ids = Annotated[tuple[EventId, ...], Meta(max_length=IDS_MAX)]
Ranges = Annotated[tuple[tuple[EventNumber, EventNumber], ...], Meta(max_length=RANGES_MAX)]


class Want(msgspec.Struct, frozen=True, array_like=True):
    """What the applications of one node ask for. Every node passes it on, so that all know what is worth keeping."""

    node: Address
    life: Counter  # of the node
    version: Counter  # grows with every change and every refresh within a life
    interest: Interest | None  # None: nothing any more
    is_ordered: bool  # one of its subscriptions wants the events of each publisher in order
    age_s: Duration  # since the node said so; grows on the way, so it is not signed
    signature: Signature | None = None  # of the node

    signed_by: ClassVar[str] = "node"
    signed: ClassVar[tuple[str, ...]] = ("node", "life", "version", "interest", "is_ordered")

    def subscriptions(self) -> tuple[Interest, ...]:
        """For hosts that check what the node may ask for."""
        return () if self.interest is None else (self.interest,)


class PublisherProgress(msgspec.Struct, frozen=True, array_like=True):
    """Which of its events a publisher offers. With it a subscriber tells a lost event from a number never used."""

    node: Address
    life: Counter
    version: Counter
    ranges: Ranges  # of event numbers, first and last, ascending; the newest, if there are too many
    age_s: Duration
    signature: Signature | None = None

    signed_by: ClassVar[str] = "node"
    signed: ClassVar[tuple[str, ...]] = ("node", "life", "version", "ranges")


class RecordUpdate(Message, frozen=True, tag=112):
    """What the sender knows of others' interests and progress, or a part of it."""

    category: ClassVar[Category] = "publish_subscribe"

    wants: Annotated[tuple[Want, ...], Meta(max_length=RECORDS_MAX)]
    progress: Annotated[tuple[PublisherProgress, ...], Meta(max_length=RECORDS_MAX)]


class Beat(Message, frozen=True, tag=113):
    """A sign of life, and what the sender has taken into custody lately. Entry i of its log is number `first` + i."""

    epoch: Counter  # of the log: entries of different epochs cannot be compared
    first: Counter
    ids: Annotated[tuple[EventIdOrNone, ...], Meta(max_length=IDS_MAX)]  # 0: no longer there; the log ends after them
    records: Counter  # a digest of all records that the sender knows


class Ask(Message, frozen=True, tag=114):
    """Which events are in your log from this entry on?"""

    epoch: Counter
    cursor: Counter


class Offer(Message, frozen=True, tag=115):
    """The answer to `Ask`: a part of the log."""

    epoch: Counter
    first: Counter  # the cursor, or a later entry if those before are gone
    ids: Annotated[tuple[EventIdOrNone, ...], Meta(max_length=IDS_MAX)]
    head: Counter  # where the log ends


class Fetch(Message, frozen=True, tag=116):
    """Send me these events."""

    ids: Ids


class Carried(msgspec.Struct, frozen=True, array_like=True):
    event: Event
    age_s: Duration  # since it was published, as far as known: counted by those who held it, not by clocks
    hops: Hops  # that it had made when it came to the sender


class Carry(Message, frozen=True, tag=117):
    """The answer to `Fetch`."""

    category: ClassVar[Category] = "publish_subscribe"

    carried: Annotated[tuple[Carried, ...], Meta(max_length=IDS_MAX)]
    gone: Ids  # which the sender does not have any more


MESSAGES: Final[Any] = RecordUpdate | Beat | Ask | Offer | Fetch | Carry
KINDS: Final = frozenset((RecordUpdate, Beat, Ask, Offer, Fetch, Carry))
