"""Every protocol by the name that users type; one that is not ours is named `package.module:Class`."""

from importlib import import_module
from typing import Any, Final, get_args, get_type_hints

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host, Parameters, Protocol
from roamcast.protocols.flooding import Flooding, Gossip
from roamcast.protocols.georendezvous import GeoRendezvous
from roamcast.protocols.odmrp import Odmrp
from roamcast.protocols.oracle import OracleBroadcast, OracleTrees
from roamcast.protocols.overlays import Overlays
from roamcast.protocols.somer import Somer
from roamcast.protocols.somer_plus import SomerPlus
from roamcast.protocols.trees import Dsapst, PsMaodv, SpCombo
from roamcast.protocols.waymark import Waymark

_ALL: Final[list[type[Protocol]]] = [
    Flooding,
    Gossip,
    OracleTrees,
    OracleBroadcast,
    PsMaodv,
    SpCombo,
    Dsapst,
    Somer,
    SomerPlus,
    Odmrp,
    GeoRendezvous,
    Overlays,
    Waymark,
]
PROTOCOLS: Final[dict[str, type[Protocol]]] = {protocol.name: protocol for protocol in _ALL}


def protocol_class(name: str) -> type[Protocol]:
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    module, separator, attribute = name.partition(":")
    if not separator:
        allowed = f"{', '.join(PROTOCOLS)}, or package.module:Class"
        raise ConfigurationError(f"protocol: {name!r} is unknown; allowed: {allowed}")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"protocol: {name!r} cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise ConfigurationError(f"protocol: {name!r} is not a subclass of roamcast.protocols.api.Protocol")
    return found


def protocol_parameters(name: str, settings: dict[str, Any]) -> Parameters:
    """The protocol's parameters with `settings` applied; numbers and booleans may come as text."""
    kind = protocol_class(name).Parameters
    allowed = kind.__struct_fields__
    for field in settings:
        if field not in allowed:
            raise ConfigurationError(f"{name}: {field!r} is not a parameter; allowed: {', '.join(allowed)}")
    try:
        return msgspec.convert(settings, kind, strict=False)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at ")
        field = place.strip("`").removeprefix("$.")
        if field not in settings:  # refused by the parameters' own check, whose message says it all
            raise ConfigurationError(f"{name}: {said}") from None
        choices = get_args(get_type_hints(kind).get(field))
        allowed_here = f"must be one of {', '.join(map(str, choices))}" if choices else said
        raise ConfigurationError(f"{name}: {field} = {settings[field]!r}: {allowed_here}") from None


def build_protocol(name: str, host: Host, parameters: Parameters) -> Protocol:
    """A fresh protocol for one node; every protocol's constructor takes its host and its parameters."""
    make: Any = protocol_class(name)
    protocol: Protocol = make(host, parameters)
    return protocol
