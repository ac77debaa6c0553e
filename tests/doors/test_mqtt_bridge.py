"""The bridge to a broker of one's own, with mosquitto as that broker and MQTT 5 clients."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.enums import MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.doors.clients import connected, ready
from tests.doors.nodes import ANYWHERE, free_port, row, run, until
from tests.doors.test_cloudevents import TRACEPARENT

from roamcast.doors.opening import open_doors
from roamcast.doors.settings import door_settings
from roamcast.errors import ConfigurationError

BROKER = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(BROKER is None, reason="no mosquitto")
V5, V311 = MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311


class Mosquitto:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        self._config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert BROKER is not None
        self._process = subprocess.Popen([BROKER, "-c", self._config], stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    async def reachable(self) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path)
    try:
        yield broker
    finally:
        broker.stop()


def test_clients_of_a_broker_talk_to_clients_of_another_node_in_mqtt_5_and_3(mosquitto: Mosquitto) -> None:
    async def work() -> None:
        await mosquitto.reachable()
        bridge = {"mqtt": {"broker": f"127.0.0.1:{mosquitto.port}", "topics": ["fire/#", "status/#"]}}
        place = ("127.0.0.1", mosquitto.port)
        async with (
            row(bridge, {"mqtt": {"listen": ANYWHERE}}) as (here, there),
            connected(place, version=V5) as five,
            connected(there, version=V311) as three,
        ):
            await until(lambda: here.gate.clients["mqtt"] == 1)
            await (await ready(five)).subscribe("#", 1)
            await (await ready(three)).subscribe("#", 1)
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            properties.ContentType = "image/jpeg"
            properties.UserProperty = [("traceparent", TRACEPARENT), ("colour", "red")]
            events = there.gate.node.subscribe("fire/**")
            five.paho.publish("fire/north", b"\xff\xd8", 1, properties=properties)
            assert await three.next() == ("fire/north", b"\xff\xd8")
            arrival = there.gate.arrival(await anext(events))
            assert arrival.attributes == {"traceparent": TRACEPARENT, "content-type": "image/jpeg"}
            assert await five.next() == ("fire/north", b"\xff\xd8")  # from its broker, once
            await three.publish("status/lamp", b"on", qos=1, retain=True)
            assert await five.next() == ("status/lamp", b"on")
            async with connected(place, version=V5) as late:
                await (await ready(late)).subscribe("status/+")
                message = await late.next_message()
                assert (message.payload, message.retain) == (b"on", True)
            assert five.messages.empty()

    run(work)


def test_a_broker_that_goes_away_and_comes_back_gets_what_waited(mosquitto: Mosquitto) -> None:
    async def work() -> None:
        await mosquitto.reachable()
        async with row({"mqtt": {"broker": f"127.0.0.1:{mosquitto.port}"}}, {}) as (here, there):
            await until(lambda: here.gate.clients["mqtt"] == 1)
            mosquitto.stop()
            await until(lambda: here.gate.clients["mqtt"] == 0)
            await there.gate.node.publish("fire/north", b"smoke")
            mosquitto.start()
            await mosquitto.reachable()
            async with connected(("127.0.0.1", mosquitto.port), version=V5) as client:
                await (await ready(client)).subscribe("fire/#")
                await until(lambda: here.gate.clients["mqtt"] == 1)
                while client.messages.empty():  # what waited may have come before this client
                    await there.gate.node.publish("fire/north", b"smoke")
                    await asyncio.sleep(0.05)
                assert (await client.next())[1] == b"smoke"
            assert here.gate.delivered["mqtt"] >= 1

    run(work)


def test_what_a_broker_got_while_the_node_was_down_is_published_once(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async def work() -> None:
        await mosquitto.reachable()
        table = {"mqtt": {"broker": f"127.0.0.1:{mosquitto.port}"}}
        async with connected(("127.0.0.1", mosquitto.port), version=V5) as client:
            await ready(client)
            async with row(table, journal=tmp_path) as (doors,):
                await until(lambda: doors.gate.clients["mqtt"] == 1)
                storage: Any = doors.gate.node._running.durability._storage
                storage._connection.execute("PRAGMA max_page_count = 1")  # as if the disk were full
                await client.publish("fire/north", bytes(100_000), qos=1)  # the broker has it, the node has not
                await until(lambda: doors.gate.clients["mqtt"] == 0)
            await client.publish("fire/south", b"while it was down", qos=1)
            async with row(table, journal=tmp_path) as (doors,):
                storage = doors.gate.node._running.durability._storage
                await until(lambda: len(storage.rows()) == 2)
                published = [storage.body(each.id).content for each in storage.rows()]
                assert published == ["fire/north", "fire/south"]

    run(work)


def test_the_rules_say_what_a_broker_may_have(mosquitto: Mosquitto) -> None:
    async def work() -> None:
        table = {"broker": f"127.0.0.1:{mosquitto.port}", "access": {"bridge": {"subscribe": "fire/**"}}}
        async with row({}) as (doors,):
            with pytest.raises(ConfigurationError, match="may not subscribe"):
                async with open_doors(doors.gate.node, door_settings({"mqtt": table})):
                    pass
        await mosquitto.reachable()
        async with row({"mqtt": {**table, "topics": ["fire/#"]}}) as (doors,):
            await until(lambda: doors.gate.clients["mqtt"] == 1)
            async with connected(("127.0.0.1", mosquitto.port), version=V5) as client:
                await (await ready(client)).publish("fire/north", b"not allowed", qos=1)
                await until(lambda: doors.gate.refused["mqtt"] == 1)
            assert doors.gate.published["mqtt"] == 0

    run(work)
