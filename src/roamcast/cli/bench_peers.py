"""`roamcast bench peers` and `roamcast bench forms`: speed beside other simulators, and compiled beside interpreted."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from roamcast.bench import forms as forms_bench
from roamcast.bench import peers as peers_bench
from roamcast.bench.forms import Forms
from roamcast.bench.goals import goals
from roamcast.bench.peers import Comparison
from roamcast.bench.speed_page import store
from roamcast.cli.output import print_json, print_table
from roamcast.protocols.catalogue import PROTOCOLS, protocol_class

JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Store the measurements here and make the speed page again.")
]


def peers(
    ns3: Annotated[Path | None, typer.Option(help="Our ns-3 program, built (make bench-peers does).")] = None,
    simpy_python: Annotated[Path | None, typer.Option(help="A Python that has SimPy.")] = None,
    simpy_program: Annotated[Path, typer.Option(help="Our SimPy program.")] = Path("peers/simpy_flood.py"),
    limit: Annotated[Path | None, typer.Option(help="Our C++ program, built (make bench-peers does).")] = None,
    nodes: Annotated[list[int] | None, typer.Option(help="Network sizes, repeatable (50, 250, 1000).")] = None,
    duration_s: Annotated[
        float | None, typer.Option("--duration", min=2, help="Simulated seconds of floods (40, 10, 5 by size).")
    ] = None,
    layout: Annotated[list[Path] | None, typer.Option(help="Layout file for unicasts, repeatable (none).")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Of every simulator under every flood, at least.")] = 3,
    directory: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Time floods and unicasts beside ns-3, SimPy and plain C++, those that are given."""
    simpy = (simpy_python, simpy_program) if simpy_python else None
    loads = peers_bench.loads(nodes or list(peers_bench.DURATIONS_S), duration_s, layout or [], runs)
    comparison = peers_bench.compare(peers_bench.simulators(ns3, simpy, limit), loads, _tell)
    if directory is not None:
        store(directory, comparison)
    if json:
        print_json(_with_goals(comparison))
        return
    title = "Side by side; s/s: seconds per simulated second"
    print_table(title, list(peers_bench.COLUMNS), peers_bench.table(comparison))
    _print_goals(comparison, None)


def forms(
    protocol: Annotated[list[str] | None, typer.Option(help="Protocols, repeatable (all).")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Of every protocol in both forms.")] = 3,
    short: Annotated[bool, typer.Option("--short", help="Leave out the long and the large run of SOMER.")] = False,
    directory: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Time every protocol compiled and interpreted, 250 nodes."""
    for name in protocol or []:
        protocol_class(name)
    measured = forms_bench.measure(protocol or list(PROTOCOLS), runs, _tell, singles=not short)
    if directory is not None:
        store(directory, measured)
    if json:
        print_json(_with_goals(measured))
        return
    print_table("Compiled beside interpreted", list(forms_bench.COLUMNS), forms_bench.table(measured))
    _print_goals(None, measured)


def _with_goals(measured: Comparison | Forms) -> dict[str, Any]:
    judged = goals(measured, None) if isinstance(measured, Comparison) else goals(None, measured)
    fields: dict[str, Any] = msgspec.to_builtins(measured)
    return fields | {
        "goals": [
            {"what": goal.what, "required": goal.requirement, "measured": goal.measured, "verdict": goal.verdict}
            for goal in judged
            if goal.measured is not None
        ]
    }


def _print_goals(comparison: Comparison | None, measured: Forms | None) -> None:
    rows = [
        [goal.what, goal.requirement, goal.figure, goal.verdict]
        for goal in goals(comparison, measured)
        if goal.measured is not None
    ]
    print_table("Goals", ["goal", "required", "measured", ""], rows)


def _tell(line: str) -> None:
    typer.echo(line, err=True)
