"""Bloom filters, as bits of plain integers.

What goes into a filter is a *token*, the 32-bit hash of a value and of the leaf it belongs to. Its positions in a
filter come from the two halves of the token by double hashing (h1 + i h2), so a token fits filters of every size.

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
    """The token of a value of a leaf; the same in every process."""
    return int.from_bytes(blake2b(f"{place}\x1f{value}".encode(errors="surrogatepass"), digest_size=4).digest(), "big")


def positions(one: int, bits: int, hashes: int) -> list[int]:
    """The numbers of a token's bits in a filter; a bit may come more than once."""
    first, step = one >> HALF, (one & (1 << HALF) - 1) | 1
    return [(first + turn * step) % bits for turn in range(hashes)]


@lru_cache(_CACHED)
def mask(one: int, bits: int, hashes: int) -> int:
    """The bits of a token in a filter."""
    found = 0
    for at in positions(one, bits, hashes):
        found |= 1 << at
    return found


def false_positive_rate(tokens: int, bits: int, hashes: int) -> float:
    """What the formula expects of a filter with this many tokens."""
    return float((1 - exp(-hashes * tokens / bits)) ** hashes)
