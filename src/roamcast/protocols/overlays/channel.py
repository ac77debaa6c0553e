"""The internal system channel: components say what happened, adaptors register for what interests them [3.3, 3.5]."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias


class UpdateDue(NamedTuple):
    """The time event: an update period of the broker network has passed."""


class BrokerPropagation(NamedTuple):
    """A neighbour's propagation changed this broker's view of the broker network."""

    neighbour: int
    rows: int  # how many rows of the topology table it changed


class BrokerDiscovery(NamedTuple):
    """A client says where it is, and which broker it found nearer than its home broker."""

    client: int
    candidate: int | None
    distance_hops: int  # from the client to the candidate
    load: float  # of the candidate
    home_hops: int  # from the client to its home broker


class LoadMeasured(NamedTuple):
    """The resource monitor's periodic reading."""

    load: float


class ModulatorMeasured(NamedTuple):
    """How a client's modulator has behaved since the last reading."""

    client: int
    taken: tuple[tuple[int, int, int], ...]  # home brokers of producers; events and bytes of payload from each
    bytes_out: int
    events_out: int
    cpu_s: float


SystemEvent: TypeAlias = UpdateDue | BrokerPropagation | BrokerDiscovery | LoadMeasured | ModulatorMeasured


class SystemChannel:
    def __init__(self) -> None:
        self._registered: dict[type[Any], list[Callable[[Any], None]]] = {}

    def register(self, kind: type[Any], process: Callable[[Any], None]) -> None:
        self._registered.setdefault(kind, []).append(process)

    def post(self, event: Any) -> None:
        for process in self._registered.get(type(event), ()):
            process(event)
