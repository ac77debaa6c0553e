"""Everything an operator decides about one live node."""

from pathlib import Path
from typing import Any

import msgspec

from roamcast.delivery.settings import DeliverySettings
from roamcast.live.endpoints import PORT, Endpoint, is_loopback
from roamcast.live.interfaces import present
from roamcast.live.lives import default_state
from roamcast.live.quotas import Quota
from roamcast.protocols.api import Point, Site

LISTEN: Endpoint = ("127.0.0.1", 0)  # where a node with static links listens unless told otherwise


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an operator decides about one node."""

    address: int
    protocol: str = "flooding"
    parameters: dict[str, Any] = {}
    language: str = "intervals"
    network: str = "roamcast"  # nodes of another network on the same port are ignored
    listen: Endpoint | None = None  # of the socket for static links; None: on loopback, if there are such links
    group: Endpoint | None = None  # a broadcast address or multicast group of your choice
    peers: tuple[Endpoint, ...] = ()  # static links
    interfaces: tuple[str, ...] = ()  # where it looks for neighbours; none named: all that can multicast but loopback
    discover: bool | None = None  # look for neighbours on interfaces; None: if there are neither links nor a group
    port: int = PORT  # UDP port on interfaces
    position: Point | None = None  # where it starts; `Node.move` says where it is later
    site: Site | None = None
    cpu_share: float = 1.0  # of a core that this node has: computing counts as if it took that much longer
    seed: int | None = None  # of what the protocol draws; None: from the system
    trace: Path | None = None
    state: Path | None = None  # a directory where it remembers its lives; None: the user's own (`lives.py`)
    key: Path | None = None  # the network's key file (`keys.py`); None: datagrams are plain
    identity: Path | None = None  # this node's identity file, in a network with an authority (`identity.py`)
    quota: Quota = Quota()  # what one peer may send
    plain: bool = False  # plain datagrams are allowed to leave this machine
    repair: bool = False  # lost events are fetched from neighbours (`delivery/layer.py`); so it is with a journal
    journal: Path | None = None  # a directory for what must survive the process: events, durable subscriptions
    sync: str = "normal"  # what the journal survives: `full` a loss of power, `normal` the end of the process
    delivery: DeliverySettings = DeliverySettings()  # bounds and periods of the delivery layer

    @property
    def discovers(self) -> bool:
        """Whether it looks for neighbours on interfaces."""
        if self.discover is None:
            return bool(self.interfaces) or (self.group is None and not self.peers)
        return self.discover or bool(self.interfaces)

    @property
    def remembers(self) -> Path | None:
        """Where it remembers its lives: where it was told to, in its journal's directory, or in the user's own."""
        return self.state or self.journal or default_state()

    @property
    def static(self) -> tuple[Endpoint, ...]:
        """Where broadcasts always go."""
        return self.peers if self.group is None else (self.group, *self.peers)


def stays_here(settings: NodeSettings) -> bool:
    """Whether nothing that the node sends leaves this machine."""
    if settings.discovers:
        named = present(settings.interfaces)
        if not settings.interfaces or not all(
            name in named and named[name].is_loopback for name in settings.interfaces
        ):
            return False
    return is_loopback(settings.listen or LISTEN) and all(map(is_loopback, settings.peers))
