"""`roamcast app flood-watch`: water depths for rescue teams, computed by brokers on vehicles."""

import asyncio
import contextlib
import math
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from roamcast.errors import ConfigurationError

OUT = Path("results/flood-watch.html")
Role = Literal["station", "vehicle", "team"]
Place = Callable[[], tuple[float, float]]


def flood_watch(
    role: Annotated[Role | None, typer.Option(help="What this machine is, if the parts run on separate ones.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Run everything on this machine.")] = False,
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="With --demo: every part is a process in a network of its own, with keys."),
    ] = False,
    seconds: Annotated[float, typer.Option(help="How long the demonstration runs.")] = 60.0,
    stay: Annotated[bool, typer.Option("--stay", help="Run the demonstration until interrupted.")] = False,
    out: Annotated[Path, typer.Option(help="Where the demonstration leaves its page.")] = OUT,
    page: Annotated[str, typer.Option(help="Where a team's page is served, HOST:PORT.")] = "127.0.0.1:8080",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the terrain and its storms; the same on all machines.")] = 7,
    address: Annotated[int | None, typer.Option(help="Vehicles: 1 to 99, station: 100, teams: 200 to 299.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT for static links.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="A static link, HOST:PORT; may be repeated.")] = None,
    interface: Annotated[list[str] | None, typer.Option(help="Where to look for neighbours; may be repeated.")] = None,
    key: Annotated[Path | None, typer.Option(help="The network's key file.")] = None,
    identity: Annotated[Path | None, typer.Option(help="This node's identity file.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Allow plain datagrams to leave this machine.")] = False,
    position: Annotated[
        str, typer.Option(help="Position of this node, metres east and north; -: read positions from standard input.")
    ] = "2500,2500",
    name: Annotated[str | None, typer.Option(help="Of the team or vehicle.")] = None,
    box: Annotated[str, typer.Option(help="What the team watches: left,top,right,bottom in cells.")] = "30,30,70,70",
    level: Annotated[float, typer.Option(help="Depth of water in metres that is an alarm.")] = 0.5,
    one_computer: Annotated[bool, typer.Option("--one-computer", hidden=True, help="It has several vehicles.")] = False,
) -> None:
    """Watch water rise on a map: rain from a station, brokers on vehicles that compute depths, a page per team.

    The demonstration runs by itself for a minute and leaves a page to look at. With --role the same programs run on
    separate machines; vehicles are the brokers."""
    with contextlib.suppress(KeyboardInterrupt):
        if demo:
            asyncio.run(_demo(seed, page, math.inf if stay else seconds, out, emulated=emulated))
            return
        if role is None:
            raise ConfigurationError("role: say what this machine is (station, vehicle, team), or --demo")
        settings: dict[str, Any] = {
            "address": address,
            "listen": listen,
            "peers": peer or (),
            "interfaces": interface or (),
            "key": key,
            "identity": identity,
            "plain": plain,
        }
        place = _place(position)
        watched = tuple(int(edge) for edge in _numbers("box", box, 4))
        from roamcast.apps.flood_watch.network import parameters

        settings["parameters"] = parameters(vehicle=role == "vehicle", one_computer=one_computer)
        if role == "team":
            asyncio.run(_team(settings, place, seed, page=page, name=name or "Team", box=watched, level_m=level))
        else:
            asyncio.run(_part(role, settings, place, seed, name or ""))


async def _demo(seed: int, page: str, seconds: float, out: Path, *, emulated: bool) -> None:
    from roamcast.apps.flood_watch.demo import TEAMS, FloodWatchDemo

    host, _, port = page.rpartition(":")
    pages = [f"{host}:{int(port) + number if int(port) else 0}" for number in range(len(TEAMS))]
    if emulated:
        from roamcast.apps.flood_watch.emulated import demonstrate

        await demonstrate(seed, pages, seconds, out, typer.echo)
        typer.echo(f"recording: {out}")
        return
    async with FloodWatchDemo(seed, pages) as demo:
        for team, url in zip(demo.teams, demo.urls, strict=True):
            typer.echo(f"{team.name}: {url}")
        try:
            await demo.run(seconds)
        finally:
            demo.write(out)
            typer.echo(f"recording: {out}")


async def _part(role: Role, settings: dict[str, Any], place: Place, seed: int, name: str) -> None:
    """A station or a vehicle."""
    import roamcast
    from roamcast.apps.flood_watch.network import STATION_ADDRESS
    from roamcast.apps.flood_watch.station import run_station
    from roamcast.apps.flood_watch.vehicle import run_vehicle

    if role == "station" and settings["address"] is None and settings["identity"] is None:
        settings["address"] = STATION_ADDRESS
    async with roamcast.Node(protocol="overlays", position=place(), **settings) as node:
        typer.echo(f"{role}: node {node.address} {node.endpoint}".rstrip())
        await (run_station(node, seed) if role == "station" else run_vehicle(node, place, name))


async def _team(
    settings: dict[str, Any],
    place: Place,
    seed: int,
    *,
    page: str,
    name: str,
    box: tuple[int, ...],
    level_m: float,
) -> None:
    import roamcast
    from roamcast.apps.flood_watch.team import Team
    from roamcast.apps.flood_watch.terrain import terrain
    from roamcast.apps.server import PageServer

    left, top, right, bottom = box
    async with roamcast.Node(protocol="overlays", position=place(), **settings) as node:
        typer.echo(f"team: node {node.address} {node.endpoint}".rstrip())
        team = Team(node, name, terrain(seed), (left, top, right, bottom), level_m)
        team.place = place
        server = PageServer(page)
        team.serve(server)
        async with server:
            typer.echo(f"page: {server.url}")
            await team.run()


def _place(position: str) -> Place:
    """Where the node is; with `-`, what the last line of standard input said. Waits for the first line."""
    if position != "-":
        x_m, y_m = _numbers("position", position, 2)
        return lambda: (x_m, y_m)
    known = [_numbers("position", sys.stdin.readline().strip(), 2)]

    def follow() -> None:
        for line in sys.stdin:
            with contextlib.suppress(ConfigurationError):  # half a line, or a receiver that does not know
                known[0] = _numbers("position", line.strip(), 2)

    threading.Thread(target=follow, daemon=True).start()
    return lambda: (known[0][0], known[0][1])


def _numbers(field: str, text: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ConfigurationError(f"{field}: {text!r} is not {count} numbers separated by commas")
    return numbers
