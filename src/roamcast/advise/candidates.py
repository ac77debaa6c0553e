"""The candidates: every protocol that can be deployed, with its defaults and with its influential parameters varied.

One parameter is varied at a time. That finds most improvements at a cost that is linear in the number of parameters,
not exponential. To search combinations, run a campaign with a grid.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import PROTOCOLS, protocol_class, protocol_parameters

Value = str | int | float | bool

TUNABLES: dict[str, dict[str, tuple[Value, ...]]] = {
    # how long a repetition waits: collisions against latency
    "flooding": {"jitter_s": (0.002, 0.05)},
    # how many repeat: airtime against reach
    "gossip": {"probability": (0.5, 0.85), "certain_hops": (1, 4)},
    # how often the tree is renewed: airtime against broken branches
    "ps-maodv": {"refresh_period_s": (3.0, 20.0)},
    "sp-combo": {"refresh_period_s": (3.0, 20.0)},
    "dsapst": {"refresh_period_s": (3.0, 20.0), "probe_period_s": (30.0,)},
    # how many trees, and how fast they learn of each other
    "somer-plus": {"root_density": (0.03, 0.18), "refresh_period_s": (3.0,), "advertisement_period_s": (5.0,)},
    "somer": {"root_density": (0.03, 0.18), "refresh_period_s": (3.0,), "advertisement_period_s": (5.0,)},
    # whether the mesh is built before the first event, and how often it is renewed
    "odmrp": {"advertisement": (False,), "refresh_interval_s": (5.0, 30.0), "mobility_prediction": (True,)},
    # the paper's n and m: fewer rendezvous points signal less, more are nearer; cells need about twenty neighbours
    "georendezvous": {
        "graph": ("cells",), "rendezvous_points": (2, 8), "nearest_points": (2,), "refresh_period_s": (20.0,)
    },
    # how many brokers, and how soon a silent one is given up
    "overlays": {"broker_share": (0.05, 0.3), "update_period_s": (10.0,), "home_timeout_s": (10.0,)},
    # what a hello is worth, how soon leaves confirm, and how long events without a path are kept
    "waymark": {"hello_price": (0.4, 4.0), "receipt_s": (0.05,), "custody_s": (0.0,)},
}
"""Protocol -> parameter -> values worth trying besides the default."""


class Candidate(msgspec.Struct, frozen=True):
    label: str
    protocol: str
    parameters: dict[str, Value]

    @property
    def entry(self) -> dict[str, Value]:
        """As a campaign file lists it."""
        return {"name": self.protocol, "label": self.label} | self.parameters

    @property
    def settings(self) -> list[str]:
        """As options of the command line."""
        return [word for name, value in self.parameters.items() for word in ("--set", f"{name}={_text(value)}")]


def candidates(protocols: Iterable[str] = ()) -> list[Candidate]:
    """All candidates of these protocols, or of every one that can be deployed."""
    names = list(dict.fromkeys(protocols)) or [name for name, kind in PROTOCOLS.items() if not kind.is_limit]
    found = []
    for name in names:
        if protocol_class(name).is_limit:
            raise ConfigurationError(f"--protocols: {name!r} runs in the simulator only, so it cannot be recommended")
        found.append(Candidate(name, name, {}))
        for parameter, values in TUNABLES.get(name, {}).items():
            found += [candidate(name, {parameter: value}) for value in values]
    return found


def candidate(protocol: str, settings: dict[str, Any]) -> Candidate:
    """With parameters as the protocol understands them."""
    understood = msgspec.to_builtins(protocol_parameters(protocol, settings))
    parameters = {name: understood[name] for name in settings}
    words = [f"{name}={_text(value)}" for name, value in parameters.items()]
    return Candidate(" ".join([protocol, *words]), protocol, parameters)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
