"""The MQTT door, with paho-mqtt as its client."""

import asyncio
import contextlib
import random
import struct
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.doors.clients import connected, ready
from tests.doors.nodes import ANYWHERE, endpoints, row, run, until

import roamcast
from roamcast.doors import mqtt_broker
from roamcast.doors.access import password_line
from roamcast.doors.mqtt_broker import UNSENT_MAX
from roamcast.doors.mqtt_topics import mqtt_topic_of, pattern_of, topic_of
from roamcast.doors.opening import open_doors
from roamcast.doors.retained import ASK
from roamcast.doors.settings import door_settings
from roamcast.errors import ConfigurationError
from roamcast.interests.topics import Topics
from roamcast.live.authority import new_authority
from roamcast.live.identity import Certificate, new_identity
from roamcast.live.keys import new_ring, write_ring
from roamcast.live.secret_files import write_secret

OPEN = {"mqtt": {"listen": ANYWHERE}}


def test_clients_of_two_nodes_and_of_one_node_talk() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            here, there = await stack.enter_async_context(row(OPEN, OPEN))
            one, two, three = [await stack.enter_async_context(connected(doors)) for doors in (here, there, there)]
            for client in (one, two, three):
                await ready(client)
            assert await two.subscribe("fire/#", 1) == [1]
            assert await two.subscribe("fire/+/hall", 0) == [0]
            assert await three.subscribe("+/north", 2) == [1]
            await one.publish("fire/north", b"smoke", qos=1)
            await two.publish("flood/north", b"\xff\x00")
            assert await two.next() == ("fire/north", b"smoke")
            assert sorted([await three.next(), await three.next()]) == [
                ("fire/north", b"smoke"),
                ("flood/north", b"\xff\x00"),
            ]
            assert one.messages.empty()
            assert there.gate.delivered["mqtt"] == 3

    run(work)


def test_what_no_client_wants_any_more_the_node_does_not_ask_for() -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,):
            node = doors.gate.node
            async with connected(doors) as client:
                await (await ready(client)).subscribe("fire/#")
                await client.subscribe("flood/#")
                assert [str(each) for each in node._running.subscriptions] == ["fire/** flood/**"]
                client.paho.unsubscribe("fire/#")
                await until(lambda: [str(each) for each in node._running.subscriptions] == ["flood/**"])
            await until(lambda: not node._running.subscriptions)
            assert doors.gate.clients["mqtt"] == 0

    run(work)


def test_retained_messages_reach_clients_that_come_later_on_any_node() -> None:
    async def work() -> None:
        async with row(OPEN, {}, OPEN) as (here, between, there), connected(here) as one, connected(there) as two:
            await ready(one)
            await ready(two)
            await one.publish("status/door", b"shut", qos=1, retain=True)
            await one.publish("status/door", b"open", qos=1, retain=True)
            await one.publish("status/lamp", b"on", qos=1, retain=True)
            await one.publish("status/lamp", b"", qos=1, retain=True)
            await until(lambda: between.gate.node.counters["frames_sent"].get("Flood") == 4)  # all have passed
            await one.subscribe("status/#")
            message = await one.next_message()
            assert (message.topic, message.payload, message.retain) == ("status/door", b"open", True)
            await two.subscribe("status/#")
            message = await two.next_message()
            assert (message.topic, message.payload, message.retain) == ("status/door", b"open", True)
            async with connected(there) as three:  # its node knows by now
                await (await ready(three)).subscribe("status/+")
                assert await three.next() == ("status/door", b"open")
            await one.publish("status/end", b"end", qos=1)  # nothing else was on its way
            assert await two.next() == ("status/end", b"end")

    run(work)


