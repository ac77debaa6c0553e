"""Publish/subscribe for networks that move.

From Python:

- `simulate(...)` simulates one network and returns its `Trace`.
- `read_trace(directory)` reads one that was saved, by a simulation or by live nodes.
- `run_campaign(file, out)` simulates many networks on Spark and returns what they measured.
- `Node(...)` is a live node: `await node.publish(...)`, `async for delivery in node.subscribe(...)`.
- `wasm_modulator(file)` is a WebAssembly module as a modulator for `Node.subscribe`.
- `Scenario` describes a network; `ConfigurationError` is every mistake of the caller, in one line.

What is named here is public and keeps its meaning. Each name brings what it needs when it is first used, so a node
loads no Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roamcast.form import settle

if TYPE_CHECKING:
    from roamcast.delivery.settings import DeliverySettings
    from roamcast.errors import ConfigurationError
    from roamcast.library.campaigns import CampaignResult, run_campaign
    from roamcast.library.nodes import Node, Published, RefusedError, Subscription, wasm_modulator
    from roamcast.library.simulations import simulate
    from roamcast.library.traces import Trace, read_trace
    from roamcast.live.activity import Activity
    from roamcast.live.node import Delivery
    from roamcast.world.scenario import Scenario

__version__ = "0.1.0"

__all__ = [
    "Activity",
    "CampaignResult",
    "ConfigurationError",
    "Delivery",
    "DeliverySettings",
    "Node",
    "Published",
    "RefusedError",
    "Scenario",
    "Subscription",
    "Trace",
    "read_trace",
    "run_campaign",
    "simulate",
    "wasm_modulator",
]

FORM = settle()

_HOMES = {
    "Activity": "live.activity",
    "CampaignResult": "library.campaigns",
    "ConfigurationError": "errors",
    "Delivery": "live.node",
    "DeliverySettings": "delivery.settings",
    "Node": "library.nodes",
    "Published": "library.nodes",
    "RefusedError": "library.nodes",
    "Scenario": "world.scenario",
    "Subscription": "library.nodes",
    "Trace": "library.traces",
    "run_campaign": "library.campaigns",
    "read_trace": "library.traces",
    "simulate": "library.simulations",
    "wasm_modulator": "library.nodes",
}


if not TYPE_CHECKING:  # a type checker has the imports above, and finds a wrong name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'roamcast' has no attribute {name!r}")
        return getattr(import_module(f"roamcast.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
