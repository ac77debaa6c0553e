"""Sealed datagrams: what was sealed by a member is opened once; nothing else ever is."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.errors import ConfigurationError
from roamcast.live import sealing
from roamcast.live.codec import DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX, HEADER_BYTES, DropReason
from roamcast.live.keys import KeyRing, fingerprint, new_ring, read_ring, write_ring
from roamcast.live.sealing import SEAL_BYTES, SENDERS_MAX, WINDOW, Sealer

RING = new_ring("rescue", 0.0)


def sealer(address: int = 1, life: int = 1, ring: KeyRing = RING, now_s: float = 100.0) -> Sealer:
    return Sealer(ring, address, life, lambda: life + 1, lambda: now_s)


@given(st.binary(max_size=1400))
def test_what_a_member_seals_another_opens(datagram: bytes) -> None:
    sealed = sealer(7).seal(datagram)
    assert sealer(2).open(sealed) == (7, datagram)
    assert len(sealed) == len(datagram) + SEAL_BYTES
    assert len(datagram) < 8 or datagram not in sealed


def test_the_largest_frame_fits_a_datagram_with_its_seal() -> None:
    assert FRAME_BYTES_MAX + HEADER_BYTES + SEAL_BYTES <= DATAGRAM_BYTES_MAX


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_a_sealed_datagram_is_found(data: st.DataObject) -> None:
    sealed = bytearray(sealer(7).seal(b"fire in the north"))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    assert isinstance(sealer(2).open(bytes(sealed)), DropReason)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: sealer().seal(b"x")[:27] + tail))
def test_strangers_are_never_believed(data: bytes) -> None:
    assert isinstance(sealer(2).open(data), DropReason)


def test_datagrams_that_were_cut_are_found() -> None:
    sealed = sealer(7).seal(b"fire in the north")
    receiver = sealer(2)
    assert all(isinstance(receiver.open(sealed[:length]), DropReason) for length in range(len(sealed)))
    assert receiver.open(sealed) == (7, b"fire in the north")


def test_another_network_and_another_key_are_told_apart() -> None:
    other_key = KeyRing("rescue", new_ring("rescue", 0.0).keys)
    assert sealer(2).open(sealer(1, ring=other_key).seal(b"x")) is DropReason.FORGED
    assert sealer(2).open(sealer(1, ring=new_ring("elsewhere", 0.0)).seal(b"x")) is DropReason.FOREIGN_NETWORK
    later = RING.rotated(0.0)
    assert sealer(2).open(sealer(1, ring=later).seal(b"x")) is DropReason.UNKNOWN_KEY


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_each_datagram_is_accepted_once_in_any_order_within_the_window(shuffler: random.Random) -> None:
    sender, receiver = sealer(1), sealer(2)
    sealed = [sender.seal(bytes([number % 256])) for number in range(WINDOW // 2)]
    shuffled = sealed * 2
    shuffler.shuffle(shuffled)
    assert sum(isinstance(receiver.open(data), tuple) for data in shuffled) == len(sealed)


def test_a_datagram_older_than_the_window_is_a_replay() -> None:
    sender, receiver = sealer(1), sealer(2)
    first = sender.seal(b"first")
    for _ in range(WINDOW):
        receiver.open(sender.seal(b"x"))
    assert receiver.open(first) is DropReason.REPLAYED


def test_a_former_life_is_a_replay_and_a_later_one_is_not() -> None:
    receiver = sealer(2)
    old, new = sealer(1, life=5), sealer(1, life=6)
    kept = old.seal(b"kept")
    assert receiver.open(old.seal(b"old")) == (1, b"old")
    assert receiver.open(new.seal(b"new")) == (1, b"new")
    assert receiver.open(kept) is DropReason.REPLAYED
    assert receiver.open(sealer(1, life=6).seal(b"twin")) is DropReason.REPLAYED, "two nodes with one address"


def test_what_was_heard_before_a_restart_is_still_a_replay() -> None:
    sender, before = sealer(1), sealer(2)
    sealed = sender.seal(b"once")
    before.open(sealed)
    after = sealer(2, life=2)
    after.recall(before.remembered())
    assert after.open(sealed) is DropReason.REPLAYED
    assert after.open(sender.seal(b"next")) == (1, b"next")
    after.recall(b"\xff nonsense")


def test_no_nonce_is_used_twice_by_two_lives_that_believe_to_be_the_same() -> None:
    one, other = sealer(1), sealer(1)
    assert one.seal(b"same")[27:] != other.seal(b"same")[27:]


def test_a_life_ends_before_its_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "COUNTER_MAX", 3)
    lives = iter(range(2, 9))
    sender = Sealer(RING, 1, 1, lambda: next(lives), lambda: 100.0)
    receiver = sealer(2)
    assert [receiver.open(sender.seal(bytes([n]))) for n in range(10)] == [(1, bytes([n])) for n in range(10)]
    assert next(lives) == 5


def test_a_rotation_loses_nothing() -> None:
    later = RING.rotated(1000.0)
    late, early = sealer(1, ring=RING), sealer(2, ring=later)
    assert early.open(late.seal(b"old key")) == (1, b"old key")
    assert late.open(early.seal(b"not yet new")) == (2, b"not yet new")
    after = sealer(3, ring=later, now_s=1000.0)
    assert late.open(after.seal(b"new key")) is DropReason.UNKNOWN_KEY
    late.load(later)
    assert late.open(after.seal(b"new key")) == (3, b"new key")


def test_members_cannot_make_a_node_remember_without_bound() -> None:
    receiver = sealer(2)
    for address in range(SENDERS_MAX + 50):
        receiver.open(sealer(address).seal(b"x"))
    assert len(receiver._heard) == SENDERS_MAX


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "net.key"
    write_ring(path, RING)
    assert read_ring(path) == RING
    assert path.stat().st_mode & 0o077 == 0, "only its owner can read it"
    with pytest.raises(ConfigurationError, match="exists"):
        write_ring(path, RING)
    write_ring(path, RING.rotated(5.0), replace=True)
    assert [key.id for key in read_ring(path).keys] == [1, 2]
    assert fingerprint(RING.keys[0].secret) != fingerprint(read_ring(path).keys[1].secret)
    ring = RING
    for _ in range(600):
        ring = ring.rotated(5.0)
        assert len({key.id for key in ring.keys}) == len(ring.keys) <= 3


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"network": "a", "keys": []}', '{"network": "a", "keys": [{"id": 0, "secret": ""}]}'],
)
def test_what_is_not_a_key_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.key"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"net\.key is not a key file"):
        read_ring(path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_ring(tmp_path / "none.key")
