"""The key of a network: a file that only members have.

The file is JSON: the network's name and its keys, each with an id, a secret of 32 bytes and the time from which it is
used for sending. A node sends with the newest key whose time has come and accepts every key in the file. So a network
changes its key without a gap: `roamcast key rotate` adds a key that becomes valid later, the file is copied to all
nodes until then, and a later rotation drops the keys that are out of use.

The file also names the network's authority, if members are to be told apart (`identity.py`), and the nodes that it has
revoked.
"""

import secrets
from base64 import b64encode
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.live.identity import PUBLIC_BYTES, Statement
from roamcast.live.secret_files import read_secret, write_secret

SECRET_BYTES = 32
KEYS_MAX = 3  # in a file: one in use, one to come, one that late nodes may still use
ID_MAX = 255
REVOCATIONS_MAX = 1024


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int  # 1 to 255, named in every datagram
    secret: bytes  # base64 in the file
    sends_from_s: float  # Unix time

    def __post_init__(self) -> None:
        if not 1 <= self.id <= ID_MAX:
            raise ValueError(f"id = {self.id}: must be between 1 and {ID_MAX}")
        if len(self.secret) != SECRET_BYTES:
            raise ValueError(f"secret: {len(self.secret)} bytes; must be {SECRET_BYTES}")


class KeyRing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a key file holds."""

    network: str
    keys: tuple[Key, ...]  # oldest first
    authority: Annotated[bytes, Meta(min_length=PUBLIC_BYTES, max_length=PUBLIC_BYTES)] | None = None  # public key
    # of the authority that certifies nodes; None: members are not told apart
    revoked: Annotated[tuple[Statement, ...], Meta(max_length=REVOCATIONS_MAX)] = ()  # spread by nodes that read this

    def __post_init__(self) -> None:
        ids = [key.id for key in self.keys]
        if not self.keys or len(set(ids)) != len(ids):
            raise ValueError("keys: must be at least one, each with an id of its own")

    def sending(self, now_s: float) -> Key:
        """The key to send with: the newest whose time has come, or the oldest if none's has."""
        ready = [key for key in self.keys if key.sends_from_s <= now_s]
        return ready[-1] if ready else self.keys[0]

    def rotated(self, sends_from_s: float) -> "KeyRing":
        """With one more key; of the older ones the last two stay."""
        newest = self.keys[-1]
        key = Key(newest.id % ID_MAX + 1, secrets.token_bytes(SECRET_BYTES), sends_from_s)
        return msgspec.structs.replace(self, keys=(*self.keys[-(KEYS_MAX - 1) :], key))


def new_ring(network: str, now_s: float, authority: bytes | None = None) -> KeyRing:
    return KeyRing(network, (Key(1, secrets.token_bytes(SECRET_BYTES), now_s),), authority)


def read_ring(path: Path) -> KeyRing:
    return read_secret(path, KeyRing, "key", "a key file")


def write_ring(path: Path, ring: KeyRing, *, replace: bool = False) -> None:
    """Writes a key file that only its owner can read; an existing one is replaced only if asked."""
    write_secret(path, ring, "key", replace=replace)


def fingerprint(secret: bytes) -> str:
    """A few characters that tell keys apart and give nothing away."""
    return b64encode(blake2b(secret, digest_size=6, person=b"fingerprint").digest()).decode()
