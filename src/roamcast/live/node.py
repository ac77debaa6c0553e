"""A live node as its application sees it: publish, subscribe, be told of events, close.

Event numbers start at the seconds since `EPOCH_S` times `NUMBERS_PER_S`, so a node that was restarted does not use a
number twice, with nothing to remember on disk, as long as it published no more than that per second in the long run.
Sixteen a second fill the 32 bits of a number in eight and a half years; then they start over.
"""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import NUMBER_BITS, Content, Event, event_id
from roamcast.interests import Interest, parse_interest
from roamcast.interests.content import read as read_document
from roamcast.live.codec import ADDRESS_MAX, DATAGRAM_BYTES_MAX, Codec
from roamcast.live.endpoints import Endpoint, open_socket
from roamcast.live.host import Clock, UdpHost
from roamcast.live.journal import Journal
from roamcast.protocols.api import Point, Site
from roamcast.protocols.catalogue import build_protocol, protocol_class, protocol_parameters
from roamcast.seeds import Random
from roamcast.trace.utility import parse_utility

if TYPE_CHECKING:
    from roamcast.live.trace_log import TraceLog

EPOCH_S = 1_767_225_600  # 2026-01-01 00:00 UTC
NUMBERS_PER_S = 16
FLUSH_PERIOD_S = 5.0  # how much of its trace a node that is killed may lose
EVENT_BYTES_MAX = DATAGRAM_BYTES_MAX - 152  # encoded; leaves the rest of a datagram to link and protocol


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an operator decides about one node."""

    address: int
    protocol: str = "flooding"
    parameters: dict[str, Any] = {}
    language: str = "intervals"
    network: str = "roamcast"  # nodes of another network on the same port are ignored
    listen: Endpoint = ("127.0.0.1", 0)
    group: Endpoint | None = None  # broadcast address or multicast group; None if there are only static links
    peers: tuple[Endpoint, ...] = ()  # static links
    position: Point | None = None  # where it starts; `Node.move` says where it is later
    site: Site | None = None
    trace: Path | None = None


class Delivery(msgspec.Struct, frozen=True):
    """An event at its subscriber."""

    event: Event
    hops: int
    latency_s: float  # by the clocks of publisher and subscriber: negative if they disagree


def first_number(now_s: float) -> int:
    """The number of the first event of a life that starts at `now_s`, Unix time; never 0, which means no event."""
    return int((now_s - EPOCH_S) * NUMBERS_PER_S) % (1 << NUMBER_BITS) or 1


def parse_content(language: str, text: str) -> Content:
    """What an event of `language` is about: a number, a topic, or an XML document."""
    if language == "content":
        read_document(text)
        return text
    if language == "topics":
        interest = parse_interest(language, text)
        if "*" in text or str(interest) != text:
            raise ConfigurationError(f"content: {text!r} is not a topic; write names and slashes, as in fire/north")
        return text
    for number in (int, float):
        try:
            content = number(text)
        except ValueError:
            continue
        if content == content and abs(content) < 2**63:
            return content
    raise ConfigurationError(f"content: {text!r} is not a number below 2^63")


class Node:
    """One running node; `open` makes one, `close` ends it."""

    def __init__(
        self, settings: NodeSettings, host: UdpHost, journal: Journal, clock: Clock, listens: Endpoint
    ) -> None:
        self.settings = settings
        self.listens = listens  # where its socket is: the port is known only now if it was given as 0
        self._host = host
        self._journal = journal
        self._clock = clock
        self._started_s = clock.now()
        self._number = first_number(self._started_s)
        self._subscriptions: list[Interest] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._is_open = True

    @classmethod
    async def open(cls, settings: NodeSettings, on_delivery: Callable[[Delivery], None]) -> "Node":
        """Starts the node. `on_delivery` may call the node."""
        if not 0 <= settings.address <= ADDRESS_MAX:
            raise ConfigurationError(f"address = {settings.address}: must be between 0 and {ADDRESS_MAX}")
        if settings.group is None and not settings.peers:
            raise ConfigurationError("neighbourhood: none given; name a --broadcast group or at least one --peer")
        kind = protocol_class(settings.protocol)
        parameters = protocol_parameters(settings.protocol, settings.parameters)
        socket = open_socket(settings.listen, settings.group)
        try:
            trace = None if settings.trace is None else _trace_log(settings.trace, settings.network)
        except ConfigurationError:
            socket.close()
            raise
        clock = Clock()
        journal = Journal(settings.address, clock.now, trace)
        host = UdpHost(
            settings.address,
            Codec(settings.network, settings.protocol, kind.messages),
            journal,
            settings.peers if settings.group is None else (settings.group, *settings.peers),
            clock=clock,
            random=Random(),
            on_delivery=lambda event, hops, latency_s: on_delivery(Delivery(event, hops, latency_s)),
            position=settings.position,
            site=settings.site,
        )
        host.protocol = build_protocol(settings.protocol, host, parameters)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: host, sock=socket)
        node = cls(settings, host, journal, clock, socket.getsockname())
        if settings.position is not None:
            journal.moved(settings.position)
        host.protocol.start()
        node._flush()
        return node

    def advertise(self, interest: Interest) -> None:
        """The application is going to publish events that match; some protocols want to know."""
        _require_content(interest)
        self._journal.advertised(self.settings.language, str(interest))
        self._host.protocol.advertise(interest)

    def subscribe(self, interest: Interest) -> None:
        _require_content(interest)
        self._subscriptions.append(interest)
        self._journal.subscribed(self.settings.language, str(interest))
        self._host.protocol.subscribe(interest)

    def unsubscribe(self, interest: Interest) -> None:
        if interest not in self._subscriptions:
            raise ConfigurationError(f"interest: {str(interest)!r} is not subscribed")
        self._subscriptions.remove(interest)
        self._journal.unsubscribed(self.settings.language, str(interest))
        self._host.protocol.unsubscribe(interest)

    def move(self, to: Point) -> None:
        """The node is at `to` now. Between two calls it counts as standing where it was last."""
        if not all(map(math.isfinite, to)):
            raise ConfigurationError(f"position: {to} must be finite")
        self._host.move(to)
        self._journal.moved(to)

    def publish(self, content: Content, payload: bytes = b"", utility: str = "") -> Event:
        """Publishes an event; `utility` is its deadline or utility curve (`roamcast.trace.utility`)."""
        parse_utility(utility)
        number = event_id(self.settings.address, self._number)
        event = Event(number, self._clock.now(), content, payload, utility=utility)
        size_bytes = len(msgspec.msgpack.encode(event))
        if size_bytes > EVENT_BYTES_MAX:
            raise ConfigurationError(f"event: {size_bytes} bytes; allowed: at most {EVENT_BYTES_MAX}")
        self._number = (self._number + 1) % (1 << NUMBER_BITS) or 1
        self._journal.published(self.settings.language, event)
        self._host.protocol.publish(event)
        return event

    def counters(self) -> dict[str, Any]:
        return {
            "address": self.settings.address,
            "protocol": self.settings.protocol,
            "uptime_s": round(self._clock.now() - self._started_s, 3),
            "neighbours": len(self._host.link.neighbours),
            "subscriptions": len(self._subscriptions),
            **self._journal.counters(),
        }

    async def failed(self) -> None:
        """Waits until the node breaks and raises what broke it; cancelled when the node is closed."""
        await asyncio.shield(self._host.failure)

    def close(self) -> None:
        """Says goodbye, writes the end of the trace and gives the socket back. Closing twice does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        if self._flushing is not None:
            self._flushing.cancel()
        self._host.protocol.leave()
        self._host.close()
        self._journal.close()

    def _flush(self) -> None:
        self._journal.flush()
        self._flushing = asyncio.get_running_loop().call_later(FLUSH_PERIOD_S, self._flush)


def _trace_log(directory: Path, network: str) -> "TraceLog":
    from roamcast.live.trace_log import TraceLog  # only now: it brings Arrow

    return TraceLog(directory, network)


def _require_content(interest: Interest) -> None:
    if interest.is_empty:
        raise ConfigurationError(f"interest: {str(interest)!r} matches nothing")
