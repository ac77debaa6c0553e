"""A rescue team: watches the water in a box on the map, on a page of its own."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import roamcast
from roamcast.apps.flood_watch.network import GRID_BYTES, RAIN, RAIN_S, STEPS, VEHICLES
from roamcast.apps.flood_watch.terrain import AREA_M, SIZE, terrain_bytes
from roamcast.apps.flood_watch.vehicle import VehicleReport
from roamcast.apps.server import PageServer, Request
from roamcast.errors import ConfigurationError
from roamcast.protocols.overlays.modulators.runoff import Grid

PAGE = Path(__file__).parent / "page"
ALARMS_MAX = 50
LATENCIES = 30  # that the page draws
CALM_SHARE = 0.9  # an alarm ends when the water is below this share of its level

Box = tuple[int, int, int, int]  # left, top, right, bottom, in cells; the last two exclusive


class Alarm(msgspec.Struct):
    time_s: float  # when the water rose above the level
    depth_m: float  # the deepest since
    cell: tuple[int, int]  # where: column, row
    is_over: bool = False


class Team:
    """The team's node, what it knows, and its page."""

    def __init__(self, node: roamcast.Node, name: str, ground: Grid, box: Box, level_m: float) -> None:
        self.node = node
        self.name = name
        self.box = _checked(box)
        self.level_m = level_m
        self.alarms: deque[Alarm] = deque(maxlen=ALARMS_MAX)
        self.place: Callable[[], tuple[float, float] | None] = lambda: None
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None  # everything the page is told
        self._ground = ground
        self._changes = 0  # of the box; every delivery says for which it was computed
        self._shown: dict[str, Any] = {}  # the latest depths
        self._vehicles: dict[int, VehicleReport] = {}
        self._latencies_ms: deque[float] = deque(maxlen=LATENCIES)
        self._first: int | None = None  # number of the first grid of rain of which something came
        self._grids = 0  # of rain, published since
        self._received = 0
        self._received_bytes = 0
        self._homes: list[tuple[float, int]] = []  # since when, which broker
        self._refusal = ""
        self._depths = node.subscribe(RAIN, modulator=self._modulator(), inputs={"terrain": terrain_bytes(ground)})
        self._positions = node.subscribe(VEHICLES)

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._follow_vehicles())
            tasks.create_task(self._report())

    # -- The application -------------------------------------------------------------------------------------------

    def watch(self, box: Box) -> None:
        """Looks at another part of the map from now on. The broker's model goes on; only what it sends changes."""
        self.box = _checked(box)
        self._changes += 1
        self._depths.change(modulator=self._modulator(), inputs={"terrain": terrain_bytes(self._ground)})
        self._tell(self._state())

    def set_level(self, level_m: float) -> None:
        if not (math.isfinite(level_m) and 0.01 <= level_m <= 100):
            raise ConfigurationError(f"level: {level_m:g} m; must be between 0.01 and 100")
        self.level_m = level_m
        for alarm in self.alarms:
            alarm.is_over = True
        self._tell(self._state())

    def _modulator(self) -> str:
        box = ", ".join(map(str, self.box))
        return f"runoff({SIZE}, terrain, {RAIN_S}, {STEPS}) | crop({SIZE}, {box}) | transform({self._changes})"

    async def _watch(self) -> None:
        while True:
            try:
                async for delivery in self._depths:
                    self._take(delivery)
            except roamcast.RefusedError as error:
                self._refusal = str(error)
                self._tell(self._state())

    def _take(self, delivery: roamcast.Delivery) -> None:
        event = delivery.event
        self._refusal = ""
        self._first = event.number if self._first is None else self._first
        self._grids = max(self._grids, event.number - self._first + 1)
        self._received += 1
        self._received_bytes += len(event.payload)
        self._latencies_ms.append(round(delivery.latency_s * 1000, 1))
        left, top, right, bottom = self.box
        depths = np.frombuffer(event.payload, dtype="<f8")
        if event.content != self._changes or depths.size != (right - left) * (bottom - top):
            return  # it was computed for the box before
        grid = depths.reshape(bottom - top, right - left)
        row, column = np.unravel_index(int(grid.argmax()), grid.shape)
        self._check_alarm(float(grid.max()), (left + int(column), top + int(row)))
        self._shown = {
            "kind": "depths",
            "box": self.box,
            "mm": np.rint(grid * 1000).astype(int).ravel().tolist(),
            "deepest_m": round(float(grid.max()), 3),
            "deepest": [left + int(column), top + int(row)],
        }
        self._tell(self._shown)
        self._tell(self._state())

    def _check_alarm(self, depth_m: float, cell: tuple[int, int]) -> None:
        current = self.alarms[-1] if self.alarms and not self.alarms[-1].is_over else None
        if current is None and depth_m > self.level_m:
            self.alarms.append(Alarm(time.time(), depth_m, cell))
        elif current is not None and depth_m < CALM_SHARE * self.level_m:
            current.is_over = True
        elif current is not None and depth_m > current.depth_m:
            current.depth_m, current.cell = depth_m, cell

    async def _follow_vehicles(self) -> None:
        async for delivery in self._positions:
            try:
                found = msgspec.json.decode(delivery.event.payload, type=VehicleReport)
            except msgspec.DecodeError:
                continue
            self._vehicles[delivery.event.publisher] = found
            self._tell(self._map())

    async def _report(self) -> None:
        """Once a second: where the team is, and which broker serves it."""
        while True:
            place = self.place()
            if place is not None:
                self.node.move(*place)
            home = self.node.standing["home"].peer if "home" in self.node.standing else -1
            before = self._homes[-1][1] if self._homes else -1
            if home != before:
                self._homes.append((time.time(), home))
            self._tell(self._state())
            self._tell(self._map())
            await asyncio.sleep(1.0)

    # -- The page --------------------------------------------------------------------------------------------------

    def serve(self, server: PageServer) -> None:
        """Declares the team's page."""
        server.page("/", PAGE / "flood_watch.html")
        server.files("/page", PAGE)
        server.answer("POST", "/box", self._on_box)
        server.answer("POST", "/level", self._on_level)
        feed = server.feed("/news", self.snapshot)
        self.on_message = feed.send

    def snapshot(self) -> list[dict[str, Any]]:
        """Everything that a page needs to begin."""
        heights_dm = np.rint(self._ground * 10).astype(int).ravel().tolist()
        land = {"kind": "land", "size": SIZE, "area_m": AREA_M, "dm": heights_dm}
        return [land, self._state(), self._map(), *([self._shown] if self._shown else [])]

    def _on_box(self, request: Request) -> dict[str, Any]:
        self.watch(request.field("box", Box))  # type: ignore[arg-type]
        return {"box": self.box}

    def _on_level(self, request: Request) -> dict[str, Any]:
        self.set_level(request.field("level_m", float))
        return {"level_m": self.level_m}

    def _tell(self, message: dict[str, Any]) -> None:
        self.on_message(message)

    def _state(self) -> dict[str, Any]:
        taken_bytes = self._grids * GRID_BYTES
        return {
            "kind": "state",
            "name": self.name,
            "address": self.node.address,
            "box": self.box,
            "level_m": self.level_m,
            "alarms": [msgspec.to_builtins(alarm) for alarm in self.alarms],
            "broker": self._homes[-1][1] if self._homes else -1,
            "homes": self._homes[-8:],
            "latency_ms": list(self._latencies_ms),
            "grids": self._grids,
            "received": self._received,
            "received_bytes": self._received_bytes,
            "taken_bytes": taken_bytes,
            "refusal": self._refusal,
        }

    def _map(self) -> dict[str, Any]:
        places = {address: msgspec.to_builtins(found) for address, found in self._vehicles.items()}
        return {"kind": "map", "vehicles": places, "team": self.place()}


def _checked(box: Box) -> Box:
    left, top, right, bottom = box
    if not (0 <= left < right <= SIZE and 0 <= top < bottom <= SIZE):
        raise ConfigurationError(f"box: {left},{top},{right},{bottom}; must be a box on a map of {SIZE} x {SIZE} cells")
    return box
