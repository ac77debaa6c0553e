"""The fields of messages: which numbers from outside a protocol ever sees.

Every number in a message has one of these types. They are plain `int` and `float` to the protocol; the range is
checked when a message is decoded, so NaN, infinities, negative counters and absurd integers are refused there, for all
protocols, before any of them runs. A test walks the messages of every protocol and refuses a bare `int` or `float`.
"""

from typing import Annotated, Final

from msgspec import Meta

ADDRESS_MAX = 2**31 - 1
"""An event's id has the publisher's address in its upper half and must stay below 2^63."""

Address = Annotated[int, Meta(ge=0, le=ADDRESS_MAX)]
"""A node."""

AddressOrNobody = Annotated[int, Meta(ge=-1, le=ADDRESS_MAX)]
"""A node, or `NOBODY`."""

EventId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
"""An event."""

EventIdOrNone = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""An event, or `NO_EVENT`."""

Counter = Annotated[int, Meta(ge=0, le=2**62 - 1)]
"""Something counted from 0: a sequence number, a version, an epoch, a life."""

SmallCounter = Annotated[int, Meta(ge=0, le=2**16 - 1)]
"""Something counted from 0 of which there are few: parts of a table, members of a group."""

SignedCounter = Annotated[int, Meta(ge=-(2**62), le=2**62 - 1)]
"""A whole number of either sign."""

HOPS_MAX: Final = 255
Hops = Annotated[int, Meta(ge=0, le=HOPS_MAX)]
"""Hops, levels, times to live."""

Level = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""Hops from the root of a tree; very many for a node that has none."""

Milliseconds = Annotated[int, Meta(ge=0, le=10**10)]
"""A duration."""

Duration = Annotated[float, Meta(ge=0.0, le=1e7)]
"""Seconds, at most about four months."""

Time = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Seconds on some node's clock; live, Unix time."""

Coordinate = Annotated[float, Meta(ge=-1e9, le=1e9)]
"""Metres east or north of the area's corner; as a velocity, metres per second."""

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
"""A probability or a share of a whole."""

Quantity = Annotated[float, Meta(ge=0.0, le=1e18)]
"""A finite amount of at least 0: a load, a cost, a rate."""

Real = Annotated[float, Meta(ge=-1e300, le=1e300)]
"""Any finite number: what an application publishes, and the bounds of what it asks for."""

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Any whole number that fits 64 bits: what an application publishes."""
