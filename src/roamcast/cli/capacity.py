"""`roamcast capacity`: the highest rate of publication at which enough arrives, per protocol."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from roamcast.advise.candidates import Candidate, candidate, candidates
from roamcast.advise.capacity import Capacities, Capacity, Rung
from roamcast.advise.demands import parse_demand
from roamcast.campaign.session import LOCAL
from roamcast.cli.advise import INTERRUPTED, scenario_of
from roamcast.cli.output import console, print_json, print_table
from roamcast.errors import ConfigurationError
from roamcast.world.scenario_file import Tables, read_tables


def capacity(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file, or campaign file for its scenario.")],
    want: Annotated[str, typer.Option(help="What must hold at a rate.")] = "delivery>=0.95",
    protocols: Annotated[
        str, typer.Option(help="Names separated by commas. [default: those of the file, or all]")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Networks per rate.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 1,
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    out: Annotated[Path | None, typer.Option(help="Directory for runs and answer (results/capacity-FILE).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False,
) -> None:
    """Find the highest rate of publication that each protocol sustains.

    Rates are doubled or halved from the scenario's own, then bisected to 19 %. The same command goes on where it
    stopped.

    Examples: roamcast capacity examples/rescue.toml; roamcast capacity campaigns/arena.toml --protocols waymark
    """
    from roamcast.advise.capacity import CapacitySearch
    from roamcast.campaign.execute import CampaignStoppedError
    from roamcast.campaign.session import start_session
    from roamcast.cli.campaign_progress import showing_progress

    tables = read_tables(file)
    demand = parse_demand(want)
    if demand.rate_per_s is not None:
        raise ConfigurationError(f"--want: {want!r} names a rate; write what must hold at each, as in delivery>=0.95")
    field = _field(tables, [name.strip() for name in protocols.split(",") if name.strip()])
    search = CapacitySearch(
        scenario_of(tables),
        field,
        demand,
        Path("results") / f"capacity-{file.stem}" if out is None else out,
        source=str(file),
        master=master,
        seeds=tuple(range(first_seed, first_seed + seeds)),
    )
    session = start_session(master)
    try:
        with showing_progress() as on_progress:
            answer = search.run(session, on_rate=_tell_rate, on_progress=on_progress)
    except KeyboardInterrupt:
        _say("stopped; every committed run is kept; the same command continues")
        raise typer.Exit(INTERRUPTED) from None
    except CampaignStoppedError as error:
        _say(f"{error}; every committed run is kept; the same command continues")
        raise typer.Exit(1) from None
    if as_json:
        print_json(answer)
    else:
        _tell(answer)


def _field(tables: Tables, names: list[str]) -> list[Candidate]:
    """The protocols named, or those of a campaign file, limits included, or all that can be deployed."""
    listed: Any = tables.get("protocols")
    if not names and isinstance(listed, list):
        return [_entry(entry) for entry in listed]
    if names:
        return [candidate(name, {}) for name in dict.fromkeys(names)]
    return [each for each in candidates() if not each.parameters]


def _entry(entry: Any) -> Candidate:
    if isinstance(entry, str):
        return candidate(entry, {})
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ConfigurationError(f'protocols = {entry!r}: must be a name, or a table with name = "..."')
    settings = {name: value for name, value in entry.items() if name not in ("name", "label")}
    found = candidate(entry["name"], settings)
    return Candidate(str(entry.get("label", found.label)), found.protocol, found.parameters)


def _tell_rate(rate_per_s: float, means: Mapping[str, float | None]) -> None:
    figures = ", ".join(f"{name} {'–' if mean is None else f'{mean:.3f}'}" for name, mean in means.items())
    _say(f"{rate_per_s:g} per s: {figures}")


def _tell(answer: Capacities) -> None:
    rows = [_row(each, answer) for each in answer.capacities]
    headings = ["protocol", "per publisher and s", "events per s", "there", "fails at", "there"]
    print_table(f"Highest rate with {answer.demand}", headings, rows)
    note = f"{answer.publishers} publishers, {answer.seeds} networks per rate, means; rates are 19 % apart."
    console().print(note, soft_wrap=True)


def _row(found: Capacity, answer: Capacities) -> list[str]:
    if found.error:
        return [found.label, "–", "–", found.error, "", ""]
    passes, fails = found.passes, found.fails
    total = "none" if passes is None else f"{passes.rate_per_s * answer.publishers:.3g}"
    return [found.label, "none" if passes is None else f"{passes.rate_per_s:g}", total, _mean(passes), *_failing(fails)]


def _failing(rung: Rung | None) -> list[str]:
    return ["–", ""] if rung is None else [f"{rung.rate_per_s:g}", _mean(rung)]


def _mean(rung: Rung | None) -> str:
    return "" if rung is None else "nothing" if rung.mean is None else f"{rung.mean:.3f}"


def _say(text: str) -> None:
    typer.echo(f"roamcast: {text}", file=sys.stderr)
