"""Object storage for tests: the S3 server of moto (from PyPI) on loopback, as its own process."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URI of an empty bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _make_bucket(f"http://127.0.0.1:{port}/bucket", server)
        yield f"s3://key:secret@bucket/campaigns?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    finally:
        server.terminate()
        server.wait(20)


def _make_bucket(url: str, server: "subprocess.Popen[bytes]") -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and server.poll() is None:
        try:
            opener.open(urllib.request.Request(url, method="PUT"), timeout=5)
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the S3 server did not start")
