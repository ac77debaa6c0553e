"""`roamcast bench emulator`: the simulator beside real nodes."""

from typing import Annotated

import msgspec
import typer

from roamcast.bench.emulator import compare, deployable
from roamcast.cli.output import print_json, print_table


def emulator(
    protocol: Annotated[list[str] | None, typer.Option(help="Repeatable; all that can be deployed.")] = None,
    nodes: Annotated[int, typer.Option(min=2, max=64, help="Real processes at a time.")] = 20,
    duration_s: Annotated[float, typer.Option("--duration", min=25, help="Seconds of real time for each.")] = 60,
    seed: Annotated[int, typer.Option(help="Of the network.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Run the same scenarios simulated and with real nodes, and compare."""
    found = []
    for name in protocol or deployable():
        typer.echo(f"roamcast: {name}, {nodes} nodes, {duration_s:g} s", err=True)
        found.append(compare(name, nodes=nodes, duration_s=duration_s, seed=seed))
    if as_json:
        print_json([msgspec.to_builtins(each) | {"agrees": each.agrees} for each in found])
        return
    print_table(
        f"Simulated and emulated: {nodes} nodes, {duration_s:g} s, seed {seed}",
        [
            *("protocol", "delivery", "emulated", "frames", "emulated", "ratio"),
            *("median, ms", "emulated", "behind, ms", "agrees"),
        ],
        [
            [
                each.protocol,
                f"{each.delivery_simulated:.3f}",
                f"{each.delivery_emulated:.3f}",
                f"{each.frames_simulated:,}",
                f"{each.frames_emulated:,}",
                f"{each.frames_emulated / max(1, each.frames_simulated):.2f}",
                f"{each.latency_ms_simulated:.1f}",
                f"{each.latency_ms_emulated:.1f}",
                f"{1000 * each.behind_s:.0f}",
                "yes" if each.agrees else "no",
            ]
            for each in found
        ],
    )
