"""A small web server for the pages of an application, in the event loop of its nodes.

    server = PageServer("127.0.0.1:8080")
    server.page("/", HERE / "page.html")
    server.files("/web", HERE / "web")
    server.answer("POST", "/publish", publish)     # JSON in, JSON out; `publish` may be a coroutine function
    feed = server.feed("/news", lambda: [{"kind": "state", ...}])
    async with server:
        print(server.url)
        feed.send({"kind": "event", ...})          # to every page that listens

**Feeds** are server-sent events: a page opens one with `new EventSource("/news")` and gets the messages of the snapshot
first, then everything sent later. A page that reads too slowly is disconnected. It reconnects by itself and gets the
snapshot again, so it never misses anything in silence.

**Limits.** Everything a client can make large is bounded (`Limits`). The server listens on the loopback interface
unless told otherwise. It answers only if it is asked for by a name of its own, so a page from elsewhere cannot make its
own host name point here. A request that changes something must be JSON from a page of this server, so a page from
elsewhere cannot send one either. Off loopback, anyone who reaches the port may use the application.
"""

import asyncio
import inspect
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
from aiohttp import web

from roamcast.errors import ConfigurationError

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
"""What may be served, by the ending of the file's name. Anything else is not found."""

Answer = Callable[["Request"], Any | Awaitable[Any]]
"""Gets a request and returns what becomes the JSON answer."""


class Limits(msgspec.Struct, frozen=True):
    """What clients may take."""

    requests: int = 64  # at a time, feeds included; more are refused with 503
    request_bytes: int = 64 * 1024  # of one request's body; more is refused with 413
    feed_messages: int = 256  # that wait for one slow page before it is disconnected
    keep_alive_s: float = 15.0  # a silent feed sends a comment this often, which finds pages that are gone


class Request(msgspec.Struct, frozen=True):
    """What a page asks."""

    path: Mapping[str, str]  # the parts of the address that are in braces, as in /player/{name}
    query: Mapping[str, str]
    body: Any = None  # decoded JSON; None for GET

    def field(self, name: str, kind: type) -> Any:
        """A field of the body, converted to `kind`. A missing or wrong one is a `ConfigurationError`, status 400."""
        if not isinstance(self.body, dict) or name not in self.body:
            raise ConfigurationError(f"{name}: is missing")
        try:
            return msgspec.convert(self.body[name], kind)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{name}: {error}") from None


class NotFoundError(ConfigurationError):
    """The address names nothing; status 404."""


class Feed:
    """Messages to every page that listens, oldest first."""

    def __init__(self, snapshot: Callable[[], list[Any]], messages_max: int) -> None:
        self._snapshot = snapshot
        self._messages_max = messages_max
        self._pages: list[asyncio.Queue[bytes | None]] = []

    @property
    def pages(self) -> int:
        """How many pages listen."""
        return len(self._pages)

    def send(self, message: Any) -> None:
        if not self._pages:
            return
        line = _encoded(message)
        for queue in list(self._pages):
            if queue.qsize() >= self._messages_max:
                self._disconnect(queue)
            else:
                queue.put_nowait(line)

    def _join(self) -> "asyncio.Queue[bytes | None]":
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        queue.put_nowait(b"".join(map(_encoded, self._snapshot())))  # one entry, however much it is
        self._pages.append(queue)
        return queue

    def _disconnect(self, queue: "asyncio.Queue[bytes | None]") -> None:
        if queue in self._pages:
            self._pages.remove(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)

    def _close(self) -> None:
        for queue in list(self._pages):
            self._disconnect(queue)


