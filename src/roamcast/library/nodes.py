"""A live node for asyncio programs.

    async with roamcast.Node(1, listen="127.0.0.1:7001", peers=["127.0.0.1:7002"]) as node:
        await node.publish("fire/north", b"smoke")
        async for delivery in node.subscribe("fire/**"):
            print(delivery.event.content, delivery.event.payload)

What cannot be sent or understood is refused at the call with a `ConfigurationError`, never silently lost.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from roamcast.delivery.settings import DeliverySettings
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Content, Event
from roamcast.interests import LANGUAGES, Interest, XPaths, parse_interest
from roamcast.interests.content import register
from roamcast.library.subscriptions import RefusedError, Subscription
from roamcast.live import node as live
from roamcast.live.activity import Activity
from roamcast.live.endpoints import PORT, default_listen, parse_endpoint
from roamcast.live.identity import read_identity
from roamcast.live.journal import ToldStanding
from roamcast.live.keys import read_ring
from roamcast.protocols.api import PLAIN_CHANNEL, Modulation
from roamcast.protocols.odmrp.encoding import Wish, term_of_pairs
from roamcast.utility import PRIORITY_MAX

__all__ = ["Node", "Published", "RefusedError", "Subscription", "wasm_modulator"]

BACKLOG_MAX = 64
"""Frames that may wait in the node before `publish` waits too."""

BACKLOG_POLL_S = 0.002
QUEUE_MAX = 1000


class Published(msgspec.Struct, frozen=True):
    """What is known of an event when it has been handed to the network."""

    event: Event
    neighbours: int  # nodes heard recently; 0: probably none in range
    stored: bool = False  # it is kept, and repaired, until its lifetime is over
    custody: int = 0  # neighbours that are known to hold it; `publish` waits for as many as it is told to


class Node:
    """One live node: a context manager that opens its socket on entry and says goodbye on exit."""

    def __init__(
        self,
        address: int | None = None,
        *,
        protocol: str = "waymark",
        parameters: Mapping[str, Any] | None = None,
        language: str = "topics",
        network: str | None = None,
        listen: str | None = None,
        peers: Sequence[str] = (),
        broadcast: str | None = None,
        interfaces: Sequence[str] = (),
        discover: bool | None = None,
        port: int = PORT,
        key: str | Path | None = None,
        identity: str | Path | None = None,
        plain: bool = False,
        position: tuple[float, float] | None = None,
        state: str | Path | None = None,
        trace: str | Path | None = None,
        repair: bool = False,
        journal: str | Path | None = None,
        sync: str = "normal",
        delivery: DeliverySettings | None = None,
        schemas: Sequence[str | Path] = (),
        on_activity: Callable[[Activity], None] | None = None,
    ) -> None:
        """The arguments are the options of `roamcast node`; endpoints are "HOST:PORT". Without peers and a broadcast
        address the node finds its neighbours on the machine's interfaces, unless `discover` is False. The address may
        follow from the identity. `repair` and `journal` are explained in the guide, "Reliable delivery".
        `schemas` are XML Schema files with more event types for documents. `on_activity` is told of events that are
        heard and of what the protocol does, while it happens."""
        if language not in LANGUAGES:
            raise ConfigurationError(f"language: {language!r} is unknown; allowed: {', '.join(LANGUAGES)}")
        group = None if broadcast is None else parse_endpoint("broadcast", broadcast)
        links = tuple(parse_endpoint("peers", peer) for peer in peers)
        if address is None:
            if identity is None:
                raise ConfigurationError("address: must be given, or follows from the identity")
            address = read_identity(Path(identity)).address
        self._settings = live.NodeSettings(
            address=address,
            protocol=protocol,
            parameters=dict(parameters or {}),
            language=language,
            network=network or ("roamcast" if key is None else read_ring(Path(key)).network),
            listen=default_listen(group, links) if listen is None else parse_endpoint("listen", listen),
            group=group,
            peers=links,
            interfaces=tuple(interfaces),
            discover=discover,
            port=port,
            position=position,
            trace=None if trace is None else Path(trace),
            state=None if state is None else Path(state),
            key=None if key is None else Path(key),
            identity=None if identity is None else Path(identity),
            plain=plain,
            repair=repair,
            journal=None if journal is None else Path(journal),
            sync=sync,
            delivery=delivery or DeliverySettings(),
        )
        for schema in schemas:
            register(Path(schema).read_text("utf-8-sig"))
        self._on_activity = on_activity
        self._subscriptions: list[Subscription] = []
        self._named = 0
        self._observers: list[Callable[[live.Delivery], None]] = []
        self._node: live.LiveNode | None = None

    @classmethod
    def share(cls, running: live.LiveNode) -> Self:
        """A node that its caller has opened and will close. Its owner calls `deliver` with every delivery."""
        node = cls.__new__(cls)
        node._settings = running.settings
        node._subscriptions = []
        node._named = 0
        node._observers = []
        node._on_activity = None
        node._node = running
        return node

    async def __aenter__(self) -> Self:
        if self._node is not None:
            raise ConfigurationError("node: it runs already")
        self._node = await live.LiveNode.open(
            self._settings, self.deliver, on_refused=self._refused, on_activity=self._on_activity
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._node is not None:
            self._node.close()
            self._node = None
            await asyncio.sleep(0)  # the loop closes sockets in its next round: the same endpoint can be opened again
        for subscription in self._subscriptions:
            subscription._stop()
        self._subscriptions.clear()

    @property
    def endpoint(self) -> str:
        """Where it listens, "HOST:PORT"; empty if it finds its neighbours on interfaces alone."""
        listens = self._running.listens
        return "" if listens is None else f"{listens[0]}:{listens[1]}"

    @property
    def neighbours(self) -> list[int]:
        """The addresses of nodes that were heard lately, ascending."""
        return self._running.discovery.paths.nodes

    @property
    def counters(self) -> dict[str, Any]:
        """What it has sent, received, delivered and dropped so far."""
        return self._running.counters()

    @property
    def standing(self) -> dict[str, ToldStanding]:
        """What the node is in the network's structure, by aspect: with overlays, `standing["home"].peer` is its home
        broker. Which aspects there are depends on the protocol; -1 means no node."""
        return self._running.standing()

    @property
    def address(self) -> int:
        return self._settings.address

    @property
    def network(self) -> str:
        return self._settings.network

    @property
    def protocol(self) -> str:
        return self._settings.protocol

    @property
    def language(self) -> str:
        """Of its interests and events."""
        return self._settings.language

    async def publish(
        self,
        content: Content,
        payload: bytes = b"",
        *,
        utility: str = "",
        cause: Event | int | None = None,
        here: bool = False,
        ttl_s: float | None = None,
        priority: float = 1.0,
        custody: int = 0,
        timeout_s: float = 10.0,
    ) -> Published:
        """Publishes an event: a topic, a number or a document, as the node's language has it.

        Waits while the node has many frames to send. `utility` is a deadline or a utility curve, `cause` the event
        that led to this one, or its id. A node does not receive its own events, unless `here` says so.

        Short for a utility: the event is of no use after `ttl_s`, and worth `priority`; where there is no room for all,
        or no time, those worth more go first. On a node that repairs, `publish` returns when that many neighbours hold
        the event (`custody`), or after `timeout_s`: the answer says how many do.
        """
        node = self._node or self._running
        if ttl_s is not None or priority != 1.0:
            utility = _utility(utility, ttl_s, priority)
        language = self._settings.language
        is_topic = language == "topics" and type(content) is str
        checked = live.parse_topic(content) if is_topic else _content(language, content)
        if not isinstance(payload, bytes):
            raise ConfigurationError(f"payload: {type(payload).__name__} is not bytes; encode it first")
        while node.backlog() >= BACKLOG_MAX:
            await asyncio.sleep(BACKLOG_POLL_S)
        event = node.publish(checked, payload, utility, NO_EVENT if cause is None else _cause(cause))
        if here:
            self.deliver(live.Delivery(event, 0, 0.0))
        layer = node.durability.layer
        if custody:
            await node.durability.custody(event.id, custody, timeout_s)
        holders = 0 if layer is None else layer.custodians(event.id)
        return Published(event, node.neighbours, layer is not None, holders)

    def subscribe(
        self,
        interest: str | Interest,
        *,
        modulator: str | None = None,
        inputs: Mapping[str, bytes] | None = None,
        queue_max: int = QUEUE_MAX,
        durable: str = "",
        ordered: bool = False,
    ) -> Subscription:
        """Asks for events from now on. Iterate over the answer; several subscriptions may overlap.

        `durable` names a subscription that goes on while the process is down, on a node with a journal. `ordered`: the
        events of each publisher come in the order in which it published them, on a node that repairs.

        `modulator` is a function that the node's broker applies to the events of this subscription before it sends
        them, and `inputs` static data that the function uses. Only `overlays` has brokers that run modulators."""
        if queue_max < 1:
            raise ConfigurationError(f"queue_max = {queue_max}: must be at least 1")
        asked = self._interest(interest)
        if modulator is not None:
            if durable or ordered:
                raise ConfigurationError("subscribe: one with a modulator can be neither durable nor ordered")
            modulation = _modulation(modulator, inputs)
            channel = self._running.open_channel(asked, modulation)
            subscription = Subscription(self, asked, queue_max, channel, modulation)
        elif durable or ordered:
            return self._subscribe_by_name(asked, queue_max, durable=durable, ordered=ordered)
        else:
            subscription = Subscription(self, asked, queue_max)
            self._running.subscribe(asked)
        self._subscriptions.append(subscription)
        return subscription

    def subscribe_values(
        self, event_type: str, wishes: Mapping[str, Wish], *, queue_max: int = QUEUE_MAX
    ) -> Subscription:
        """Asks for documents by what a form says: for each path a value, a list of words, or a pair of numbers as a
        range. It takes no XPath, for devices that have none; the language must be content."""
        if self._settings.language != "content":
            raise ConfigurationError(f"language: {self._settings.language!r} has no documents; must be content")
        return self.subscribe(XPaths.of(term_of_pairs(event_type, wishes)), queue_max=queue_max)

    def _subscribe_by_name(self, asked: Interest, queue_max: int, *, durable: str, ordered: bool) -> Subscription:
        self._named += 1
        subscription = Subscription(self, asked, queue_max, name=durable or f"\0{self._named}")
        self._subscriptions.append(subscription)
        try:
            self._running.attach(subscription.name, asked, ordered=ordered, durable=bool(durable))
        except ConfigurationError:
            self._subscriptions.remove(subscription)
            raise
        return subscription

    def forget(self, durable: str) -> None:
        """Ends a durable subscription for good; an open one is closed."""
        for subscription in [each for each in self._subscriptions if each.name == durable]:
            subscription.close()
        self._running.durability.forget(durable)

    def require_subscribable(self, interest: str | Interest) -> None:
        """Raises what `subscribe` would, if this node's certificate does not allow the interest."""
        self._running.require_subscribable(self._interest(interest))

    def observe(self, call: Callable[[live.Delivery], None]) -> None:
        """`call` is told of every delivery before the subscriptions are; it asks for nothing itself."""
        self._observers.append(call)

    def advertise(self, interest: str | Interest) -> None:
        """The node is going to publish such events; some protocols use it."""
        self._running.advertise(self._interest(interest))

    def move(self, x_m: float, y_m: float) -> None:
        """The node is here now, in metres."""
        self._running.move((x_m, y_m))

    def link(self, peers: Sequence[str]) -> None:
        """Has static links with these endpoints, "HOST:PORT", from now on, instead of those it had, and hears nobody
        else there: a network that changes, on one machine. Both ends of a link must know of it."""
        self._running.link(tuple(parse_endpoint("peers", peer) for peer in peers))

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        """The protocol begins again with these parameters. Subscriptions and advertisements stay."""
        self._running.set_parameters(dict(parameters))

    @property
    def _running(self) -> live.LiveNode:
        if self._node is None:
            raise ConfigurationError("node: it is not running; use `async with roamcast.Node(...) as node`")
        return self._node

    def _interest(self, interest: str | Interest) -> Interest:
        language = self._settings.language
        if isinstance(interest, str):
            return parse_interest(language, interest)
        if not isinstance(interest, LANGUAGES[language]):
            raise ConfigurationError(f"interest: {interest!r} is not of the node's language, {language}")
        return interest

    def deliver(self, delivery: live.Delivery) -> None:
        """Hands an event to the subscriptions that it matches."""
        for observe in self._observers:
            observe(delivery)
        for subscription in self._subscriptions:
            subscription._offer(delivery)

    def _change(
        self,
        subscription: Subscription,
        interest: str | Interest | None,
        modulator: str | None,
        inputs: Mapping[str, bytes] | None,
    ) -> None:
        before = subscription.interest
        if subscription.name:
            raise ConfigurationError("change: close a subscription with a name, and subscribe again")
        wanted = before if interest is None else self._interest(interest)
        if subscription.modulation is not None:
            modulation = subscription.modulation if modulator is None else _modulation(modulator, inputs)
            self._running.change_channel(subscription.channel, wanted, modulation)
            subscription.interest, subscription.modulation = wanted, modulation
            return
        if modulator is not None:
            raise ConfigurationError("subscription: it was made without a modulator")
        self._running.subscribe(wanted)  # first the new one, so that nothing is missed between the two
        subscription.interest = wanted
        self._running.unsubscribe(before)

    def _end(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)
        subscription._stop()
        if subscription.name:
            self._running.detach(subscription.name)
        elif subscription.channel == PLAIN_CHANNEL:
            self._running.unsubscribe(subscription.interest)
        else:
            self._running.close_channel(subscription.channel)

    def _refused(self, channel: int, reason: str) -> None:
        for subscription in self._subscriptions:
            subscription._refuse(channel, reason)

    def _acknowledge(self, name: str, event_id: int) -> None:
        self._running.durability.acknowledge(name, event_id)