def test_the_will_of_a_client_that_dies_reaches_another_node() -> None:
    async def work() -> None:
        will = ("status/robot", b"gone", 1, True)
        async with row(OPEN, OPEN) as (here, there), connected(there) as watcher:
            await (await ready(watcher)).subscribe("status/#", 1)
            async with connected(here, will=will) as robot:
                await ready(robot)
                robot.die()
                assert await watcher.next() == ("status/robot", b"gone")
            async with connected(here, will=("status/other", b"gone", 0, False)) as other:
                await ready(other)
            async with connected(there) as late:  # a will that is retained; none of a client that said goodbye
                await (await ready(late)).subscribe("status/#")
                assert await late.next() == ("status/robot", b"gone")
            assert watcher.messages.empty()

    run(work)


def test_a_session_gets_what_came_while_its_client_was_away() -> None:
    async def work() -> None:
        table = {"mqtt": {"listen": ANYWHERE, "queue": 3}}
        session: dict[str, Any] = {"client_id": "logger", "clean_session": False}
        async with row(OPEN, table) as (here, there), connected(here) as one:
            await ready(one)
            async with connected(there, **session) as logger:
                await (await ready(logger)).subscribe("log", 1)
            await until(lambda: there.gate.clients["mqtt"] == 0)
            for number in range(5):
                await one.publish("log", b"%d" % number, qos=1)
            await until(lambda: there.gate.lost["mqtt"] == 2)
            async with connected(there, **session) as logger:
                assert [(await logger.next())[1] for _ in range(3)] == [b"2", b"3", b"4"]

    run(work)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_is_acknowledged_when_it_is_in_the_journal_and_not_before(tmp_path: Path, qos: int) -> None:
    async def work() -> None:
        async with row(OPEN, journal=tmp_path) as (doors,), connected(doors) as client:
            await ready(client)
            storage: Any = doors.gate.node._running.durability._storage
            storage._connection.execute("PRAGMA max_page_count = 1")  # not one page more: as if the disk were full
            refused = client.paho.publish("fire/north", bytes(100_000), qos)
            await until(lambda: not client.paho.is_connected())  # rather than acknowledged
            assert not refused.is_published()
            storage._connection.execute("PRAGMA max_page_count = 100000")  # somebody has made room
            await asyncio.to_thread(client.paho.reconnect)
            client.paho.loop_stop()
            client.paho.loop_start()  # it sends again what was not acknowledged
            await asyncio.to_thread(refused.wait_for_publish, 30)
            assert refused.is_published()
            (held,) = storage.rows()
            assert held.size_bytes > 100_000

    run(work)


def test_what_a_client_sent_before_it_went_is_published() -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,):
            events = doors.gate.node.subscribe("fire/**")
            async with connected(doors) as client:
                await ready(client)
                for number in range(300):
                    client.paho.publish("fire/north", b"%d" % number)
                client.paho.disconnect()
            got = [(await anext(events)).event.payload for _ in range(300)]
            assert got == [b"%d" % number for number in range(300)]

    run(work)


def test_users_may_do_what_the_rules_say(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"{password_line('alice', 'rabbit')}\n{password_line('bob', 'builder')}\n")
    access = {"alice": {"publish": "fire/**", "subscribe": "**"}, "bob": {"subscribe": "fire/*"}}
    table = {"mqtt": {"listen": ANYWHERE, "users": str(users), "access": access}}

    async def work() -> None:
        async with row(table) as (doors,):
            for login in (None, ("alice", "wrong"), ("eve", "rabbit"), ("", "")):
                async with connected(doors, login=login) as stranger:
                    code = await asyncio.to_thread(stranger.answers.get, timeout=30)
                    assert code.is_failure
            will = ("flood/will", b"not allowed", 0, False)
            async with (
                connected(doors, login=("alice", "rabbit"), client_id="a", will=will) as alice,
                connected(doors, login=("bob", "builder")) as bob,
            ):
                await ready(alice)
                await ready(bob)
                assert await alice.subscribe("#") == [0]
                assert await bob.subscribe("#") == [128]
                assert await bob.subscribe("fire/+") == [0]
                async with connected(doors, login=("alice", "wrong"), client_id="a") as thief:
                    assert (await asyncio.to_thread(thief.answers.get, timeout=30)).is_failure
                await bob.publish("fire/north", b"not allowed", qos=1)
                await alice.publish("flood/east", b"not allowed", qos=1)
                await alice.publish("fire/north", b"allowed", qos=1)
                for client in (alice, bob):
                    assert await client.next() == ("fire/north", b"allowed")
                alice.die()
                await until(lambda: doors.gate.refused["mqtt"] >= 4 + 1 + 1 + 2 + 1)
            assert doors.gate.published["mqtt"] == 1

    run(work)


