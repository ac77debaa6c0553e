"""`roamcast node`: a live node with a small application on standard input and output.

Every line on standard input is a command: `publish CONTENT [PAYLOAD]`, `subscribe TEXT`, `unsubscribe TEXT`,
`advertise TEXT`, `move X,Y`, `stats`, `quit`. In the language `content` the CONTENT is a document and takes the rest of
the line; `--schema` adds event types to the golf forum's, and all nodes of a network must know the same. `move` says
where the node is now, in metres; a program that reads a satellite receiver writes one after each fix.
Every delivered event is a line on standard output. A line that makes no sense is answered by one line on standard
error, and the node goes on. The end of the input does not end the node: it may run as a service. `quit`, SIGINT,
SIGTERM and the end of `--duration` end it, with its final counters as the last line.
"""

import asyncio
import contextlib
import errno
import math
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from roamcast.causal import Specification, parse_specification
from roamcast.causal.specification import ARROW
from roamcast.cli.node_output import LogSettings, Printer, log_settings
from roamcast.cli.settings import assignments, size_m
from roamcast.errors import ConfigurationError
from roamcast.interests import Interest, parse_interest
from roamcast.interests.content import register
from roamcast.interests.content.schema import SCHEMA_CHARACTERS_MAX
from roamcast.live.endpoints import PORT, Endpoint, is_loopback, parse_endpoint
from roamcast.live.identity import read_identity
from roamcast.live.keys import read_ring
from roamcast.live.node import Node, NodeSettings, parse_content
from roamcast.protocols.api import Point, Site

LINE_BYTES_MAX = 1 << 20  # longer than any event that can be sent, so that too long a one is answered
DEPENDENCIES_BYTES_MAX = 65_536
COMMANDS = "publish CONTENT [PAYLOAD], subscribe TEXT, unsubscribe TEXT, advertise TEXT, move X,Y, stats, quit"


def node(
    address: Annotated[
        int | None, typer.Option(help="This node's address, unique in its network. [default: that of --identity]")
    ] = None,
    protocol: Annotated[str, typer.Option(help="As in roamcast protocols.")] = "waymark",
    settings: Annotated[list[str] | None, typer.Option("--set", help="A protocol's parameter, name=value.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT of the socket; port 0 takes a free one.")] = None,
    peers: Annotated[list[str] | None, typer.Option("--peer", help="HOST:PORT of a static link; repeatable.")] = None,
    interfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            help="Find neighbours on this interface; repeatable. [default: all that can multicast but loopback, "
            "unless --peer or --broadcast is given]",
        ),
    ] = None,
    discover: Annotated[
        bool, typer.Option("--discover", help="Find neighbours on interfaces although --peer or --broadcast is given.")
    ] = False,
    port: Annotated[int, typer.Option(help="UDP port on interfaces, the same on all nodes.")] = PORT,
    group: Annotated[
        str | None, typer.Option("--broadcast", help="HOST:PORT of a broadcast address or multicast group.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Nodes of other networks are ignored. [default: the key file's, or roamcast]")
    ] = None,
    language: Annotated[str, typer.Option(help="Of interests and events: intervals, topics or content.")] = "intervals",
    schemas: Annotated[
        list[Path] | None, typer.Option("--schema", help="content: an XML Schema with more event types; repeatable.")
    ] = None,
    subscribe: Annotated[list[str] | None, typer.Option(help="An interest, as in 10..20; repeatable.")] = None,
    advertise: Annotated[list[str] | None, typer.Option(help="What it is going to publish; repeatable.")] = None,
    position: Annotated[str | None, typer.Option(help="Where it is at first: X,Y in metres.")] = None,
    site: Annotated[str | None, typer.Option(help="Size of the deployment, WxH in metres.")] = None,
    range_m: Annotated[float | None, typer.Option("--range", help="Nominal radio range in metres.")] = None,
    dependencies: Annotated[
        str | None,
        typer.Option(help="Which events cause which others, as in 'a => b; b => c', or a file that says so."),
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Write the trace as Parquet into this new directory.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Where the node remembers its lives, so that no clock makes it repeat itself."),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The network's key file, made by roamcast key new.")] = None,
    identity: Annotated[
        Path | None, typer.Option(help="This node's identity file, made by roamcast key certify.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without a key, send off this machine all the same.")] = False,
    duration_s: Annotated[float | None, typer.Option("--duration", help="Stop after this many seconds.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line as a JSON object.")] = False,
    log_level: Annotated[str, typer.Option(help="What is logged: error, warning, info or debug.")] = "info",
    log_format: Annotated[
        str, typer.Option(help="Of the log: text, json, journal, or auto: journal where systemd reads it.")
    ] = "auto",
) -> None:
    """Run a live node over UDP."""
    neighbourhood = None if group is None else parse_endpoint("--broadcast", group)
    if duration_s is not None and not duration_s > 0:
        raise ConfigurationError(f"--duration = {duration_s:g}: must be above 0")
    if not 1 <= port <= 65535:
        raise ConfigurationError(f"--port = {port}: must be between 1 and 65535")
    links = tuple(parse_endpoint("--peer", peer) for peer in peers or [])
    chosen = NodeSettings(
        address=_address(address, identity),
        protocol=protocol,
        parameters=assignments("--set", settings or []),
        language=language,
        network=network or ("roamcast" if key is None else read_ring(key).network),
        listen=_listen(listen, neighbourhood, links),
        group=neighbourhood,
        peers=links,
        interfaces=tuple(interfaces or []),
        discover=discover,
        port=port,
        position=None if position is None else _point("--position", position),
        site=_site(site, range_m, None if dependencies is None else _dependencies(dependencies, language)),
        trace=trace,
        state=state,
        key=key,
        identity=identity,
        plain=plain,
    )
    parse_interest(language, "")  # refuses an unknown language even if nothing is subscribed yet
    if schemas and language != "content":
        raise ConfigurationError(f"--schema: only for --language content, not for {language!r}")
    for path in schemas or []:
        _register_schema(path)
    wanted = [parse_interest(language, text) for text in subscribe or []]
    offered = [parse_interest(language, text) for text in advertise or []]
    asyncio.run(
        _run(
            settings=chosen,
            as_json=as_json,
            log=log_settings(log_level, log_format),
            wanted=wanted,
            offered=offered,
            duration_s=duration_s,
        )
    )


