"""What a node needs before it can open: its keys, its socket for static links, the files that it goes on with."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from roamcast.errors import ConfigurationError
from roamcast.live.codec import Codec
from roamcast.live.durability import message_union
from roamcast.live.endpoints import open_socket
from roamcast.live.guard import Guard
from roamcast.live.host import Clock
from roamcast.live.identity import Identity, read_identity
from roamcast.live.journal import Journal
from roamcast.live.keys import KeyRing, read_ring
from roamcast.live.lives import Lives
from roamcast.live.settings import LISTEN, NodeSettings, stays_here
from roamcast.protocols.catalogue import protocol_class

if TYPE_CHECKING:
    from roamcast.live.trace_log import TraceLog


def static_socket(settings: NodeSettings) -> socket.socket | None:
    """For links that the operator names; nodes that find each other have sockets of their own."""
    if settings.listen is None and not settings.peers and settings.group is None:
        return None
    return open_socket(settings.listen or LISTEN, settings.group)


def trace_log(settings: NodeSettings) -> "TraceLog | None":
    if settings.trace is None:
        return None
    from roamcast.live.trace_log import TraceLog  # only now: it brings Arrow

    return TraceLog(settings.trace, settings.network)


def lives_file(settings: NodeSettings) -> Path | None:
    """Where the node's lives and numbers are kept."""
    return None if settings.remembers is None else settings.remembers / f"{settings.network}-{settings.address}.json"


def make_guard(
    settings: NodeSettings, ring: KeyRing | None, codec: Codec, lives: Lives, clock: Clock, journal: Journal
) -> Guard:
    guard = Guard(
        ring,
        settings.address,
        settings.language,
        codec,
        message_union(protocol_class(settings.protocol).messages),
        life=lives.life,
        next_life=lives.next_life,
        now=clock.calendar,
        lost=journal.frame_lost,
        identity=identity_of(settings),
        quota=settings.quota,
    )
    guard.recall(_read_heard(settings))
    return guard


def key_ring(settings: NodeSettings) -> KeyRing | None:
    """The network's keys; refuses to send plain datagrams off this machine unless that is what the operator wants."""
    if settings.key is not None:
        ring = read_ring(settings.key)
        if ring.network != settings.network:
            raise ConfigurationError(f"key: {settings.key} is of network {ring.network!r}, not {settings.network!r}")
        return ring
    if not stays_here(settings) and not settings.plain:
        raise ConfigurationError(
            "key: none given, so anyone in range could read and forge what this node sends; "
            "make one with `roamcast key new`, or allow it with --plain"
        )
    return None


def identity_of(settings: NodeSettings) -> Identity | None:
    return None if settings.identity is None else read_identity(settings.identity)


def heard_file(settings: NodeSettings, state: Path) -> Path:
    return state / f"{settings.network}-{settings.address}.heard"


def _read_heard(settings: NodeSettings) -> bytes:
    try:
        return b"" if settings.remembers is None else heard_file(settings, settings.remembers).read_bytes()
    except OSError:
        return b""
