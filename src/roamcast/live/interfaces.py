"""The network interfaces of this machine: which there are, and when that changes.

What there is comes from `psutil`, which knows every system. On Linux the kernel also says when something changed
(netlink), so the list is read again within `SETTLE_S`; elsewhere, and in case a message was lost, it is read every
`POLL_PERIOD_S`.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import msgspec
import psutil

SETTLE_S = 0.05  # changes come in groups: a link that comes up gets its addresses one by one
POLL_PERIOD_S = 10.0
POLL_PERIOD_ALONE_S = 1.0  # where the system does not say when something changes

_CHANGES = 0x1 | 0x10 | 0x100  # RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR of linux/rtnetlink.h
LOOPBACK_BROADCAST = "127.255.255.255"


class Interface(msgspec.Struct, frozen=True):
    """An interface that is up."""

    name: str
    index: int
    mtu_bytes: int
    is_loopback: bool
    ipv4: str | None  # its first address
    broadcast: str | None  # of that address' network
    ipv6: str | None  # its link-local address, without zone; there is none on loopback

    def __str__(self) -> str:
        addresses = ", ".join(filter(None, (self.ipv4, self.ipv6)))
        return f"{self.name} ({addresses or 'no address'}, MTU {self.mtu_bytes})"


def present(wanted: tuple[str, ...] = ()) -> dict[str, Interface]:
    """The interfaces that are up, by name: the `wanted` ones; if none is named, all that can multicast but loopback."""
    addresses = psutil.net_if_addrs()
    found: dict[str, Interface] = {}
    for name, state in sorted(psutil.net_if_stats().items()):
        flags = state.flags.split(",")
        is_loopback = "loopback" in flags
        if not state.isup or (name not in wanted if wanted else is_loopback or "multicast" not in flags):
            continue
        try:
            index = socket.if_nametoindex(name)
        except OSError:  # gone in between
            continue
        ipv4, broadcast = _ipv4(addresses.get(name, []), is_loopback)
        ipv6 = _ipv6(addresses.get(name, []))
        found[name] = Interface(
            name=name,
            index=index,
            mtu_bytes=state.mtu,
            is_loopback=is_loopback,
            ipv4=ipv4,
            broadcast=broadcast,
            ipv6=ipv6,
        )
    return found


def exists(name: str) -> bool:
    return name in psutil.net_if_stats()


def _ipv4(addresses: list[Any], is_loopback: bool) -> tuple[str | None, str | None]:
    for each in addresses:
        if each.family == socket.AF_INET:
            return each.address, LOOPBACK_BROADCAST if is_loopback else each.broadcast
    return None, None


def _ipv6(addresses: list[Any]) -> str | None:
    for each in addresses:
        if each.family == socket.AF_INET6:
            address = ipaddress.IPv6Address(each.address)
            if address.is_link_local:
                return str(address).partition("%")[0]
    return None


class InterfaceWatch:
    """Calls `on_change` soon after an interface or one of its addresses may have changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._settling: asyncio.TimerHandle | None = None
        self._kernel = _kernel_messages()
        if self._kernel is not None:
            self._loop.add_reader(self._kernel, self._drain, self._kernel)
        self._period_s = POLL_PERIOD_ALONE_S if self._kernel is None else POLL_PERIOD_S
        self._poll = self._loop.call_later(self._period_s, self._look)

    def look_after(self, delay_s: float) -> None:
        """Something is not ready yet."""
        if self._settling is None:
            self._settling = self._loop.call_later(delay_s, self._settled)

    def close(self) -> None:
        self._poll.cancel()
        if self._settling is not None:
            self._settling.cancel()
        if self._kernel is not None:
            self._loop.remove_reader(self._kernel)
            self._kernel.close()

    def _drain(self, kernel: socket.socket) -> None:
        with contextlib.suppress(OSError):  # nothing more; or the kernel had more to say than there is room for
            while kernel.recv(65_536):
                pass
        self.look_after(SETTLE_S)

    def _settled(self) -> None:
        self._settling = None
        self._on_change()

    def _look(self) -> None:
        self._poll = self._loop.call_later(self._period_s, self._look)
        self._on_change()


def _kernel_messages() -> socket.socket | None:
    """A socket that becomes readable when an interface or an address changes; None where there is no such thing."""
    if not hasattr(socket, "AF_NETLINK"):
        return None
    try:
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        kernel.setblocking(False)
        kernel.bind((0, _CHANGES))
    except OSError:  # a sandbox may refuse it
        return None
    return kernel