class PageServer:
    """Declare pages, answers and feeds, then enter it as a context."""

    def __init__(self, listen: str = "127.0.0.1:0", limits: Limits | None = None) -> None:
        """`listen` is HOST:PORT, or fd:N for a socket that listens already and was handed to this process."""
        self._inherited = _inherited(listen)
        place: tuple[str, int] = _endpoint(listen) if self._inherited is None else self._inherited.getsockname()[:2]
        self._host, self._port = place
        self._limits = limits or Limits()
        self._feeds: list[Feed] = []
        self._busy = 0
        self._runner: web.AppRunner | None = None
        self._app = web.Application(client_max_size=self._limits.request_bytes, middlewares=[self._guarded])

    async def __aenter__(self) -> Self:
        runner = web.AppRunner(self._app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            if self._inherited is None:
                await web.TCPSite(runner, self._host, self._port).start()
            else:
                await web.SockSite(runner, self._inherited).start()
        except OSError as error:
            await runner.cleanup()
            reason = error.strerror or error
            raise ConfigurationError(f"page: cannot listen on {self._host}:{self._port}: {reason}") from None
        self._runner = runner
        self._port = int(runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        for feed in self._feeds:
            feed._close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        """Where it is; known once it runs. Ends with a slash."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/"

    def page(self, path: str, file: Path) -> None:
        """One file at one address. The address may have parts in braces, for pages that differ by their data alone."""

        async def respond(_: web.Request) -> web.StreamResponse:
            return _file(file)

        self._app.router.add_get(path, respond)

    def files(self, prefix: str, directory: Path) -> None:
        """The files of a directory, not those below it."""

        async def respond(request: web.Request) -> web.StreamResponse:
            name = request.match_info["name"]
            known = {each.name: each for each in directory.iterdir() if each.is_file()}
            if name not in known or known[name].suffix not in TYPES:
                raise web.HTTPNotFound
            return _file(known[name])

        self._app.router.add_get(f"{prefix}/{{name}}", respond)

    def answer(self, method: str, path: str, handler: Answer) -> None:
        """What `handler` returns, as JSON. Its `ConfigurationError` is status 400 with `{"error": text}`."""

        async def respond(request: web.Request) -> web.StreamResponse:
            try:
                body = None if request.method == "GET" else await _json(request)
                found = handler(Request(dict(request.match_info), dict(request.query), body))
                return _answered(await found if inspect.isawaitable(found) else found)
            except NotFoundError as error:
                return _answered({"error": str(error)}, status=404)
            except ConfigurationError as error:
                return _answered({"error": str(error)}, status=400)

        self._app.router.add_route(method, path, respond)

    def feed(self, path: str, snapshot: Callable[[], list[Any]] = list) -> Feed:
        """A feed at a fixed address. `snapshot` returns the messages that a page gets when it connects."""
        feed = Feed(snapshot, self._limits.feed_messages)
        self._feeds.append(feed)

        async def respond(request: web.Request) -> web.StreamResponse:
            return await self._stream(feed, request)

        self._app.router.add_get(path, respond)
        return feed

    async def _stream(self, feed: Feed, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": "text/event-stream"})
        queue = feed._join()
        try:
            await response.prepare(request)
            await response.write(b"retry: 1000\n\n")
            while True:
                try:
                    line = await asyncio.wait_for(queue.get(), self._limits.keep_alive_s)
                except TimeoutError:
                    line = b": still here\n\n"
                if line is None:
                    break
                await response.write(line)
        except ConnectionError:
            pass
        finally:
            feed._disconnect(queue)
        return response

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not self._is_own_name(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text="asked for by a foreign name")
        if request.method not in ("GET", "HEAD"):
            _require_own_page(request)
        if self._busy >= self._limits.requests:
            raise web.HTTPServiceUnavailable(text="too many requests at a time")
        self._busy += 1
        try:
            return await handler(request)
        finally:
            self._busy -= 1

    def _is_own_name(self, name: str) -> bool:
        """On loopback: its own name and port. Elsewhere: any address, but no name, which could point anywhere."""
        if ipaddress.ip_address(self._host).is_loopback:
            own = f"[{self._host}]" if ":" in self._host else self._host
            return name in {f"{own}:{self._port}", f"localhost:{self._port}"}
        host = name.rpartition(":")[0] if not name.endswith("]") and ":" in name else name
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host == "localhost"
        return True


def _inherited(listen: str) -> socket.socket | None:
    if not listen.startswith("fd:"):
        return None
    try:
        return socket.socket(fileno=int(listen.removeprefix("fd:")))
    except (OSError, ValueError):
        raise ConfigurationError(f"page: {listen!r} is not a socket of this process") from None


def _endpoint(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        ipaddress.ip_address(host)
        if not 0 <= int(port) <= 65535:
            raise ValueError
    except ValueError:
        raise ConfigurationError(f"page: {listen!r} is not an address; write it as in 127.0.0.1:8080") from None
    return host, int(port)


def _require_own_page(request: web.Request) -> None:
    """A page from elsewhere cannot send JSON here, and its browser names where it is from."""
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.headers.get('Host')}":
        raise web.HTTPForbidden(text="sent by a foreign page")
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="must be application/json")


async def _json(request: web.Request) -> Any:
    content = await request.read()
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"body: is not JSON: {error}") from None


def _answered(answer: Any, status: int = 200) -> web.Response:
    body = msgspec.json.encode(answer)
    return web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)


def _encoded(message: Any) -> bytes:
    return b"data: " + msgspec.json.encode(message) + b"\n\n"


def _file(file: Path) -> web.Response:
    kind = TYPES[file.suffix]
    charset = "utf-8" if kind.startswith("text/") else None
    return web.Response(body=file.read_bytes(), content_type=kind, charset=charset, headers=HEADERS)
