"""What is published.

An event's id is one integer: the publisher's address in the upper half, its running number (from 1) in the lower half.
So an id is unique without coordination, cheap to compare, and one column in the trace.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roamcast.fields import EventId, EventIdOrNone, Real, Time, Whole

NO_EVENT: Final = 0
"""Means "no event" where an event id is expected; numbers start at 1, so no event has this id."""

NUMBER_BITS: Final = 32

Content = Whole | Real | str
"""What interests look at: a number (intervals), a topic such as `fire/north` (topics), or an XML document (content)."""


Signature = Annotated[bytes, Meta(max_length=68)]
"""Opaque to every protocol."""


def event_id(publisher: int, number: int) -> int:
    return publisher << NUMBER_BITS | number


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One publication. The same object reaches many simulated nodes: never mutate it."""

    id: EventId
    time_s: Time  # when it was published, on the publisher's clock
    content: Content
    payload: bytes = b""  # opaque to every protocol
    cause: EventIdOrNone = NO_EVENT  # id of the event whose receipt made the publisher publish this one
    utility: str = ""  # deadline or utility curve: what a receipt is worth by age (`roamcast.trace.utility`)
    signature: Signature | None = None  # of the publisher, in a live network with identities (`live/signing.py`)

    @property
    def publisher(self) -> int:
        return self.id >> NUMBER_BITS

    @property
    def number(self) -> int:
        return self.id & (1 << NUMBER_BITS) - 1
