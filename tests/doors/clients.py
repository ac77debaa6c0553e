"""An MQTT client for tests: paho in a thread of its own, awaited from the event loop of the nodes."""

import asyncio
import contextlib
import queue
import socket
from collections.abc import AsyncIterator
from typing import Any, cast

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from roamcast.doors.opening import Doors

PATIENCE_S = 30.0


class Client:
    def __init__(self, version: MQTTProtocolVersion, **options: Any) -> None:
        self.paho = paho.Client(CallbackAPIVersion.VERSION2, protocol=version, reconnect_on_failure=False, **options)
        self.messages: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.granted: queue.Queue[list[ReasonCode]] = queue.Queue()
        self.answers: queue.Queue[ReasonCode] = queue.Queue()
        self.paho.on_message = lambda client, data, message: self.messages.put(message)
        self.paho.on_connect = self._connected
        self.paho.on_subscribe = self._subscribed

    def _connected(
        self, client: paho.Client, data: Any, flags: paho.ConnectFlags, code: ReasonCode, properties: Properties | None
    ) -> None:
        self.answers.put(code)

    def _subscribed(
        self, client: paho.Client, data: Any, number: int, codes: list[ReasonCode], properties: Properties | None
    ) -> None:
        self.granted.put(codes)

    async def subscribe(self, mqtt_filter: str, qos: int = 0) -> list[int]:
        """The codes of the answer."""
        self.paho.subscribe(mqtt_filter, qos)
        return [code.value for code in await asyncio.to_thread(self.granted.get, timeout=PATIENCE_S)]

    async def publish(self, topic: str, payload: bytes | str = b"", qos: int = 0, retain: bool = False) -> None:
        """Returns when the door has the message."""
        info = self.paho.publish(topic, payload, qos, retain)
        await asyncio.to_thread(info.wait_for_publish, PATIENCE_S)

    def die(self) -> None:
        """Its connection breaks without a goodbye."""
        cast(socket.socket, self.paho.socket()).shutdown(socket.SHUT_RDWR)

    async def next(self) -> tuple[str, bytes]:
        message = await self.next_message()
        return message.topic, bytes(message.payload)

    async def next_message(self) -> paho.MQTTMessage:
        return await asyncio.to_thread(self.messages.get, timeout=PATIENCE_S)


@contextlib.asynccontextmanager
async def connected(
    place: Doors | tuple[str, int],
    *,
    version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv311,
    login: tuple[str, str] | None = None,
    will: tuple[str, bytes, int, bool] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client that has tried to connect; `client.answers` has what it was told."""
    host, port = ("127.0.0.1", place.open["mqtt"].port) if isinstance(place, Doors) else place
    client = Client(version, **options)
    if login is not None:
        client.paho.username_pw_set(*login)
    if will is not None:
        client.paho.will_set(*will)
    await asyncio.to_thread(client.paho.connect, host, port)
    client.paho.loop_start()
    try:
        yield client
    finally:
        client.paho.disconnect()
        await asyncio.to_thread(client.paho.loop_stop)


async def ready(client: Client) -> Client:
    """Waits until it is let in."""
    code = await asyncio.to_thread(client.answers.get, timeout=PATIENCE_S)
    assert not code.is_failure, code
    return client
