"""What publishers and subscribers keep at a rendezvous point, as bytes in the hash table."""

from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.errors import PeerError
from roamcast.fields import Address
from roamcast.interests import Interest
from roamcast.protocols.georendezvous.tour import Place


class Publishing(msgspec.Struct, frozen=True, array_like=True):
    """A publisher's advertisement."""

    at: Place  # where to find it
    wanted: bool | None  # whether it believes that there are subscribers here; None: it does not know yet


class Following(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber's subscription."""

    at: Place  # where to find it
    pruned: Annotated[tuple[Address, ...], Meta(max_length=1024)] = ()  # publishers that it hears via another point
    interest: Interest | None = None  # what to forward; None: everything


_encode = msgspec.msgpack.Encoder().encode
_publishing = msgspec.msgpack.Decoder(Publishing)
_following = msgspec.msgpack.Decoder(Following)
_CACHED = 1 << 13


def encoded(client: Publishing | Following) -> bytes:
    return _encode(client)


@lru_cache(_CACHED)
def publishing(value: bytes | None) -> Publishing | None:
    """The advertisement; None if there is none or if the bytes make no sense."""
    if value is None:
        return None
    try:
        return _publishing.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, PeerError):
        return None


@lru_cache(_CACHED)
def following(value: bytes | None) -> Following | None:
    """The subscription; None if there is none or if the bytes make no sense."""
    if value is None:
        return None
    try:
        return _following.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, PeerError):
        return None

