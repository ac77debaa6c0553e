"""A live node as its application sees it: publish, subscribe, get events, close."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Content, Event, event_id
from roamcast.fields import ADDRESS_MAX
from roamcast.interests import Interest, parse_interest
from roamcast.interests.content import read as read_document
from roamcast.live.activity import Activity
from roamcast.live.codec import Codec
from roamcast.live.discovery import NeighbourDiscovery
from roamcast.live.durability import Durability, message_union
from roamcast.live.endpoints import Endpoint, is_loopback
from roamcast.live.guard import Guard
from roamcast.live.host import Clock, Failure, UdpHost
from roamcast.live.journal import Journal, ToldStanding
from roamcast.live.lives import Lives, replace_file
from roamcast.live.notices import Level, Notice
from roamcast.live.opening import heard_file, identity_of, key_ring, lives_file, make_guard, static_socket, trace_log
from roamcast.live.ports import Ports
from roamcast.live.settings import NodeSettings
from roamcast.live.signing import modulated_by
from roamcast.protocols.api import NOBODY, PLAIN_CHANNEL, Modulation, Point
from roamcast.protocols.catalogue import protocol_class, protocol_parameters
from roamcast.protocols.contents import Contents
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX
from roamcast.seeds import Random
from roamcast.trace.utility import parse_utility

__all__ = ["Delivery", "LiveNode", "NodeSettings", "parse_content"]

RELOADABLE = ("peers", "interfaces", "key", "identity")  # settings that can change while a node runs
FLUSH_PERIOD_S = 5.0  # how much of its trace a node that is killed may lose
SMALL_BYTES = MESSAGE_BYTES_MAX // 16  # with a payload and a content of this size an event fits in any case
EVENT_BYTES_MAX = MESSAGE_BYTES_MAX - 1024  # encoded; what is left of a message is for the protocol
_TREE = ("parent", "a tree to join")
_AWAITED = {
    **dict.fromkeys(("ps-maodv", "sp-combo", "dsapst", "somer", "somer-plus"), _TREE),
    "overlays": ("home", "a broker"),
}
"""What events wait for in a protocol, and the aspect of the structure that says whether it is there."""


class Delivery(msgspec.Struct, frozen=True):
    """An event at its subscriber."""

    event: Event
    hops: int
    latency_s: float  # by the clocks of publisher and subscriber: negative if they disagree
    channel: int = PLAIN_CHANNEL  # on which it came: that of a subscription with a modulator, or 0
    subscription: str = ""  # the subscription with a name that it is for; empty: all without one
    again: bool = False  # it was handed over before the process ended, and not acknowledged

    @property
    def modulated_by(self) -> int | None:
        """The node that changed the event on its way; None: it is what its publisher signed, if events are signed."""
        return modulated_by(self.event)


def parse_content(language: str, text: str) -> Content:
    """What an event of `language` is about: a number, a topic, or an XML document."""
    if language == "topics":
        return parse_topic(text)
    if language == "content":
        read_document(text)
        return text
    for number in (int, float):
        try:
            content = number(text)
        except ValueError:
            continue
        if content == content and abs(content) < 2**63:
            return content
    raise ConfigurationError(f"content: {text!r} is not a number below 2^63")


@lru_cache(4096)
def parse_topic(text: str) -> str:
    """A topic, as an event has one: without wildcards."""
    interest = parse_interest("topics", text)
    if "*" in text or str(interest) != text:
        raise ConfigurationError(f"content: {text!r} is not a topic; write names and slashes, as in fire/north")
    return text


class LiveNode:
    """One running node; `open` makes one, `close` ends it."""

    def __init__(
        self,
        settings: NodeSettings,
        host: UdpHost,
        journal: Journal,
        clock: Clock,
        lives: Lives,
        discovery: NeighbourDiscovery,
    ) -> None:
        self.settings = settings
        self.discovery = discovery
        self._host = host
        self._journal = journal
        self._clock = clock
        self._started_s = clock.now()
        self._lives = lives
        self.subscriptions: list[Interest] = []  # of the application, oldest first
        self._advertised: list[Interest] = []
        self._channels: dict[int, tuple[Interest, Modulation]] = {}
        self._channel = PLAIN_CHANNEL  # the last that was opened
        self._restarts = 0
        self.listens: Endpoint | None = None  # where the socket for static links is, if there is one
        self._guard: Guard | None = None
        self.durability = Durability(None, False, "normal", settings.delivery)
        self._flushing: asyncio.TimerHandle | None = None
        self._remembering: asyncio.Future[None] | None = None  # what was heard is being written
        self._remembers = threading.Lock()
        self._is_open = True

    @classmethod
    async def open(
        cls,
        settings: NodeSettings,
        on_delivery: Callable[[Delivery], None],
        on_failure: Callable[[Failure], None] = lambda failure: None,
        on_notice: Callable[[Notice], None] = lambda notice: None,
        on_refused: Callable[[int, str], None] = lambda channel, reason: None,
        on_activity: Callable[[Activity], None] | None = None,
        before_start: Callable[[], Awaitable[None]] | None = None,
    ) -> "LiveNode":
        """Starts the node. `on_delivery` may call the node. `on_failure` is told of bugs that the node has survived,
        `on_notice` of neighbours and interfaces that come and go, and of what the operator should look into,
        `on_refused` of channels whose modulator is not run, and why, `on_activity` of events that are heard and of what
        the protocol does. `before_start` is awaited when all is ready, before the protocol starts."""
        if not 0 <= settings.address <= ADDRESS_MAX:
            raise ConfigurationError(f"address = {settings.address}: must be between 0 and {ADDRESS_MAX}")
        ring = key_ring(settings)
        parameters = protocol_parameters(settings.protocol, settings.parameters)
        messages = protocol_class(settings.protocol).messages
        codec = Codec(settings.network, settings.protocol, message_union(messages))
        named = settings.state or settings.journal
        lives = Lives(lives_file(settings), is_required=named is not None)
        clock = Clock()
        with contextlib.ExitStack() as undo:  # a node that cannot be opened leaves no socket behind
            static = static_socket(settings)
            if static is not None:
                undo.callback(static.close)
            journal = Journal(settings.address, clock.now, trace_log(settings))
            guard = make_guard(settings, ring, codec=codec, lives=lives, clock=clock, journal=journal)
            host = UdpHost(
                settings.address,
                codec,
                journal,
                (),
                life=lives.life,
                clock=clock,
                random=Random(settings.seed),
                on_delivery=lambda handed, latency_s: on_delivery(
                    Delivery(
                        handed.event,
                        handed.hops,
                        latency_s,
                        channel=handed.channel,
                        subscription=handed.name,
                        again=handed.again,
                    )
                ),
                on_refused=on_refused,
                on_failure=lambda failure: node._failed(failure, on_failure),
                guard=guard,
                position=settings.position,
                site=settings.site,
                cpu_share=settings.cpu_share,
                contents=None if on_activity is None else Contents(messages),
                on_activity=on_activity or (lambda activity: None),
            )
            durability = Durability(settings.journal, settings.repair, settings.sync, settings.delivery)
            durability.open(settings.network, settings.address)
            host.protocol = durability.above(host, settings.protocol, parameters)
            undo.pop_all()
        if static is not None:
            host.listen(static)
        ports = Ports(settings.network, settings.port, host.receive) if settings.discovers else None
        discovery = NeighbourDiscovery(
            host=host,
            journal=journal,
            static=settings.static,
            notify=on_notice,
            ports=ports,
            wanted=settings.interfaces,
        )
        node = cls(settings, host, journal, clock, lives=lives, discovery=discovery)
        node.listens = None if static is None else static.getsockname()[:2]
        node._guard = guard
        node.durability = durability
        if settings.position is not None:
            journal.moved(settings.position)
        if lives.trouble:
            text = f"{lives.trouble}; lives and event numbers follow the clock, which must not go back (--state DIR)"
            on_notice(Notice(Level.WARNING, "no-state", text))
        node._flush()  # now, because writing takes longer than the protocol needs to start
        if before_start is not None:
            await before_start()
        guard.start(host.link.announce, host.random)
        host.protocol.start()
        return node

    def advertise(self, interest: Interest) -> None:
        """The application is going to publish events that match; some protocols want to know."""
        _require_content(interest)
        self._advertised.append(interest)
        self._journal.advertised(self.settings.language, str(interest))
        self._host.command(lambda: self._host.protocol.advertise(interest))

    def require_subscribable(self, interest: Interest) -> None:
        """Refuses what this node's certificate does not allow it to subscribe."""
        if self._guard is not None:
            self._guard.require_subscribable(interest)

    def subscribe(self, interest: Interest) -> None:
        _require_content(interest)
        self.require_subscribable(interest)
        self.subscriptions.append(interest)
        self._journal.subscribed(self.settings.language, str(interest))
        self._host.command(lambda: self._host.protocol.subscribe(interest))

    def attach(self, name: str, interest: Interest, *, ordered: bool = False, durable: bool = True) -> None:
        """Takes the events of a subscription with a name: of each publisher in order, across lives of the process.
        Each must be acknowledged; only a few are handed over before that (`DeliverySettings.window`)."""
        _require_content(interest)
        self.require_subscribable(interest)
        self._journal.subscribed(self.settings.language, str(interest))
        self.durability.attach(name, interest, ordered=ordered, durable=durable)

    def detach(self, name: str, *, forget: bool = False) -> None:
        """Takes no more events of a subscription with a name. `forget`: nor in later lives."""
        interest = self.durability.detach(name, forget=forget)
        self._journal.unsubscribed(self.settings.language, str(interest))

    def unsubscribe(self, interest: Interest) -> None:
        if interest not in self.subscriptions:
            raise ConfigurationError(f"interest: {str(interest)!r} is not subscribed")
        self.subscriptions.remove(interest)
        self._journal.unsubscribed(self.settings.language, str(interest))
        self._host.command(lambda: self._host.protocol.unsubscribe(interest))

    def open_channel(self, interest: Interest, modulation: Modulation) -> int:
        """Subscribes through a modulator, which a broker runs; the channel's number says which events are its."""
        if not self._host.protocol.modulates:
            raise ConfigurationError(f"modulator: {self.settings.protocol} runs none; overlays does")
        _require_content(interest)
        self.require_subscribable(interest)
        self.change_channel(self._channel + 1, interest, modulation)
        self._channel += 1
        self._journal.subscribed(self.settings.language, str(interest))
        return self._channel

    def change_channel(self, channel: int, interest: Interest, modulation: Modulation) -> None:
        """Another interest or another modulator, from now on."""
        refusals: list[ConfigurationError] = []

        def change() -> None:
            try:
                self._host.protocol.open_channel(channel, interest, modulation)
            except ConfigurationError as error:  # the application's mistake, not the protocol's
                refusals.append(error)

        self._host.command(change)
        for refusal in refusals:
            raise refusal
        self._channels[channel] = interest, modulation

    def close_channel(self, channel: int) -> None:
        interest, _ = self._channels.pop(channel)
        self._journal.unsubscribed(self.settings.language, str(interest))
        self._host.command(lambda: self._host.protocol.close_channel(channel))

    def move(self, to: Point) -> None:
        """The node is at `to` now. Between two calls it counts as standing where it was last."""
        if not all(map(math.isfinite, to)):
            raise ConfigurationError(f"position: {to} must be finite")
        self._host.move(to)
        self._journal.moved(to)

    def link(self, peers: tuple[Endpoint, ...]) -> None:
        """Has static links with these endpoints from now on, instead of those it had, and hears nobody else over the
        socket for static links."""
        if self.listens is None:
            raise ConfigurationError("peers: this node has no socket for static links; start it with `listen` or peers")
        if self.settings.key is None and not self.settings.plain and not all(map(is_loopback, peers)):
            raise ConfigurationError("key: none given, so nothing may leave this machine")
        self.settings = msgspec.structs.replace(self.settings, peers=peers)
        self._host.linked = frozenset(peers)
        self.discovery.set_static(self.settings.static)

    def publish(self, content: Content, payload: bytes = b"", utility: str = "", cause: int = NO_EVENT) -> Event:
        """Publishes an event; `utility` is its deadline or utility curve (`roamcast.trace.utility`), `cause` the id of
        the event that led to it."""
        if utility:
            parse_utility(utility)
        number = event_id(self.settings.address, self._lives.next_number())
        event = Event(number, self._clock.now(), content, payload, cause=cause, utility=utility)
        if self._guard is not None:
            event = self._guard.sign(event)
        if len(payload) > SMALL_BYTES or (isinstance(content, str) and len(content) > SMALL_BYTES):
            _require_bytes(event)
        if self.durability.layer is not None:
            self.durability.layer.store(event)
        self._journal.published(self.settings.language, event)
        self._host.publish(event)
        return event

    def set_parameters(self, parameters: dict[str, Any]) -> None:
        """The protocol begins again with these parameters, in a new life and with the application's interests."""
        protocol_parameters(self.settings.protocol, parameters)
        self._host.command(self._host.protocol.leave)
        self.settings = msgspec.structs.replace(self.settings, parameters=parameters)
        self._begin_again()

    @property
    def neighbours(self) -> int:
        """How many nodes were heard lately."""
        return len(self.discovery.paths)

    def standing(self) -> dict[str, ToldStanding]:
        """What this node is in the network's structure, by aspect, as the protocol last said."""
        return dict(self._journal.standing)

    def awaited(self) -> str:
        """What a published event is waiting for, as far as the protocol has said; empty if it is not waiting."""
        aspect, awaited = _AWAITED.get(self.settings.protocol, ("", ""))
        told = self._journal.standing.get(aspect)
        if aspect == "" or "broker" in self._journal.standing:
            return ""
        if told is None or told.detail == "searching" or (aspect == "home" and told.peer == NOBODY):
            return awaited
        return ""

    def backlog(self) -> int:
        """Frames that wait to be sent or, if they are unicasts, to be acknowledged."""
        return self._host.link.backlog

    def counters(self) -> dict[str, Any]:
        return {
            "address": self.settings.address,
            "protocol": self.settings.protocol,
            "uptime_s": round(self._clock.now() - self._started_s, 3),
            "neighbours": self.neighbours,
            "interfaces": self.discovery.interfaces,
            "frame_bytes_max": self._host.frame_bytes_max,
            "subscriptions": len(self.subscriptions) + len(self._channels),
            "queue": self.backlog(),
            "restarts": self._restarts,
            "custody": dict(zip(("events", "bytes"), self._host.protocol.in_custody(), strict=True)),
            **self._journal.counters(),
            **self.durability.counters(),
        }

    def reload(self, settings: NodeSettings | None = None) -> list[str]:
        """Reads the key file again, which may have a new key or revocations, and the identity file; takes over what of
        the new settings can change while the node runs. Returns the names of those that need a restart."""
        wanted = self.settings if settings is None else settings
        new = msgspec.structs.replace(self.settings, **{name: getattr(wanted, name) for name in RELOADABLE})
        if new.static and self.listens is None:
            new = msgspec.structs.replace(new, peers=())  # there is no socket for static links
        if (new.key is None) != (self.settings.key is None):
            new = msgspec.structs.replace(new, key=self.settings.key, identity=self.settings.identity)
        ring = key_ring(new)
        if ring is not None and self._guard is not None:
            self._guard.load(ring, identity_of(new))
        if new.peers != self.settings.peers:
            self.discovery.set_static(new.static)
        if new.interfaces != self.settings.interfaces:
            self.discovery.set_interfaces(new.interfaces)
        self.settings = new
        fields = NodeSettings.__struct_fields__
        return [name for name in fields if getattr(wanted, name) != getattr(new, name)]

    def close(self, *, goodbye: bool = True) -> None:
        """Says goodbye, writes the end of the trace and gives the socket back. Closing twice does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        self._flush()
        if self._flushing is not None:
            self._flushing.cancel()
        if goodbye:
            self._host.command(self._host.protocol.leave)
        self.discovery.close()
        self._host.close()
        if self._guard is not None:
            self._guard.close()
        self.durability.close()
        self._journal.close()

    def _failed(self, failure: Failure, on_failure: Callable[[Failure], None]) -> None:
        """The protocol ran into a bug. If it cannot go on, a new one takes over, with the application's interests."""
        on_failure(failure)
        if not failure.restarts or not self._is_open:
            return
        self._restarts += 1
        self._begin_again()

    def _begin_again(self) -> None:
        parameters = protocol_parameters(self.settings.protocol, self.settings.parameters)
        life = self._lives.next_life()
        self._host.life = life
        protocol = self.durability.above(self._host, self.settings.protocol, parameters)
        self._host.begin_life(life, protocol)
        self._host.command(protocol.start)
        for interest in self._advertised:
            self._host.command(partial(protocol.advertise, interest))
        for interest in self.subscriptions:
            self._host.command(partial(protocol.subscribe, interest))
        self._host.command(self.durability.attach_again)
        for channel, (interest, modulation) in self._channels.items():
            self._host.command(partial(protocol.open_channel, channel, interest, modulation))

    def _flush(self) -> None:
        self._journal.flush()
        loop = asyncio.get_running_loop()
        if self._guard is not None and self.settings.key is not None and self.settings.remembers is not None:
            file, heard = heard_file(self.settings, self.settings.remembers), self._guard.remembered()
            if not self._is_open:
                self._remember(file, heard)
            elif self._remembering is None or self._remembering.done():  # on a thread: a disk may take its time
                self._remembering = loop.run_in_executor(None, self._remember, file, heard)
        self._flushing = loop.call_later(FLUSH_PERIOD_S, self._flush)

    def _remember(self, file: Path, heard: bytes) -> None:
        with self._remembers, contextlib.suppress(OSError):  # a full disk costs the memory of replays, not the node
            replace_file(file, heard)


def _require_bytes(event: Event) -> None:
    size_bytes = len(msgspec.msgpack.encode(event))
    if size_bytes > EVENT_BYTES_MAX:
        raise ConfigurationError(f"event: {size_bytes} bytes; allowed: at most {EVENT_BYTES_MAX}")


def _require_content(interest: Interest) -> None:
    if interest.is_empty:
        raise ConfigurationError(f"interest: {str(interest)!r} matches nothing")
