"""Unicast over several hops: AODV, and the shortest-path oracle."""

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host
from roamcast.protocols.components import Inputs
from roamcast.protocols.routing.aodv import Aodv
from roamcast.protocols.routing.api import Arrived, Drop, Unicast, Unreachable
from roamcast.protocols.routing.messages import Control, Routed
from roamcast.protocols.routing.parameters import NS2, NS3, AodvParameters
from roamcast.protocols.routing.shortest_path import ShortestPath

__all__ = [
    "NS2",
    "NS3",
    "Aodv",
    "AodvParameters",
    "Arrived",
    "Control",
    "Drop",
    "Routed",
    "ShortestPath",
    "Unicast",
    "Unreachable",
    "unicast",
]


def unicast(
    name: str,
    host: Host,
    inputs: Inputs,
    *,
    arrived: Arrived,
    unreachable: Unreachable,
    parameters: AodvParameters | None = None,
) -> Unicast:
    """The service by the name that users type; `parameters` are AODV's, the draft's if not given. The oracle
    takes `attempts_max` from them."""
    if name == "aodv":
        return Aodv(host, inputs, arrived, unreachable, parameters)
    if name == "oracle":
        return ShortestPath(host, inputs, arrived, unreachable, (parameters or AodvParameters()).attempts_max)
    raise ConfigurationError(f"unicast: {name!r} is unknown; allowed: aodv, oracle")
