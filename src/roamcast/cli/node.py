"""`roamcast node`: a live node with a small application on standard input and output.

Every line on standard input is a command: `publish CONTENT [PAYLOAD]`, `subscribe TEXT`, `unsubscribe TEXT`,
`advertise TEXT`, `move X,Y`, `stats`, `quit`, `halt`. In the language `content` the CONTENT is a document and takes the
rest of the line; `--schema` adds event types to the golf forum's, and all nodes of a network must know the same.
`move` says where the node is now, in metres; a program that reads a satellite receiver writes one after each fix.
Every delivered event is a line on standard output. A line that makes no sense is answered by one line on standard
error, and the node goes on. The end of the input does not end the node: it may run as a service. `quit`, SIGINT,
SIGTERM and the end of `--duration` end it, with its final counters as the last line; `halt` does without a goodbye.
"""

import asyncio
import contextlib
import errno
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from roamcast.cli.node_config import as_toml, from_file, reread
from roamcast.cli.node_output import Printer
from roamcast.cli.node_plan import NodePlan, node_plan, parse_point
from roamcast.cli.service import Service, unit
from roamcast.doors.gate import is_internal
from roamcast.doors.opening import open_doors
from roamcast.errors import ConfigurationError
from roamcast.interests import Interest, parse_interest
from roamcast.library.nodes import Node
from roamcast.live.endpoints import PORT
from roamcast.live.loop import run
from roamcast.live.node import Delivery, LiveNode, parse_content
from roamcast.live.notices import Level, Notice

LINE_BYTES_MAX = 1 << 20  # longer than any event that can be sent, so that too long a one is answered
DEPENDENCIES_BYTES_MAX = 65_536
COMMANDS = "publish CONTENT [PAYLOAD], subscribe TEXT, unsubscribe TEXT, advertise TEXT, move X,Y, stats, quit, halt"


