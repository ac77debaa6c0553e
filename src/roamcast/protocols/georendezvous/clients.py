"""What publishers and subscribers keep at a rendezvous point, as bytes in the hash table."""

from typing import TypeVar

import msgspec

from roamcast.protocols.georendezvous.cells import Vertex


class Publishing(msgspec.Struct, frozen=True, array_like=True):
    """A publisher's advertisement."""

    at: Vertex  # where to find it
    wanted: bool | None  # whether it believes that somebody here wants its events; None: it does not know yet


class Following(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber's subscription."""

    at: Vertex  # where to find it
    pruned: tuple[int, ...] = ()  # publishers that it hears through another point


ClientT = TypeVar("ClientT")

_encode = msgspec.msgpack.Encoder().encode
_publishing = msgspec.msgpack.Decoder(Publishing)
_following = msgspec.msgpack.Decoder(Following)


def encoded(client: Publishing | Following) -> bytes:
    return _encode(client)


def publishing(value: bytes | None) -> Publishing | None:
    """The advertisement, or nothing if there is none or a peer wrote nonsense."""
    return _decoded(_publishing, value)


def following(value: bytes | None) -> Following | None:
    """The subscription, or nothing if there is none or a peer wrote nonsense."""
    return _decoded(_following, value)


def _decoded(decoder: msgspec.msgpack.Decoder[ClientT], value: bytes | None) -> ClientT | None:
    if value is None:
        return None
    try:
        return decoder.decode(value)
    except msgspec.MsgspecError:
        return None


def key_of(bucket: str, point: int) -> str:
    """The name under which point number `point` of a bucket is hashed."""
    return f"{bucket}#{point}"


def bucket_and_point(key: str) -> tuple[str, int]:
    bucket, _, point = key.rpartition("#")
    return bucket, int(point) if point.isdecimal() else -1
