"""The delivery layer of a live node: whether there is one, its journal, and the subscriptions with names."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roamcast.delivery.inboxes import Handed
from roamcast.delivery.layer import DeliveryLayer
from roamcast.delivery.messages import MESSAGES
from roamcast.delivery.settings import DeliverySettings
from roamcast.delivery.storage import MemoryStorage, Storage
from roamcast.errors import ConfigurationError
from roamcast.interests import Interest
from roamcast.live.disk import DiskStorage
from roamcast.live.host import UdpHost
from roamcast.protocols.api import Parameters, Protocol
from roamcast.protocols.catalogue import build_protocol

NAME_CHARACTERS_MAX = 200


def message_union(messages: Any) -> Any:
    """The messages of a protocol and of the layer above it, which every node understands, if only to drop them."""
    return messages | MESSAGES


class _Attached:
    def __init__(self, interest: Interest, *, ordered: bool, durable: bool) -> None:
        self.interest = interest
        self.ordered = ordered
        self.durable = durable


class Durability:
    def __init__(self, journal: Path | None, repair: bool, sync: str, settings: DeliverySettings) -> None:
        self._journal = journal
        self._is_on = repair or journal is not None
        self._sync = sync
        self._settings = settings
        self._storage: Storage | None = None
        self._attached: dict[str, _Attached] = {}
        self._expected: dict[int, list[Callable[[int], None]]] = {}  # by event: who waits for its custody
        self.layer: DeliveryLayer | None = None  # None: the node does without

    def open(self, network: str, address: int) -> None:
        """Opens the journal; refuses one that is not this node's, damaged, or in use."""
        if self._journal is not None:
            self._storage = DiskStorage(
                self._journal / f"{network}-{address}.sqlite",
                f"node {address} of network {network!r}",
                bytes_max=self._settings.bytes_max,
                sync=self._sync,
            )
        elif self._is_on:
            self._storage = MemoryStorage()

    def above(self, host: UdpHost, protocol: str, parameters: Parameters) -> Protocol:
        """The protocol, with the layer above it if the node has one."""
        if not self._is_on:
            return build_protocol(protocol, host, parameters)

        def outlet(handed: Handed) -> None:
            if not host.hand_over(handed) and handed.name:
                layer.acknowledge(handed.name, handed.event.id)

        layer = DeliveryLayer(
            host, lambda below: build_protocol(protocol, below, parameters), self._settings, self._storage, outlet
        )
        layer.on_custody = self._on_custody
        self.layer = layer
        return layer

    def attach(self, name: str, interest: Interest, *, ordered: bool, durable: bool) -> None:
        layer = self._required("a subscription with a name" if durable else "order")
        if durable and self._journal is None:
            raise ConfigurationError("durable: a durable subscription needs a journal (--journal DIR)")
        if not 1 <= len(name) <= NAME_CHARACTERS_MAX:
            raise ConfigurationError(f"durable: {name[:40]!r}: a name has 1 to {NAME_CHARACTERS_MAX} characters")
        layer.attach(name, interest, is_ordered=ordered, is_durable=durable)
        self._attached[name] = _Attached(interest, ordered=ordered, durable=durable)

    def attach_again(self) -> None:
        """The layer was replaced."""
        if self.layer is not None:
            for name, each in self._attached.items():
                self.layer.attach(name, each.interest, is_ordered=each.ordered, is_durable=each.durable)

    def detach(self, name: str, *, forget: bool) -> Interest:
        if name not in self._attached:
            raise ConfigurationError(f"durable: there is no open subscription {name!r}")
        self._required("a subscription with a name").detach(name, forget=forget)
        return self._attached.pop(name).interest

    def forget(self, name: str) -> None:
        """Ends a durable subscription for good, open or not."""
        self._required("a subscription with a name").detach(name, forget=True)
        self._attached.pop(name, None)

    def acknowledge(self, name: str, event_id: int) -> None:
        """The application is through with an event of a subscription with a name."""
        if self.layer is not None:
            self.layer.acknowledge(name, event_id)

    async def custody(self, event_id: int, neighbours: int, timeout_s: float) -> int:
        """How many neighbours hold an event, once there are enough or the time is up."""
        layer = self._required("custody")
        done = asyncio.Event()

        def taken(count: int) -> None:
            if count >= neighbours:
                done.set()

        self._expected.setdefault(event_id, []).append(taken)
        taken(layer.custodians(event_id))
        try:
            await asyncio.wait_for(done.wait(), timeout_s)
        except TimeoutError:
            pass
        finally:
            self._expected.pop(event_id, None)
        return layer.custodians(event_id)

    def counters(self) -> dict[str, Any]:
        return {} if self.layer is None else {"delivery": self.layer.counters()}

    def close(self) -> None:
        if self._storage is not None:
            self._storage.close()

    def _on_custody(self, event_id: int, neighbours: int) -> None:
        for taken in self._expected.get(event_id, ()):
            taken(neighbours)

    def _required(self, what: str) -> DeliveryLayer:
        if self.layer is None:
            raise ConfigurationError(f"{what}: the node must repair (--repair, or --journal DIR)")
        return self.layer
