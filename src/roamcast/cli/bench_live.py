"""`roamcast bench live`: live nodes beside raw UDP, Zenoh and mosquitto."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from roamcast.bench.live import CONTENDERS, LATENCY_RATE, RATES, Figures, available, measure
from roamcast.bench.live_idle import GroupDeliveries, IdleNode, measure_group, measure_idle
from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError

TITLES = {
    "roamcast-plain": "Roamcast, no key",
    "roamcast": "Roamcast, sealed",
    "roamcast-signed": "Roamcast, sealed and signed",
    "roamcast-repair": "Roamcast, sealed, with repair",
    "roamcast-overlays": "Roamcast, sealed, Overlays",
    "udp": "asyncio UDP, nothing else",
    "zenoh": "Zenoh, Python binding, peer to peer",
    "mosquitto": "mosquitto and paho-mqtt, QoS 0",
}


def live(
    contender: Annotated[list[str] | None, typer.Option(help="Repeatable; all that are installed.")] = None,
    seconds: Annotated[float, typer.Option(min=0.2, max=60, help="Of publishing at each rate.")] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="Of measuring the latency.")] = 3,
    page: Annotated[Path | None, typer.Option(help="Write the results as Markdown into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Measure latency and loss-free rate between two processes on loopback, beside other systems."""
    for name in contender or ():
        if name not in CONTENDERS:
            raise ConfigurationError(f"--contender: {name!r} is unknown; allowed: {', '.join(CONTENDERS)}")

    def tell(text: str) -> None:
        typer.echo(f"roamcast: {text}", err=True)

    chosen = [name for name in contender or CONTENDERS if available(name)]
    for name in contender or CONTENDERS:
        if name not in chosen:
            tell(f"{name} is not installed")
    began_load = os.getloadavg()[0]
    found = measure(chosen, seconds, rounds, tell)
    idle = served = None
    if contender is None:
        tell("measures an idle node")
        idle = measure_idle(NEIGHBOURS, IDLE_S)
        tell("measures groups with Overlays")
        served = [measure_group(nodes) for nodes in GROUPS]
    if page is not None:
        page.write_text(as_page(found, idle, served or [], _command(seconds, rounds), began_load), encoding="utf-8")
    if as_json:
        print_json([msgspec.to_builtins(each) for each in (*found, *([] if idle is None else [idle]), *(served or []))])
    else:
        print_table("Two processes, loopback, 64 bytes", HEADER, [_row(each) for each in found])
        for line in _others(idle, served or []):
            typer.echo(line)


NEIGHBOURS = 50
IDLE_S = 30.0
GROUPS = (30, 50)
HEADER = ["", "p50, µs", "p99, µs", "events/s without loss", "CPU sending, µs", "CPU receiving, µs"]


def _row(figures: Figures) -> list[str]:
    title = TITLES[figures.contender]
    cpu = [f"{each:.1f}" for each in (figures.sending_us, figures.receiving_us)]
    return [title, f"{figures.p50_us:.0f}", f"{figures.p99_us:.0f}", f"{figures.rate_per_s:,}", *cpu]


def as_page(
    found: list[Figures], idle: IdleNode | None, served: list[GroupDeliveries], command: str, load: float
) -> str:
    """The results for `docs/results/live.md`."""
    rows = "\n".join("| " + " | ".join(_row(each)) + " |" for each in found)
    others = "\n".join(f"- {line}" for line in _others(idle, served))
    return f"""# Live nodes: latency and rate

Made by `{command}`. Two processes on one machine publish
and receive events with 64 bytes of payload over loopback; Roamcast with flooding, one hop. Latency is at
{LATENCY_RATE} events/s, the median of several rounds in which all are measured in turn. The rate is the highest of
{RATES[0]:,} to {RATES[-1]:,} events/s at which nothing was lost; if the publisher could not keep up, what it reached.
CPU time is of one event at that rate, in all threads of a process; a broker's is not counted. Figures depend on the
machine and on what else it is doing: compare those of one run with each other. On this machine {load:.1f} processes
shared {os.cpu_count() or 1} cores when the run began{_scheduled()}.

| {" | ".join(HEADER)} |
|---|---|---|---|---|---|
{rows}

{others}
"""


def _others(idle: IdleNode | None, served: list[GroupDeliveries]) -> list[str]:
    lines = []
    if idle is not None:
        lines.append(
            f"A node with {idle.neighbours} neighbours and nothing to do, Waymark, sealed: {idle.cpu_share:.2%} of a "
            f"core, {idle.memory_mb:.0f} MB."
        )
    for each in served:
        lines.append(
            f"{each.nodes} nodes with Overlays in one group and a few processes, all started at once: {each.delivered} "
            f"of {each.expected} deliveries."
        )
    return lines


def _command(seconds: float, rounds: int) -> str:
    return f"roamcast bench live --seconds {seconds:g} --rounds {rounds} --page docs/results/live.md"


def _scheduled() -> str:
    """Real-time priority keeps a busy machine's other processes away."""
    policy = getattr(os, "sched_getscheduler", lambda process: 0)(0)
    return "; all contenders ran with real-time priority (`chrt -r 5`)" if policy else ""
