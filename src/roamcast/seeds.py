"""Randomness that is the same everywhere: one seed, split by name into independent generators.

Every consumer (mobility, workload, radio, each node's protocol) owns a generator of its own, so that a protocol that
draws once more does not change where the nodes move. Names are hashed with BLAKE2 because Python's `hash` of a string
depends on `PYTHONHASHSEED`.
"""

from hashlib import blake2b
from random import Random

__all__ = ["Random", "derive", "derive_int"]


def derive_int(seed: int, *names: str | int) -> int:
    """A 64-bit seed that belongs to `names` under `seed`; different names give unrelated seeds."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def derive(seed: int, *names: str | int) -> Random:
    """The generator that belongs to `names` under `seed`."""
    return Random(derive_int(seed, *names))