def packet(kind: int, body: bytes) -> bytes:
    length, encoded = len(body), b""
    while True:
        length, digit = divmod(length, 128)
        encoded += bytes([digit | (128 if length else 0)])
        if not length:
            return bytes([kind]) + encoded + body


HELLO = packet(0x10, struct.pack("!H4sBBHH1s", 4, b"MQTT", 4, 2, 60, 1, b"x"))
NONSENSE = {
    "nothing": b"",
    "not mqtt": b"GET / HTTP/1.1\r\n\r\n",
    "mqtt 5": packet(0x10, struct.pack("!H4sBBHBH1s", 4, b"MQTT", 5, 2, 60, 0, 1, b"x")),
    "too long": HELLO + b"\x30\xff\xff\xff\x7f" + bytes(1000),
    "length without end": HELLO + b"\x30\xff\xff\xff\xff\xff",
    "reserved": HELLO + b"\xf0\x00",
    "topic is not utf-8": HELLO + packet(0x30, b"\x00\x02\xff\xfe"),
    "topic longer than packet": HELLO + packet(0x30, b"\xff\xff"),
    "subscribe without topics": HELLO + packet(0x82, b"\x00\x01"),
    "wildcard published": HELLO + packet(0x30, b"\x00\x03a/#"),
    "topic of the broker": HELLO + packet(0x30, b"\x00\x04$SYS"),
    "second hello": HELLO + HELLO,
    "cut off": HELLO[:-3],
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_ends_its_own_connection_at_most(data: bytes) -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,), connected(doors) as client:
            await (await ready(client)).subscribe("fire/#")
            await _send(doors.open["mqtt"].port, data)
            await client.publish("fire/north", b"still here", qos=1)
            assert await client.next() == ("fire/north", b"still here")
            await until(lambda: doors.gate.clients["mqtt"] == 1)

    run(work)


def test_random_bytes_do_not_end_the_door() -> None:
    async def work() -> None:
        random_ = random.Random(24)
        async with row(OPEN) as (doors,), connected(doors) as client:
            await (await ready(client)).subscribe("fire/#")
            for _ in range(100):
                tail = bytes([random_.randrange(1, 15) << 4 | random_.randrange(16)])
                tail += bytes([size := random_.randrange(40)]) + random_.randbytes(size)
                await _send(doors.open["mqtt"].port, HELLO + tail)
            await client.publish("fire/north", b"still here", qos=1)
            assert (await client.next())[1] == b"still here"

    run(work)


async def _send(port: int, data: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
        writer.write_eof()
        await reader.read()
    writer.close()


def test_a_burst_larger_than_what_may_be_under_way_arrives_whole() -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,), connected(doors) as one, connected(doors) as two:
            await (await ready(two)).subscribe("log", 1)
            await ready(one)
            count = 3 * UNSENT_MAX
            for number in range(count):
                one.paho.publish("log", b"%d" % number, 1)
            assert [(await two.next())[1] for _ in range(count)] == [b"%d" % number for number in range(count)]

    run(work)


def test_a_client_that_does_not_read_is_disconnected_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_broker, "WRITE_TIMEOUT_S", 0.3)

    async def work() -> None:
        async with row(OPEN) as (doors,), connected(doors) as one, connected(doors) as two:
            await (await ready(two)).subscribe("#")
            await ready(one)
            _, writer = await asyncio.open_connection("127.0.0.1", doors.open["mqtt"].port)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(HELLO + packet(0x82, b"\x00\x01\x00\x03big\x00"))
            await until(lambda: "big" in doors.open["mqtt"].broker.filters)
            assert doors.gate.clients["mqtt"] == 3
            while doors.gate.clients["mqtt"] == 3:
                await one.publish("big", bytes(200_000), qos=1)
            await one.publish("end", b"still here", qos=1)
            while (await two.next())[0] != "end":
                pass
            writer.close()

    run(work)


