"""How many members of a Join Table go into one message, estimated a little too large rather than too small."""

from collections.abc import Iterator
from typing import Final

from roamcast.protocols.odmrp.messages import Member

TABLE_BYTES_MAX: Final = 1200  # members that together take more travel in several frames
MEMBER_BYTES: Final = 15  # of a member without its context
ARRIVAL_BYTES: Final = 9  # of an event's id


def member_bytes(member: Member) -> int:
    return MEMBER_BYTES + ARRIVAL_BYTES * len(member.arrived) + len(member.context or b"")


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
