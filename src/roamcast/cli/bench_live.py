"""`roamcast bench live`: live nodes beside raw UDP, Zenoh and mosquitto."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from roamcast.bench.live import CONTENDERS, RATES, Figures, available, measure
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
    page: Annotated[Path | None, typer.Option(help="Write the results as Markdown into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Measure latency and loss-free rate between two processes on loopback, beside other systems."""
    for name in contender or ():
        if name not in CONTENDERS:
            raise ConfigurationError(f"--contender: {name!r} is unknown; allowed: {', '.join(CONTENDERS)}")
    found: list[Figures] = []
    for name in contender or CONTENDERS:
        if not available(name):
            typer.echo(f"roamcast: {name} is not installed", err=True)
            continue
        typer.echo(f"roamcast: measures {name}", err=True)
        found.append(measure(name, seconds))
    if page is not None:
        page.write_text(as_page(found, seconds), encoding="utf-8")
    if as_json:
        print_json([msgspec.to_builtins(each) for each in found])
    else:
        print_table("Two processes, loopback, 64 bytes", HEADER, [_row(each) for each in found])


HEADER = ["", "p50, µs", "p99, µs", "events/s without loss", "CPU sending, µs", "CPU receiving, µs"]


def _row(figures: Figures) -> list[str]:
    title = TITLES[figures.contender]
    cpu = [f"{each:.1f}" for each in (figures.sending_us, figures.receiving_us)]
    return [title, f"{figures.p50_us:.0f}", f"{figures.p99_us:.0f}", f"{figures.rate_per_s:,}", *cpu]


def as_page(found: list[Figures], seconds: float) -> str:
    """The results for `docs/results/live.md`."""
    rows = "\n".join("| " + " | ".join(_row(each)) + " |" for each in found)
    return f"""# Live nodes: latency and rate

Made by `roamcast bench live --seconds {seconds:g} --page docs/results/live.md`. Two processes on one machine publish
and receive events with 64 bytes of payload over loopback; Roamcast with flooding, one hop. Latency is at 200 events/s.
The rate is the highest of {RATES[0]:,} to {RATES[-1]:,} events/s at which nothing was lost; if the publisher could
not keep up, what it reached. CPU time is of one event at that rate, in all threads of a process; a broker's is not
counted. Figures depend on the machine and on what else it is doing: compare those of one run with each other. CPU time
depends on it least. On this machine {_busy()}.

| {" | ".join(HEADER)} |
|---|---|---|---|---|---|
{rows}
"""


def _busy() -> str:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"{load:.1f} processes shared {cores} cores meanwhile"
