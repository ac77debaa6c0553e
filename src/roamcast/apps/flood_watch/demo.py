"""Everything on one machine: a weather station, three vehicles that drive about, two teams with their pages.

All nodes talk over loopback UDP. Who hears whom follows from where they are: every second the links of nodes that are
farther apart than the radio reaches are taken away, and new ones are made. Time runs sixty times as fast as in the
field, so everybody is in a hurry. Teams change their home broker, and their
modulators move with all the water that they have computed.

What the pages were told is recorded. At the end it becomes a page of its own that plays it again, without a network.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import roamcast
from roamcast.apps.flood_watch.network import STATION_ADDRESS, TEAM_ADDRESSES, VEHICLE_ADDRESSES, parameters
from roamcast.apps.flood_watch.station import run_station
from roamcast.apps.flood_watch.team import PAGE, Box, Team
from roamcast.apps.flood_watch.terrain import AREA_M, terrain
from roamcast.apps.flood_watch.vehicle import run_vehicle
from roamcast.apps.server import PageServer

RANGE_M = 2100.0
TEAMS: tuple[tuple[str, Box], ...] = (("Team North", (34, 18, 74, 48)), ("Team South", (30, 56, 70, 90)))
NOBODY_YET = "127.0.0.1:9"  # a node without any link would look for neighbours on all interfaces
Place = tuple[float, float]


def _circle(x: float, y: float, radius_m: float, period_s: float) -> Callable[[float], Place]:
    """A drive in circles; x and y are shares of the area."""

    def place(time_s: float) -> Place:
        angle = 2 * math.pi * time_s / period_s
        return AREA_M * x + radius_m * math.cos(angle), AREA_M * y + radius_m * math.sin(angle)

    return place


def _patrol(begin: Place, end: Place, period_s: float) -> Callable[[float], Place]:
    """A way there and back."""

    def place(time_s: float) -> Place:
        share = 0.5 - 0.5 * math.cos(2 * math.pi * time_s / period_s)
        return (
            AREA_M * (begin[0] + share * (end[0] - begin[0])),
            AREA_M * (begin[1] + share * (end[1] - begin[1])),
        )

    return place


# The vehicles make a chain from the north-west to the south-east, and the teams patrol along it.
PLACES: dict[int, Callable[[float], Place]] = {
    STATION_ADDRESS: _circle(0.56, 0.54, 0.0, 1.0),
    VEHICLE_ADDRESSES[0]: _circle(0.26, 0.72, 180.0, 30.0),
    VEHICLE_ADDRESSES[1]: _circle(0.5, 0.5, 180.0, -40.0),
    VEHICLE_ADDRESSES[2]: _circle(0.74, 0.28, 180.0, 35.0),
    TEAM_ADDRESSES[0]: _patrol((0.3, 0.86), (0.82, 0.16), 60.0),
    TEAM_ADDRESSES[1]: _patrol((0.8, 0.1), (0.2, 0.8), 70.0),
}


class FloodWatchDemo:
    def __init__(self, seed: int, listen: list[str]) -> None:
        self.teams: list[Team] = []
        self.urls: list[str] = []
        self.recordings: list[list[tuple[float, dict[str, Any]]]] = []
        self._seed = seed
        self._listen = listen
        self._nodes: dict[int, roamcast.Node] = {}
        self._began_s = time.monotonic()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "FloodWatchDemo":
        for address in PLACES:
            settings = parameters(vehicle=address in VEHICLE_ADDRESSES, one_computer=True)
            node = roamcast.Node(
                address, protocol="overlays", parameters=settings, listen="127.0.0.1:0", peers=[NOBODY_YET]
            )
            self._nodes[address] = await self._stack.enter_async_context(node)
        self._link()
        ground = terrain(self._seed)
        for (name, box), address, listen in zip(TEAMS, TEAM_ADDRESSES, self._listen, strict=False):
            team = Team(self._nodes[address], name, ground, box, level_m=0.5)
            team.place = self._place_of(address)
            server = PageServer(listen)
            team.serve(server)
            await self._stack.enter_async_context(server)
            self.teams.append(team)
            self.urls.append(server.url)
            self._record(team)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self, seconds: float) -> None:
        """Runs everything for this long; infinite: until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            works = [tasks.create_task(team.run()) for team in self.teams]
            works.append(tasks.create_task(run_station(self._nodes[STATION_ADDRESS], self._seed)))
            for address in set(PLACES) & set(VEHICLE_ADDRESSES):
                works.append(tasks.create_task(run_vehicle(self._nodes[address], self._place_of(address))))
            works.append(tasks.create_task(self._drive()))
            await asyncio.sleep(min(seconds, 10.0**9))
            for work in works:
                work.cancel()

    def write(self, path: Path) -> None:
        """A page that plays again what the first team saw."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(recorded_page(self.recordings[0]), encoding="utf-8")

    async def _drive(self) -> None:
        while True:
            self._link()
            await asyncio.sleep(1.0)

    def _link(self) -> None:
        for address, node in self._nodes.items():
            near = [other for other in self._nodes if other != address and self._hear(address, other)]
            node.link([self._nodes[other].endpoint for other in near])

    def _hear(self, one: int, other: int) -> bool:
        return math.dist(self._place_of(one)(), self._place_of(other)()) <= RANGE_M

    def _place_of(self, address: int) -> Callable[[], Place]:
        return lambda: PLACES[address](time.monotonic() - self._began_s)

    def _record(self, team: Team) -> None:
        began_s = time.monotonic()
        recording: list[tuple[float, dict[str, Any]]] = [(0.0, message) for message in team.snapshot()]
        self.recordings.append(recording)
        show = team.on_message

        def told(message: dict[str, Any]) -> None:
            recording.append((round(time.monotonic() - began_s, 2), message))
            show(message)

        team.on_message = told


def recorded_page(recording: list[tuple[float, dict[str, Any]]]) -> str:
    """The page with its style, its script and a recording inside."""
    page = (PAGE / "flood_watch.html").read_text(encoding="utf-8")
    style = (PAGE / "flood_watch.css").read_text(encoding="utf-8")
    script = (PAGE / "flood_watch.js").read_text(encoding="utf-8")
    data = msgspec.json.encode(recording).decode().replace("</", "<\\/")
    page = page.replace('<link rel="stylesheet" href="/page/flood_watch.css">', f"<style>{style}</style>")
    playing = f'<script type="application/json" id="recording">{data}</script><script type="module">{script}</script>'
    return page.replace('<script type="module" src="/page/flood_watch.js"></script>', playing)
