"""The simplest user of a unicast service: it sends notes, and keeps those that arrive and those that were
undeliverable.

Under `TinyNet`, drive it with `send`. It is a whole protocol, so it runs in the simulator too: there it sends an event
to each subscriber that the oracle names, and delivers what arrives.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols import api
from roamcast.protocols.api import Category, Host, Message
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.routing import AodvParameters, Control, Routed, Unicast, unicast


class Note(Message, frozen=True, tag=16):
    text: str


class Parcel(Message, frozen=True, tag=17):
    category: ClassVar[Category] = "publish_subscribe"

    event: Event


class CourierParameters(api.Parameters, frozen=True):
    unicast: str = "aodv"  # or "oracle"


class Courier(ComposedProtocol):
    name: ClassVar[str] = "courier"
    summary: ClassVar[str] = "sends every event to every subscriber by unicast; who they are comes from the oracle"
    Parameters: ClassVar[type[api.Parameters]] = CourierParameters
    messages: ClassVar[Any] = Control | Routed[Note | Parcel]

    def __init__(self, host: Host, parameters: CourierParameters, aodv: AodvParameters | None = None) -> None:
        super().__init__(host)
        self.unicast: Unicast = unicast(
            parameters.unicast,
            host,
            self.inputs,
            arrived=self.on_arrival,
            unreachable=self.on_unreachable,
            parameters=aodv,
        )
        self.compose(self.unicast)
        self.received: list[tuple[int, str, int]] = []  # source, text, hops
        self.returned: list[tuple[int, str]] = []  # destination, text

    @staticmethod
    def maker(aodv: AodvParameters | None = None, unicast: str = "aodv") -> "Callable[[Host], Courier]":
        """What `TinyNet` wants."""
        return lambda host: Courier(host, CourierParameters(unicast=unicast), aodv)

    def send(self, destination: int, text: str) -> None:
        self.unicast.send(destination, Note(text))

    def start(self) -> None:
        self.unicast.start()

    def subscribe(self, interest: Interest) -> None:
        """Nothing to do: the oracle knows who subscribed."""

    def unsubscribe(self, interest: Interest) -> None:
        """Nothing to do: the oracle knows who subscribed."""

    def publish(self, event: Event) -> None:
        if self.host.oracle is not None:
            for subscriber in self.host.oracle.subscribers(event):
                if subscriber != self.host.address:
                    self.unicast.send(subscriber, Parcel(event))

    def on_arrival(self, source: int, payload: Message, hops: int) -> None:
        if isinstance(payload, Parcel):
            self.host.deliver(payload.event, hops)
        elif isinstance(payload, Note):
            self.received.append((source, payload.text, hops))

    def on_unreachable(self, destination: int, payload: Message) -> None:
        if isinstance(payload, Note):
            self.returned.append((destination, payload.text))
