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

In a network with an authority the version is 2, and the plain datagram is followed by the sender's signature over
header and datagram, inside the encryption. The seal proves that a member sent it, the signature which one. The window
of a sender moves only for what it has signed, so no member can use up another's counters or lives.

*Nonces never repeat.* Each life encrypts with a key of its own, derived from the network's key and the random instance;
the nonce is the counter. So neither a restart, nor a clock that went back, nor two nodes with the same address can make
a key encrypt twice with one nonce. A life ends before its counter does.

*Nothing is accepted twice.* Of each sender a receiver remembers its life, its instance, and a window of the last
`WINDOW` counters. A lower life, a counter below the window, or one that was seen, is a replay. What is remembered is
written to the state directory now and then, and read at the start. The senders that were heard least recently are
forgotten beyond `SENDERS_MAX`; only members can make a node remember a sender.

Pure but for the random instance: bytes in, bytes or a reason out; nothing here raises for what comes from outside.
"""

import math
import secrets
from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from roamcast.fields import ADDRESS_MAX
from roamcast.live.codec import DropReason
from roamcast.live.credentials import Credentials
from roamcast.live.identity import SIGNATURE_BYTES, Identity, verify
from roamcast.live.keys import Key, KeyRing

SEALED_MAGIC = 0xCB
SEALED_VERSION = 1
SIGNED_VERSION = 2
TAG_BYTES = 16
COUNTER_MAX = 2**32 - 1
WINDOW = 1024
SENDERS_MAX = 4096
CIPHERS_MAX = 8192

_ALL_SEEN: Final = (1 << WINDOW) - 1

_HEADER = Struct(">BBIBIIQI")
_PREFIX = Struct(">BBIBIIQ")  # the header without the counter
_COUNTER_AT: Final = _PREFIX.size
_NO_COUNTER: Final = bytes(8)  # a nonce is the counter in 12 bytes
HEADER_BYTES: Final = _HEADER.size
SEAL_BYTES = HEADER_BYTES + TAG_BYTES
"""What sealing adds to a datagram; a signature comes on top."""

_DATAGRAM: Final = b"roamcast datagram 2\0"


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
            self.seen = ((self.seen << shift) | 1) & _ALL_SEEN if shift < WINDOW else 1
            self.highest = counter
            return True
        back = self.highest - counter
        if back >= WINDOW or self.seen >> back & 1:
            return False
        self.seen |= 1 << back
        return True


class Opened(msgspec.Struct, frozen=True):
    """A datagram whose seal is whole: a member made it."""

    sender: int  # who that was, if the signature says so too
    life: int
    instance: int
    counter: int
    datagram: bytes
    signed: bytes
    signature: bytes


class Sealer:
    """Seals and opens the datagrams of one node; with an identity, signs them and checks who signed."""

    def __init__(
        self,
        ring: KeyRing,
        address: int,
        life: int,
        next_life: Callable[[], int],
        now: Callable[[], float],
        identity: Identity | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._identity = identity
        self._credentials = credentials
        self._version = SEALED_VERSION if credentials is None else SIGNED_VERSION
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
        self._choose_key()

    def _choose_key(self) -> None:
        """Takes the key to send with from now on, and what is the same in all datagrams until another one's turn."""
        now_s = self._now()
        key = self._ring.sending(now_s)
        self._chosen_until_s = min(
            (each.sends_from_s for each in self._ring.keys if each.sends_from_s > now_s), default=math.inf
        )
        self._prefix = _PREFIX.pack(
            SEALED_MAGIC,
            self._version,
            self._network,
            key.id,
            self._address,
            self._life,
            self._instance,
        )
        self._encrypt = self._cipher(key, self._instance).encrypt

    def seal(self, datagram: bytes) -> bytes:
        if self._counter == COUNTER_MAX:
            self._life = self._next_life()
            self._instance = secrets.randbits(64)
            self._counter = 0
            self._choose_key()
        elif self._chosen_until_s != math.inf and self._now() >= self._chosen_until_s:
            self._choose_key()
        self._counter += 1
        nonce = self._counter.to_bytes(12, "big")
        header = self._prefix + nonce[-4:]
        if self._identity is not None:
            datagram += self._identity.key.sign(_DATAGRAM + header + datagram)
        return header + self._encrypt(nonce, datagram, header)

    def open(self, data: bytes) -> tuple[int, bytes] | DropReason:
        """The sender and its datagram, or why this is not to be trusted."""
        if self._credentials is None:
            return self.open_unsigned(data)
        opened = self.decrypt(data)
        if isinstance(opened, DropReason):
            return opened
        reason = self.accept(opened)
        return (opened.sender, opened.datagram) if reason is None else reason

    def open_unsigned(self, data: bytes) -> tuple[int, bytes] | DropReason:
        """`decrypt` and `accept` where the seal is all there is to check, in one go."""
        unsealed = self._unsealed(data)
        if not isinstance(unsealed, tuple):
            return unsealed
        sender, life, instance, counter, inside = unsealed
        return (sender, inside) if self._is_new(sender, life, instance, counter) else DropReason.REPLAYED

    def _unsealed(self, data: bytes) -> tuple[int, int, int, int, bytes] | DropReason:
        """Sender, life, instance and counter as the header has them, and what was encrypted."""
        if len(data) < SEAL_BYTES or data[0] != SEALED_MAGIC:
            return DropReason.UNSEALED
        header = data[:HEADER_BYTES]
        _, version, network, key_id, sender, life, instance, counter = _HEADER.unpack(header)
        if version != self._version:
            return DropReason.FOREIGN_VERSION
        if network != self._network:
            return DropReason.FOREIGN_NETWORK
        cipher = self._ciphers.get((key_id, instance))
        if cipher is None:
            key = self._keys.get(key_id)
            if key is None:
                return DropReason.UNKNOWN_KEY
            cipher = self._cipher(key, instance)
        if sender > ADDRESS_MAX:
            return DropReason.UNKNOWN_KEY
        try:
            inside = cipher.decrypt(_NO_COUNTER + header[_COUNTER_AT:], data[HEADER_BYTES:], header)
        except InvalidTag:
            self._ciphers.pop((key_id, instance), None)  # no node has this instance: do not keep it
            return DropReason.FORGED
        return sender, life, instance, counter, inside

    def decrypt(self, data: bytes) -> Opened | DropReason:
        """Opens what a member of a network with an authority sealed. The caller checks who it was, and for replays."""
        unsealed = self._unsealed(data)
        if not isinstance(unsealed, tuple):
            return unsealed
        sender, life, instance, counter, inside = unsealed
        header = data[:HEADER_BYTES]
        if len(inside) < SIGNATURE_BYTES:
            return DropReason.UNSIGNED
        datagram, signature = inside[:-SIGNATURE_BYTES], inside[-SIGNATURE_BYTES:]
        return Opened(
            sender=sender,
            life=life,
            instance=instance,
            counter=counter,
            datagram=datagram,
            signed=_DATAGRAM + header + datagram,
            signature=signature,
        )

    def accept(self, opened: Opened) -> DropReason | None:
        """Why this is not to be trusted; None: it is, this once."""
        heard = self._heard.get(opened.sender)
        if heard is not None and not _may_be_new(heard, opened):
            return DropReason.REPLAYED  # before the costly check
        if self._credentials is not None:
            certificate = self._credentials.certificate(opened.sender, self._now())
            if isinstance(certificate, DropReason):
                return certificate
            if not verify(certificate.key, opened.signature, opened.signed):
                return DropReason.FORGED
        is_new = self._is_new(opened.sender, opened.life, opened.instance, opened.counter)
        return None if is_new else DropReason.REPLAYED

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
            self._heard[sender] = Heard(life, instance, highest, _ALL_SEEN)

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


def _may_be_new(heard: Heard, opened: Opened) -> bool:
    if opened.life != heard.life:
        return opened.life > heard.life
    back = heard.highest - opened.counter
    return opened.instance == heard.instance and (back < 0 or (back < WINDOW and not heard.seen >> back & 1))
