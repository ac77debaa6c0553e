"""Questions, and entries of summaries, as they travel in frames; what they mean is said in `summaries.py`."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roamcast.errors import PeerError

LEAF_MAX: Final = 62
FILTER_BYTES_MAX: Final = 8192
LEAVES_MAX: Final = LEAF_MAX + 1

Leaf = Annotated[int, Meta(ge=0, le=LEAF_MAX)]
Token = Annotated[int, Meta(ge=0, lt=2**32)]
Filter = Annotated[bytes, Meta(max_length=FILTER_BYTES_MAX)]
Tokens = Annotated[tuple[Token, ...], Meta(max_length=128)]


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """An event, for matching; each part lists a leaf's number and the tokens of its value."""

    type: Token
    enumerated: tuple[tuple[Leaf, Token], ...] = ()
    arithmetic: tuple[tuple[Leaf, Token], ...] = ()
    texts: tuple[tuple[Leaf, Token, Tokens, Tokens], ...] = ()  # leaf, whole, prefixes, suffixes

    def __post_init__(self) -> None:
        for part in (self.enumerated, self.arithmetic, self.texts):
            for each in part:
                if not 0 <= each[0] <= LEAF_MAX:
                    raise PeerError(f"digest: leaf {each[0]}: must be between 0 and {LEAF_MAX}")


class JoinQuestion(msgspec.Struct, frozen=True, array_like=True):
    """What a publisher asks for, in a Join Request."""

    type: Token
    filter: Filter = b""  # the digest of an event, a Bloom filter of its tokens; empty: all events of the type


class PackedEntry(msgspec.Struct, frozen=True, array_like=True):
    """An entry in a frame. A filter without a bit is empty bytes."""

    type: Token
    leaves: Annotated[int, Meta(ge=0, le=2**63 - 1)]  # a bit each
    enumerated: Filter
    arithmetic: Filter
    texts: Annotated[tuple[tuple[Leaf, Filter, Filter, Filter], ...], Meta(max_length=LEAVES_MAX)] = ()
