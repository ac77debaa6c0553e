"""A bridge to a broker that you run, such as mosquitto: MQTT 5 and 3.1.1, QoS 0 to 2, wills, sessions, TLS are its.

    [door.mqtt]
    broker = "127.0.0.1:1883"
    topics = ["fire/#", "status/#"]

The bridge is an MQTT 5 client of that broker. What its clients publish on these topics goes to the network, and what
the network publishes on them goes to its clients. The bridge cannot see what they subscribe, so the node asks the
network for all of these topics. The MQTT 5 properties content type, `traceparent` and `tracestate` travel along. In the
access rules the broker is the user `bridge`.

If the broker goes away, the bridge tries again, at growing intervals. Events for it wait meanwhile, as many as the
door's queue holds. If the node goes away, the broker keeps what its clients publish for `SESSION_EXPIRY_S`: the bridge
acknowledges a message when the node has it, with a journal on disk. Each broker belongs to one node: two bridges to one
broker would send everything in circles.
"""

import asyncio
import contextlib
from pathlib import Path

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from roamcast.delivery.storage import UnstoredError
from roamcast.doors.access import Access
from roamcast.doors.gate import ClientEvent, Gate
from roamcast.doors.mqtt_retained import Kind, RetainedExchange, Tasks
from roamcast.doors.mqtt_topics import mqtt_topic_of, pattern_of, topic_of
from roamcast.doors.retained import ASK, RETAIN
from roamcast.doors.settings import MqttEntry
from roamcast.errors import ConfigurationError
from roamcast.interests.topics import Topics
from roamcast.library.nodes import Subscription
from roamcast.live.endpoints import parse_endpoint
from roamcast.live.notices import Level, Notice

USER = "bridge"
RETRY_S = 1.0
RETRY_MAX_S = 30.0
SESSION_EXPIRY_S = 3600
RECEIVE_MAX = 65_535  # messages that MQTT 5 lets a broker send before the first is acknowledged
OWN_MAX = 4096  # events of the broker's clients that are remembered, so that they do not go back
PASSWORD_BYTES_MAX = 1024
CARRIED = ("traceparent", "tracestate")


