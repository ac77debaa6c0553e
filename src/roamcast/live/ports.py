"""The sockets of a node on its interfaces: one port per interface and IP version.

A port has a socket of its own, bound to the interface's address, from which everything is sent and where unicasts
arrive, and one socket per group, where broadcasts arrive. Groups are a multicast group in IPv6, and in IPv4 a multicast
group and the broadcast address, because some networks carry only one of the two. The multicast groups follow from the
network's name. The first node on a machine has the network's UDP port, so a firewall needs one rule; further nodes on
the same machine take a free one.

Endpoints here name their interface after a `%`, in IPv4 as well: `10.0.0.7%eth0`.
"""

import asyncio
import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b

import msgspec

from roamcast.live.endpoints import RECEIVE_BUFFER_BYTES, Endpoint
from roamcast.live.interfaces import Interface
from roamcast.live.reading import DatagramReader

_IP_MULTICAST_ALL = 49  # of linux/in.h: without it a socket hears groups that others joined, on any interface
_IPV6_MULTICAST_ALL = 29  # of linux/in6.h

Receive = Callable[[bytes, Endpoint, Endpoint | None], None]
"""Is told a datagram, its source, and the group it was sent to; None if it was sent to this node alone."""

Arrived = Callable[[bytes, str, int, Endpoint | None], None]


def multicast_groups(network: str) -> tuple[str, str]:
    """Of IPv4 and IPv6: where the nodes of a network meet on a link."""
    digest = blake2b(network.encode(), digest_size=4, person=b"roamcast group").digest()
    ipv6 = f"ff12::{int.from_bytes(digest[:2], 'big') | 0x8000:x}:{int.from_bytes(digest[2:], 'big') | 0x8000:x}"
    return f"239.255.{digest[0]}.{digest[1]}", ipv6  # IPv4 local scope (RFC 2365); IPv6 transient, link-local


class Port:
    """The sockets of one interface in one IP version."""

    def __init__(self, interface: Interface, address: str, groups: tuple[str, ...], number: int) -> None:
        """Raises `OSError` if the interface is not ready, or gone."""
        self.interface = interface
        self.address = address
        self._family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.groups = tuple((f"{group}%{interface.name}", number) for group in groups)
        self._own = self._socket()
        self._listening: list[tuple[socket.socket, Endpoint]] = []
        try:
            self._open_own(number)
            for group in groups:
                self._join(group, number)
        except OSError:
            self.close()
            raise
        self.endpoint: Endpoint = (address, self._own.getsockname()[1])

    def serves(self, interface: Interface) -> bool:
        """Whether it is still the right port for the interface."""
        address = interface.ipv6 if self._family == socket.AF_INET6 else interface.ipv4
        mine = self.interface
        return (mine.index, self.address, mine.broadcast) == (interface.index, address, interface.broadcast)

    def listen(self, loop: asyncio.AbstractEventLoop, arrived: Arrived) -> None:
        for each, group in ((self._own, None), *self._listening):

            def take(data: bytes, source: tuple[str, int], group: Endpoint | None = group) -> None:
                arrived(data, source[0].partition("%")[0], source[1], group)

            loop.add_reader(each, DatagramReader(each, take, lambda: None).read)

    def send(self, data: bytes, host: str, number: int) -> None:
        """Raises `OSError` if the system does not take it."""
        if self._family == socket.AF_INET6:
            self._own.sendto(data, (host, number, 0, self.interface.index))
        else:
            self._own.sendto(data, (host, number))

    def close(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        for each in (self._own, *(each for each, _ in self._listening)):
            if loop is not None:
                loop.remove_reader(each)
            each.close()

    def _socket(self) -> socket.socket:
        made = socket.socket(self._family, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0))
        made.setblocking(False)
        with contextlib.suppress(OSError):  # a system that gives less
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        return made

    def _open_own(self, number: int) -> None:
        index = self.interface.index
        try:
            self._bind(self._own, self.address, number)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._bind(self._own, self.address, 0)  # another node on this machine has the port
        if self._family == socket.AF_INET6:
            self._own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            self._own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)  # a neighbour is one hop away
            self._own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)  # for nodes on this machine
        else:
            member = struct.pack("=4s4si", b"\0" * 4, socket.inet_aton(self.address), index)  # ip_mreqn
            self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
            self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            self._own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)

    def _join(self, group: str, number: int) -> None:
        listening = self._socket()
        self._listening.append((listening, (f"{group}%{self.interface.name}", number)))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # nodes on one machine share it, all get a copy
        self._bind(listening, group, number)
        index = self.interface.index
        if self._family == socket.AF_INET6:
            member = struct.pack("=16si", socket.inet_pton(socket.AF_INET6, group), index)
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
            _set_on_linux(listening, socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL)
        elif group.startswith("239."):
            member = struct.pack("=4s4si", socket.inet_aton(group), socket.inet_aton(self.address), index)
            listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            _set_on_linux(listening, socket.IPPROTO_IP, _IP_MULTICAST_ALL)
        elif hasattr(socket, "SO_BINDTODEVICE"):
            with contextlib.suppress(PermissionError):  # before Linux 5.7
                name = self.interface.name.encode()
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)

    def _bind(self, made: socket.socket, host: str, number: int) -> None:
        if self._family == socket.AF_INET6:
            made.bind((host, number, 0, self.interface.index))
        else:
            made.bind((host, number))


