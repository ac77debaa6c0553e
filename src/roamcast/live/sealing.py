"""Sealed datagrams: encrypted and authenticated with the network's key, each accepted once.

A sealed datagram is a header and the encrypted plain datagram (`codec.py`):

| bytes | field | |
|---|---|---|
| 1 | magic | `SEALED_MAGIC` |
| 1 | version | `SEALED_VERSION` |
| 4 | network | hash of the network's name |
| 1 | key | id of the key in the key file |
| 4 | sender | its address |
| 4 | life | of the sender, growing with every restart |
| 8 | instance | random, drawn once per life |
| 4 | counter | of the sender's datagrams in this life, from 1 |
| rest | | ChaCha20-Poly1305, with its tag of 16 bytes; the header is authenticated too |

*Nonces never repeat.* Each life encrypts with a key of its own, derived from the network's key and the random instance;
the nonce is the counter. So neither a restart, nor a clock that went back, nor two nodes with the same address can make
a key encrypt twice with one nonce. A life ends before its counter does.

*Nothing is accepted twice.* Of each sender a receiver remembers its life, its instance, and a window of the last
`WINDOW` counters. A lower life, a counter below the window, or one that was seen, is a replay. What is remembered is
written to the state directory now and then, and read at the start. The senders that were heard least recently are
forgotten beyond `SENDERS_MAX`; only members can make a node remember a sender.

Pure but for the random instance: bytes in, bytes or a reason out; nothing here raises for what comes from outside.
"""

import secrets
from collections.abc import Callable
from hashlib import blake2b
from struct import Struct

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from roamcast.fields import ADDRESS_MAX
from roamcast.live.codec import Drop
from roamcast.live.keys import Key, KeyRing

SEALED_MAGIC = 0xCB
SEALED_VERSION = 1
TAG_BYTES = 16
COUNTER_MAX = 2**32 - 1
WINDOW = 1024
SENDERS_MAX = 4096
CIPHERS_MAX = 8192

_HEADER = Struct(">BBIBIIQI")
SEAL_BYTES = _HEADER.size + TAG_BYTES
"""What sealing adds to a datagram."""


class Heard(msgspec.Struct):
    """What is remembered of a sender."""

    life: int
    instance: int
    highest: int  # counter
    seen: int = 0  # bit n: the counter `highest - n` was seen

    def accepts(self, counter: int) -> bool:
        """Whether the counter is new; remembers it."""
        if counter > self.highest:
            shift = counter - self.highest
            self.seen = ((self.seen << shift) | 1) & ((1 << WINDOW) - 1) if shift < WINDOW else 1
            self.highest = counter
            return True
        back = self.highest - counter
        if back >= WINDOW or self.seen >> back & 1:
            return False
        self.seen |= 1 << back
        return True


class Sealer:
    """Seals and opens the datagrams of one node."""

    def __init__(
        self, ring: KeyRing, address: int, life: int, next_life: Callable[[], int], now: Callable[[], float]
    ) -> None:
        self._address = address
        self._life = life
        self._next_life = next_life
        self._now = now
        self._instance = secrets.randbits(64)
        self._counter = 0
        self._heard: dict[int, Heard] = {}  # by sender, the one heard least recently first
        self._ciphers: dict[tuple[int, int], ChaCha20Poly1305] = {}  # by key and instance
        self.load(ring)

    def load(self, ring: KeyRing) -> None:
        """From now on these are the network's keys."""
        self._ring = ring
        self._keys: dict[int, Key] = {key.id: key for key in ring.keys}
        self._network = int.from_bytes(blake2b(ring.network.encode(), digest_size=4).digest(), "big")
        self._ciphers.clear()

    def seal(self, datagram: bytes) -> bytes:
        if self._counter == COUNTER_MAX:
            self._life = self._next_life()
            self._instance = secrets.randbits(64)
            self._counter = 0
        self._counter += 1
        key = self._ring.sending(self._now())
        header = _HEADER.pack(
            SEALED_MAGIC,
            SEALED_VERSION,
            self._network,
            key.id,
            self._address,
            self._life,
            self._instance,
            self._counter,
        )
        return header + self._cipher(key, self._instance).encrypt(_nonce(self._counter), datagram, header)

    def open(self, data: bytes) -> tuple[int, bytes] | Drop:
        """The sender and its datagram, or why this is not to be trusted."""
        if len(data) < SEAL_BYTES or data[0] != SEALED_MAGIC:
            return Drop.UNSEALED
        header = data[: _HEADER.size]
        _, version, network, key_id, sender, life, instance, counter = _HEADER.unpack(header)
        if version != SEALED_VERSION:
            return Drop.FOREIGN_VERSION
        if network != self._network:
            return Drop.FOREIGN_NETWORK
        key = self._keys.get(key_id)
        if key is None or sender > ADDRESS_MAX:
            return Drop.UNKNOWN_KEY
        try:
            datagram = self._cipher(key, instance).decrypt(_nonce(counter), data[_HEADER.size :], header)
        except InvalidTag:
            self._ciphers.pop((key_id, instance), None)  # an instance that nobody has is not to be kept
            return Drop.FORGED
        if not self._is_new(sender, life, instance, counter):
            return Drop.REPLAYED
        return sender, datagram

    def remembered(self) -> bytes:
        """What must survive a restart."""
        return msgspec.msgpack.encode({sender: (h.life, h.instance, h.highest) for sender, h in self._heard.items()})

    def recall(self, remembered: bytes) -> None:
        """Takes back what was remembered: what was sent before it is a replay."""
        try:
            heard = msgspec.msgpack.decode(remembered, type=dict[int, tuple[int, int, int]])
        except msgspec.MsgspecError:
            return
        for sender, (life, instance, highest) in list(heard.items())[-SENDERS_MAX:]:
            self._heard[sender] = Heard(life, instance, highest, (1 << WINDOW) - 1)

    def _is_new(self, sender: int, life: int, instance: int, counter: int) -> bool:
        heard = self._heard.pop(sender, None)
        if heard is None or life > heard.life:
            heard = Heard(life, instance, 0)
            is_new = heard.accepts(counter)
        else:
            is_new = life == heard.life and instance == heard.instance and heard.accepts(counter)
        self._heard[sender] = heard
        if len(self._heard) > SENDERS_MAX:
            del self._heard[next(iter(self._heard))]
        return is_new

    def _cipher(self, key: Key, instance: int) -> ChaCha20Poly1305:
        cipher = self._ciphers.get((key.id, instance))
        if cipher is None:
            if len(self._ciphers) >= CIPHERS_MAX:
                del self._ciphers[next(iter(self._ciphers))]
            salt = instance.to_bytes(8, "big")
            derived = blake2b(salt, key=key.secret, digest_size=32, person=b"roamcast seal 1").digest()
            cipher = self._ciphers[key.id, instance] = ChaCha20Poly1305(derived)
        return cipher


def _nonce(counter: int) -> bytes:
    return counter.to_bytes(12, "big")
