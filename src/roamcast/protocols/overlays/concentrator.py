"""The concentrator: the hub through which everything enters and leaves a node [3.1].

It brings payloads to other nodes (`send`), along source routes (`carry`) or until they are answered (`ask`), and hands
what arrives, and timers that ran out, to whichever component registered for it. So components know messages, not each
other.

- A relay that cannot reach the next broker of a source route computes another path to the route's end [2.3].
- `ask` repeats a request, at intervals that double up to eight times the first, until `answered` or until it has been
  sent `tries_max` times. So a lost message is repeated by the node that needs the answer, and by no other.
"""

from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args

from roamcast.errors import CallerError
from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.messages import Branch, Carried, Forward, Relayed, Spread
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.repeats import Attempt, Patience, Ticker
from roamcast.protocols.routing import AodvParameters, Unicast, unicast

M = TypeVar("M", bound=Message)
Handler = Callable[[int, Any, int], None]  # source, message, hops
NO_PATH: Final = "overlays: no path"
BAD_ROUTE: Final = "overlays: bad source route"
TOO_MANY: Final = "overlays: too many requests"

# What brokers tell each other about events goes where events go: those routes are in use.
_RELAYED: Final = frozenset(get_args(Relayed))


class ConcentratorTimer(StrEnum):
    RETRY = "concentrator.retry"  # repeat requests that were not answered; key 0


class _Request(Attempt):
    __slots__ = ("destination", "message", "on_failure", "tries_max")

    def __init__(
        self, destination: int, message: Message, tries_max: int, on_failure: Callable[[], None] | None
    ) -> None:
        super().__init__()
        self.destination = destination
        self.message = message
        self.tries_max = tries_max
        self.on_failure = on_failure


