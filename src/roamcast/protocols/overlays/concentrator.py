"""The concentrator: the hub through which everything enters and leaves a node [3.1].

It brings payloads to other nodes (`send`), along source routes (`carry`) or until they are answered (`ask`), and hands
what arrives, and timers that ran out, to whichever component registered for it. So components know messages, not each
other.

- A message that is too long for a frame travels in fragments and is put together by the next node that looks at it: the
  destination, or each broker of a source route.
- A relay that cannot reach the next broker of a source route takes a way of its own to the route's end (2.3 of the
  paper: "compute an alternative path").
- `ask` repeats a request, at intervals that double up to eight times the first, until `answered` or until it has been
  sent `tries_max` times. What is lost is therefore repeated by whoever needs the answer, and by nobody else.
"""

from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args

import msgspec

from roamcast.errors import CallerError, PeerError
from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.messages import Carried, Fragment, Payload, Relayed
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.repeats import Attempt, Patience, Ticker
from roamcast.protocols.routing import AodvParameters, Unicast, unicast

M = TypeVar("M", bound=Message)
Handler = Callable[[int, Any, int], None]  # source, message, hops
PIECE_BYTES: Final = 1150  # with all envelopes a piece fits a datagram and an 802.11 frame
ASSEMBLIES_MAX: Final = 64  # messages that may be incomplete at one time
NO_PATH: Final = "overlays: no path"

# What brokers tell each other about events goes where events go: those routes are in use.
_RELAYED: Final = frozenset(get_args(Relayed))
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder[Message](Payload)


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
        self.suspects: dict[int, float] = {}  # node -> until when it is avoided
        self._parameters = parameters
        self._patience = Patience(parameters)
        self._ticker = Ticker(host, ConcentratorTimer.RETRY, parameters.retry_s, self._repeat)
        self._handlers: dict[type[Message], Handler] = {}
        self._requests: dict[Hashable, _Request] = {}
        self._fragmented = 0
        self._assemblies: dict[tuple[int, int], dict[int, bytes]] = {}

    def declare(self, inputs: Inputs) -> None:
        self.unicast.declare(inputs)
        self.on(Carried, self._relay)
        self.on(Fragment, self._assemble)
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
            self._send_straight(destination, message)

    def carry(self, path: tuple[int, ...], payload: Any) -> None:
        """Sends a payload along a source route, which ends with its destination."""
        self._send_straight(path[0], Carried(self.host.address, path[1:], 0, 0, payload))

    def ask(
        self,
        key: Hashable,
        destination: int,
        message: Message,
        tries_max: int,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        """Sends a request until it is answered; a new one with the same key replaces the old."""
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
        if not isinstance(payload, Carried):
            return
        if payload.path:
            end = payload.path[-1]
            way = self.path(end) if payload.detours < self._parameters.detours_max else (end,)
            detour = Carried(payload.origin, way[1:], payload.hops, payload.detours + 1, payload.payload)
            self._send_straight(way[0], detour)
        else:
            self.host.dropped(NO_PATH)

    # -- Inside ----------------------------------------------------------------------------------------------------

    def _send_straight(self, destination: int, message: Message) -> None:
        """Leaves the way to the unicast service."""
        data = _encode(message)
        if len(data) <= PIECE_BYTES:
            self.unicast.send(destination, message)
            return
        self._fragmented += 1
        pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
        for index, piece in enumerate(pieces):
            self.unicast.send(destination, Fragment(self._fragmented, index, len(pieces), piece))

    def _relay(self, source: int, message: Carried, hops: int) -> None:
        hops = min(255, message.hops + hops)
        path = message.path
        if path:
            self._send_straight(path[0], Carried(message.origin, path[1:], hops, message.detours, message.payload))
        else:
            self.suspects.pop(source, None)
            self._on_arrival(message.origin, message.payload, hops)

    def _assemble(self, source: int, piece: Fragment, hops: int) -> None:
        key = (source, piece.number)
        pieces = self._assemblies.setdefault(key, {})
        pieces[piece.index] = piece.data
        if len(pieces) < piece.count:
            if len(self._assemblies) > ASSEMBLIES_MAX:
                del self._assemblies[next(iter(self._assemblies))]
            return
        del self._assemblies[key]
        try:
            message = _decoder.decode(b"".join(pieces[index] for index in sorted(pieces)))
        except msgspec.MsgspecError as error:
            raise PeerError(f"fragments of {source}: {error}") from None
        self._on_arrival(source, message, hops)

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
