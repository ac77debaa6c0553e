"""MQTT 3.1.1 on a node: the door is a broker for the clients of this machine, and the network is behind it.

A client's message is published in the network and reaches the clients of all nodes that subscribe its topic. Filters
become interests in the language `topics` (`mqtt_topics.py`); the node asks the network for the union of what its
clients want. Retained messages are known to the nodes that want them (`retained.py`).

**QoS.** A PUBACK says that the node has the message, with a journal on disk. Between nodes protocol and delivery
settings decide; between door and client QoS 0 and 1 are MQTT's, QoS 2 is granted as 1. A message reaches a
client with the QoS of its subscription. **Errors.** MQTT 3.1.1 cannot tell a client that its message was refused. It is
dropped, counted, and noticed in the node's log; a refused subscription is answered with 0x80.

For MQTT 5 there is the bridge to a broker that you run (`mqtt_bridge.py`).
"""

import asyncio
import contextlib

from roamcast.delivery.storage import UnstoredError
from roamcast.doors.access import Access
from roamcast.doors.gate import ClientEvent, Gate
from roamcast.doors.mqtt_broker import DoorBroker
from roamcast.doors.mqtt_retained import Kind, RetainedExchange, Tasks
from roamcast.doors.mqtt_topics import mqtt_topic_of, pattern_of, topic_of
from roamcast.doors.retained import ASK, RETAIN
from roamcast.doors.settings import MqttEntry, endpoint
from roamcast.errors import ConfigurationError
from roamcast.interests.topics import PATTERNS_MAX, Topics
from roamcast.library.nodes import Subscription


class MqttDoor:
    name = "mqtt"

    def __init__(self, gate: Gate, entry: MqttEntry) -> None:
        self.gate = gate
        self.access = Access(self.name, entry, gate.node.language)
        self.queue_max = entry.queue
        self._entry = entry
        self._listen = endpoint(self.name, entry)
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self._tasks = Tasks()
        self._retained = RetainedExchange(gate, entry.retained, self._tasks, self._set_retained)
        self._events: Subscription | None = None
        self._wanted = Topics()
        self._broker: DoorBroker | None = None
        self.port = self._listen[1]

    @property
    def url(self) -> str:
        host = self._listen[0]
        return f"mqtt://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def broker(self) -> DoorBroker:
        if self._broker is None:
            raise ConfigurationError("door.mqtt: is closed")
        return self._broker

    async def open(self) -> None:
        self._broker = DoorBroker(self)
        await self._broker.start()
        try:
            self._server = await asyncio.start_server(self._connected, *self._listen)
        except OSError as error:
            await self._broker.shutdown()
            where = f"{self._listen[0]}:{self._listen[1]}"
            raise ConfigurationError(f"door.mqtt.listen: {where}: {error.strerror or error}") from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._tasks.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        if self._broker is not None:
            with contextlib.suppress(Exception):  # a client that went meanwhile
                await self._broker.shutdown()
        self._retained.close()
        if self._events is not None:
            self._events.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.gate.clients[self.name] >= self._entry.clients:
            self.gate.refuse(self.name, f"{self._entry.clients} clients are connected")
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        self.gate.clients[self.name] += 1
        try:
            await self.broker.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the door closes
        except Exception as error:  # whatever a client sends, it ends its own connection alone
            self.gate.refuse(self.name, f"{type(error).__name__}: {error}")
        finally:
            self.gate.clients[self.name] -= 1
            self._clients.discard(task)
            writer.close()

    # What the broker asks.

    async def login(self, name: str | None, password: str | None) -> str | None:
        user = await self.access.by_password(name, password)
        if user is None:
            self.gate.refuse(self.name, f"name or password of {name!r} is missing or wrong")
        return user

    def may_subscribe(self, user: str, mqtt_filter: str) -> bool:
        try:
            wanted = Topics.of(pattern_of(mqtt_filter))
            self.gate.node.require_subscribable(wanted)
            if self.access.may_subscribe(user, wanted):
                return True
            self.gate.refuse(self.name, f"subscribe: {user} may not subscribe {mqtt_filter!r}")
        except ConfigurationError as error:
            self.gate.refuse(self.name, str(error))
        return False

    def may_receive(self, user: str, mqtt_topic: str) -> bool:
        try:
            is_allowed = self.access.may_receive(user, topic_of(mqtt_topic))
        except ConfigurationError:
            return False
        if is_allowed:
            self.gate.delivered[self.name] += 1
        return is_allowed

    async def publish(self, user: str, mqtt_topic: str, payload: bytes, retain: bool) -> bool:
        """False: the node cannot take the message now. A message that it never will is dropped, and counts as taken."""
        try:
            content = topic_of(mqtt_topic)
            attributes = {RETAIN: "1"} if retain else {}
            published = await self.gate.publish(
                self.name, content, payload, user=user, access=self.access, attributes=attributes
            )
        except ConfigurationError as error:
            self.gate.refuse(self.name, str(error))
            return not isinstance(error, UnstoredError)
        if retain:
            self._retained.published(published.event, payload)
        return True

    def lost(self, count: int) -> None:
        self.gate.lost[self.name] += count

    def filters_changed(self) -> None:
        """Asks the network for what the clients want now, all together."""
        patterns = sorted({pattern_of(name) for name in self.broker.filters})
        wanted = Topics.of(*(patterns if len(patterns) <= PATTERNS_MAX else ["**"]))
        if wanted == self._wanted:
            return
        try:
            self._want(wanted)
        except ConfigurationError as error:  # too many patterns: together they became one that this node may not have
            self.gate.refuse(self.name, str(error))

    def _want(self, wanted: Topics) -> None:
        before = self._wanted
        if wanted.is_empty:
            if self._events is not None:
                self._events.close()
                self._events = None
        elif self._events is None:
            self._events = self.gate.node.subscribe(wanted, queue_max=self.queue_max)
            self._tasks.start(self._pump(self._events))
        else:
            self._events.change(wanted)
        self._wanted = wanted
        new = [pattern for pattern in wanted.patterns if not before.contains(pattern)]
        if new:
            self._retained.ask(new)

    # Between the network and the clients.

    async def _pump(self, subscription: Subscription) -> None:
        lost = 0
        async for delivery in subscription:
            self.lost(subscription.lost - lost)
            lost = subscription.lost
            if delivery.event.content != ASK:
                await self._hand_out(self.gate.arrival(delivery))

    async def _hand_out(self, arrival: ClientEvent) -> None:
        mqtt_topic = mqtt_topic_of(str(arrival.event.content))
        kind = self._retained.arrived(arrival)
        if kind == Kind.MESSAGE:
            await self.broker.hand_out(mqtt_topic, arrival.payload)
        elif kind == Kind.PAST and arrival.payload:
            await self.broker.hand_out_retained(mqtt_topic, arrival.payload)

    def _set_retained(self, mqtt_topic: str, payload: bytes) -> None:
        self.broker.set_retained(mqtt_topic, payload)
