"""What nodes of Waymark say to each other.

`Want` and `Where` are records: what a node says of itself, for the whole network. Only the node itself issues them;
others pass them on unchanged, except that ages and places are moved on to the moment of sending, so that no clocks need
to agree.
"""

from typing import ClassVar

import msgspec

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Category, Message


class Want(msgspec.Struct, frozen=True, array_like=True):
    """What a node's application wants."""

    node: int
    number: int  # the higher is the newer
    since_ds: int  # for how long it has wanted this, in tenths of a second
    interest: Interest | None


class Where(msgspec.Struct, frozen=True, array_like=True):
    """Which links a node has: those that its place lets one expect, plus `extra`, minus `lacks`."""

    node: int
    number: int  # the higher is the newer
    place: tuple[int, int, int, int] | None  # x, y in tenths of a metre; velocity in centimetres per second
    extra: tuple[int, ...]  # neighbours that its place does not explain; without a place, all of them; ascending
    lacks: tuple[int, ...]  # nodes that its place would make neighbours, but that it does not hear; ascending


class Hello(Message, frozen=True, tag=16):
    """A node's links to its neighbours, and whatever news they may lack."""

    category: ClassVar[Category] = "maintenance"

    number: int  # counts this node's hellos; a gap tells how many were lost
    period_ds: int  # the next one is due after so many tenths of a second
    mutual: tuple[int, ...]  # neighbours that it hears and that hear it, ascending
    heard: tuple[int, ...]  # others that it hears, ascending
    digest: int  # of all records that it knows
    wants: tuple[Want, ...] = ()
    wheres: tuple[Where, ...] = ()
    receipts: tuple[int, ...] = ()  # as in `Receipt`


class News(Message, frozen=True, tag=17):
    """Records that some neighbour may lack; and, if `is_listing`, the numbers of all records that the sender has."""

    category: ClassVar[Category] = "maintenance"

    wants: tuple[Want, ...] = ()
    wheres: tuple[Where, ...] = ()
    is_listing: bool = False
    listing: tuple[int, ...] = ()  # address, number of its want, number of its where (0: none), address, ...


class Carry(Message, frozen=True, tag=18):
    """An event on its way to destinations."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: int  # frames in a row that brought it to whoever gets this one
    groups: tuple[tuple[int, ...], ...]  # (relay, destination, ...): passes it on; (destination,): confirms it
    receipts: tuple[int, ...]  # as in `Receipt`
    event: Event


class Spread(Message, frozen=True, tag=19):
    """An event on its way to everybody, from a node that does not know enough to name destinations."""

    category: ClassVar[Category] = "publish_subscribe"

    hops: int  # frames in a row that brought it to whoever gets this one
    event: Event


class Receipt(Message, frozen=True, tag=20):
    """Events that the sender of this frame got: publisher, number, publisher, number, ..."""

    category: ClassVar[Category] = "publish_subscribe"

    receipts: tuple[int, ...]
