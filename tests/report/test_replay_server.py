"""The server gives one page, to this machine only."""

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from roamcast.errors import ConfigurationError
from roamcast.report.replay.server import ReplayServer

PAGE = "<!doctype html><title>ü</title>"


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer(PAGE) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: ReplayServer, method: str, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    content = answer.status, answer.read()
    connection.close()
    return content


def test_the_page_is_served(server: ReplayServer) -> None:
    assert ask(server, "GET", "/") == (200, PAGE.encode())
    assert ask(server, "GET", "/?t=3") == (200, PAGE.encode())
    assert ask(server, "HEAD", "/") == (200, b"")
    assert ask(server, "GET", "/", f"localhost:{server.server_port}")[0] == 200


def test_nothing_else_is(server: ReplayServer) -> None:
    for path in ("/etc/passwd", "/../pyproject.toml", "/page.html", "/%2e%2e/"):
        assert ask(server, "GET", path)[0] == 404
    assert ask(server, "POST", "/")[0] == 501


def test_a_page_under_another_name_gets_nothing(server: ReplayServer) -> None:
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1:1"):
        assert ask(server, "GET", "/", host)[0] == 403


def test_it_listens_on_this_machine_only(server: ReplayServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_a_port_in_use_is_refused_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port = {port}: cannot be opened"):
            ReplayServer(PAGE, port)
