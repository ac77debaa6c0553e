"""The MQTT 3.1.1 broker of the door: aMQTT, with the network in place of its own distribution of messages.

Clients' messages, wills included, go to the door instead of to other clients. What the door hands back reaches the
clients that subscribe it. Everything that a client can make large is bounded here:

- A packet is at most as long as an event. A connection must begin with a CONNECT within `CONNECT_TIMEOUT_S`.
- A client that publishes faster than the node takes it is not read from until there is room.
- A client that does not read for `WRITE_TIMEOUT_S` is disconnected.
- A client has at most `FILTERS_MAX` filters; the queue of a session without a client is as long as the door's queue.

A login is checked before anything else happens, so that a wrong password does not end the session of another client.

A message is acknowledged when the node has it: with a journal, when it is on disk. If the node cannot store it, the
connection ends without an acknowledgement, so that the client sends it again.
"""

import asyncio
import contextlib
import logging
from typing import Any, Protocol

from amqtt.adapters import ReaderAdapter, StreamReaderAdapter, StreamWriterAdapter, WriterAdapter
from amqtt.broker import Broker, RetainedApplicationMessage, Server
from amqtt.contexts import Action, BrokerConfig, ListenerConfig, ListenerType
from amqtt.errors import MQTTError
from amqtt.mqtt.connack import NOT_AUTHORIZED, ConnackPacket
from amqtt.mqtt.constants import QOS_0, QOS_1
from amqtt.mqtt.protocol.broker_handler import BrokerProtocolHandler
from amqtt.mqtt.puback import PubackPacket
from amqtt.mqtt.pubcomp import PubcompPacket
from amqtt.mqtt.pubrec import PubrecPacket
from amqtt.mqtt.pubrel import PubrelPacket
from amqtt.session import ApplicationMessage, IncomingApplicationMessage, Session
from amqtt.utils import gen_client_id

from roamcast.live.node import EVENT_BYTES_MAX

LISTENER = "default"
CONNECT_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 10.0
SESSION_EXPIRY_S = 3600
FILTERS_MAX = 256
PACKET_BYTES_MAX = EVENT_BYTES_MAX
UNPUBLISHED_MAX = 64  # messages of one client that wait to be published; then it is not read from
UNSENT_MAX = 256  # messages on their way to clients; then no more are handed out

for _name in ("amqtt", "transitions"):  # the door tells the operator what matters
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class Owner(Protocol):
    """What the broker asks its door."""

    queue_max: int

    async def login(self, name: str | None, password: str | None) -> str | None: ...
    def may_subscribe(self, user: str, mqtt_filter: str) -> bool: ...
    def may_receive(self, user: str, mqtt_topic: str) -> bool: ...
    async def publish(self, user: str, mqtt_topic: str, payload: bytes, retain: bool) -> bool: ...
    def filters_changed(self) -> None: ...
    def lost(self, count: int) -> None: ...


class _Reader(StreamReaderAdapter):
    """Reads no faster than messages are published, and no packet that is too long."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.session: Session | None = None  # once the client has said who it is

    async def read(self, n: int = -1) -> bytes:
        if n < 0 or n > PACKET_BYTES_MAX:
            raise MQTTError(f"packet: longer than {PACKET_BYTES_MAX} bytes")
        if self.session is None:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await super().read(n)
        while self.session.delivered_message_queue.qsize() >= UNPUBLISHED_MAX:
            await asyncio.sleep(0.005)
        return await super().read(n)


class _Writer(StreamWriterAdapter):
    """Gives up on a client that does not read."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        super().__init__(writer)
        self._transport = writer.transport

    async def drain(self) -> None:
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await super().drain()
        except TimeoutError:
            self._transport.abort()
            raise ConnectionResetError("the client does not read") from None


