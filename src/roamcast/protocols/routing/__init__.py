"""Unicast over several hops: AODV, and the shortest-path oracle."""

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host
from roamcast.protocols.routing.aodv import Aodv
from roamcast.protocols.routing.api import Drop, Unicast, UnicastOwner
from roamcast.protocols.routing.messages import Control, Routed
from roamcast.protocols.routing.parameters import NS2, AodvParameters
from roamcast.protocols.routing.shortest_path import ShortestPath

__all__ = [
    "NS2",
    "Aodv",
    "AodvParameters",
    "Control",
    "Drop",
    "Routed",
    "ShortestPath",
    "Unicast",
    "UnicastOwner",
    "unicast",
]


def unicast(name: str, host: Host, owner: UnicastOwner, parameters: AodvParameters | None = None) -> Unicast:
    """The service by the name that users type; `parameters` are AODV's, the draft's if not given."""
    if name == "aodv":
        return Aodv(host, owner, parameters)
    if name == "oracle":
        return ShortestPath(host, owner)
    raise ConfigurationError(f"unicast: {name!r} is unknown; allowed: aodv, oracle")