async def _run(
    settings: NodeSettings,
    as_json: bool,
    log: LogSettings,
    wanted: list[Interest],
    offered: list[Interest],
    duration_s: float | None,
) -> None:
    await _Application(settings, as_json, log).run(wanted, offered, duration_s)


def _register_schema(path: Path) -> None:
    """Adds the event types of a schema in a file, whatever is behind its name."""
    if not path.is_file():  # a pipe or a device could keep us reading for ever
        raise ConfigurationError(f"--schema {str(path)!r}: is not a file")
    try:
        with path.open("rb") as file:
            content = file.read(4 * SCHEMA_CHARACTERS_MAX + 1)
        register(content.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"--schema {str(path)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--schema {str(path)!r}: is not text in UTF-8") from None
    except ConfigurationError as error:
        reason = " ".join(str(error).removeprefix("schema: ").split())
        raise ConfigurationError(f"--schema {str(path)!r}: {reason}") from None


def _address(address: int | None, identity: Path | None) -> int:
    if identity is not None:
        return read_identity(identity).address if address is None else address
    if address is None:
        raise ConfigurationError("--address: must be given, or follows from --identity")
    return address


def _listen(text: str | None, group: Endpoint | None, peers: tuple[Endpoint, ...]) -> Endpoint | None:
    if text is not None:
        return parse_endpoint("--listen", text)
    if group is not None:
        return "0.0.0.0", group[1]
    outside = [host for host, _ in peers if not is_loopback((host, 0)) and "%" not in host]
    return ("::" if ":" in outside[0] else "0.0.0.0", 0) if outside else None


def _point(name: str, text: str) -> Point:
    try:
        x_m, y_m = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(f"{name}: {text!r} is not a place; write X,Y in metres, as in 120,40.5") from None
    if not (math.isfinite(x_m) and math.isfinite(y_m)):
        raise ConfigurationError(f"{name}: {text!r}: must be finite")
    return x_m, y_m


def _site(size: str | None, range_m: float | None, dependencies: Specification | None) -> Site | None:
    if size is None and range_m is None and dependencies is None:
        return None
    if size is None or range_m is None:
        named = "--site and --range" if dependencies is None else "--dependencies, --site and --range"
        raise ConfigurationError(f"{named}: must be given together")
    width_m, height_m = size_m("--site", size)
    if not (0 < width_m < math.inf and 0 < height_m < math.inf and 0 < range_m < math.inf):
        raise ConfigurationError(f"--site {size} --range {range_m:g}: must be above 0 and finite")
    return Site(width_m, height_m, range_m, dependencies)


