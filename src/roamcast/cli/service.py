"""What a service tells systemd (sd_notify): that it is ready, alive, reloading, or about to stop.

If systemd did not start the program, nothing is sent.
"""

import asyncio
import contextlib
import os
import socket
import sys
import time
from importlib.resources import files
from pathlib import Path


class Service:
    """The watchdog's signs of life come from the event loop: if that hangs, systemd restarts the program."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._period_s = _watchdog_s() / 2
        self._alive: asyncio.TimerHandle | None = None

    def ready(self, status: str) -> None:
        self._tell("READY=1", f"STATUS={status}")
        if self._period_s and self._alive is None:
            self._is_alive()

    def reloading(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        if self._alive is not None:
            self._alive.cancel()
        self._tell("STOPPING=1")

    def _is_alive(self) -> None:
        self._tell("WATCHDOG=1")
        self._alive = asyncio.get_running_loop().call_later(self._period_s, self._is_alive)

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_systemd:
            to_systemd.setblocking(False)
            to_systemd.sendto("\n".join(lines).encode(), address)


def _watchdog_s() -> float:
    """How long systemd waits for a sign of life; 0 if it does not."""
    for_us = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    period = os.environ.get("WATCHDOG_USEC", "")
    return int(period) / 1e6 if for_us and period.isascii() and period.isdigit() else 0.0


def unit() -> str:
    """A systemd unit for nodes, with the program that runs now."""
    program = f"{sys.executable} -m roamcast"
    home = any(Path(sys.prefix).is_relative_to(place) for place in ("/home", "/root", "/run/user"))
    text = files("roamcast.cli").joinpath("roamcast@.service").read_text(encoding="utf-8")
    return text.replace("@PROGRAM@", program).replace("@PROTECT_HOME@", "read-only" if home else "yes")
