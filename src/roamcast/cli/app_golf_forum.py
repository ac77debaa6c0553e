"""`roamcast app golf-forum`: one device of the forum with its page, or a whole tournament on this machine."""

import asyncio
import contextlib
import signal
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from roamcast.apps.golf_forum.course import Course
from roamcast.apps.golf_forum.demo import GolfForumDemo
from roamcast.apps.golf_forum.pages import serving
from roamcast.apps.golf_forum.participant import Device, Participant
from roamcast.apps.golf_forum.simulated import simulated_story
from roamcast.apps.golf_forum.story import recorded_page
from roamcast.cli.node_config import as_toml, from_file
from roamcast.cli.output import print_json
from roamcast.cli.settings import assignments
from roamcast.errors import ConfigurationError
from roamcast.live.endpoints import PORT
from roamcast.live.identity import read_identity
from roamcast.world.files import write_whole

NODE_OPTIONS = ("listen", "peers", "interfaces", "port", "network", "key", "identity", "state", "plain")
"""Options that are settings of `roamcast.Node` of the same name."""


def golf_forum(
    context: typer.Context,
    demo: Annotated[bool, typer.Option("--demo", help="A tournament of live nodes on this machine.")] = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="A tournament in the simulator.")] = False,
    duration_s: Annotated[float, typer.Option("--duration", min=5, max=600, help="Seconds of the tournament.")] = 60.0,
    holes: Annotated[int, typer.Option(min=1, max=18, help="Of the course.")] = 9,
    visitors: Annotated[int, typer.Option(min=1, max=40, help="In the gallery.")] = 12,
    seed: Annotated[int, typer.Option(help="Decides movements and scores.")] = 1,
    export: Annotated[
        Path | None,
        typer.Option(help="Then write the course map with all that happened into this file.", path_type=Path),
    ] = None,
    stay: Annotated[bool, typer.Option("--stay/--no-stay", help="Then go on until Ctrl-C.")] = True,
    name: Annotated[str | None, typer.Option(help="Whose device it is.")] = None,
    address: Annotated[int | None, typer.Option(help="Of the node. [default: from the identity]")] = None,
    hole: Annotated[int | None, typer.Option(help="The owner is the official announcer at this hole.")] = None,
    broker: Annotated[bool, typer.Option("--broker/--no-broker", help="Serve devices nearby.")] = True,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="No XPath here: send Bloom filters to a broker; implies --no-broker.")
    ] = False,
    page: Annotated[str, typer.Option(help="HOST:PORT of the page; port 0 takes a free one.")] = "127.0.0.1:8080",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with these options.", callback=from_file, is_eager=True, path_type=Path),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print these options as a file, and exit.")
    ] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of ODMRP, name=value.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT of the socket for static links.")] = None,
    peers: Annotated[list[str] | None, typer.Option("--peer", help="HOST:PORT of a static link.")] = None,
    interfaces: Annotated[list[str] | None, typer.Option("--interface", help="Find neighbours there.")] = None,
    port: Annotated[int, typer.Option(help="UDP port on interfaces.")] = PORT,
    network: Annotated[str | None, typer.Option(help="Nodes of other networks are ignored.")] = None,
    key: Annotated[Path | None, typer.Option(help="The network's key file.", path_type=Path)] = None,
    identity: Annotated[Path | None, typer.Option(help="This node's identity file.", path_type=Path)] = None,
    state: Annotated[Path | None, typer.Option(help="Where it remembers its lives.", path_type=Path)] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without a key, send off this machine all the same.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line as a JSON object.")] = False,
) -> None:
    """Follow a golf tournament with a device in the gallery, or announce as an official at a hole.

    A device: roamcast app golf-forum --name Ann --address 1 --interface lo. A tournament: --demo, or --simulate.
    """
    if print_config:
        typer.echo(as_toml(context, "app golf-forum"), nl=False)
    elif demo and simulate:
        raise ConfigurationError("--demo: not together with --simulate")
    elif demo:
        asyncio.run(_demo(context.params))
    elif simulate:
        _simulate(context.params)
    else:
        asyncio.run(_device(context.params))


