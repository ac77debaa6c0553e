"""The page server: pages, answers and feeds, for pages of its own and within its limits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout

from roamcast.apps.server import Limits, NotFoundError, PageServer, Request
from roamcast.errors import ConfigurationError

DEADLINE_S = 60


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), DEADLINE_S))


@asynccontextmanager
async def client(server: PageServer) -> AsyncIterator[ClientSession]:
    async with server, ClientSession(server.url, timeout=ClientTimeout(DEADLINE_S)) as session:
        yield session


def echo(request: Request) -> dict[str, Any]:
    if request.path["name"] == "stranger":
        raise NotFoundError("name: 'stranger' is unknown")
    return {"name": request.path["name"], "hole": request.field("hole", int)}


def test_pages_and_files_are_served_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<title>ü</title>", encoding="utf-8")
    (tmp_path / "page.js").write_text("1", encoding="utf-8")
    (tmp_path / "secret.key").write_text("k", encoding="utf-8")
    server = PageServer()
    server.page("/", tmp_path / "page.html")
    server.page("/player/{name}", tmp_path / "page.html")
    server.files("/web", tmp_path)

    async def asked() -> None:
        async with client(server) as session:
            for path in ("/", "/player/woods"):
                async with session.get(path) as answer:
                    assert (answer.status, await answer.text()) == (200, "<title>ü</title>")
                    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
            for path, status in (("/web/page.js", 200), ("/web/secret.key", 404), ("/web/..%2fpage.js", 404)):
                async with session.get(path) as answer:
                    assert answer.status == status

    run(asked)


def test_answers_are_json_and_mistakes_are_told() -> None:
    server = PageServer()
    server.answer("POST", "/say/{name}", echo)

    async def asked() -> None:
        async with client(server) as session:
            for path, body, status, answered in (
                ("/say/woods", {"hole": 15}, 200, {"name": "woods", "hole": 15}),
                ("/say/woods", {}, 400, {"error": "hole: is missing"}),
                ("/say/woods", {"hole": "x"}, 400, {"error": "hole: Expected `int`, got `str`"}),
                ("/say/stranger", {"hole": 1}, 404, {"error": "name: 'stranger' is unknown"}),
            ):
                async with session.post(path, json=body) as answer:
                    assert (answer.status, await answer.json()) == (status, answered)

    run(asked)


def test_foreign_pages_and_large_requests_are_refused() -> None:
    server = PageServer(limits=Limits(request_bytes=100))
    server.answer("POST", "/say/{name}", echo)
    server.answer("GET", "/state", lambda request: {})

    async def asked() -> None:
        async with client(server) as session:
            json = {"Content-Type": "application/json"}
            for headers, body, status in (
                (json, b'{"hole": 1}', 200),
                (json | {"Origin": "http://evil.example"}, b'{"hole": 1}', 403),
                (json | {"Host": "evil.example"}, b'{"hole": 1}', 403),
                ({"Content-Type": "text/plain"}, b'{"hole": 1}', 415),
                (json, b"[" * 50, 400),
                (json, b" " * 200, 413),
            ):
                async with session.post("/say/woods", data=body, headers=headers) as answer:
                    assert answer.status == status, headers
            async with session.get("/state", headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403

    run(asked)


def test_a_feed_begins_with_its_snapshot() -> None:
    server = PageServer()
    feed = server.feed("/news", lambda: [{"number": 1}])

    async def asked() -> None:
        async with client(server) as session, session.get("/news") as answer:
            assert await answer.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
            assert await answer.content.readuntil(b"\n\n") == b'data: {"number":1}\n\n'
            assert feed.pages == 1
            feed.send({"number": 2})
            assert await answer.content.readuntil(b"\n\n") == b'data: {"number":2}\n\n'

    run(asked)


def test_a_page_that_does_not_read_is_disconnected() -> None:
    server = PageServer(limits=Limits(feed_messages=4))
    feed = server.feed("/news")

    async def asked() -> None:
        async with client(server) as session, session.get("/news") as answer:
            for number in range(6):  # in one go, so that nothing can be read in between
                feed.send({"number": number})
            assert feed.pages == 0
            assert b"data" not in await answer.content.read()

    run(asked)


def test_requests_at_a_time_are_bounded() -> None:
    server = PageServer(limits=Limits(requests=2))
    server.feed("/news", lambda: [{}])
    server.answer("GET", "/state", lambda request: {})

    async def asked() -> None:
        async with client(server) as session, session.get("/news") as first:
            await first.content.readuntil(b"\n\n")
            async with session.get("/state") as answer:
                assert answer.status == 200
            async with session.get("/news") as second:
                await second.content.readuntil(b"\n\n")
                async with session.get("/state") as answer:
                    assert answer.status == 503

    run(asked)


@pytest.mark.parametrize("listen", ["here", "127.0.0.1", "127.0.0.1:99999", "example.org:80"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(ConfigurationError, match="page: "):
        PageServer(listen)


def test_a_port_in_use_is_refused_in_one_line() -> None:
    async def asked() -> None:
        async with PageServer() as first:
            with pytest.raises(ConfigurationError, match="cannot listen on"):
                async with PageServer(first.url.removeprefix("http://").rstrip("/")):
                    pass

    run(asked)
