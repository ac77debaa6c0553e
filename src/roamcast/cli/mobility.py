"""`roamcast mobility`: looks at how nodes move and who meets whom, without running a protocol.

It takes the movements that `roamcast simulate` uses for the same settings and seed. It prints how dense and how
connected the network is, draws it in the terminal or as a still map, and writes positions, movements (ns-2, CSV,
GeoJSON) or contacts for other tools.
"""

from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Literal

import msgspec
import numpy as np
import typer

from roamcast.cli.output import print_json
from roamcast.cli.scenario_options import takes_run
from roamcast.errors import ConfigurationError
from roamcast.report.still_map import still_map
from roamcast.report.terminal_map import terminal_map
from roamcast.world import files
from roamcast.world.contacts import ContactPlan, scenario_contacts
from roamcast.world.mobility import Movements, scenario_movements
from roamcast.world.scenario import Run, Scenario
from roamcast.world.signal_contacts import signal_contacts, signal_links

Product = Literal["positions", "movements", "csv", "geojson", "contacts"]


class NetworkSummary(msgspec.Struct, kw_only=True):
    """What the command answers; with `--json`, as one object."""

    mobility: str
    nodes: int
    seed: int
    range_m: float
    duration_s: float
    degree_mean: float  # neighbours of a node, over nodes and time
    contacts: int
    contact_duration_s_mean: float | None  # None without contacts
    at_s: float
    links: int  # at at_s
    largest_component_share: float  # of the nodes, at at_s
    written: list[str]  # files


@takes_run
def mobility(
    run: Run,
    write: Annotated[Product | None, typer.Option(help="What to write to --out; movements: for ns-2.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for --write.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw paths and nodes in the terminal.")] = False,
    map_file: Annotated[Path | None, typer.Option("--map", help="Draw a still map to this SVG file.")] = None,
    at_s: Annotated[float, typer.Option("--at", help="Second of the map, of positions and of components.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Show how nodes move and meet, drawn or imported; write positions, movements or contacts.

    Takes the options of simulate, so you see the same network that it simulates. Protocol, workload and failures make
    no difference here; of the radio, only range and signal count. With a signal model, a contact is a link that works
    in both directions, with the shadowing of the run that has the same seed.

    Example: roamcast mobility --duration 20 --write movements --out walk.ns2
    """
    if show and as_json:
        raise ConfigurationError("--show and --json: must not be given together")
    where = scenario_movements(run.scenario, run.seed)
    plan = _contacts(run, where)
    texts = _texts(
        scenario=run.scenario, where=where, plan=plan, at_s=at_s, write=write, out=out, map_file=map_file, show=show
    )
    for path, text in texts.items():
        files.write_whole(path, text)
    summary = _summary(run, plan, at_s, [str(path) for path in texts])
    if as_json:
        print_json(summary)
    else:
        if show:
            typer.echo(terminal_map(run.scenario, where, at_s, get_terminal_size().columns))
        typer.echo(_told(summary))


def _contacts(run: Run, where: Movements | None) -> ContactPlan:
    links = signal_links(run.scenario, where, run.seed)
    if links is None or where is None:
        return scenario_contacts(run.scenario, where)
    return signal_contacts(run.scenario, where, links)


def _texts(
    scenario: Scenario,
    where: Movements | None,
    plan: ContactPlan,
    at_s: float,
    write: Product | None,
    out: Path | None,
    map_file: Path | None,
    show: bool,
) -> dict[Path, str]:
    """What is to be written where. Everything that can be refused is refused here, before the first file."""
    if not 0 <= at_s < scenario.duration_s:
        raise ConfigurationError(f"at = {at_s}: must be at least 0 and below the duration ({scenario.duration_s:g})")
    if (write is None) != (out is None):
        raise ConfigurationError("--write and --out: must be given together")
    if where is None and (show or map_file or write not in (None, "contacts")):
        raise ConfigurationError("--show, --map, --write other than contacts: must come without --contacts (no places)")
    texts: dict[Path, str] = {}
    if out is not None:
        texts[out] = files.contacts_text(plan) if where is None else _text(scenario, where, plan, at_s, write)
    if map_file is not None and where is not None:
        texts[map_file] = still_map(scenario, where, plan, at_s)
    return texts


def _text(scenario: Scenario, where: Movements, plan: ContactPlan, at_s: float, write: Product | None) -> str:
    match write:
        case "positions":
            return files.positions_text(where, at_s)
        case "movements":
            return files.movements_text(where, scenario.area_m, scenario.duration_s)
        case "csv":
            return files.table_text(where, scenario.duration_s)
        case "geojson":
            return files.geojson_text(scenario, where)
        case _:
            return files.contacts_text(plan)


def _summary(run: Run, plan: ContactPlan, at_s: float, written: list[str]) -> NetworkSummary:
    scenario = run.scenario
    lengths_s = plan.until_s - plan.from_s
    return NetworkSummary(
        mobility=scenario.mobility.model,
        nodes=scenario.nodes,
        seed=run.seed,
        range_m=scenario.radio.range_m,
        duration_s=scenario.duration_s,
        degree_mean=2 * float(lengths_s.sum()) / (scenario.nodes * scenario.duration_s),
        contacts=len(plan),
        contact_duration_s_mean=float(lengths_s.mean()) if len(plan) else None,
        at_s=at_s,
        links=len(plan.at(at_s)[0]),
        largest_component_share=float(np.bincount(plan.components(at_s)).max()) / scenario.nodes,
        written=written,
    )


def _told(summary: NetworkSummary) -> str:
    mean_s = summary.contact_duration_s_mean
    rows = [
        ("nodes", f"{summary.nodes} ({summary.mobility}, seed {summary.seed})"),
        ("mean degree", f"{summary.degree_mean:.2f} over {summary.duration_s:g} s"),
        ("contacts", f"{summary.contacts}" + ("" if mean_s is None else f", {mean_s:.1f} s each on average")),
        (f"at {summary.at_s:g} s", f"{summary.links} links, largest component {summary.largest_component_share:.1%}"),
        *(("written", path) for path in summary.written),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)