def _set_on_linux(listening: socket.socket, level: int, option: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # an old kernel
            listening.setsockopt(level, option, 0)


class Changes(msgspec.Struct):
    """What became of the ports when the interfaces were looked at again."""

    opened: list[Interface] = []
    closed: list[str] = []  # names of interfaces
    is_ready: bool = True  # false: an address cannot be used yet, look again soon


class Ports:
    """The ports of a node, which come and go with its interfaces."""

    def __init__(self, network: str, number: int, receive: Receive) -> None:
        self.number = number
        self._receive = receive
        self._ipv4_group, self._ipv6_group = multicast_groups(network)
        self._loop = asyncio.get_running_loop()
        self._ports: dict[tuple[str, bool], Port] = {}  # by interface and whether it is IPv6
        self._own: set[Endpoint] = set()  # without interface: one of our ports may hear another

    def __len__(self) -> int:
        return len(self._ports)

    @property
    def interfaces(self) -> list[Interface]:
        """That have a port."""
        return list({name: port.interface for (name, _), port in sorted(self._ports.items())}.values())

    def groups(self) -> list[list[Endpoint]]:
        """Where a broadcast can go: of each interface, the preferred group first."""
        names = sorted({name for name, _ in self._ports})
        return [[group for is_ipv6 in (True, False) for group in self._groups_of(name, is_ipv6)] for name in names]

    def update(self, present: Mapping[str, Interface]) -> Changes:
        """Opens and closes ports so that there is one for each address of these interfaces."""
        changes = Changes()
        before = {name for name, _ in self._ports}
        for key, port in list(self._ports.items()):
            interface = present.get(key[0])
            if interface is None or not port.serves(interface):
                self._ports.pop(key).close(self._loop)
            else:
                port.interface = interface  # its MTU may be another
        for interface in present.values():
            self._open_missing(interface, changes)
        after = {name for name, _ in self._ports}
        changes.closed = sorted(before - after)
        changes.opened = [present[name] for name in sorted(after - before)]
        self._own = {port.endpoint for port in self._ports.values()}
        return changes

    def send(self, data: bytes, endpoint: Endpoint) -> None:
        """Raises `OSError` if the system does not take it, or the interface is gone."""
        host, _, name = endpoint[0].partition("%")
        port = self._ports.get((name, ":" in host))
        if port is None:
            raise OSError(errno.ENODEV, "no such interface")
        port.send(data, host, endpoint[1])

    def close(self) -> None:
        for port in self._ports.values():
            port.close(self._loop)
        self._ports.clear()

    def _groups_of(self, name: str, is_ipv6: bool) -> tuple[Endpoint, ...]:
        port = self._ports.get((name, is_ipv6))
        return () if port is None else port.groups

    def _open_missing(self, interface: Interface, changes: Changes) -> None:
        ipv4_groups = (self._ipv4_group,) if interface.broadcast is None else (self._ipv4_group, interface.broadcast)
        for address, groups in ((interface.ipv6, (self._ipv6_group,)), (interface.ipv4, ipv4_groups)):
            key = (interface.name, groups[0] == self._ipv6_group)
            if address is None or key in self._ports:
                continue
            try:
                port = Port(interface, address, groups, self.number)
            except OSError:  # an IPv6 address that is still being checked for duplicates; an interface on its way out
                changes.is_ready = False
                continue
            self._ports[key] = port
            port.listen(self._loop, partial(self._arrived, interface.name))

    def _arrived(self, name: str, data: bytes, host: str, number: int, group: Endpoint | None) -> None:
        if (host, number) not in self._own:
            self._receive(data, (f"{host}%{name}", number), group)
