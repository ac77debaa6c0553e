"""Digests, and entries of summaries, as they travel in frames; what they mean is said in `summaries.py`."""

from typing import Final

import msgspec

from roamcast.errors import PeerError

LEAF_MAX: Final = 63


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """An event, for matching; each part lists the leaf's number and what to look for."""

    type: int
    enumerated: tuple[tuple[int, int], ...] = ()
    arithmetic: tuple[tuple[int, int], ...] = ()
    texts: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]], ...] = ()  # leaf, whole, prefixes, suffixes

    def __post_init__(self) -> None:
        for part in (self.enumerated, self.arithmetic, self.texts):
            for each in part:
                if not 0 <= each[0] <= LEAF_MAX:
                    raise PeerError(f"digest: leaf {each[0]}: must be between 0 and {LEAF_MAX}")


class PackedEntry(msgspec.Struct, frozen=True, array_like=True):
    """An entry under way. A filter without a bit is empty bytes."""

    type: int
    leaves: int
    enumerated: bytes
    arithmetic: bytes
    texts: tuple[tuple[int, bytes, bytes, bytes], ...] = ()