async def _demo(options: Mapping[str, Any]) -> None:
    course = Course(holes=options["holes"], visitors=options["visitors"], seed=options["seed"])
    demo = GolfForumDemo(course, seed=options["seed"], listen=options["page"])
    say = _teller(options["as_json"])
    ended = _ended()
    async with demo.running():
        url = demo.server.url
        say({"kind": "started", "url": url, "nodes": len(demo.participants)}, f"the course is at {url}")
        if options["browser"]:
            webbrowser.open(url)
        playing = asyncio.create_task(demo.play(options["duration_s"]))
        waited: list[asyncio.Future[Any]] = [playing, ended]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            playing.cancel()
            return
        outcome = playing.result()
        say(
            {"kind": "played", **msgspec.to_builtins(outcome)},
            f"{outcome.nodes} nodes, {outcome.published} events: {outcome.delivered} of {outcome.expected} arrived",
        )
        _export(options, demo.story.messages, say)
        if options["stay"]:
            say({"kind": "open", "url": url}, f"all pages stay open at {url} (Ctrl-C ends it)")
            await ended


def _simulate(options: Mapping[str, Any]) -> None:
    course = Course(holes=options["holes"], visitors=options["visitors"], seed=options["seed"])
    story, summary = simulated_story(course, duration_s=options["duration_s"], seed=options["seed"])
    say = _teller(options["as_json"])
    say(
        {"kind": "simulated", **summary},
        f"{summary['nodes']} nodes, {summary['published']} events: "
        f"{summary['delivered']} of {summary['expected']} arrived",
    )
    path = options["export"] or Path("golf-forum.html")
    _export({**options, "export": path}, story, say)
    if options["browser"]:
        webbrowser.open(path.absolute().as_uri())


async def _device(options: Mapping[str, Any]) -> None:
    identity = options["identity"]
    address = options["address"]
    if address is None:
        if identity is None:
            raise ConfigurationError("--address: must be given, or follows from --identity; or use --demo")
        address = read_identity(identity).address
    device = Device(
        options["name"] or f"Node {address}",
        address,
        options["hole"],
        broker=options["broker"] and not options["constrained"],
        constrained=options["constrained"],
    )
    node = {name: options[name] for name in NODE_OPTIONS if options[name] is not None}
    participant = Participant(device, parameters=assignments("--set", options["settings"] or []), **node)
    say = _teller(options["as_json"])
    participant.listeners.append(lambda message: _tell_notice(message, say))
    ended = _ended()
    async with serving(participant, options["page"]) as server:
        say(
            {"kind": "started", "url": server.url, "address": address, "endpoint": participant.node.endpoint},
            f"the page of {device.name} is at {server.url} (Ctrl-C ends it)",
        )
        if options["browser"]:
            webbrowser.open(server.url)
        await ended


def _teller(as_json: bool) -> Callable[[dict[str, Any], str], None]:
    def say(fields: dict[str, Any], text: str) -> None:
        if as_json:
            print_json(fields)
        else:
            typer.echo(text)

    return say


def _tell_notice(message: dict[str, Any], say: Callable[[dict[str, Any], str], None]) -> None:
    if message["kind"] == "notice":
        values = ", ".join(f"{path} {value}" for path, value in message["values"].items() if not path.startswith("@"))
        why = "; ".join(match["xpath"] for match in message["matches"])
        say(message, f"{message['type']}: {values} ({why})")


def _export(
    options: Mapping[str, Any], messages: list[dict[str, Any]], say: Callable[[dict[str, Any], str], None]
) -> None:
    path = options["export"]
    if path is not None:
        page = recorded_page(messages)
        write_whole(path, page)
        say({"kind": "exported", "path": str(path)}, f"written to {path} ({len(page) / 1e6:.1f} MB)")


def _ended() -> "asyncio.Future[None]":
    """Done at Ctrl-C or when the process is asked to end."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            ended.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    return ended
