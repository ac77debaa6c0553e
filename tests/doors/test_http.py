"""The HTTP door: publish by POST, subscribe as server-sent events, both over a WebSocket."""

import asyncio
import contextlib
import json
import random
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.doors.nodes import ANYWHERE, row, run

from roamcast.doors.access import password_line, token_line
from roamcast.doors.opening import Doors

OPEN = {"http": {"listen": ANYWHERE}}


class Stream:
    """Server-sent events of one GET."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def comment(self) -> None:
        assert (await self._line()).startswith(":")

    async def next(self) -> Any:
        while True:
            line = await self._line()
            if line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))

    async def _line(self) -> str:
        line = await self._response.content.readline()
        assert line, "the stream ended"
        return line.decode().rstrip("\n")


async def subscribed(client: aiohttp.ClientSession, doors: Doors, query: str) -> Stream:
    response = await client.get(f"{doors.places['http']}/events?{query}")
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    stream = Stream(response)
    await stream.comment()
    return stream


def test_an_event_that_is_posted_at_one_node_streams_at_another_and_at_its_own() -> None:
    async def work() -> None:
        async with row(OPEN, OPEN) as (here, there), aiohttp.ClientSession() as client:
            remote = await subscribed(client, there, "subscribe=fire/**")
            local = await subscribed(client, here, "subscribe=fire/*")
            async with client.post(f"{here.places['http']}/events/fire/north", data=b"smoke") as answer:
                assert answer.status == 202
                published = await answer.json()
            assert await client.post(f"{here.places['http']}/events/flood/east", data=b"\xff")
            for stream, hops in ((remote, 1), (local, 0)):
                event = await stream.next()
                assert (event["event_id"], event["content"]) == (published["event_id"], "fire/north")
                assert (event["payload"], event["hops"], event["publisher"]) == ("smoke", hops, 1)

    run(work)


def test_bytes_and_content_types_arrive() -> None:
    async def work() -> None:
        async with row(OPEN, OPEN) as (here, there), aiohttp.ClientSession() as client:
            stream = await subscribed(client, there, "subscribe=**")
            where = f"{here.places['http']}/events/picture"
            await client.post(where, data=b"\xff\xd8", headers={"Content-Type": "image/jpeg"})
            event = await stream.next()
            assert event["payload_base64"] == "/9g="
            assert event["attributes"] == {"content-type": "image/jpeg"}

    run(work)


def test_a_websocket_publishes_and_subscribes_and_survives_nonsense() -> None:
    async def work() -> None:
        async with row(OPEN, OPEN) as (here, there), aiohttp.ClientSession() as client:
            one = await client.ws_connect(f"{here.places['http']}/socket")
            two = await client.ws_connect(f"{there.places['http']}/socket")
            await two.send_json({"do": "subscribe", "interest": "fire/**", "tag": 7})
            assert await two.receive_json() == {"kind": "done", "tag": 7}
            for nonsense in ("{", "[]", '{"do": "dance"}', '{"do": "publish", "content": "a//b"}', "[" * 100_000):
                await one.send_str(nonsense)
                answer = await one.receive_json()
                assert answer["kind"] == "error"
                assert "\n" not in answer["text"]
            await one.send_json({"do": "publish", "content": "fire/north", "payload_base64": "/9g=", "tag": "x"})
            answer = await one.receive_json()
            assert (answer["kind"], answer["tag"]) == ("published", "x")
            event = await two.receive_json()
            assert (event["kind"], event["event_id"]) == ("delivered", answer["event_id"])
            assert (event["interest"], event["payload_base64"]) == ("fire/**", "/9g=")
            await two.send_json({"do": "unsubscribe", "interest": "fire/**"})
            assert await two.receive_json() == {"kind": "done"}
            assert there.gate.node.counters["subscriptions"] == 0

    run(work)


def test_a_client_that_goes_takes_its_subscription_along() -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,):
            async with aiohttp.ClientSession() as client:
                await subscribed(client, doors, "subscribe=fire/**")
                socket = await client.ws_connect(f"{doors.places['http']}/socket")
                await socket.send_json({"do": "subscribe", "interest": "flood/**"})
                await socket.receive_json()
                assert doors.gate.node.counters["subscriptions"] == 2
            while doors.gate.node.counters["subscriptions"]:
                await asyncio.sleep(0.01)
            assert doors.gate.clients["http"] == 0

    run(work)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "text"),
    [
        ("POST", "/events/a//b", {}, b"", 400, "empty level"),
        ("POST", "/events/fire/*", {}, b"", 400, "not a topic"),
        ("POST", "/events", {}, b"x", 400, "content: is missing"),
        ("POST", "/events/a", {}, bytes(300_000), 413, "exceeded"),
        ("POST", "/events/a", {"traceparent": "00-zz"}, b"", 400, "traceparent"),
        ("POST", "/events/a", {"Roamcast-Cause": "-1"}, b"", 400, "Roamcast-Cause"),
        ("POST", "/events/a", {"Roamcast-Cause": "9" * 19}, b"", 400, "cause"),
        ("POST", "/events/a", {"Content-Type": "application/cloudevents+json"}, b"{", 400, "not JSON"),
        ("POST", "/events/a", {"Content-Type": "application/cloudevents-batch+json"}, b"[]", 415, "one by one"),
        ("POST", "/events/a", {"ce-specversion": "0.3"}, b"", 400, "specversion"),
        ("POST", "/events/a?custody=1", {}, b"", 400, "custody"),
        ("POST", "/events/a?ttl_s=soon", {}, b"", 400, "ttl_s"),
        ("POST", "/events/a?timeout_s=1e9", {}, b"", 400, "timeout_s"),
        ("GET", "/events?subscribe=a&durable=log", {}, b"", 400, "journal"),
        ("GET", "/events", {}, b"", 400, "subscribe: is missing"),
        ("GET", "/events?subscribe=a//b", {}, b"", 400, "empty level"),
        ("GET", "/events?subscribe=a&format=xml", {}, b"", 400, "format"),
        ("GET", "/nothing", {}, b"", 404, ""),
        ("DELETE", "/events", {}, b"", 405, ""),
        ("GET", "/health", {"Host": "evil.example"}, b"", 403, "not a name of this door"),
        ("GET", "/health", {"Origin": "https://evil.example"}, b"", 403, "origins"),
    ],
)
def test_a_mistake_is_one_clear_error(
    method: str, path: str, headers: dict[str, str], body: bytes, status: int, text: str
) -> None:
    async def work() -> None:
        async with row(OPEN) as (doors,), aiohttp.ClientSession() as client:
            where = f"{doors.places['http']}{path}"
            async with client.request(method, where, headers=headers, data=body or None) as answer:
                assert answer.status == status
                error = (await answer.json())["error"]
                assert text in error
                assert "\n" not in error
            async with client.get(f"{doors.places['http']}/health") as answer:
                health = await answer.json()
                assert (answer.status, health["status"], health["address"]) == (200, "ok", 1)
            assert doors.gate.refused["http"] == 1

    run(work)


def test_users_may_do_what_the_rules_say(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"{password_line('alice', 'rabbit')}\n# a comment\n{token_line('robot', 'r2d2')}\n")
    table = {
        "listen": ANYWHERE,
        "users": str(users),
        "access": {"alice": {"publish": "fire/**", "subscribe": "fire/**"}, "*": {"subscribe": "status/*"}},
    }

    async def work() -> None:
        async with row({"http": table}) as (doors,), aiohttp.ClientSession() as client:
            where = doors.places["http"]

            async def status(method: str, path: str, **options: Any) -> int:
                async with client.request(method, f"{where}{path}", **options) as answer:
                    return answer.status

            alice = {"Authorization": aiohttp.encode_basic_auth("alice", "rabbit")}
            robot = {"Authorization": "Bearer r2d2"}
            assert await status("GET", "/health") == 200
            assert await status("POST", "/events/fire/north") == 401
            assert (
                await status(
                    "POST", "/events/fire/north", headers={"Authorization": aiohttp.encode_basic_auth("alice", "wrong")}
                )
                == 401
            )
            assert await status("POST", "/events/fire/north", headers={"Authorization": "Bearer wrong"}) == 401
            assert await status("POST", "/events/fire/north", headers={"Authorization": "Basic ???"}) == 401
            assert await status("POST", "/events/fire/north", headers=alice) == 202
            assert await status("POST", "/events/flood/east", headers=alice) == 403
            assert await status("GET", "/events?subscribe=**", headers=alice) == 403
            assert await status("POST", "/events/fire/north", headers=robot) == 403
            assert await status("GET", "/events?subscribe=status/*", headers=robot) == 200
            users.write_text(token_line("robot", "c3po"))
            assert await status("POST", "/events/fire/north", headers=alice) == 401

    run(work)


def test_more_clients_than_allowed_are_refused_and_slow_ones_lose_the_oldest() -> None:
    async def work() -> None:
        table = {"http": {"listen": ANYWHERE, "clients": 2, "queue": 3}}
        async with row(table) as (doors,), aiohttp.ClientSession() as client:
            where = doors.places["http"]
            streams = [await subscribed(client, doors, "subscribe=**") for _ in range(2)]
            async with client.get(f"{where}/health") as answer:
                assert answer.status == 503
            for number in range(10):
                await doors.gate.node.publish("number", b"%d" % number, here=True)
            assert await streams[0].next() == 7
            assert [(await streams[0].next())["payload"] for _ in range(3)] == ["7", "8", "9"]

    run(work)


def test_bytes_that_are_no_request_end_their_own_connection_at_most() -> None:
    async def work() -> None:
        random_ = random.Random(24)
        starts = (
            b"",
            b"GET /events?subscribe=",
            b"POST /events/a HTTP/1.1\r\nContent-Length: ",
            b"GET /socket HTTP/1.1\r\n",
        )
        async with row(OPEN) as (doors,), aiohttp.ClientSession() as client:
            for number in range(60):
                reader, writer = await asyncio.open_connection("127.0.0.1", doors.open["http"].port)
                writer.write(starts[number % len(starts)] + random_.randbytes(random_.randrange(100)) + b"\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    writer.write_eof()
                    await reader.read()
                writer.close()
            async with client.get(f"{doors.places['http']}/health") as answer:
                assert answer.status == 200

    run(work)


def test_idle_connections_are_bounded() -> None:
    async def work() -> None:
        async with row({"http": {"listen": ANYWHERE, "clients": 2}}) as (doors,):
            place = ("127.0.0.1", doors.open["http"].port)
            idle = [await asyncio.open_connection(*place) for _ in range(8)]
            reader, writer = await asyncio.open_connection(*place)
            assert await reader.read() == b""
            idle[0][1].write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await idle[0][0].readline()).startswith(b"HTTP/1.1 200")
            for each in (writer, *(writer for _, writer in idle)):
                each.close()

    run(work)


def test_a_durable_stream_gets_what_was_published_while_its_client_was_away(tmp_path: Path) -> None:
    async def work() -> None:
        async with row(OPEN, OPEN, journal=tmp_path) as (here, there):
            query = "subscribe=log/**&durable=archive"
            async with aiohttp.ClientSession() as client:
                await subscribed(client, there, query)
            while there.gate.clients["http"]:
                await asyncio.sleep(0.01)
            async with aiohttp.ClientSession() as client:
                for number in range(3):
                    where = f"{here.places['http']}/events/log/{number}?ttl_s=60&custody=1&timeout_s=20"
                    async with client.post(where) as answer:
                        known = await answer.json()
                        assert (known["stored"], known["custody"]) == (True, 1)
                stream = await subscribed(client, there, query)
                assert sorted([(await stream.next())["content"] for _ in range(3)]) == ["log/0", "log/1", "log/2"]

    run(work)
