"""Every byte string is a datagram or a reason to drop it; nothing else may come out of the codec."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import PeerError
from roamcast.events import Event
from roamcast.fields import ADDRESS_MAX
from roamcast.interests import Interest, Intervals
from roamcast.live.codec import (
    DATAGRAM_BYTES_MAX,
    EVERYBODY,
    HEADER_BYTES,
    Codec,
    Datagram,
    DatagramKind,
    DropReason,
    as_batch,
)
from roamcast.protocols.api import Message
from roamcast.protocols.flooding.messages import Flood


class Ask(Message, frozen=True, array_like=True, tag=17):
    interest: Interest
    path: tuple[int, ...] = ()


class Picky(Message, frozen=True, array_like=True, tag=18):
    value: float

    def __post_init__(self) -> None:
        if math.isnan(self.value):
            raise PeerError("value: not a number")
        if self.value < 0:
            raise ValueError("value: negative")


MESSAGES: Any = Flood | Ask | Picky
CODEC = Codec("home", "test", MESSAGES)

int64 = st.integers(-(2**63), 2**63 - 1)
contents = st.one_of(int64, st.floats(-1e300, 1e300), st.text(max_size=40))
events = st.builds(
    Event, id=st.integers(1, 2**63 - 1), time_s=st.floats(-1e12, 1e12), content=contents, payload=st.binary(max_size=64)
)
interests = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=5).map(lambda r: Intervals.of(*r))
messages = st.one_of(
    st.builds(Flood, hops=st.integers(0, 255), event=events),
    st.builds(Ask, interest=interests, path=st.lists(int64, max_size=5).map(tuple)),
    st.builds(Picky, value=st.floats(0, 1)),
)
addresses = st.integers(0, ADDRESS_MAX)
sequences = st.integers(0, 2**64 - 1)
datagrams = st.one_of(
    st.builds(Datagram, kind=st.just(DatagramKind.BROADCAST), sender=addresses, message=messages),
    st.builds(Datagram, st.just(DatagramKind.UNICAST), addresses, addresses, sequences, messages),
    st.builds(Datagram, st.just(DatagramKind.ACKNOWLEDGEMENT), addresses, addresses, sequences),
)

EXAMPLE = Datagram(DatagramKind.UNICAST, 1, 2, 3, Flood(1, Event(1 << 32 | 1, 0.5, 42, b"payload")))


def header_of(datagram: Datagram) -> bytes:
    return CODEC.encode(datagram)[:HEADER_BYTES]


def with_body(body: bytes) -> bytes:
    return header_of(EXAMPLE) + body


@given(datagrams)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_what_is_encoded_comes_back(datagram: Datagram) -> None:
    assert CODEC.decode(CODEC.encode(datagram)) == datagram


@given(st.lists(messages, min_size=1, max_size=4))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_a_batch_comes_back(batch: list[Message]) -> None:
    data = CODEC.encode(Datagram(DatagramKind.BATCH, 5), as_batch([CODEC.encode_message(message) for message in batch]))
    assert CODEC.decode(data) == Datagram(DatagramKind.BATCH, 5, batch=tuple(batch))
    for cut in range(HEADER_BYTES, len(data)):
        decoded = CODEC.decode(data[:cut])
        if isinstance(decoded, Datagram):  # cut between two messages
            assert decoded.batch == tuple(batch[: len(decoded.batch)])


@given(st.binary(max_size=200))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_random_batches_are_messages_or_dropped(body: bytes) -> None:
    decoded = CODEC.decode(header_of(Datagram(DatagramKind.BATCH, 5)) + body)
    assert decoded is DropReason.MALFORMED_BODY or (isinstance(decoded, Datagram) and decoded.batch)


@given(st.binary(max_size=DATAGRAM_BYTES_MAX + 10))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_random_bytes_are_dropped(data: bytes) -> None:
    assert isinstance(CODEC.decode(data), DropReason)


@given(st.binary(max_size=200))
@settings(deadline=None, derandomize=True, max_examples=500)
def test_random_bodies_are_messages_or_dropped(body: bytes) -> None:
    decoded = CODEC.decode(with_body(body))
    is_message = isinstance(decoded, Datagram) and isinstance(decoded.message, Message)
    assert is_message or decoded is DropReason.MALFORMED_BODY


@given(datagrams, st.data())
@settings(deadline=None, derandomize=True, max_examples=500)
def test_mutated_datagrams_are_messages_of_the_union_or_dropped(datagram: Datagram, data: st.DataObject) -> None:
    raw = bytearray(CODEC.encode(datagram))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert"])):
            case "flip":
                raw[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del raw[max(at, 1) :]
            case "insert":
                raw[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    decoded = CODEC.decode(bytes(raw))
    if isinstance(decoded, Datagram):
        assert isinstance(decoded.message, (Flood, Ask, Picky)) == (decoded.kind != DatagramKind.ACKNOWLEDGEMENT)
        assert 0 <= decoded.sender <= ADDRESS_MAX
        assert 0 <= decoded.receiver <= ADDRESS_MAX or decoded.receiver == EVERYBODY
    else:
        assert isinstance(decoded, DropReason)


def test_every_cut_of_a_datagram_is_dropped() -> None:
    whole = CODEC.encode(EXAMPLE)
    reasons = [CODEC.decode(whole[:length]) for length in range(len(whole))]
    assert set(reasons[:HEADER_BYTES]) == {DropReason.TRUNCATED}
    assert set(reasons[HEADER_BYTES:]) == {DropReason.MALFORMED_BODY}


def test_strangers_are_told_apart() -> None:
    raw = CODEC.encode(EXAMPLE)
    assert CODEC.decode(b"\x00" + raw[1:]) is DropReason.FOREIGN_MAGIC
    assert CODEC.decode(raw[:1] + b"\x02" + raw[2:]) is DropReason.FOREIGN_VERSION
    assert CODEC.decode(raw[:1] + b"\x02") is DropReason.FOREIGN_VERSION
    assert CODEC.decode(raw + bytes(DATAGRAM_BYTES_MAX)) is DropReason.OVERSIZED
    assert Codec("elsewhere", "test", MESSAGES).decode(raw) is DropReason.FOREIGN_NETWORK
    assert Codec("home", "other", MESSAGES).decode(raw) is DropReason.FOREIGN_NETWORK


@pytest.mark.parametrize(
    "datagram",
    [
        Datagram(DatagramKind.BROADCAST, ADDRESS_MAX + 1, message=EXAMPLE.message),
        Datagram(DatagramKind.BROADCAST, 1, 2, 0, EXAMPLE.message),
        Datagram(DatagramKind.BROADCAST, 1, EVERYBODY, 9, EXAMPLE.message),
        Datagram(DatagramKind.UNICAST, 1, EVERYBODY, 9, EXAMPLE.message),
        Datagram(DatagramKind.ACKNOWLEDGEMENT, 1, EVERYBODY, 9),
    ],
)
def test_a_header_that_contradicts_itself_is_dropped(datagram: Datagram) -> None:
    assert CODEC.decode(CODEC.encode(datagram)) is DropReason.MALFORMED_HEADER


def test_an_unknown_kind_is_dropped() -> None:
    raw = bytearray(CODEC.encode(EXAMPLE))
    raw[6] = 3
    assert CODEC.decode(bytes(raw)) is DropReason.MALFORMED_HEADER


def test_an_acknowledgement_carries_nothing() -> None:
    acknowledgement = Datagram(DatagramKind.ACKNOWLEDGEMENT, 1, 2, 3)
    assert CODEC.decode(CODEC.encode(acknowledgement)) == acknowledgement
    assert CODEC.decode(CODEC.encode(acknowledgement) + b"\x90") is DropReason.MALFORMED_BODY


@pytest.mark.parametrize(
    "body",
    [
        b"\x91" * 1400,  # nested arrays
        b"\x94\x10\x01" + b"\x93\x01\xcb" + bytes(8) + b"\x01" + b"\x91" * 1300,  # nested in a field nobody asked for
        b"\x81" * 1400,  # nested maps
        b"\xdd\xff\xff\xff\xff",  # an array of four thousand million
        b"\x93\x11\x92\x01\xdd\xff\xff\xff\xff",  # the same where an array is expected
        b"\x93\x10\x01\xdb\xff\xff\xff\xff",  # a text of four gigabytes
        b"\x93\x10\x01\x93\x01\xcb" + bytes(8) + b"\xa2\xff\xff",  # text that is not UTF-8
        b"\x92\x12\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",  # NaN, refused with PeerError
        b"\x92\x12\xcb\xbf\xf0\x00\x00\x00\x00\x00\x00",  # -1.0, refused with ValueError
        b"\x93\x11\x92\x01\x92\x92\x05\x01\x92\x07\x09\x90",  # ranges out of order
        b"\x92\x63\x01",  # a tag that no message has
        b"\xc1",  # never used in MessagePack
        b"\xd4\x01\x00",  # an extension type
    ],
)
def test_hostile_bodies_are_dropped(body: bytes) -> None:
    assert CODEC.decode(with_body(body)) is DropReason.MALFORMED_BODY


def test_wrong_types_in_any_field_are_dropped() -> None:
    wrongs: list[object] = [{}, [], None, "1", b"1", True]
    for wrong in wrongs:
        assert CODEC.decode(with_body(msgspec.msgpack.encode([16, wrong, [1, 0.5, 42]]))) is DropReason.MALFORMED_BODY
        assert CODEC.decode(with_body(msgspec.msgpack.encode([16, 1, wrong]))) is DropReason.MALFORMED_BODY
        assert CODEC.decode(with_body(msgspec.msgpack.encode([wrong, 1, [1, 0.5, 42]]))) is DropReason.MALFORMED_BODY


@pytest.mark.parametrize(
    "fields",
    [
        [-1, [1, 0.5, 42]],
        [256, [1, 0.5, 42]],
        [1, [0, 0.5, 42]],
        [1, [2**63, 0.5, 42]],
        [1, [1, math.nan, 42]],
        [1, [1, math.inf, 42]],
        [1, [1, 0.5, math.nan]],
        [1, [1, 0.5, -math.inf]],
        [1, [1, 0.5, 2**64 - 1]],
        [1, [1, 0.5, 42, b"", -1]],
    ],
)
def test_numbers_outside_the_range_of_their_field_are_dropped(fields: list[object]) -> None:
    assert CODEC.decode(with_body(msgspec.msgpack.encode([16, *fields]))) is DropReason.MALFORMED_BODY


def test_fields_that_a_later_version_adds_are_ignored() -> None:
    decoded = CODEC.decode(with_body(msgspec.msgpack.encode([16, 1, [1, 0.5, 42, b"", 0, "", None, "new"], "new"])))
    assert isinstance(decoded, Datagram)
    assert decoded.message == Flood(1, Event(1, 0.5, 42))
