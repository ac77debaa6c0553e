"""The one application behind all doors of a node.

A client's event goes through the gate to the network and to the clients of the same node, whatever door they came in
by: a node does not receive its own events. The gate counts what every door does, and continues traces: the context of
a delivered event is remembered for a while, so that an event that names it as its cause belongs to the same trace.
"""

import base64
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from roamcast.doors.access import Access
from roamcast.doors.envelope import opened, wrapped
from roamcast.errors import ConfigurationError
from roamcast.events import NO_EVENT, Content, Event
from roamcast.interests import Interest, parse_interest
from roamcast.library.nodes import Node, Published, Subscription
from roamcast.live.node import Delivery
from roamcast.live.notices import Level, Notice

if TYPE_CHECKING:
    from roamcast.doors.tracing import Tracing

INTERNAL = "$roamcast/"
"""What doors tell each other is below this; clients neither publish nor see it."""

DOORS = ("http", "metrics", "mqtt")


def is_internal(content: Content) -> bool:
    return isinstance(content, str) and content.startswith(INTERNAL)


class ForbiddenError(ConfigurationError):
    """A client asked for what its access rules do not allow."""


class ClientEvent(msgspec.Struct, frozen=True):
    """A delivered event as a client sees it."""

    event: Event
    attributes: dict[str, str]
    payload: bytes
    hops: int
    latency_s: float


class Terms(msgspec.Struct, frozen=True):
    """How an event is to be treated, as in `roamcast.Node.publish`."""

    ttl_s: float | None = None
    priority: float = 1.0
    custody: int = 0
    timeout_s: float = 10.0


def as_json(arrival: ClientEvent) -> dict[str, Any]:
    """An event as a JSON object, as `roamcast node --json` has it."""
    event = arrival.event
    try:
        payload = {"payload": arrival.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": base64.b64encode(arrival.payload).decode()}
    return {
        "event_id": event.id,
        "publisher": event.publisher,
        "content": event.content,
        **payload,
        "hops": arrival.hops,
        "latency_ms": 1000 * arrival.latency_s,
        **({"cause": event.cause} if event.cause != NO_EVENT else {}),
        **({"attributes": arrival.attributes} if arrival.attributes else {}),
    }


class Gate:
    def __init__(
        self,
        node: Node,
        tracing: "Tracing | None" = None,
        notify: Callable[[Notice], None] = lambda notice: None,
    ) -> None:
        self.node = node
        self.tracing = tracing
        self.notify = notify
        self.published: Counter[str] = Counter()  # events, by door
        self.delivered: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()  # events that a slow client did not take
        self.refused: Counter[str] = Counter()  # requests, logins and messages
        self.clients: Counter[str] = Counter()  # that are connected now
        if tracing is not None:
            node.observe(self._trace)

    def interest(self, text: str) -> Interest:
        return parse_interest(self.node.language, text)

    async def publish(
        self,
        door: str,
        content: Content,
        payload: bytes,
        *,
        user: str,
        access: Access,
        attributes: Mapping[str, str] | None = None,
        cause: int = NO_EVENT,
        terms: Terms | None = None,
    ) -> Published:
        """Publishes a client's event, if the client is allowed to; other clients of this node may receive it too."""
        if is_internal(content) or not access.may_publish(user, content):
            raise ForbiddenError(f"publish: {user} may not publish {content!r}")
        carried = dict(attributes or {})
        if self.tracing is None:
            published = await self._publish(content, payload, carried, cause, terms or Terms())
        else:
            with self.tracing.publishing(content, carried, cause) as span:
                published = await self._publish(content, payload, carried, cause, terms or Terms())
                self.tracing.published(span, published.event)
        self.published[door] += 1
        return published

    async def _publish(
        self, content: Content, payload: bytes, attributes: dict[str, str], cause: int, terms: Terms
    ) -> Published:
        return await self.node.publish(
            content,
            wrapped(payload, attributes),
            cause=cause,
            here=True,
            ttl_s=terms.ttl_s,
            priority=terms.priority,
            custody=terms.custody,
            timeout_s=terms.timeout_s,
        )

    async def publish_again(self, content: str, payload: bytes, attributes: Mapping[str, str], cause: Event) -> None:
        """Publishes what was published here before, for nodes that ask."""
        await self.node.publish(content, wrapped(payload, attributes), cause=cause)

    def subscribe(
        self, text: str, *, user: str, access: Access, queue_max: int, durable: str = "", ordered: bool = False
    ) -> Subscription:
        """Events for one client, if it is allowed to have them. Names of durable subscriptions are each user's own."""
        interest = self.interest(text)
        if not access.may_subscribe(user, interest):
            raise ForbiddenError(f"subscribe: {user} may not subscribe {text!r}")
        name = f"{user}/{durable}" if durable else ""
        return self.node.subscribe(interest, queue_max=queue_max, durable=name, ordered=ordered)

    def arrival(self, delivery: Delivery) -> ClientEvent:
        attributes, payload = opened(delivery.event.payload)
        if self.tracing is not None:
            attributes = self.tracing.seen(delivery.event, attributes)
        return ClientEvent(delivery.event, attributes, payload, delivery.hops, delivery.latency_s)

    def refuse(self, door: str, text: str) -> None:
        """Counts a client's mistake and tells the operator, who may have to mend the rules."""
        self.refused[door] += 1
        self.notify(Notice(Level.DEBUG, "door-refused", f"{door} door: {' '.join(text.split())[:500]}", {"door": door}))

    def _trace(self, delivery: Delivery) -> None:
        if self.tracing is not None:
            self.tracing.delivered(delivery, opened(delivery.event.payload)[0])
