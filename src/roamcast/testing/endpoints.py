"""Endpoints on loopback for tests with live nodes."""

import socket


def free_endpoints(count: int) -> list[tuple[str, int]]:
    """Distinct free endpoints: all are held until the last one is found."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    endpoints: list[tuple[str, int]] = [each.getsockname() for each in sockets]
    for each in sockets:
        each.close()
    return endpoints
