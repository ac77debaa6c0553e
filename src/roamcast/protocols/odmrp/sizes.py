"""What members of a Join Table take in a frame, rather a little more than less, and how many go into one."""

from collections.abc import Iterator
from typing import Final

from roamcast.protocols.odmrp.messages import Member
from roamcast.protocols.odmrp.packed import PackedEntry

TABLE_BYTES_MAX: Final = 1200  # members that together take more travel in several frames
MEMBER_BYTES: Final = 12  # of a member without its entries
ARRIVAL_BYTES: Final = 9  # of an event's id
ENTRY_BYTES: Final = 20  # of an entry without its filters
FILTER_BYTES: Final = 4  # of a filter without its bits


def member_bytes(member: Member) -> int:
    total = MEMBER_BYTES + ARRIVAL_BYTES * len(member.arrived)
    if member.entries is not None:
        for entry in member.entries:
            total += entry_bytes(entry)
    return total


def entry_bytes(entry: PackedEntry) -> int:
    total = ENTRY_BYTES + 2 * FILTER_BYTES + len(entry.enumerated) + len(entry.arithmetic)
    for _, left, right, exact in entry.texts:
        total += 3 * FILTER_BYTES + len(left) + len(right) + len(exact)
    return total


def in_frames(members: list[Member]) -> Iterator[tuple[Member, ...]]:
    """The members in order, as many at a time as fit a frame."""
    part: list[Member] = []
    size_bytes = 0
    for member in members:
        more_bytes = member_bytes(member)
        if part and size_bytes + more_bytes > TABLE_BYTES_MAX:
            yield tuple(part)
            part, size_bytes = [], 0
        part.append(member)
        size_bytes += more_bytes
    if part:
        yield tuple(part)
