"""The service's messages on the wire: typed envelopes, ranges, labels."""

from typing import ClassVar

import msgspec
import pytest

from roamcast.protocols.api import Category, Message
from roamcast.protocols.routing.messages import Control, Hello, Rerr, Routed, Rrep, Rreq


class Letter(Message, frozen=True, tag=16):
    text: str


class Notice(Message, frozen=True, tag=0):  # a payload may use any tag: the envelope keeps the two apart
    category: ClassVar[Category] = "publish_subscribe"

    number: int


CODEC = msgspec.msgpack.Decoder[Message](Control | Routed[Letter | Notice])

REQUEST = Rreq(7, 2, 9, 5, None, 1, 2**32 - 1, gratuitous=True)
EVERY_MESSAGE = [
    REQUEST,
    msgspec.structs.replace(REQUEST, destination_sequence=3, destination_only=True),
    Rrep(0, 5, 8, 1, 6000),
    Rerr(((5, 8), (6, None)), keep=True),
    Hello(4, 2000),
    Routed(1, 5, 1, 1, Letter("a")),
    Routed(1, 5, 3, 2, Notice(4)),
]


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_round_trip(message: Message) -> None:
    copy = CODEC.decode(msgspec.msgpack.encode(message))
    assert copy == message
    assert type(copy) is type(message)


def test_the_payload_is_typed() -> None:
    copy = CODEC.decode(msgspec.msgpack.encode(Routed(1, 5, 1, 1, Notice(4))))
    assert isinstance(copy, Routed)
    assert isinstance(copy.payload, Notice)
    with pytest.raises(msgspec.ValidationError):
        CODEC.decode(msgspec.msgpack.encode(Routed(1, 5, 1, 1, Hello(1, 1))))
    with pytest.raises(msgspec.ValidationError):
        CODEC.decode(msgspec.msgpack.encode([4, 1, 5, 1, 1, [16, 99]]))


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(REQUEST, hops=256),
        msgspec.structs.replace(REQUEST, destination=-1),
        msgspec.structs.replace(REQUEST, originator_sequence=2**32),
        Rrep(-1, 5, 8, 1, 6000),
        Rrep(0, 5, 8, 1, -6000),
        Rerr(((2**40, 8),)),
        Routed(1, 5, 999, 1, Letter("a")),
    ],
)
def test_values_out_of_range_do_not_come_off_the_wire(message: Message) -> None:
    with pytest.raises(msgspec.ValidationError):
        CODEC.decode(msgspec.msgpack.encode(message))


def test_an_envelope_goes_by_its_payload() -> None:
    envelope = Routed(1, 5, 1, 1, Notice(4))
    assert (envelope.label, envelope.category) == ("Notice", "publish_subscribe")
    assert (Routed(1, 5, 1, 1, Letter("a")).label, Rreq.label) == ("Letter", "Rreq")


def test_steps_of_a_journey() -> None:
    assert REQUEST.onward(4) == msgspec.structs.replace(REQUEST, ttl=6, hops=3, destination_sequence=4)
    assert Rrep(0, 5, 8, 1, 6000).onward() == Rrep(1, 5, 8, 1, 6000)
    packet = Routed(1, 5, 1, 1, Letter("a"))
    assert packet.onward().again() == Routed(1, 5, 2, 2, Letter("a"))
