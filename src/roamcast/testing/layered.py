"""Tiny networks in which every node has the delivery layer."""

from collections.abc import Iterable
from typing import Any

from roamcast.delivery.layer import DeliveryLayer
from roamcast.delivery.settings import DeliverySettings
from roamcast.delivery.storage import Storage
from roamcast.protocols.api import Host, Site
from roamcast.protocols.catalogue import build_protocol, protocol_parameters
from roamcast.testing.links import Link
from roamcast.testing.tinynet import TinyNet

RANGE_M = 120.0


def layered(
    links: Iterable[Link],
    protocol: str = "flooding",
    parameters: dict[str, Any] | None = None,
    *,
    settings: DeliverySettings | None = None,
    storages: dict[int, Storage] | None = None,
    loss: float = 0.0,
    seed: int = 1,
) -> TinyNet[DeliveryLayer]:
    """`storages` outlive their nodes, by address: a node that restarts finds its own again."""

    def make(host: Host) -> DeliveryLayer:
        storage = None if storages is None else storages.get(host.address)
        chosen = protocol_parameters(protocol, parameters or {})
        return DeliveryLayer(host, lambda below: build_protocol(protocol, below, chosen), settings, storage)

    links = list(links)
    nodes = 1 + max(max(link) for link in links)
    positions = {node: (100.0 * node, 0.0) for node in range(nodes)}
    site = Site(100.0 * nodes, 100.0, RANGE_M)
    return TinyNet(links, make, positions_m=positions, site=site, oracle=True, loss=loss, seed=seed)
