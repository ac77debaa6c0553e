"""Bloom filters, as bits of plain integers.

What goes into a filter is a *token*, the 32-bit hash of a value and where it stands. Its positions in a filter come
from the two halves of the token by double hashing (h1 + i h2), so a token is all that must travel, and the size of the
filters is no business of whoever makes the tokens.

With n tokens, m bits and k positions each, a token that is not there seems to be with probability about
(1 - exp(-kn/m))^k.
"""

from functools import lru_cache
from hashlib import blake2b
from math import exp
from typing import Final

HALF: Final = 16
BITS_MAX: Final = 1 << HALF  # beyond that the halves of a token do not reach every bit

_CACHED: Final = 1 << 16


@lru_cache(_CACHED)
def token(place: str, value: str) -> int:
    """The token of a value at a place; the same in every process."""
    return int.from_bytes(blake2b(f"{place}\x1f{value}".encode(errors="surrogatepass"), digest_size=4).digest(), "big")


@lru_cache(_CACHED)
def mask(one: int, bits: int, hashes: int) -> int:
    """The bits of a token in a filter."""
    first, step = one >> HALF, (one & (1 << HALF) - 1) | 1
    found = 0
    for turn in range(hashes):
        found |= 1 << (first + turn * step) % bits
    return found


@lru_cache(_CACHED)
def positions(one: int, bits: int, hashes: int) -> tuple[int, ...]:
    """The same as numbers, ascending."""
    return tuple(at for at in range(bits) if mask(one, bits, hashes) >> at & 1)


def false_positive_rate(tokens: int, bits: int, hashes: int) -> float:
    """What the formula expects of a filter with so many tokens."""
    return float((1 - exp(-hashes * tokens / bits)) ** hashes)
