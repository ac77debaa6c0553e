"""What nodes of Waymark say to each other.

`Want` and `Where` are records: what a node says of itself, for the whole network. Only the node itself issues them;
others pass them on unchanged, except that ages and places are moved on to the moment of sending, so that no clocks need
to agree.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from roamcast.events import Event, Signature
from roamcast.fields import Address, Counter, Hops, SmallCounter
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message

AGE_DS_MAX: Final = 10**10
"""The largest age that is told; what is older counts as this old."""

PLACE_MAX: Final = 10**11
"""The largest coordinate or speed that is told; what is beyond counts as this far."""

Age = Annotated[int, Meta(ge=0, le=AGE_DS_MAX)]
Coordinate = Annotated[int, Meta(ge=-PLACE_MAX, le=PLACE_MAX)]
Serial = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""Numbers of a node's records. They go round in a circle: the newer of two is less than half a circle ahead."""

Mark = Annotated[int, Meta(ge=0, le=2**16 - 1)]
"""Stands for a record's number and content; 0: there is no record."""

Group = Annotated[tuple[Address, ...], Meta(min_length=1)]
Place = tuple[Coordinate, Coordinate, Coordinate, Coordinate]
"""East and north of the area's corner in tenths of a metre, then the velocity in centimetres per second."""


class Want(msgspec.Struct, frozen=True, array_like=True):
    """What a node's application wants."""

    node: Address
    number: Serial
    since_ds: Age  # for how long it has wanted this, in tenths of a second; not signed
    interest: Interest | None
    signature: Signature | None = None  # of the node

    signed_by: ClassVar[str] = "node"
    signed: ClassVar[tuple[str, ...]] = ("node", "number", "interest")

    def subscriptions(self) -> tuple[Interest, ...]:
        return () if self.interest is None else (self.interest,)


class Where(msgspec.Struct, frozen=True, array_like=True):
    """Which links a node has: those that its place lets one expect, plus `extra`, minus `lacks`."""

    node: Address
    number: Serial
    place: Place | None  # updated by each forwarding node, so it is not signed
    extra: tuple[Address, ...]  # neighbours that its place does not explain; without a place, all of them; ascending
    lacks: tuple[Address, ...]  # nodes that its place would make neighbours, but that it does not hear; ascending
    signature: Signature | None = None  # of the node

    signed_by: ClassVar[str] = "node"
    signed: ClassVar[tuple[str, ...]] = ("node", "number", "extra", "lacks")


Listed = tuple[Address, Mark, Mark]
"""A node, the mark of its want and the mark of its where."""


class Hello(Message, frozen=True, tag=16):
    """A node's links to its neighbours, and news that they may lack."""

    category: ClassVar[Category] = "maintenance"

    number: Counter  # counts this node's hellos; a gap tells how many were lost
    period_ds: SmallCounter  # tenths of a second until the next one is due
    mutual: tuple[Address, ...]  # neighbours that it hears and that hear it, ascending
    heard: tuple[Address, ...]  # others that it hears, ascending
    wants_digest: SmallCounter  # of all wants that it knows
    wheres_digest: SmallCounter  # of all wheres that it knows
    wants: tuple[Want, ...] = ()
    wheres: tuple[Where, ...] = ()
    receipts: tuple[Counter, ...] = ()  # as in `Receipt`


class News(Message, frozen=True, tag=17):
    """Records that some neighbour may lack; and, if `is_listing`, the marks of all records that the sender has."""

    category: ClassVar[Category] = "maintenance"

    wants: tuple[Want, ...] = ()
    wheres: tuple[Where, ...] = ()
    is_listing: bool = False
    listing: tuple[Listed, ...] = ()


class Carry(Message, frozen=True, tag=18):
    """An event on its way to destinations."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # frames in a row that brought it to whoever gets this one
    age_ds: Age  # how long ago it was published, in tenths of a second, so that no clocks need to agree
    round: SmallCounter  # how often it was in custody
    groups: tuple[Group, ...]  # (relay, destination, ...): passes it on; (destination,): confirms it;
    # none at all: sent to one destination, whose link confirms
    soon: SmallCounter  # this many groups, the first ones, confirm soon; the others with their next frame
    receipts: tuple[Counter, ...]  # as in `Receipt`
    event: Event
    wants: tuple[Want, ...] = ()  # news that is sent along
    wheres: tuple[Where, ...] = ()


class Spread(Message, frozen=True, tag=19):
    """A flooded event, from a node that does not know enough to name destinations."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: Hops  # frames in a row that brought it to whoever gets this one
    event: Event


class Receipt(Message, frozen=True, tag=20):
    """Events that the sender of this frame got: publisher, number, publisher, number, ..."""

    category: ClassVar[Category] = "publish_subscribe"

    receipts: tuple[Counter, ...]
