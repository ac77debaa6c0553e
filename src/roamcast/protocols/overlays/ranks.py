"""Which of two statements about a client is newer.

A client's epoch lies on a circle of 32 bits, as AODV's sequence numbers do: one that is ahead by less than half the
circle is newer. So there is no highest epoch. Whatever epoch a forged message claims, the client can go beyond it.
Within an epoch, the generation and then the version decide (`messages.py`).
"""

from typing import Final

from roamcast.protocols.routing.sequence import MODULUS, newer, successor

COUNT_MAX: Final = 2**62 - 1
"""The largest `Counter`."""

Rank = tuple[int, ...]
"""An epoch, and what there is of generation and version."""


def is_newer_epoch(one: int, other: int) -> bool:
    return newer(one, other)


def is_newer(one: Rank, other: Rank) -> bool:
    """Whether `one` is newer than `other`, which has as many parts."""
    if one[0] != other[0]:
        return newer(one[0], other[0])
    return one[1:] > other[1:]


def following(count: int) -> int:
    """The next generation, version or sequence number. It stops at the last one that fits a message; a new epoch, in
    which all of them start again, is the way out."""
    return min(count + 1, COUNT_MAX)


def next_epoch(epoch: int, now_s: float) -> int:
    """The epoch after `epoch`, and normally beyond those of a former life, which ended before `now_s`."""
    clock = int(now_s * 1000) % MODULUS
    return clock if newer(clock, epoch) else successor(epoch)
