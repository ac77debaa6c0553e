"""Messages larger than a frame: any of them arrives whole or not at all, within bounds of memory."""

import random
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.protocols import fragments
from roamcast.protocols.api import NOBODY, Message
from roamcast.protocols.batches import batches
from roamcast.protocols.fragment import FRAGMENT_OVERHEAD_BYTES, Fragment
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX, Outbox, Reassembly


class Blob(Message, frozen=True, tag=16):
    data: bytes


def cut(data: bytes, frame_bytes_max: int = 100, life: int = 1) -> list[Fragment]:
    outbox = Outbox(life, frame_bytes_max)
    assert outbox.add(NOBODY, Blob(data), data)
    pieces = []
    while (following := outbox.next()) is not None:
        pieces.append(following[1])
    return pieces


@given(
    st.binary(min_size=101, max_size=5000),
    st.integers(min_value=60, max_value=255),
    st.integers(min_value=1, max_value=2**37),
    st.randoms(use_true_random=False),
)
def test_pieces_fit_a_frame_and_make_the_message_in_any_order_and_repeated(
    data: bytes, frame_bytes_max: int, life: int, shuffler: random.Random
) -> None:
    pieces = cut(data, frame_bytes_max, life)
    assert all(len(msgspec.msgpack.encode(piece)) <= frame_bytes_max for piece in pieces)
    pieces = pieces + pieces[: len(pieces) // 2]
    shuffler.shuffle(pieces)
    reassembly = Reassembly(pytest.fail)
    results = [reassembly.add(7, piece, 0.0) for piece in pieces]
    assert next(result for result in results if result is not None) == data


def test_the_overhead_holds_for_the_largest_values() -> None:
    piece = bytes(65_000)
    largest = Fragment(2**62 - 1, 65_534, 65_535, True, piece)
    assert len(msgspec.msgpack.encode(largest)) - len(piece) <= FRAGMENT_OVERHEAD_BYTES


def test_messages_of_several_senders_and_lives_do_not_mix() -> None:
    first, second = cut(b"a" * 300, life=1), cut(b"b" * 300, life=2)
    reassembly = Reassembly(lambda reason: None)
    for piece in first[:-1]:
        assert reassembly.add(1, piece, 0.0) is None
    for piece in second[:-1]:
        assert reassembly.add(1, piece, 0.0) is None
        assert reassembly.add(2, piece, 0.0) is None
    assert reassembly.add(1, second[-1], 0.0) == b"b" * 300
    assert reassembly.add(1, first[-1], 0.0) == b"a" * 300
    assert reassembly.add(2, second[-1], 0.0) == b"b" * 300
    assert len(reassembly) == 0


def test_a_message_whose_pieces_stop_coming_is_given_up() -> None:
    lost: list[str] = []
    reassembly = Reassembly(lost.append)
    first, second, *_ = cut(b"a" * 300)
    reassembly.add(1, first, 0.0)
    reassembly.add(2, second, 6.0)
    assert lost == [fragments.TIMEOUT]
    assert len(reassembly) == 1


@pytest.mark.parametrize(
    "piece",
    [
        Fragment(1, 5, 3, True, b"beyond the last"),
        Fragment(1, 1, 4, True, b"another count"),
        Fragment(1, 1, 3, True, bytes(MESSAGE_BYTES_MAX)),
    ],
)
def test_pieces_that_cannot_belong_together_are_refused(piece: Fragment) -> None:
    lost: list[str] = []
    reassembly = Reassembly(lost.append)
    reassembly.add(1, Fragment(1, 0, 3, True, b"first"), 0.0)
    assert reassembly.add(1, piece, 0.0) is None
    assert lost == [fragments.INCONSISTENT]
    assert len(reassembly) == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(min_value=1, max_value=4000), st.integers(min_value=1, max_value=1000))
def test_strangers_cannot_make_a_node_keep_much(size: int, senders: int) -> None:
    reassembly = Reassembly(lambda reason: None)
    for number in range(5000):
        reassembly.add(number % senders, Fragment(number, 1, 65_535, True, bytes(size)), 0.0)
        assert reassembly._memory_bytes <= fragments.REASSEMBLY_BYTES_MAX
    assert len(reassembly) <= fragments.MESSAGES_PER_SENDER * senders


def test_the_rest_of_a_failed_message_is_not_sent() -> None:
    outbox = Outbox(1, 100)
    first, second = Blob(b"a" * 300), Blob(b"b" * 300)
    outbox.add(2, first, b"a" * 300)
    outbox.add(3, second, b"b" * 300)
    following = outbox.next()
    assert following is not None
    assert following[0] == 2
    assert outbox.failed(following[1]) is first
    assert outbox.failed(following[1]) is None, "a message fails once"
    following = outbox.next()
    assert following is not None
    assert following[0] == 3
    assert len(outbox) == 3


def test_an_outbox_is_bounded() -> None:
    outbox = Outbox(1, 1376)
    large = bytes(MESSAGE_BYTES_MAX)
    assert [outbox.add(2, Blob(large), large) for _ in range(9)] == [True] * 8 + [False]
    while outbox.next() is not None:
        pass
    assert outbox.add(2, Blob(large), large)


@given(st.lists(st.integers(min_value=1, max_value=50)), st.integers(min_value=1, max_value=60))
def test_batches_keep_order_and_fit(sizes: list[int], bytes_max: int) -> None:
    made = batches(sizes, lambda size: size, bytes_max)
    assert bool(made) == bool(sizes)
    assert [size for batch in made for size in batch] == sizes
    assert all(sum(batch) <= bytes_max or len(batch) == 1 for batch in made)
    assert all(sum(batch) + following[0] > bytes_max for batch, following in pairwise(made))
