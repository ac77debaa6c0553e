"""What the doors that speak HTTP have in common: who asks, from where, and what goes wrong.

Web pages from elsewhere must not use a node through the browser of its operator. A request that carries an `Origin` is
refused unless the page is the door's own or the operator named it, and the door answers only if it is asked for by an
address or a name of its own, so no foreign name can be made to point here.
"""

import asyncio
import base64
import binascii
import ipaddress
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from roamcast.delivery.storage import UnstoredError
from roamcast.doors.access import Access
from roamcast.doors.gate import ForbiddenError, Gate
from roamcast.doors.settings import HttpEntry, endpoint
from roamcast.errors import ConfigurationError
from roamcast.live.node import EVENT_BYTES_MAX

CONNECTIONS_PER_CLIENT = 4
USER = web.RequestKey("user", str)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Closing(asyncio.Protocol):
    """Ends a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class WebDoor:
    """A server on one port; subclasses say what it answers."""

    name = "http"
    open_paths: tuple[str, ...] = ()  # answered without a name

    def __init__(self, gate: Gate, entry: HttpEntry) -> None:
        self.gate = gate
        self.entry = entry
        self.access = Access(self.name, entry, gate.node.language)
        self._listen = endpoint(self.name, entry)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.port = self._listen[1]

    def routes(self) -> list[web.AbstractRouteDef]:
        raise NotImplementedError

    async def open(self) -> None:
        application = web.Application(middlewares=[self._guard], client_max_size=EVENT_BYTES_MAX)
        application.add_routes(self.routes())
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            self._server = await asyncio.get_running_loop().create_server(self._connection, *self._listen)
        except OSError as error:
            await runner.cleanup()
            where = f"{self._listen[0]}:{self._listen[1]}"
            raise ConfigurationError(f"door.{self.name}.listen: {where}: {error.strerror or error}") from None
        self._runner = runner
        self.port = self._server.sockets[0].getsockname()[1]

    def _connection(self) -> asyncio.Protocol:
        """The handler of the next client; None if there are too many connections, including idle ones."""
        server = None if self._runner is None else self._runner.server
        if server is None or len(server.connections) >= CONNECTIONS_PER_CLIENT * self.entry.clients:
            self.gate.refuse(self.name, "too many connections")
            return _Closing()
        return server()

    @property
    def url(self) -> str:
        host = self._listen[0]
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whatever goes wrong with a request is one line for the client, and the node goes on."""
        if self.gate.clients[self.name] >= self.entry.clients:
            return self._refused(503, f"{self.entry.clients} clients are connected; try later")
        self.gate.clients[self.name] += 1
        try:
            self._require_welcome(request)
            if request.path not in self.open_paths:
                request[USER] = await self._user(request)
            return await handler(request)
        except web.HTTPException as error:
            return self._refused(error.status, error.text or error.reason, error.headers.get(hdrs.WWW_AUTHENTICATE))
        except ForbiddenError as error:
            return self._refused(403, str(error))
        except UnstoredError as error:
            return self._refused(503, str(error))
        except ConfigurationError as error:
            return self._refused(400, str(error))
        except TimeoutError:
            return self._refused(408, "the request took too long")
        finally:
            self.gate.clients[self.name] -= 1

    def _refused(self, status: int, text: str, challenge: str | None = None) -> web.Response:
        self.gate.refuse(self.name, f"{status} {text}")
        headers = {} if challenge is None else {hdrs.WWW_AUTHENTICATE: challenge}
        return web.json_response({"error": " ".join(text.split())}, status=status, headers=headers)

    def _require_welcome(self, request: web.Request) -> None:
        host = request.host.rpartition(":")[0] if request.host.rpartition("]")[2].count(":") else request.host
        if not self._is_own(host.strip("[]").lower()):
            raise web.HTTPForbidden(text=f"host {request.host[:80]!r} is not a name of this door")
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and origin not in (*self.entry.origins, f"http://{request.host}"):
            raise web.HTTPForbidden(text=f"origin {origin[:80]!r} is not allowed; name it in door.{self.name}.origins")

    def _is_own(self, host: str) -> bool:
        if host == "localhost" or host in self.entry.hosts:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    async def _user(self, request: web.Request) -> str:
        header = request.headers.get(hdrs.AUTHORIZATION)
        kind, _, secret = (header or "").partition(" ")
        user: str | None = None
        if header is None:
            user = await self.access.by_password(None, None)
        elif kind.lower() == "bearer":
            user = self.access.by_token(secret.strip())
        elif kind.lower() == "basic":
            try:
                login, _, password = base64.b64decode(secret.strip(), validate=True).decode().partition(":")
                user = await self.access.by_password(login, password)
            except (ValueError, binascii.Error):
                user = None
        if user is None:
            challenge = {hdrs.WWW_AUTHENTICATE: 'Basic realm="roamcast", charset="UTF-8"'}
            raise web.HTTPUnauthorized(text="name and password, or token, are missing or wrong", headers=challenge)
        return user