class _Handler(BrokerProtocolHandler):
    """Acknowledges a message when the node has it, and not before."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._untaken: dict[int, asyncio.Future[None]] = {}  # by identity of the message

    def taken(self, message: ApplicationMessage) -> None:
        """The node has the message, or has refused it for good."""
        waiter = self._untaken.pop(id(message), None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _handle_message_flow(self, app_message: Any) -> None:
        session, number = self.session, app_message.packet_id
        is_incoming = isinstance(app_message, IncomingApplicationMessage)
        if session is None or number is None or not is_incoming or app_message.qos == QOS_0:
            await super()._handle_message_flow(app_message)
        elif app_message.qos == QOS_1:
            await self._hand_over(session, app_message)
            await self._send_packet(PubackPacket.build(number))
        else:
            await self._receive_once(session, app_message, number)

    async def _hand_over(self, session: Session, message: IncomingApplicationMessage) -> None:
        waiter = self._untaken[id(message)] = asyncio.get_running_loop().create_future()
        try:
            await session.delivered_message_queue.put(message)
            await waiter
        finally:
            self._untaken.pop(id(message), None)

    async def _receive_once(self, session: Session, message: IncomingApplicationMessage, number: int) -> None:
        """QoS 2: a copy of a message that is being received is acknowledged again and not published again."""
        if number not in session.inflight_in:
            await self._hand_over(session, message)
            session.inflight_in[number] = message
        released: asyncio.Future[PubrelPacket] = asyncio.get_running_loop().create_future()
        before = self._pubrel_waiters.get(number)
        if before is not None:
            before.cancel()
        self._pubrel_waiters[number] = released
        await self._send_packet(PubrecPacket.build(number))
        await released
        if self._pubrel_waiters.get(number) is released:
            del self._pubrel_waiters[number]
        session.inflight_in.pop(number, None)
        await self._send_packet(PubcompPacket.build(number))


class DoorBroker(Broker):
    def __init__(self, owner: Owner) -> None:
        listener = ListenerConfig(type=ListenerType.EXTERNAL, bind="door")
        config = BrokerConfig(listeners={LISTENER: listener}, plugins={}, session_expiry_interval=SESSION_EXPIRY_S)
        super().__init__(config)
        self._owner = owner
        self._names: dict[str, str] = {}  # client id -> user

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talks to one client until it goes."""
        await self.external_connected(_Reader(reader), _Writer(writer), LISTENER)

    @property
    def filters(self) -> list[str]:
        """What all clients together subscribe."""
        return [name for name, entries in self._subscriptions.items() if entries]

    async def hand_out(self, mqtt_topic: str, payload: bytes) -> None:
        """To the clients that subscribe the topic."""
        while self._unsent() >= UNSENT_MAX:
            await asyncio.sleep(0.005)
        await super()._broadcast_message(None, mqtt_topic, payload)

    async def hand_out_retained(self, mqtt_topic: str, payload: bytes) -> None:
        """A message of the past that has just become known."""
        for name, entries in list(self._subscriptions.items()):
            if self._matches(mqtt_topic, name):
                for session, qos in list(entries):
                    handler = self._get_handler(session)
                    if handler is not None and session.transitions.state == "connected":
                        with contextlib.suppress(Exception):  # one client's trouble is not another's
                            await handler.mqtt_publish(mqtt_topic, payload, qos, retain=True)

    def set_retained(self, mqtt_topic: str, payload: bytes) -> None:
        """What clients get that subscribe later; an empty payload deletes."""
        if payload:
            self._retained_messages[mqtt_topic] = RetainedApplicationMessage(None, mqtt_topic, payload, None)
        else:
            self._retained_messages.pop(mqtt_topic, None)

    def _unsent(self) -> int:
        waiting = self._broadcast_queue.qsize()
        if waiting + len(self._tasks_queue) < UNSENT_MAX:
            return waiting + len(self._tasks_queue)
        return waiting + sum(not task.done() for task in self._tasks_queue)

    def _user(self, session: Session) -> str:
        return self._names.get(session.client_id or "", "")

    # From here on: what aMQTT does, done otherwise.

    async def _initialize_client_session(
        self, reader: ReaderAdapter, writer: WriterAdapter, remote_address: str, remote_port: int
    ) -> tuple[BrokerProtocolHandler, Session]:
        handler, session = await _Handler.init_from_connect(reader, writer, self.plugins_manager)
        user = await self._owner.login(session.username, session.password)
        if user is None:
            await ConnackPacket.build(0, NOT_AUTHORIZED).to_stream(writer)
            await writer.close()
            raise MQTTError(f"name or password of {session.username!r} is missing or wrong")
        if not session.client_id:
            session.client_id = gen_client_id()
        old = self._sessions.get(session.client_id, (None, None))[0]
        is_other_user = self._names.get(session.client_id, user) != user
        session.parent = 0
        if old is not None and (session.clean_session or is_other_user):
            await self._cleanup_session(session.client_id)
        elif old is not None:
            for field in ("keep_alive", "username", "password"):
                setattr(old, field, getattr(session, field))
            for field in ("flag", "message", "topic", "qos", "retain"):
                setattr(old, f"will_{field}", getattr(session, f"will_{field}"))
            session = old
            session.parent = 1
        self._names[str(session.client_id)] = user
        return handler, session

    async def _authenticate(self, session: Session, _: ListenerConfig) -> bool:
        return True  # done above

    async def _handle_client_session(
        self,
        reader: ReaderAdapter,
        writer: WriterAdapter,
        client_session: Session,
        handler: BrokerProtocolHandler,
        server: Server,
        listener_name: str,
    ) -> None:
        if isinstance(reader, _Reader):
            reader.session = client_session
        await super()._handle_client_session(
            reader, writer, client_session, handler, server=server, listener_name=listener_name
        )

    async def _topic_filtering(self, session: Session, topic: str, action: Action) -> bool:
        if action == Action.PUBLISH:
            return True  # the door decides
        if action == Action.RECEIVE:
            return self._owner.may_receive(self._user(session), topic)
        count = sum(any(each is session for each, _ in entries) for entries in self._subscriptions.values())
        return count < FILTERS_MAX and self._owner.may_subscribe(self._user(session), topic)

    async def add_subscription(self, subscription: tuple[str, int], session: Session) -> int:
        topic_filter, qos = subscription
        answer = await super().add_subscription((topic_filter, min(qos, 1)), session)
        self._owner.filters_changed()
        return answer

    async def _handle_unsubscription(self, *arguments: Any) -> None:
        await super()._handle_unsubscription(*arguments)
        self._prune()

    async def _del_all_subscriptions(self, session: Session) -> None:
        await super()._del_all_subscriptions(session)
        self._prune()

    async def _cleanup_session(self, client_id: str) -> None:
        await super()._cleanup_session(client_id)
        self._names.pop(client_id, None)

    def _prune(self) -> None:
        for name in [name for name, entries in self._subscriptions.items() if not entries]:
            del self._subscriptions[name]
        self._owner.filters_changed()

    async def _handle_message_delivery(
        self, client_session: Session, handler: BrokerProtocolHandler, wait_deliver: asyncio.Future[Any]
    ) -> bool:
        message = wait_deliver.result()
        return message is None or await self._publish(client_session, handler, message)

    async def _publish(self, session: Session, handler: BrokerProtocolHandler, message: ApplicationMessage) -> bool:
        """Publishes a client's message; false ends its connection."""
        topic = message.topic
        if not topic or "#" in topic or "+" in topic or topic.startswith("$"):
            return False
        is_taken = await self._owner.publish(self._user(session), topic, bytes(message.data), message.retain)
        if is_taken and isinstance(handler, _Handler):
            handler.taken(message)
        return is_taken

    async def _handle_disconnect(
        self, client_session: Session, handler: BrokerProtocolHandler, disconnect_waiter: asyncio.Future[Any]
    ) -> None:
        waiting = client_session.delivered_message_queue
        while not waiting.empty():  # what it sent before it went
            await self._publish(client_session, handler, waiting.get_nowait())
        await super()._handle_disconnect(client_session, handler, disconnect_waiter)

    async def _broadcast_message(
        self, session: Session | None, topic: str | None, data: bytes | bytearray | None, force_qos: int | None = None
    ) -> None:
        """A client's will: its other messages do not come here."""
        if session is not None and topic is not None:
            await self._owner.publish(self._user(session), topic, bytes(data or b""), bool(session.will_retain))

    async def retain_message(
        self, source_session: Session | None, topic_name: str | None, data: Any, qos: int | None = None
    ) -> None:
        """The door does it, when the message has been published."""

    async def _retain_broadcast_message(self, broadcast: dict[str, Any], qos: int, target_session: Session) -> None:
        while target_session.retained_messages.qsize() >= self._owner.queue_max:
            target_session.retained_messages.get_nowait()
            self._owner.lost(1)
        await super()._retain_broadcast_message(broadcast, qos, target_session)
