"""Opens all doors of a node, and closes them.

async with roamcast.Node(1) as node, open_doors(node, door_settings({"http": True})) as doors:
    print(doors.places)
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from roamcast.doors.gate import Gate
from roamcast.doors.settings import DoorSettings
from roamcast.errors import ConfigurationError
from roamcast.library.nodes import Node
from roamcast.live.notices import Level, Notice


class Doors:
    """The open doors of one node."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.open: dict[str, Any] = {}

    @property
    def places(self) -> dict[str, str]:
        """Where each door is."""
        return {name: door.url for name, door in self.open.items()}


@contextlib.asynccontextmanager
async def open_doors(
    node: Node, settings: DoorSettings, notify: Callable[[Notice], None] = lambda notice: None
) -> AsyncIterator[Doors]:
    """All doors that the settings name. If one cannot be opened, none stays open."""
    tracing: Any = None
    if settings.tracing is not None:
        module = _module("tracing")
        exporter = module.Reporting(module.exporter_of(settings.tracing), settings.tracing.endpoint, notify)
        tracing = module.Tracing(node, exporter, settings.tracing.share)
    doors = Doors(Gate(node, tracing, notify))
    try:
        for name, door in _doors(doors.gate, settings):
            await door.open()
            doors.open[name] = door
            notify(Notice(Level.INFO, "door", f"{name} door at {door.url}", {"door": name, "url": door.url}))
        yield doors
    finally:
        for door in reversed(doors.open.values()):
            await door.close()
        if tracing is not None:
            await asyncio.to_thread(tracing.close)


def _doors(gate: Gate, settings: DoorSettings) -> list[tuple[str, Any]]:
    made: list[tuple[str, Any]] = []
    if settings.metrics is not None:
        made.append(("metrics", _module("metrics").MetricsDoor(gate, settings.metrics)))
    if settings.http is not None:
        made.append(("http", _module("http").HttpDoor(gate, settings.http)))
    if settings.mqtt is not None:
        if gate.node.language != "topics":
            raise ConfigurationError(f"door.mqtt: needs the language topics, not {gate.node.language!r}")
        if settings.mqtt.broker:
            made.append(("mqtt", _module("mqtt_bridge", "mqtt").MqttBridge(gate, settings.mqtt)))
        else:
            made.append(("mqtt", _module("mqtt").MqttDoor(gate, settings.mqtt)))
    return made


def _module(name: str, extra: str = "") -> ModuleType:
    try:
        return import_module(f"roamcast.doors.{name}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("roamcast"):
            raise
        extra = extra or name
        raise ConfigurationError(
            f"door.{extra}: {error.name} is missing; install it with pip install 'roamcast[{extra}]'"
        ) from None
