"""`roamcast mobility`: looks at how nodes move and who meets whom, without running a protocol.

It draws the very movements that `roamcast simulate` would use for the same settings and seed, prints how dense and how
connected the network is, and writes positions, movements (ns-2) or contacts for other tools, or a still map.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import typer

from roamcast.cli.output import print_json
from roamcast.cli.settings import size_m
from roamcast.errors import ConfigurationError
from roamcast.report.still_map import still_map
from roamcast.world import files
from roamcast.world.contacts import ContactPlan, scenario_contacts
from roamcast.world.mobility import Movements, movements
from roamcast.world.scenario import Mobility, Radio, Scenario

Model = Literal["static", "waypoint", "grid", "beehive", "group"]
Product = Literal["positions", "movements", "contacts"]


class Summary(msgspec.Struct, kw_only=True):
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


def mobility(
    nodes: Annotated[int | None, typer.Option(help="Number of nodes (50; with a file, as many as it has).")] = None,
    area: Annotated[str, typer.Option(help="Side of the square area in metres, or WIDTHxHEIGHT.")] = "1000",
    range_m: Annotated[float, typer.Option("--range", help="Radio range in metres.")] = 200.0,
    duration_s: Annotated[
        float | None, typer.Option("--duration", help="Seconds (100; with recorded movements or contacts, all).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 1,
    model: Annotated[Model, typer.Option("--mobility", help="How nodes are placed and move.")] = "waypoint",
    positions_file: Annotated[Path | None, typer.Option("--positions", help="Static nodes: `x y` per line.")] = None,
    movements_file: Annotated[Path | None, typer.Option("--movements", help="An ns-2 movement file.")] = None,
    contacts_file: Annotated[
        Path | None, typer.Option("--contacts-file", "--contacts", help="Recorded contacts: `a b from until` per line.")
    ] = None,
    speed_min_mps: Annotated[float, typer.Option("--speed-min", help="waypoint, group: m/s, above 0.")] = 0.1,
    speed_max_mps: Annotated[float, typer.Option("--speed-max", help="waypoint, group: m/s.")] = 10.0,
    pause: Annotated[str, typer.Option(help="waypoint, group: seconds between trips, or LEAST:MOST.")] = "0",
    groups: Annotated[int, typer.Option(help="group: number of groups.")] = 5,
    group_radius_m: Annotated[float, typer.Option("--group-radius", help="group: metres around its centre.")] = 100.0,
    spacing_m: Annotated[
        float | None, typer.Option("--spacing", help="grid, beehive: metres between neighbours; else fills the area.")
    ] = None,
    write: Annotated[Product | None, typer.Option(help="What to write to --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for --write.")] = None,
    map_file: Annotated[Path | None, typer.Option("--map", help="Draw a still map to this SVG file.")] = None,
    at_s: Annotated[float, typer.Option("--at", help="Second of the map, of positions and of components.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Show how nodes move and meet; write positions, movements or contacts; draw a still map."""
    settings = {
        "model": model,
        "speed_min_mps": speed_min_mps,
        "speed_max_mps": speed_max_mps,
        "groups": groups,
        "group_radius_m": group_radius_m,
        "spacing_m": spacing_m,
        **_pause(pause),
        **_recorded(positions_file, movements_file, contacts_file),
    }
    scenario = _scenario(settings, nodes, size_m("--area", area), range_m, duration_s)
    where = movements(scenario, seed)
    plan = scenario_contacts(scenario, where)
    texts = _texts(scenario, where, plan, at_s, write, out, map_file)
    summary = _summary(scenario, seed, plan, at_s, [str(path) for path in texts])
    for path, text in texts.items():
        files.write_whole(path, text)
    if as_json:
        print_json(summary)
    else:
        typer.echo(_told(summary))


def _recorded(positions: Path | None, movement: Path | None, contacts: Path | None) -> dict[str, Any]:
    """The settings that a file with recorded positions, movements or contacts stands for."""
    files_given = (("positions", positions), ("movements", movement), ("contacts-file", contacts))
    given = [name for name, path in files_given if path is not None]
    if len(given) > 1:
        raise ConfigurationError(f"--{given[0]} and --{given[1]}: must be one of them, not both")
    if positions:
        return {"model": "static", "positions_m": files.read_positions(positions)}
    if movement:
        return {"model": "movements", "paths": files.read_movements(movement)}
    if contacts:
        return {"model": "contacts", "contacts": files.read_contacts(contacts)}
    return {}


def _scenario(
    settings: dict[str, Any],
    nodes: int | None,
    area_m: tuple[float, float],
    range_m: float,
    duration_s: float | None,
) -> Scenario:
    try:
        mobility = Mobility(**settings)
        return Scenario(
            nodes=nodes if nodes is not None else _nodes(mobility),
            area_m=area_m,
            duration_s=duration_s if duration_s is not None else _duration_s(mobility),
            mobility=mobility,
            radio=Radio(range_m=range_m),
        )
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _nodes(mobility: Mobility) -> int:
    highest = max((max(contact[:2]) for contact in mobility.contacts), default=-1)
    return len(mobility.positions_m) or len(mobility.paths) or highest + 1 or Scenario().nodes


def _duration_s(mobility: Mobility) -> float:
    ends_s = [path[-1][0] for path in mobility.paths] + [contact[3] for contact in mobility.contacts]
    return max(ends_s, default=0.0) or Scenario().duration_s


def _pause(text: str) -> dict[str, float]:
    least, _, most = text.partition(":")
    try:
        return {"pause_min_s": float(least), "pause_max_s": float(most or least)}
    except ValueError:
        raise ConfigurationError(f"--pause: {text!r} is not a pause; write seconds, as in 5 or 0:10") from None


def _texts(
    scenario: Scenario,
    where: Movements | None,
    plan: ContactPlan,
    at_s: float,
    write: Product | None,
    out: Path | None,
    map_file: Path | None,
) -> dict[Path, str]:
    """What is to be written where. Everything that can be refused is refused here, before the first file."""
    if not 0 <= at_s < scenario.duration_s:
        raise ConfigurationError(f"at = {at_s}: must be at least 0 and below the duration ({scenario.duration_s:g})")
    if (write is None) != (out is None):
        raise ConfigurationError("--write and --out: must be given together")
    if where is None and (map_file or write in ("positions", "movements")):
        raise ConfigurationError("--contacts-file: must come without --map and --write positions|movements: no places")
    texts: dict[Path, str] = {}
    if out is not None:
        if write == "contacts" or where is None:
            texts[out] = files.contacts_text(plan)
        else:
            texts[out] = files.positions_text(where, at_s) if write == "positions" else files.movements_text(where)
    if map_file is not None and where is not None:
        texts[map_file] = still_map(scenario, where, plan, at_s)
    return texts


def _summary(scenario: Scenario, seed: int, plan: ContactPlan, at_s: float, written: list[str]) -> Summary:
    lengths_s = plan.until_s - plan.from_s
    return Summary(
        mobility=scenario.mobility.model,
        nodes=scenario.nodes,
        seed=seed,
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


def _told(summary: Summary) -> str:
    mean_s = summary.contact_duration_s_mean
    rows = [
        ("nodes", f"{summary.nodes} ({summary.mobility}, seed {summary.seed})"),
        ("mean degree", f"{summary.degree_mean:.2f} over {summary.duration_s:g} s"),
        ("contacts", f"{summary.contacts}" + ("" if mean_s is None else f", {mean_s:.1f} s each on average")),
        (f"at {summary.at_s:g} s", f"{summary.links} links, largest component {summary.largest_component_share:.1%}"),
        *(("written", path) for path in summary.written),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)
