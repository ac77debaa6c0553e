"""Endpoints as users write them, the socket for static links, and which neighbour is heard from where.

The neighbourhood of a node, which stands for the air of a radio, is what its interfaces reach (`ports.py`), or

- a group: a multicast group or a broadcast address of the local network. All that hear it are neighbours. Nodes on one
  machine may share the group's port; then each of them gets every frame.
- static links: a list of endpoints to each of which every broadcast is sent. For tunnels, and for topologies on the
  loopback interface.
"""

import contextlib
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Collection, Sequence

from roamcast.errors import ConfigurationError

Endpoint = tuple[str, int]
"""An IPv4 or IPv6 address as text, with an interface after a `%` if it is reached through that alone, and a port."""

PORT = 21_103
"""UDP port of every network, unless told otherwise."""

RECEIVE_BUFFER_BYTES = 4 << 20
"""Of a socket: bursts wait there while the node is busy. Linux gives up to `net.core.rmem_max`."""

LEARNED_S = 0.5
"""How long what was learned last is not learned again: most datagrams come from who sent the one before."""

_NEIGHBOURS_MAX = 4096  # forged senders make a node forget neighbours, not run out of memory


def parse_endpoint(field: str, text: str) -> Endpoint:
    """`HOST:PORT` or `[IPV6]:PORT`, the host resolved now, so that sending never has to wait for a name server."""
    host, separator, port = text.rpartition(":")
    is_ipv6 = host.startswith("[") and host.endswith("]")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"{field}: {text!r} is not an endpoint; write HOST:PORT, as in 127.0.0.1:7400")
    if is_ipv6 and "%" in host:
        return _link_local(field, text, host[1:-1]), int(port)
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    try:
        found = socket.getaddrinfo(host[1:-1] if is_ipv6 else host, int(port), family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        kind = "IPv6" if is_ipv6 else "IPv4"
        raise ConfigurationError(f"{field}: {host!r} is not a known {kind} host") from None
    return str(found[0][4][0]), int(port)


def _link_local(field: str, text: str, host: str) -> str:
    """An address that means something on one interface only; it is reached through that interface's port."""
    address, _, interface = host.partition("%")
    try:
        if ipaddress.IPv6Address(address).is_link_local and interface:
            return host
    except ValueError:
        pass
    raise ConfigurationError(f"{field}: {text!r} is not a link-local endpoint; write it as in [fe80::1%eth0]:{PORT}")


def is_loopback(endpoint: Endpoint) -> bool:
    """Whether what is sent there stays on this machine."""
    return ipaddress.ip_address(endpoint[0].partition("%")[0]).is_loopback


def open_socket(listen: Endpoint, group: Endpoint | None) -> socket.socket:
    """The socket for static links; with a group, `listen` names the interface and the port must be the group's."""
    if group is not None and listen[1] != group[1]:
        raise ConfigurationError(f"listen: port {listen[1]} must be the port of the neighbourhood, {group[1]}")
    endpoint = socket.socket(socket.AF_INET6 if ":" in listen[0] else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        endpoint.setblocking(False)
        with contextlib.suppress(OSError):  # a system that gives less
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if group is None:
            endpoint.bind(listen)
        else:
            _join(endpoint, listen[0], group)
    except OSError as error:
        endpoint.close()
        raise ConfigurationError(f"listen: cannot open {listen[0]}:{listen[1]}: {error.strerror or error}") from None
    return endpoint


def _join(endpoint: socket.socket, interface: str, group: Endpoint) -> None:
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    endpoint.bind(("0.0.0.0", group[1]))  # a socket bound to one address would not hear what is sent to the group
    if ipaddress.IPv4Address(group[0]).is_multicast:
        near = socket.inet_aton(interface)
        endpoint.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + near)
        endpoint.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, near)
        endpoint.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)  # for nodes on the same machine
        endpoint.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)  # a neighbour is one hop away


class HeardEndpoints:
    """Which node was last heard from which endpoint."""

    def __init__(self) -> None:
        self._endpoint_of: dict[int, Endpoint] = {}
        self._nodes_at: Counter[Endpoint] = Counter()
        self._last: tuple[int, Endpoint, Endpoint | None] | None = None  # who was learned of last
        self._last_until_s = 0.0

    def __len__(self) -> int:
        return len(self._endpoint_of)

    def is_at(self, node: int, endpoint: Endpoint, group: Endpoint | None) -> bool:
        """Whether the node is the one that was learned of last, lately, with the same endpoint and group."""
        return (node, endpoint, group) == self._last and time.monotonic() < self._last_until_s

    def learn(self, node: int, endpoint: Endpoint, group: Endpoint | None = None) -> None:
        self._last, self._last_until_s = (node, endpoint, group), time.monotonic() + LEARNED_S
        if self._endpoint_of.get(node) == endpoint:
            return
        self.forget(node)
        if len(self._endpoint_of) >= _NEIGHBOURS_MAX:
            self.forget(next(iter(self._endpoint_of)))
        self._endpoint_of[node] = endpoint
        self._nodes_at[endpoint] += 1

    def at(self, endpoints: Collection[Endpoint]) -> list[int]:
        """The nodes that were last heard from one of these."""
        return [node for node, endpoint in self._endpoint_of.items() if endpoint in endpoints]

    def forget_interface(self, name: str) -> None:
        """Nothing can be sent to where nodes were heard over this interface."""
        gone = [node for node, (host, _) in self._endpoint_of.items() if host.partition("%")[2] == name]
        for node in gone:
            self.forget(node)

    def endpoint(self, node: int) -> Endpoint | None:
        """Where a datagram for `node` alone can go; `None` if it is unknown, or if several nodes share the endpoint,
        because the system would hand the datagram to any one of them."""
        endpoint = self._endpoint_of.get(node)
        return endpoint if endpoint is not None and self._nodes_at[endpoint] == 1 else None

    def forget(self, node: int) -> None:
        """It is not known any more where the node is."""
        self._last_until_s = 0.0
        endpoint = self._endpoint_of.pop(node, None)
        if endpoint is not None:
            self._nodes_at[endpoint] -= 1
            if not self._nodes_at[endpoint]:
                del self._nodes_at[endpoint]


def default_listen(group: Endpoint | None, peers: Sequence[Endpoint]) -> Endpoint | None:
    """Where a node listens unless told otherwise: where its group or its peers can reach it. None: on loopback, if
    it has static links at all."""
    if group is not None:
        return "0.0.0.0", group[1]
    outside = [host for host, _ in peers if not is_loopback((host, 0)) and "%" not in host]
    return ("::" if ":" in outside[0] else "0.0.0.0", 0) if outside else None