def test_a_node_whose_certificate_forbids_it_refuses_the_topic(tmp_path: Path) -> None:
    authority = new_authority("roamcast")
    write_ring(tmp_path / "net.key", new_ring("roamcast", 0.0, authority.public))
    identity, now_s = new_identity(), int(time.time())
    certificate = Certificate(
        "roamcast", identity.public, "one", now_s - 60, now_s + 3600, publishes=("fire/**",), subscribes=("fire/**",)
    )
    _, statement = authority.certified(certificate)
    write_secret(tmp_path / "one.node", msgspec.structs.replace(identity, certificate=statement), "identity")

    async def work() -> None:
        settings: dict[str, Any] = {"key": tmp_path / "net.key", "identity": tmp_path / "one.node"}
        async with (
            roamcast.Node(listen="127.0.0.1:0", peers=endpoints(1), **settings) as node,
            open_doors(node, door_settings(OPEN)) as doors,
            connected(doors) as client,
        ):
            await ready(client)
            assert await client.subscribe("#") == [128]
            assert await client.subscribe("fire/#") == [0]
            await client.publish("flood/east", b"not allowed", qos=1, retain=True)
            await client.publish("fire/north", b"allowed", qos=1, retain=True)
            assert (await client.next())[1] == b"allowed"
            assert doors.gate.refused["mqtt"] >= 2

    run(work)


def test_what_doors_tell_each_other_is_hidden() -> None:
    async def work() -> None:
        async with row(OPEN, OPEN) as (here, there), connected(here) as one, connected(there) as two:
            await (await ready(one)).publish("a", b"x", qos=1, retain=True)
            questions = here.gate.node.subscribe("$roamcast/**")
            await (await ready(two)).subscribe("#")
            assert (await anext(questions)).event.content == ASK
            await one.publish("b", b"y", qos=1)
            assert sorted([await two.next(), await two.next()]) == [("a", b"x"), ("b", b"y")]

    run(work)


def test_more_clients_than_allowed_are_refused() -> None:
    async def work() -> None:
        async with row({"mqtt": {"listen": ANYWHERE, "clients": 1}}) as (doors,), connected(doors) as client:
            await ready(client)
            reader, writer = await asyncio.open_connection("127.0.0.1", doors.open["mqtt"].port)
            assert await reader.read() == b""
            writer.close()
            assert doors.gate.refused["mqtt"] == 1

    run(work)


@pytest.mark.parametrize(
    ("mqtt_filter", "pattern"),
    [("#", "**"), ("a/#", "a/**"), ("+/a", "*/a"), ("a/+/b/#", "a/*/b/**"), ("/a", "%/a"), ("a b", "a%20b")],
)
def test_filters_become_patterns(mqtt_filter: str, pattern: str) -> None:
    assert pattern_of(mqtt_filter) == pattern


@pytest.mark.parametrize("mqtt_filter", ["", "a#", "#/a", "a+/b", "$SYS/#", "$share/g/a", "/".join("a" * 40)])
def test_what_is_not_a_filter_is_refused(mqtt_filter: str) -> None:
    with pytest.raises(ConfigurationError, match=r"filter|interest"):
        pattern_of(mqtt_filter)


@pytest.mark.parametrize("topic", ["a", "a/b", "/a", "a//b/", "living room/lamp 1", "100%", "a*b", "%2A", "ü/\t", "%"])
def test_every_topic_has_a_form_in_the_language_and_comes_back(topic: str) -> None:
    content = topic_of(topic)
    assert Topics.of("**").contains(content)
    assert mqtt_topic_of(content) == topic


def test_names_that_mqtt_cannot_have_are_encoded() -> None:
    assert mqtt_topic_of("a+b/#c") == "a%2Bb/%23c"
    assert "\0" not in mqtt_topic_of("%00")