class MqttBridge:
    name = "mqtt"

    def __init__(self, gate: Gate, entry: MqttEntry) -> None:
        self.gate = gate
        self.access = Access(self.name, entry, gate.node.language)
        self._entry = entry
        self._broker = parse_endpoint("door.mqtt.broker", entry.broker)
        self._wanted = Topics.of(*map(pattern_of, entry.topics))
        if self._wanted.is_empty or not self.access.may_subscribe(USER, self._wanted):
            raise ConfigurationError(f"door.mqtt.topics: the user {USER!r} may not subscribe {self._wanted}")
        self._password = _password(entry.password_file)
        self._tasks = Tasks()
        self._retained = RetainedExchange(gate, entry.retained, self._tasks, lambda topic, payload: None)
        self._own: dict[int, None] = {}  # events of the broker's clients, oldest first
        self._events: Subscription | None = None
        self._unsent: tuple[ClientEvent, Kind] | None = None  # taken from the queue, not yet at the broker

    @property
    def url(self) -> str:
        return f"mqtt://{self._broker[0]}:{self._broker[1]}"

    async def open(self) -> None:
        self._events = self.gate.node.subscribe(self._wanted, queue_max=self._entry.queue)
        self._retained.ask(list(self._wanted.patterns))
        self._tasks.start(self._stay_connected(self._events))

    async def close(self) -> None:
        await self._tasks.close()
        self._retained.close()
        if self._events is not None:
            self._events.close()

    async def _stay_connected(self, events: Subscription) -> None:
        pause_s = RETRY_S
        while True:
            try:
                async with self._client() as client:
                    for each in self._entry.topics:
                        options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True)
                        await client.subscribe(each, options=options)
                    self.gate.clients[self.name] = 1
                    self._tell(Level.INFO, f"bridges the broker at {self.url}")
                    pause_s = RETRY_S
                    async with asyncio.TaskGroup() as both:
                        both.create_task(self._from_broker(client))
                        both.create_task(self._to_broker(client, events))
            except* (aiomqtt.MqttError, OSError, UnstoredError) as errors:
                self._tell(Level.WARNING, f"the broker at {self.url}: {errors.exceptions[0]}; tries again")
            finally:
                self.gate.clients[self.name] = 0
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_MAX_S)

    def _client(self) -> aiomqtt.Client:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_EXPIRY_S
        properties.ReceiveMaximum = min(self._entry.queue, RECEIVE_MAX)
        client = aiomqtt.Client(
            *self._broker,
            identifier=f"roamcast-{self.gate.node.network}-{self.gate.node.address}",
            clean_start=False,
            properties=properties,
            username=self._entry.user or None,
            password=self._password,
            protocol=aiomqtt.ProtocolVersion.V5,
            max_queued_incoming_messages=self._entry.queue,
            max_queued_outgoing_messages=self._entry.queue,
        )
        client._client.manual_ack_set(True)  # aiomqtt has no name for it
        return client

    async def _from_broker(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            payload = message.payload
            try:
                attributes = _attributes(message.properties)
                if message.retain:
                    attributes[RETAIN] = "1"
                content = topic_of(message.topic.value)
                published = await self.gate.publish(
                    self.name, content, payload, user=USER, access=self.access, attributes=attributes
                )
            except UnstoredError:
                raise  # not acknowledged: the broker sends it again
            except ConfigurationError as error:
                self.gate.refuse(self.name, str(error))
            else:
                self._remember(published.event.id)  # before the other task sees its echo
                if message.retain:
                    self._retained.published(published.event, payload)
            client._client.ack(message.mid, message.qos)

    async def _to_broker(self, client: aiomqtt.Client, events: Subscription) -> None:
        lost = 0
        while True:
            if self._unsent is None:
                delivery = await anext(events, None)
                if delivery is None:
                    return
                self.gate.lost[self.name] += events.lost - lost
                lost = events.lost
                if delivery.event.id in self._own or delivery.event.content == ASK:
                    continue
                arriving = self.gate.arrival(delivery)
                self._unsent = arriving, self._retained.arrived(arriving)
            arrival, kind = self._unsent
            if kind != Kind.KNOWN:
                await client.publish(
                    mqtt_topic_of(str(arrival.event.content)),
                    arrival.payload,
                    qos=1,
                    retain=RETAIN in arrival.attributes,
                    properties=_properties(arrival.attributes),
                )
                self.gate.delivered[self.name] += 1
            self._unsent = None

    def _remember(self, event_id: int) -> None:
        self._own[event_id] = None
        while len(self._own) > OWN_MAX:
            del self._own[next(iter(self._own))]

    def _tell(self, level: Level, text: str) -> None:
        self.gate.notify(Notice(level, "door", f"mqtt door: {text}", {"door": self.name}))


def _attributes(properties: Properties | None) -> dict[str, str]:
    """What of a message's properties travels with the event."""
    if properties is None:
        return {}
    given = dict(getattr(properties, "UserProperty", []))
    found = {name: given[name] for name in CARRIED if name in given}
    content_type = getattr(properties, "ContentType", None)
    return found if content_type is None else {**found, "content-type": content_type}


def _properties(attributes: dict[str, str]) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    carried = [(name, attributes[name]) for name in CARRIED if name in attributes]
    if carried:
        properties.UserProperty = carried
    if "content-type" in attributes:
        properties.ContentType = attributes["content-type"]
    return properties


def _password(file: str) -> str | None:
    if not file:
        return None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        path = Path(file)
        if path.is_file() and path.stat().st_size <= PASSWORD_BYTES_MAX:
            return path.read_text(encoding="utf-8").rstrip("\r\n")
    raise ConfigurationError(f"door.mqtt.password_file: {file!r} is not a file with a password")
