"""What a live node gives its program to read: the events of one subscription."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from roamcast.errors import ConfigurationError
from roamcast.interests import Interest
from roamcast.live import node as live
from roamcast.protocols.api import PLAIN_CHANNEL, Modulation

if TYPE_CHECKING:
    from roamcast.library.nodes import Node


class RefusedError(ConfigurationError):
    """No broker runs the modulator of a subscription; the message says why."""


class Subscription:
    """Events of one interest, in order of arrival: `async for delivery in subscription`. `close` ends it.

    At most `queue_max` deliveries wait for a slow reader. Then the oldest is dropped, and counted in `lost`. Nothing is
    dropped of a subscription with a name: what a slow reader has not acknowledged waits in the node. A delivery counts
    as acknowledged when the next one is asked for, or when `acknowledge` is called with it.

    With a modulator the events are what it makes of those of the interest. If the node's broker refuses or stops it,
    the loop raises `RefusedError` with the reason, once; `refusal` keeps it. `change` then takes another modulator, and
    the loop can be begun again. The node asks again by itself when it has another home broker.
    """

    def __init__(
        self,
        node: "Node",
        interest: Interest,
        queue_max: int,
        channel: int = PLAIN_CHANNEL,
        modulation: Modulation | None = None,
        name: str = "",
    ) -> None:
        self.interest = interest
        self.channel = channel  # of its deliveries; 0 without a modulator
        self.modulation = modulation
        self.name = name  # of a durable or ordered one; empty otherwise
        self.lost = 0
        self._current: live.Delivery | None = None  # which the reader has and has not acknowledged
        self.refusal = ""
        self._is_refused = False  # and the reader has not been told yet
        self._node = node
        self._waiting: deque[live.Delivery] = deque()
        self._queue_max = queue_max
        self._arrived = asyncio.Event()
        self._is_open = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> live.Delivery:
        if self._current is not None:
            self.acknowledge(self._current)
        while not self._waiting:
            if not self._is_open:
                raise StopAsyncIteration
            if self._is_refused:
                self._is_refused = False
                raise RefusedError(self.refusal)
            self._arrived.clear()
            await self._arrived.wait()
        delivery = self._waiting.popleft()
        self._current = delivery if self.name else None
        return delivery

    def acknowledge(self, delivery: live.Delivery) -> None:
        """The reader is through with it: it never comes again, whatever happens to the process."""
        if self._current is delivery:
            self._current = None
        if self.name and self._is_open:
            self._node._acknowledge(self.name, delivery.event.id)

    def change(
        self,
        interest: str | Interest | None = None,
        *,
        modulator: str | None = None,
        inputs: Mapping[str, bytes] | None = None,
    ) -> None:
        """Changes the interest, or the modulator and its inputs. Deliveries that wait are kept.
        Only a subscription that was made with a modulator can have another one."""
        if self._is_open:
            self._node._change(self, interest, modulator, inputs)
            self.refusal = ""
            self._is_refused = False

    def close(self) -> None:
        """The node no longer asks for these events; those that wait can still be read. Closing twice does nothing."""
        if self._is_open:
            self._node._end(self)

    def _offer(self, delivery: live.Delivery) -> None:
        if delivery.channel != self.channel or delivery.subscription != self.name:
            return
        if self.channel == PLAIN_CHANNEL and not self.name and not self.interest.matches(delivery.event):
            return
        self.refusal = ""
        if not self.name and len(self._waiting) == self._queue_max:
            self._waiting.popleft()
            self.lost += 1
        self._waiting.append(delivery)
        self._arrived.set()

    def _refuse(self, channel: int, reason: str) -> None:
        if channel == self.channel:
            self.refusal = reason
            self._is_refused = True
            self._arrived.set()

    def _stop(self) -> None:
        self._is_open = False
        self._arrived.set()
