"""Nodes and brokers of a small network, as their own types."""

from roamcast.protocols.api import Protocol
from roamcast.protocols.overlays import Overlays
from roamcast.protocols.overlays.overlays import Broker
from roamcast.testing import TinyNet


def node(net: TinyNet[Protocol], address: int) -> Overlays:
    found = net.node(address)
    assert isinstance(found, Overlays)
    return found


def broker(net: TinyNet[Protocol], address: int) -> Broker:
    found = node(net, address).broker
    assert found is not None
    return found
