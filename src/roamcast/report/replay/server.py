"""Serves the page on this machine only: one document at one address.

It listens on 127.0.0.1 only, serves only its one document, and only if it was asked for by its own name: a
page from elsewhere that makes its host name point here gets nothing.
"""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from roamcast.errors import ConfigurationError

HOST = "127.0.0.1"


class ReplayServer(ThreadingHTTPServer):
    """Serves `page` on a port of its own choice, or on `port`."""

    daemon_threads = True

    def __init__(self, page: str, port: int = 0) -> None:
        self.page = page.encode()
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"port = {port}: cannot be opened: {reason}") from None
        self.url = f"http://{HOST}:{self.server_port}/"
        self.names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: ReplayServer
    server_version = "roamcast"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        if self.headers.get("Host") not in self.server.names:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        if with_body:
            self.wfile.write(self.server.page)

    def log_message(self, format: str, *args: object) -> None:
        """No log line per request."""
