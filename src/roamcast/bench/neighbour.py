"""The protocol of the unicast loads. It is compiled, as the product's protocols are."""

from typing import ClassVar

from roamcast.bench.payload import Packet
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Protocol


class ToNeighbour(Protocol):
    """Sends each event to the one neighbour that its content names: the link layer and nothing else."""

    name: ClassVar[str] = "to-neighbour"
    summary: ClassVar[str] = "sends an event to the neighbour whose address is its content"
    Parameters: ClassVar[type[api.Parameters]] = api.Parameters
    messages: ClassVar[type[Packet]] = Packet

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
