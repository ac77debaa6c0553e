"""`roamcast bench emulator`: the simulator beside real nodes."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from roamcast.bench.emulator import DELAY_S, DRAWS, START_S, Beside, compare, deployable, hop_overhead_s
from roamcast.cli.output import print_json, print_table


def emulator(
    protocol: Annotated[list[str] | None, typer.Option(help="Repeatable; all that can be deployed.")] = None,
    nodes: Annotated[int, typer.Option(min=2, max=64, help="Real processes at a time.")] = 20,
    duration_s: Annotated[float, typer.Option("--duration", min=25, help="Seconds of real time for each.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the first network; the others have the following ones.")] = 1,
    networks: Annotated[
        int, typer.Option(min=1, help="Number of networks that each protocol runs in, one after the other.")
    ] = 2,
    page: Annotated[Path | None, typer.Option(help="Write the results as Markdown into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Run the same scenarios simulated and with real nodes, and compare."""
    overhead_s = hop_overhead_s(nodes=nodes, seed=seed)
    typer.echo(f"roamcast: machine and programs take {1000 * overhead_s:.1f} ms of a hop", err=True)
    found = []
    for name in protocol or deployable():
        typer.echo(f"roamcast: {name}, {networks} x {nodes} nodes, {duration_s:g} s", err=True)
        found.append(compare(name, networks, nodes=nodes, duration_s=duration_s, seed=seed, overhead_s=overhead_s))
        typer.echo(f"roamcast: {', '.join(map(' '.join, zip(HEADER, _row(found[-1]), strict=True)))}", err=True)
    if page is not None:
        page.write_text(
            as_page(found, nodes=nodes, duration_s=duration_s, seed=seed, networks=networks), encoding="utf-8"
        )
    if as_json:
        print_json([msgspec.to_builtins(each) | {"agrees": each.agrees} for each in found])
        return
    title = f"Simulated and emulated: means over {networks} networks of {nodes} nodes, {duration_s:g} s each"
    print_table(title, HEADER, [_row(each) for each in found])


HEADER = [
    *("protocol", "delivery", "emulated", "frames", "least to most", "emulated", "ratio"),
    *("median, ms", "emulated", "behind, ms", "agrees"),
]


def _row(each: Beside) -> list[str]:
    return [
        each.protocol,
        f"{each.mean('delivery_simulated'):.3f}",
        f"{each.mean('delivery_emulated'):.3f}",
        f"{each.mean('frames_simulated'):,.0f}",
        f"{each.mean('frames_least'):,.0f}–{each.mean('frames_most'):,.0f}",
        f"{each.mean('frames_emulated'):,.0f}",
        f"{each.frames_ratio:.2f}",
        f"{each.mean('latency_ms_simulated'):.1f}",
        f"{each.mean('latency_ms_emulated'):.1f}",
        f"{1000 * each.behind_s:.0f}",
        "yes" if each.agrees else "no",
    ]


def as_page(found: list[Beside], *, nodes: int, duration_s: float, seed: int, networks: int) -> str:
    """The results for `docs/results/emulator.md`."""
    rows = [HEADER, ["---"] * len(HEADER), *map(_row, found)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    agreed = sum(each.agrees for each in found)
    options = f"--nodes {nodes} --duration {duration_s:g} --networks {networks} --seed {seed}"
    return f"""# The simulator beside the emulator

Made by `roamcast bench emulator {options} --page docs/results/emulator.md`.
Each protocol ran in the simulator and with {nodes} real `roamcast node` processes in network namespaces: the same
movements, links, workload and random draws, in {networks} networks. The radio is ideal, with {1000 * DELAY_S:g} ms per
hop in both; what the machine takes of that was measured first.

Real processes begin up to {1000 * START_S:g} ms apart, which may decide who becomes a root. So each network was
simulated {DRAWS} times with nodes that begin that far apart. All figures are means over networks, those of the
simulator also over these runs; *least to most* is how far their frames are apart. Simulator and emulator agree if
delivery differs by at most 2 points and frames by at most 10 %: {agreed} of {len(found)} do. Delivery counts the
subscribers to which a path led. *Behind* is the most by which the emulation was late; one that fell behind shows the
machine, not the protocol.

{table}
"""
