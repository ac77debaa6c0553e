"""Sequence numbers: 32 bits that wrap around, newer if ahead by less than half the circle (AODV draft 13, section 6.1).

The comparison is that of the signed 32-bit difference, so a number stays comparable through a wraparound as long as no
node falls two billion steps behind.
"""

from typing import Final

MODULUS: Final = 2**32
_HALF: Final = 2**31


def newer(one: int, other: int) -> bool:
    """Whether `one` is ahead of `other` on the circle."""
    return 0 < (one - other) % MODULUS < _HALF


def successor(number: int) -> int:
    return (number + 1) % MODULUS


def newest(one: int | None, other: int | None) -> int | None:
    """The newer of two numbers, where `None` (nothing known) is older than any."""
    if one is None or (other is not None and newer(other, one)):
        return other
    return one
