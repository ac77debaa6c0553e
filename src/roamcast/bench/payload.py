"""Events of an exact size on the wire, as the reference measurements use."""

from typing import ClassVar

import msgspec

from roamcast.events import Event, event_id
from roamcast.protocols.api import Category, Message
from roamcast.protocols.flooding.messages import Flood


class Packet(Message, frozen=True, tag=16):
    """One packet to one neighbour."""

    category: ClassVar[Category] = "publish_subscribe"

    event: Event


def padding(kind: type[Flood] | type[Packet], wire_bytes: int) -> int:
    """The payload size with which a message of `kind` takes `wire_bytes` (if its numbers are below 128)."""
    event = Event(event_id(1, 1), 0.5, 1, b"")
    empty = Flood(1, event) if kind is Flood else Packet(event)
    return wire_bytes - len(msgspec.msgpack.encode(empty))
