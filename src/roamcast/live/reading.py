"""Reads a socket when the loop says that something has arrived."""

import socket
import time
from collections.abc import Callable
from typing import Any

DATAGRAM_READ_BYTES = 2048  # a longer one is cut, and oversized still
DRAIN_MAX = 64  # datagrams that are taken from a socket before others get their turn
CLOSE_S = 0.002  # calls that follow each other so closely mean that more is waiting


class DatagramReader:
    """At high rates all that waits is read in one go. If little arrives, each datagram has a call of its own: to try
    for another one, and to be told that there is none, costs more than to be called again."""

    def __init__(
        self, endpoint: socket.socket, take: Callable[[bytes, Any], None], on_refused: Callable[[], None]
    ) -> None:
        self._socket = endpoint
        self._take = take
        self._on_refused = on_refused
        self._called_s = 0.0

    def read(self) -> None:
        now_s = time.monotonic()
        most = DRAIN_MAX if now_s - self._called_s < CLOSE_S else 1
        self._called_s = now_s
        for _ in range(most):
            try:
                data, source = self._socket.recvfrom(DATAGRAM_READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # an earlier datagram was refused: no listener; or the interface went down
                self._on_refused()
                continue
            self._take(data, source)
            if self._socket.fileno() < 0:  # closed by what arrived
                return
