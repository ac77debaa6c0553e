"""Every protocol by the name that users type; one that is not ours is named `package.module:Class`."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, Final, get_args, get_type_hints

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.api import Host, Parameters, Protocol


class Catalogue(MutableMapping[str, type[Protocol]]):
    """Protocols by name. Each is imported when it is first looked up, so that a run does not wait for the others."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes  # package and class, below `roamcast.protocols`
        self._known: dict[str, type[Protocol]] = {}

    def __getitem__(self, name: str) -> type[Protocol]:
        if name not in self._known:
            package, _, attribute = self._homes[name].partition(":")
            self._known[name] = getattr(import_module(f"roamcast.protocols.{package}"), attribute)
        return self._known[name]

    def __setitem__(self, name: str, protocol: type[Protocol]) -> None:
        self._known[name] = protocol
        self._homes.setdefault(name, "")

    def __delitem__(self, name: str) -> None:
        del self._homes[name]
        self._known.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


PROTOCOLS: Final = Catalogue({
    "flooding": "flooding:Flooding",
    "gossip": "flooding:Gossip",
    "oracle": "oracle:OracleTrees",
    "oracle-broadcast": "oracle:OracleBroadcast",
    "ps-maodv": "trees:PsMaodv",
    "sp-combo": "trees:SpCombo",
    "dsapst": "trees:Dsapst",
    "somer": "somer:Somer",
    "somer-plus": "somer_plus:SomerPlus",
    "odmrp": "odmrp:Odmrp",
    "georendezvous": "georendezvous:GeoRendezvous",
    "overlays": "overlays:Overlays",
    "waymark": "waymark:Waymark",
})  # fmt: skip


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