def wasm_modulator(module: str | Path | bytes) -> str:
    """A WebAssembly module, or the file that has it, as a modulator for `Node.subscribe`."""
    from roamcast.protocols.overlays.modulators.wasm_format import wasm_source  # only now: it brings numpy

    binary = module if isinstance(module, bytes) else Path(module).read_bytes()
    return wasm_source(binary)


def _modulation(source: str, inputs: Mapping[str, bytes] | None) -> Modulation:
    from roamcast.protocols.overlays.modulators.dialect import is_python, translate  # only now: it brings numpy

    source = translate(source) if is_python(source) else source
    try:
        return msgspec.convert((source, tuple(sorted((inputs or {}).items()))), Modulation)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"modulator: {error}") from None


def _cause(cause: Event | int) -> int:
    if isinstance(cause, Event):
        return cause.id
    if not NO_EVENT <= cause < 2**63:
        raise ConfigurationError(f"cause: {cause} is not the id of an event")
    return cause


def _utility(utility: str, ttl_s: float | None, priority: float) -> str:
    if utility:
        raise ConfigurationError("utility: give it, or ttl_s and priority, not both")
    if not 0 < priority <= PRIORITY_MAX:
        raise ConfigurationError(f"priority = {priority:g}: must be above 0 and at most {PRIORITY_MAX:g}")
    if ttl_s is None:
        return f"0:{priority!r}"
    if not 0 < ttl_s < math.inf:
        raise ConfigurationError(f"ttl_s = {ttl_s:g}: must be above 0 and finite")
    return f"{ttl_s!r}:{priority!r} {ttl_s!r}:0"


def _content(language: str, content: Content) -> Content:
    wanted = (int, float) if language == "intervals" else (str,)
    if isinstance(content, bool) or not isinstance(content, wanted):
        need = "a number" if language == "intervals" else "text"
        raise ConfigurationError(f"content: {content!r} is not {need}; the node's language is {language}")
    return live.parse_content(language, content if isinstance(content, str) else repr(content))