class Concentrator(Component):
    def __init__(self, host: Host, inputs: Inputs, parameters: OverlaysParameters) -> None:
        super().__init__(host)
        self.unicast: Unicast = unicast(
            parameters.unicast,
            host,
            inputs,
            arrived=self._on_arrival,
            unreachable=self._on_unreachable,
            parameters=AodvParameters(buffer_packets=parameters.buffer_packets),
        )
        self.path: Callable[[int], tuple[int, ...]] = lambda destination: (destination,)  # a broker's knows better
        self.on_unreachable: Callable[[int], None] = lambda node: None  # a node could not be reached
        self.suspects: dict[int, float] = {}  # node -> until when it is avoided
        self._parameters = parameters
        self._patience = Patience(parameters)
        self._ticker = Ticker(host, ConcentratorTimer.RETRY, parameters.retry_s, self._repeat)
        self._handlers: dict[type[Message], Handler] = {}
        self._requests: dict[Hashable, _Request] = {}

    def declare(self, inputs: Inputs) -> None:
        self.unicast.declare(inputs)
        self.on(Carried, self._relay)
        self.on(Spread, self._on_spread)
        inputs.on_timer(ConcentratorTimer.RETRY, self._ticker.tick)

    # -- For the components ----------------------------------------------------------------------------------------

    def on(self, kind: type[M], handler: Callable[[int, M, int], None]) -> None:
        """`handler(source, message, hops)` takes payloads of this type; components call this when they declare."""
        if kind in self._handlers:
            raise CallerError(f"{kind.__name__} is handled by two components")
        self._handlers[kind] = handler

    def send(self, destination: int, message: Message) -> None:
        """Brings a message to a node, along the overlay if it goes from broker to broker about events."""
        if type(message) in _RELAYED:
            self.carry(self.path(destination), message)
        else:
            self.unicast.send(destination, message)

    def carry(self, path: tuple[int, ...], payload: Any) -> None:
        """Sends a payload along a source route, which ends with its destination."""
        self.unicast.send(path[0], Carried(self.host.address, path[1:], 0, 0, payload))

    def spread(self, message: Spread) -> None:
        """Sends an event along a tree of source routes: one copy to each first broker, with the branches behind it."""
        by_first: dict[int, list[Branch]] = {}
        for path, targets in message.branches:
            by_first.setdefault(path[0], []).append((path[1:], targets))
        for first, branches in by_first.items():
            if len(branches) == 1:
                path, targets = branches[0]
                forward = Forward(message.source, message.base_hops, targets, message.event)
                self.unicast.send(first, Carried(message.source, path, message.hops, 0, forward))
            else:
                copy = Spread(message.source, message.base_hops, message.hops, tuple(branches), message.event)
                self.unicast.send(first, copy)

    def ask(
        self,
        key: Hashable,
        destination: int,
        message: Message,
        tries_max: int,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        """Sends a request until it is answered; a new one with the same key replaces the old."""
        if len(self._requests) >= self._parameters.requests_max and key not in self._requests:
            self.host.dropped(TOO_MANY)
            return
        request = _Request(destination, message, tries_max, on_failure)
        self._requests[key] = request
        self._patience.tried(request, self.host.now())
        self.send(destination, message)
        self._ticker.start()

    def answered(self, key: Hashable) -> bool:
        """The request need not be repeated; false if there is none (any more)."""
        return self._requests.pop(key, None) is not None

    def is_asking(self, key: Hashable) -> bool:
        return key in self._requests

    def is_suspect(self, node: int) -> bool:
        until_s = self.suspects.get(node)
        if until_s is None:
            return False
        if until_s <= self.host.now():
            del self.suspects[node]
            return False
        return True

    # -- What the unicast service says -----------------------------------------------------------------------------

    def _on_arrival(self, source: int, payload: Message, hops: int) -> None:
        handler = self._handlers.get(type(payload))
        if handler is not None:  # what is for brokers may reach a node that is none (any more)
            handler(source, payload, hops)

    def _on_unreachable(self, destination: int, payload: Message) -> None:
        self.suspects[destination] = self.host.now() + self._parameters.suspicion_s
        if len(self.suspects) > self._parameters.brokers_max:
            del self.suspects[next(iter(self.suspects))]
        self.on_unreachable(destination)
        if type(payload) is Carried:
            self._detour(payload)
        elif type(payload) is Spread:
            for path, targets in payload.branches:
                forward = Forward(payload.source, payload.base_hops, targets, payload.event)
                self._detour(Carried(payload.source, path, payload.hops, 0, forward))

    def _detour(self, message: Carried) -> None:
        """The next broker of a source route is unreachable: takes another path to the route's end."""
        if not message.path or message.detours > self._parameters.detours_max:
            self.host.dropped(NO_PATH)
            return
        end = message.path[-1]
        path = self.path(end) if message.detours < self._parameters.detours_max else (end,)
        self.unicast.send(
            path[0], Carried(message.origin, path[1:], message.hops, message.detours + 1, message.payload)
        )

    # -- Inside ----------------------------------------------------------------------------------------------------

    def _relay(self, source: int, message: Carried, hops: int) -> None:
        hops = min(255, message.hops + hops)
        path = message.path
        if path:
            if not self._is_sound(path, hops):
                self.host.dropped(BAD_ROUTE)
                return
            self.unicast.send(path[0], Carried(message.origin, path[1:], hops, message.detours, message.payload))
        else:
            self.suspects.pop(source, None)
            self._on_arrival(message.origin, message.payload, hops)

    def _is_sound(self, path: tuple[int, ...], hops: int) -> bool:
        """A source route passes no broker twice, nor this one again; its end may be a client that is a broker too."""
        relays = path[:-1]
        return (
            hops < self._parameters.route_hops_max
            and self.host.address not in relays
            and len(set(relays)) == len(relays)
        )

    def _on_spread(self, source: int, message: Spread, hops: int) -> None:
        hops = min(255, message.hops + hops)
        onward = tuple(branch for branch in message.branches if branch[0])
        if any(not self._is_sound(path, hops) for path, _ in onward):
            self.host.dropped(BAD_ROUTE)
            return
        for path, targets in message.branches:
            if not path:
                self.suspects.pop(source, None)
                forward = Forward(message.source, message.base_hops, targets, message.event)
                self._on_arrival(message.source, forward, hops)
        if onward:
            self.spread(Spread(message.source, message.base_hops, hops, onward, message.event))

    def _repeat(self, now_s: float) -> bool:
        failed: list[_Request] = []
        for key, request in list(self._requests.items()):
            if request.due_s > now_s:
                continue
            if request.tries >= request.tries_max:
                del self._requests[key]
                failed.append(request)
                continue
            self._patience.tried(request, now_s)
            self.send(request.destination, request.message)
        for request in failed:
            if request.on_failure is not None:
                request.on_failure()
        return bool(self._requests)