def _dependencies(text: str, language: str) -> Specification:
    """The specification itself, or what a file of that name says."""
    if language == "content":
        raise ConfigurationError("--dependencies: only for --language intervals or topics, not for 'content'")
    if ARROW in text:
        return parse_specification(text, language=language)
    path = Path(text)
    if not path.is_file():  # a pipe or a device could keep us reading for ever
        raise ConfigurationError(f"--dependencies {text!r}: must be like 'a => b; b => c' or the name of a file")
    try:
        with path.open("rb") as file:
            content = file.read(DEPENDENCIES_BYTES_MAX + 1)
        if len(content) > DEPENDENCIES_BYTES_MAX:
            raise ConfigurationError(f"--dependencies {text!r}: must be at most {DEPENDENCIES_BYTES_MAX} bytes long")
        return parse_specification(content.decode("utf-8-sig"), language=language)
    except OSError as error:
        raise ConfigurationError(f"--dependencies {text!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--dependencies {text!r}: is not text in UTF-8") from None


class _Application:
    """Lets whoever writes to standard input be the node's application."""

    def __init__(self, settings: NodeSettings, as_json: bool, log: LogSettings) -> None:
        self._settings = settings
        self._end = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._printer = Printer(as_json, log, partial(loop.call_soon_threadsafe, self._stop_without_reader))
        self._failure: Exception | None = None  # of a command

    async def run(self, wanted: list[Interest], offered: list[Interest], duration_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # until there is a node that can reload
        node = await Node.open(self._settings, self._printer.delivered, self._printer.failed, self._printer.noticed)
        loop.add_signal_handler(signal.SIGHUP, self._reload, node)
        try:
            for interest in offered:
                node.advertise(interest)
            for interest in wanted:
                node.subscribe(interest)
            self._printer.started(node)
            reader = threading.Thread(target=_read_lines, args=(loop, partial(self._command, node)), daemon=True)
            reader.start()
            await self._until_stopped(duration_s)
        finally:
            node.close()
        self._printer.counters("stopped", node)
        self._printer.close()

    async def _until_stopped(self, duration_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), duration_s)
        if self._failure is not None:
            raise self._failure

    def _reload(self, node: Node) -> None:
        try:
            node.reload_key()
        except ConfigurationError as error:
            self._printer.refused(error)

    def _stop_without_reader(self) -> None:
        self._failure = BrokenPipeError(errno.EPIPE, "no reader")
        self._end.set()

    def _command(self, node: Node, line: str) -> None:
        try:
            self._obey(node, line.strip())
        except ConfigurationError as error:
            self._printer.refused(error)
        except Exception as error:  # a bug: the loop itself would only log it
            self._failure = error
            self._end.set()

    def _obey(self, node: Node, line: str) -> None:
        language = self._settings.language
        command, _, rest = line.partition(" ")
        rest = rest.strip()
        match command:
            case "publish" if rest:
                content, payload = (rest, "") if language == "content" else rest.partition(" ")[::2]
                node.publish(parse_content(language, content), payload.strip().encode())
            case "subscribe" if rest:
                node.subscribe(parse_interest(language, rest))
            case "unsubscribe" if rest:
                node.unsubscribe(parse_interest(language, rest))
            case "advertise" if rest:
                node.advertise(parse_interest(language, rest))
            case "move" if rest:
                node.move(_point("move", rest))
            case "stats" if not rest:
                self._printer.counters("stats", node)
            case "quit" if not rest:
                self._end.set()
            case "":
                pass
            case _:
                raise ConfigurationError(f"command: {line[:80]!r} is unknown; allowed: {COMMANDS}")


def _read_lines(loop: asyncio.AbstractEventLoop, handle: Callable[[str], None]) -> None:
    """Runs in a thread of its own, because standard input may be a file, which the loop cannot wait for.

    It reads the descriptor itself: a thread that waits inside `sys.stdin` would hold its lock when Python exits.
    """
    pending = b""
    with contextlib.suppress(OSError, RuntimeError):  # no standard input; the loop is closed
        while chunk := os.read(0, LINE_BYTES_MAX):
            *lines, pending = (pending + chunk).split(b"\n")
            pending = pending[:LINE_BYTES_MAX]
            for line in lines:
                loop.call_soon_threadsafe(handle, line.decode(errors="replace"))
        if pending:
            loop.call_soon_threadsafe(handle, pending.decode(errors="replace"))
