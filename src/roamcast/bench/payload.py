"""Events of an exact size on the wire, as the reference measurements use."""

from typing import ClassVar

import msgspec

from roamcast.events import Event, event_id
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Category, Message, Protocol
from roamcast.protocols.flooding.messages import Flood


class Packet(Message, frozen=True, tag=16):
    """One packet to one neighbour."""

    category: ClassVar[Category] = "publish_subscribe"

    event: Event


class ToNeighbour(Protocol):
    """Sends each event to the one neighbour that its content names: the link layer and nothing else."""

    name: ClassVar[str] = "to-neighbour"
    summary: ClassVar[str] = "sends an event to the neighbour whose address is its content"
    Parameters: ClassVar[type[api.Parameters]] = api.Parameters
    messages = Packet

    def __init__(self, host: api.Host, parameters: api.Parameters) -> None:
        super().__init__(host)

    def start(self) -> None:
        """Nothing to set up."""

    def subscribe(self, interest: Interest) -> None:
        """Packets are addressed, not asked for."""

    def unsubscribe(self, interest: Interest) -> None:
        """Packets are addressed, not asked for."""

    def publish(self, event: Event) -> None:
        self.host.send(int(event.content), Packet(event))

    def on_message(self, sender: int, message: Packet) -> None:
        self.host.deliver(message.event, 1)


def padding(kind: type[Flood] | type[Packet], wire_bytes: int) -> int:
    """The payload size with which a message of `kind` takes `wire_bytes` (if its numbers are below 128)."""
    event = Event(event_id(1, 1), 0.5, 1, b"")
    empty = Flood(1, event) if kind is Flood else Packet(event)
    return wire_bytes - len(msgspec.msgpack.encode(empty))
