"""Unicast over several hops, as a component that a protocol owns.

The owner builds the service with `unicast(name, host, self)`, hands it everything the host says, and keeps for itself
what the service does not claim:

    def on_message(self, sender: int, message: Message) -> None:
        if self._unicast.on_message(sender, message):
            return
        ...

The same holds for `on_timer` and `on_send_failed`. The owner hands over *all* messages and failures, not only the
service's own, because each tells something about a link.

The promises of the service:

- A payload comes out of `on_unicast` at its destination at most once per arrival of its frame: like the link below,
  the service acknowledges nothing end to end and may lose or, when a link's acknowledgement was lost, repeat.
- A payload that its source gives up on comes back through `on_unreachable`. A payload that is lost farther on is
  counted there, with a reason out of `Drop`.
- The owner is never called from inside `send`.
- Message tags 0-15 and timers whose names begin with `unicast.` or `aodv.` belong to the service.
"""

import typing
from abc import ABC, abstractmethod
from enum import StrEnum

from roamcast.protocols.api import Host, Message, Timer


class Drop(StrEnum):
    """Why a routed payload was given up, as the trace counts it."""

    NO_ROUTE = "unicast-no-route"  # no discovery found the destination, or a relay had no route for it
    LINK_BROKEN = "unicast-link-broken"  # a link gave up on it and nobody tries again
    TOO_MANY_HOPS = "unicast-too-many-hops"  # it was probably going in circles while routes changed
    BUFFER_FULL = "unicast-buffer-full"  # too much was waiting for a route
    BUFFER_TIMEOUT = "unicast-buffer-timeout"  # it waited too long for a route


class UnicastOwner(typing.Protocol):
    """What a protocol offers the service that it owns."""

    def on_unicast(self, source: int, payload: Message, hops: int) -> None:
        """A payload for this node arrived; `hops` is how many frames in a row brought it here, 0 from itself."""

    def on_unreachable(self, destination: int, payload: Message) -> None:
        """A payload that this node sent could not be brought on its way. The owner may send it again."""


class Unicast(ABC):
    """The service on one node."""

    LATER: Timer = ("unicast.later", 0)

    def __init__(self, host: Host, owner: UnicastOwner) -> None:
        self.host = host
        self._owner = owner
        self._arrived: list[Message] = []  # sent to this very node, to be handed over by the timer
        self._given_up: list[tuple[int, Message]] = []

    @abstractmethod
    def start(self) -> None:
        """The node is up."""

    @abstractmethod
    def send(self, destination: int, payload: Message) -> None:
        """Brings `payload` to `destination`, however many hops away."""

    @abstractmethod
    def on_message(self, sender: int, message: Message) -> bool:
        """True if the message was the service's and is dealt with."""

    @abstractmethod
    def on_send_failed(self, neighbour: int, message: Message) -> bool:
        """True if the failed frame was the service's and is dealt with."""

    def on_timer(self, timer: Timer) -> bool:
        """True if the timer was the service's and is dealt with."""
        if timer != self.LATER:
            return False
        arrived, given_up = self._arrived, self._given_up
        self._arrived, self._given_up = [], []
        for payload in arrived:
            self._owner.on_unicast(self.host.address, payload, 0)
        for destination, payload in given_up:
            self._owner.on_unreachable(destination, payload)
        return True

    def _arrive_later(self, payload: Message) -> None:
        """For use inside `send`: this node sent to itself."""
        self._arrived.append(payload)
        self.host.set_timer(0.0, self.LATER)

    def _give_up_later(self, destination: int, payload: Message) -> None:
        """For use inside `send`: there is no way to the destination."""
        self._given_up.append((destination, payload))
        self.host.set_timer(0.0, self.LATER)
