"""What a node does and notices while it does it, for a program that watches: the same facts as in its trace."""

from typing import Literal

import msgspec


class Activity(msgspec.Struct, frozen=True):
    """One thing that happened at a node.

    - `heard`: a message with an event came from the neighbour `peer`. One event may be heard often.
    - `structure`: the protocol changed its place in the network; `label` is the aspect, as in the trace.
    - `dropped`: the protocol dropped an event; `label` is the reason.
    """

    kind: Literal["heard", "structure", "dropped"]
    time_s: float
    label: str  # of the message, the aspect or the reason
    peer: int | None = None
    event_id: int | None = None
    value: float = 0.0
