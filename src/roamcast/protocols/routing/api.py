"""Unicast over several hops, as a component that a protocol owns.

The owner builds the service with `unicast(...)` and composes it with its other components:

    class Yours(ComposedProtocol):
        def __init__(self, host: Host, parameters: YourParameters) -> None:
            super().__init__(host)
            self._unicast = unicast(
                "aodv", host, self.inputs, arrived=self._on_arrival, unreachable=self._on_unreachable
            )
            self.compose(self._unicast)

        def start(self) -> None:
            self._unicast.start()

The promises of the service:

- `arrived(source, payload, hops)` is called at most once per arrival of a payload's frame; `hops` is the number of
  frames in a row that brought it here, 0 if this node sent it to itself. Like the link below, the service acknowledges
  nothing end to end. It may lose a payload or, when a link's acknowledgement was lost, repeat it.
- `unreachable(destination, payload)` is called at the source if the service gives up on a payload there. The owner may
  send it again. A payload that is lost farther on is counted there, with a reason out of `Drop`.
- Neither callback runs inside `send`.
- Message tags 0-15 and timers whose names begin with `aodv.` belong to the service.
"""

from abc import abstractmethod
from collections.abc import Callable
from enum import StrEnum

from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs

Arrived = Callable[[int, Message, int], None]
"""Takes the source, the payload, and the number of hops."""

Unreachable = Callable[[int, Message], None]
"""Takes the destination and the payload."""


class Drop(StrEnum):
    """Why a routed payload was given up, as the trace counts it."""

    NO_ROUTE = "unicast-no-route"  # no discovery found the destination, or a relay had no route for it
    LINK_BROKEN = "unicast-link-broken"  # a link gave up on it, and it is not tried again
    TOO_MANY_HOPS = "unicast-too-many-hops"  # it was probably going in circles while routes changed
    BUFFER_FULL = "unicast-buffer-full"  # too much was waiting for a route
    BUFFER_TIMEOUT = "unicast-buffer-timeout"  # it waited too long for a route


class Unicast(Component):
    """The service on one node."""

    def __init__(self, host: Host, inputs: Inputs, arrived: Arrived, unreachable: Unreachable) -> None:
        super().__init__(host)
        self._inputs = inputs
        self._arrived = arrived
        self._unreachable = unreachable

    @abstractmethod
    def start(self) -> None:
        """The node is up."""

    @abstractmethod
    def send(self, destination: int, payload: Message) -> None:
        """Brings `payload` to `destination`, however many hops away."""

    def _arrive_later(self, payload: Message) -> None:
        """For use inside `send`: this node sent to itself."""
        self._inputs.later(lambda: self._arrived(self.host.address, payload, 0))

    def _give_up_later(self, destination: int, payload: Message) -> None:
        """For use inside `send`: there is no route to the destination."""
        self._inputs.later(lambda: self._unreachable(destination, payload))
