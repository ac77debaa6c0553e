"""What the unicast service puts on the air.

A protocol that owns a unicast service declares `messages = Control | Routed[A | B]`, where `A | B` are the payloads it
sends through the service. The tags 0 to 4 are the service's; payloads have their own envelope and may use any tag.

The ranges below are enforced by the wire codec. Sequence numbers are compared modulo 2**32 (`sequence.py`).
"""

from typing import Annotated, ClassVar, Generic, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from roamcast.events import Signature
from roamcast.fields import Address, Hops, Milliseconds
from roamcast.protocols.api import Category, Message

PayloadT = TypeVar("PayloadT", bound=Message)

Sequence = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""A number on a circle of 32 bits (`sequence.py`)."""


class Rreq(Message, frozen=True, tag=0):
    """Route request: who knows a route to `destination`? Flooded within `ttl` hops."""

    ttl: Hops  # frames in a row that may still carry it, this one included
    hops: Hops  # hops from the originator to the sender of this frame
    request_id: Sequence  # with the originator, names this request
    destination: Address
    destination_sequence: Sequence | None  # an answer must be at least as new; None: anything will do
    originator: Address
    originator_sequence: Sequence
    gratuitous: bool = False  # who answers for the destination also tells the destination about the originator
    destination_only: bool = False  # only the destination itself may answer

    def onward(self, destination_sequence: Sequence | None) -> "Rreq":
        """As a relay repeats it, demanding what the relay knows to be newest."""
        return Rreq(  # every node repeats every request once, and `replace` is slow
            ttl=self.ttl - 1,
            hops=self.hops + 1,
            request_id=self.request_id,
            destination=self.destination,
            destination_sequence=destination_sequence,
            originator=self.originator,
            originator_sequence=self.originator_sequence,
            gratuitous=self.gratuitous,
            destination_only=self.destination_only,
        )


class Rrep(Message, frozen=True, tag=1):
    """Route reply, from a node that knows `destination` to the originator of the request."""

    hops: Hops  # hops from the sender of this frame to the destination
    destination: Address
    destination_sequence: Sequence
    originator: Address
    lifetime_ms: Milliseconds  # how long the route may be used without an update

    def onward(self) -> "Rrep":
        """As a relay passes it on."""
        return replace(self, hops=self.hops + 1)


class Rerr(Message, frozen=True, tag=2):
    """Route error: the sender no longer reaches these destinations."""

    unreachable: tuple[tuple[Address, Sequence | None], ...]  # destination, number that outdates the route
    keep: bool = False  # the sender repaired the route, at the price of more hops: nothing needs to be given up


class Hello(Message, frozen=True, tag=3):
    """I am here. Only with `hello = true`, where the link layer does not report failures."""

    sequence: Sequence
    lifetime_ms: Milliseconds


class Routed(Message, Generic[PayloadT], frozen=True, tag=4):
    """The envelope of a payload in transit. In the trace it has the name and the category of its payload."""

    source: Address
    destination: Address
    hops: Hops  # frames in a row that brought it to the receiver of this one
    attempt: Hops  # how many times it set out, from its source or from the node that repaired its route
    payload: PayloadT
    signature: Signature | None = None  # of the source, over source, destination and payload

    signed_by: ClassVar[str] = "source"
    signed: ClassVar[tuple[str, ...]] = ("source", "destination", "payload")

    def onward(self) -> "Routed[PayloadT]":
        """As a relay passes it on."""
        return Routed(  # `replace` is slow
            source=self.source,
            destination=self.destination,
            hops=self.hops + 1,
            attempt=self.attempt,
            payload=self.payload,
            signature=self.signature,
        )

    def again(self) -> "Routed[PayloadT]":
        """The packet as it is sent again after its link broke."""
        return replace(self, attempt=self.attempt + 1)

    @property
    def label(self) -> str:  # type: ignore[override]  # a class constant for every other message
        return self.payload.label

    @property
    def category(self) -> Category:  # type: ignore[override]
        return self.payload.category


Control = Rreq | Rrep | Rerr | Hello
"""The service's own messages."""