def node(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            callback=from_file,
            help="A TOML file with these options; options win over it.",
            path_type=Path,
        ),
    ] = None,
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
    language: Annotated[str, typer.Option(help="Of interests and events: topics, intervals or content.")] = "topics",
    schemas: Annotated[
        list[Path] | None,
        typer.Option("--schema", help="content: an XML Schema with more event types; repeatable.", path_type=Path),
    ] = None,
    subscribe: Annotated[list[str] | None, typer.Option(help="An interest, as in fire/**; repeatable.")] = None,
    advertise: Annotated[list[str] | None, typer.Option(help="What it is going to publish; repeatable.")] = None,
    position: Annotated[str | None, typer.Option(help="Where it is at first: X,Y in metres.")] = None,
    site: Annotated[str | None, typer.Option(help="Size of the deployment, WxH in metres.")] = None,
    range_m: Annotated[float | None, typer.Option("--range", help="Nominal radio range in metres.")] = None,
    dependencies: Annotated[
        str | None,
        typer.Option(help="Which events cause which others, as in 'a => b; b => c', or a file that says so."),
    ] = None,
    cpu_share: Annotated[
        float,
        typer.Option(help="Share of a core that this node has, where something limits it. Its load is relative to it."),
    ] = 1.0,
    trace: Annotated[
        Path | None, typer.Option(help="Write the trace as Parquet into this new directory.", path_type=Path)
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Where the node remembers its lives, so that no restart and no clock makes it repeat itself "
            "(~/.local/state/roamcast).",
            path_type=Path,
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Fetch lost events from neighbours, and keep events for them.")
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Repair, and keep events and subscriptions in this directory: the node gets what was published while "
            "it was down, and nothing twice.",
            path_type=Path,
        ),
    ] = None,
    sync: Annotated[
        str, typer.Option(help="What the journal survives: full a loss of power, normal the end of the process, off.")
    ] = "normal",
    journal_mib: Annotated[int, typer.Option(help="Events that the node keeps at most, in MiB.")] = 64,
    keep_s: Annotated[float, typer.Option("--keep", help="Seconds that an event is kept at most.")] = 3600.0,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Show the events of each publisher in order; with --repair or --journal.")
    ] = False,
    key: Annotated[
        Path | None, typer.Option(help="The network's key file, made by roamcast key new.", path_type=Path)
    ] = None,
    identity: Annotated[
        Path | None, typer.Option(help="This node's identity file, made by roamcast key certify.", path_type=Path)
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without a key, send off this machine all the same.")] = False,
    peer_datagrams_per_s: Annotated[
        float, typer.Option(min=1, help="Datagrams that one peer may send per second, and twice as many at once.")
    ] = 10_000.0,
    peer_bytes_per_s: Annotated[
        float, typer.Option(min=1500, help="Bytes that one peer may send per second, and twice as many at once.")
    ] = 10e6,
    doors: Annotated[
        list[str] | None,
        typer.Option(
            "--door",
            help="Let other programs in: http, mqtt, metrics or tracing, as NAME or NAME=HOST:PORT; repeatable. "
            "Access rules are in the table `door` of the file.",
        ),
    ] = None,
    duration_s: Annotated[float | None, typer.Option("--duration", help="Stop after this many seconds.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line as a JSON object.")] = False,
    log_level: Annotated[str, typer.Option(help="What is logged: error, warning, info or debug.")] = "info",
    log_format: Annotated[
        str, typer.Option(help="Of the log: text, json, journal, or auto: journal where systemd reads it.")
    ] = "auto",
    held: Annotated[
        bool,
        typer.Option("--held", hidden=True, help="Load everything; begin when a line on standard input says so."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(hidden=True, help="Of what the protocol draws, in tests. [default: the system's]")
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print these options as a file for --config, and exit.")
    ] = False,
    print_unit: Annotated[bool, typer.Option("--print-unit", help="Print a systemd unit for nodes, and exit.")] = False,
) -> None:
    """Run a live node over UDP.

    It finds its neighbours on the network by itself. Example: roamcast node --key rescue.key --identity alice.node
    """
    if print_unit:
        typer.echo(unit(), nl=False)
    elif print_config:
        typer.echo(as_toml(context), nl=False)
    else:
        run(_run(node_plan(context.params), None if config is None else partial(_plan_again, context, config)))


def _plan_again(context: typer.Context, config: Path) -> NodePlan:
    return node_plan({**reread(context, config), "schemas": None})  # event types cannot be added while the node runs


async def _run(plan: NodePlan, replan: Callable[[], NodePlan] | None) -> None:
    await _Application(plan, replan).run()


class _Application:
    """Makes the writer to standard input the node's application."""

    def __init__(self, plan: NodePlan, replan: Callable[[], NodePlan] | None) -> None:
        self._plan = plan
        self._replan = replan  # reads the configuration file again; None if there is none
        self._service = Service()
        self._end = asyncio.Event()
        loop = asyncio.get_running_loop()
        broken = partial(loop.call_soon_threadsafe, self._stop_without_reader)
        self._printer = Printer(plan.as_json, plan.log, broken)
        self._failure: Exception | None = None  # of a command
        self._says_goodbye = True
        self._wanted: list[Interest] = []  # here, not by clients of doors
        self._shared: Node | None = None  # what doors see of the node
        self._node: LiveNode | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        plan = self._plan
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # until there is a node that can reload
        node = await LiveNode.open(
            plan.settings,
            self._delivered,
            self._printer.failed,
            self._printer.noticed,
            before_start=self._hold if plan.held else None,
        )
        self._node = node
        loop.add_signal_handler(signal.SIGHUP, self._reload, node)
        try:
            for interest in plan.offered:
                node.advertise(interest)
            for interest in plan.wanted:
                self._subscribe(node, interest)
            async with self._doors(node):
                self._printer.started(node)
                self._service.ready(f"node {plan.settings.address} runs {plan.settings.protocol}")
                reader = threading.Thread(target=_read_lines, args=(loop, partial(self._command, node)), daemon=True)
                reader.start()
                await self._until_stopped(plan.duration_s)
        finally:
            self._service.stopping()
            node.close(goodbye=self._says_goodbye)
        self._printer.counters("stopped", node)
        self._printer.close()

    async def _hold(self) -> None:
        """Waits for a line, and for the instant that it names, so that many nodes can begin at the same one."""
        self._printer.held()
        loop = asyncio.get_running_loop()
        line = await loop.run_in_executor(None, _read_line)
        with contextlib.suppress(ValueError):  # an empty line: now
            await asyncio.sleep(float(line) - loop.time())

    @contextlib.asynccontextmanager
    async def _doors(self, node: LiveNode) -> AsyncIterator[None]:
        if self._plan.doors.is_empty:
            yield
            return
        self._shared = Node.share(node)
        async with open_doors(self._shared, self._plan.doors, self._printer.noticed):
            yield

    def _delivered(self, delivery: Delivery) -> None:
        if self._shared is not None:
            self._shared.deliver(delivery)
        if is_internal(delivery.event.content):
            return
        if delivery.subscription:
            if delivery.subscription in map(str, self._wanted):
                self._show_named(delivery)
        elif self._shared is None or any(interest.matches(delivery.event) for interest in self._wanted):
            self._printer.delivered(delivery)

    def _show_named(self, delivery: Delivery) -> None:
        """Shows an event, and acknowledges it when its line has been written."""
        assert self._node is not None
        acknowledge = partial(self._node.durability.acknowledge, delivery.subscription, delivery.event.id)
        self._printer.delivered(delivery, partial(asyncio.get_running_loop().call_soon_threadsafe, acknowledge))

    def _subscribe(self, node: LiveNode, interest: Interest) -> None:
        """With a journal a subscription is durable, under its own text as its name."""
        durable = node.settings.journal is not None
        self._wanted.append(interest)
        try:
            if durable or self._plan.ordered:
                node.attach(str(interest), interest, ordered=self._plan.ordered, durable=durable)
            else:
                node.subscribe(interest)
        except ConfigurationError:
            self._wanted.remove(interest)
            raise

    def _unsubscribe(self, node: LiveNode, interest: Interest) -> None:
        if interest not in self._wanted:
            raise ConfigurationError(f"interest: {str(interest)!r} is not subscribed")
        if node.settings.journal is not None or self._plan.ordered:
            node.detach(str(interest), forget=True)
        else:
            node.unsubscribe(interest)
        self._wanted.remove(interest)

    async def _until_stopped(self, duration_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), duration_s)
        if self._failure is not None:
            raise self._failure

    def _reload(self, node: LiveNode) -> None:
        """Takes over what changed in the configuration file, the key and the identity; a mistake changes nothing."""
        self._service.reloading()
        try:
            plan = self._plan if self._replan is None else self._replan()
            needs_restart = node.reload(plan.settings)
            if plan.doors != self._plan.doors:
                needs_restart = [*needs_restart, "door"]
            self._follow(node, plan)
            for name in needs_restart:
                text = f"{name} has changed in the configuration; it takes a restart"
                self._printer.noticed(Notice(Level.WARNING, "needs-restart", text, {"setting": name}))
            self._printer.noticed(Notice(Level.INFO, "reloaded", "has read its configuration again"))
        except (ConfigurationError, TyperException) as error:
            text = error.format_message() if isinstance(error, TyperException) else str(error)
            self._printer.refused(ConfigurationError(f"not reloaded: {text}"))
        self._service.ready(f"node {node.settings.address} runs {node.settings.protocol}")

    def _follow(self, node: LiveNode, plan: NodePlan) -> None:
        before = self._plan
        self._plan = plan
        self._printer.log = plan.log
        for interest in before.wanted:
            if interest not in plan.wanted and interest in self._wanted:
                self._unsubscribe(node, interest)
        for interest in plan.wanted:
            if interest not in before.wanted:
                self._subscribe(node, interest)
        for interest in plan.offered:
            if interest not in before.offered:
                node.advertise(interest)

    def _stop_without_reader(self) -> None:
        self._failure = BrokenPipeError(errno.EPIPE, "no reader")
        self._end.set()

    def _command(self, node: LiveNode, line: str) -> None:
        try:
            self._obey(node, line.strip())
        except ConfigurationError as error:
            self._printer.refused(error)
        except Exception as error:  # a bug: the loop itself would only log it
            self._failure = error
            self._end.set()

    def _obey(self, node: LiveNode, line: str) -> None:
        language = self._plan.settings.language
        command, _, rest = line.partition(" ")
        rest = rest.strip()
        match command:
            case "publish" if rest:
                content, payload = (rest, "") if language == "content" else rest.partition(" ")[::2]
                event = node.publish(parse_content(language, content), payload.strip().encode())
                self._printer.published(event, node.neighbours, node.awaited())
            case "subscribe" if rest:
                self._subscribe(node, parse_interest(language, rest))
            case "unsubscribe" if rest:
                self._unsubscribe(node, parse_interest(language, rest))
            case "advertise" if rest:
                node.advertise(parse_interest(language, rest))
            case "move" if rest:
                node.move(parse_point("move", rest))
            case "stats" if not rest:
                self._printer.counters("stats", node)
            case "quit" | "halt" if not rest:
                self._says_goodbye = command == "quit"
                self._end.set()
            case "":
                pass
            case _:
                raise ConfigurationError(f"command: {line[:80]!r} is unknown; allowed: {COMMANDS}")


def _read_line() -> bytes:
    """Reads no further than the end of the line."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"\n", b""):
        line += byte
    return line


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
