"""The plan: a campaign as a table with one row per run.

| column | meaning |
|---|---|
| `run_id` | a digest of everything that decides the run's trace, so the same run has the same id in every campaign |
| `place` | number of the scenario; all contenders at a place share a network for each seed, so they can be paired |
| `point` | number of the contender with its swept parameters at a place; seeds of a point are replicates |
| `protocol` | the contender's label |
| `seed` | |
| `run` | the whole run as JSON |
| one per swept setting | its value at this point as text; null if the contender lacks the parameter |
| `sweeps` | only with several grids: the numbers of those that have this point, from 0 |

Places and points are numbered in the order of the file, whatever the seeds.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from roamcast.campaign.file import Campaign, Contender
from roamcast.campaign.grid import combinations, leaves, protocol_settings, scenario_settings, written_into
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.trace.measures import MEASURES
from roamcast.world.scenario import Run, run_id
from roamcast.world.scenario_file import run_from_tables

_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "place": pa.int32(),
    "point": pa.int32(),
    "protocol": pa.string(),
    "seed": pa.int64(),
    "run": pa.string(),
}
RUN_COLUMNS = pa.schema(_TYPES)

SWEEPS = "sweeps"


class Point(msgspec.Struct, frozen=True):
    """A contender with its parameters at a place; with a seed it is a run."""

    point: int
    place: int
    label: str
    template: Run
    settings: dict[str, str]  # column -> the swept setting's value, only those that this point has
    sweeps: tuple[int, ...] = (0,)  # the grids that have this point

    def run(self, seed: int) -> Run:
        return msgspec.structs.replace(self.template, seed=seed)


def points(campaign: Campaign) -> list[Point]:
    """Every point of the campaign; refuses invalid combinations."""
    names = column_names(campaign)
    places: dict[bytes, int] = {}
    found: dict[tuple[str, bytes], Point] = {}
    everywhere = [(sweep, each) for sweep, axes in enumerate(campaign.sweeps) for each in combinations(axes)]
    for (sweep, combination), contender in itertools.product(everywhere, campaign.contenders):
        if is_excluded(campaign, contender.label, combination):
            continue
        own = protocol_settings(combination, contender.protocol)
        template = _template(campaign, contender, scenario_settings(combination), own)
        key = contender.label, msgspec.json.encode(_understood(template))
        known = found.get(key)
        if known is None:
            place = places.setdefault(msgspec.json.encode(template.scenario), len(places))
            swept = _unswept(campaign, contender, template) | combination
            settings = {names[path]: _text(swept[path]) for path in names if path in swept and _has(contender, path)}
            found[key] = Point(
                point=len(found),
                place=place,
                label=contender.label,
                template=template,
                settings=settings,
                sweeps=(sweep,),
            )
        elif sweep not in known.sweeps:
            found[key] = msgspec.structs.replace(known, sweeps=(*known.sweeps, sweep))
    return list(found.values())


def is_excluded(campaign: Campaign, label: str, combination: dict[str, Any]) -> bool:
    """Whether the campaign leaves a contender out at the place of a combination."""
    settings = {f"scenario.{path}": value for path, value in leaves(campaign.scenario)} | combination
    return any(exclusion.holds(label, settings) for exclusion in campaign.exclusions)


def _understood(run: Run) -> Run:
    """With every parameter filled in, so that a default that is written out makes no difference."""
    whole = msgspec.to_builtins(protocol_parameters(run.protocol, dict(run.parameters)))
    return msgspec.structs.replace(run, parameters=whole)


def _has(contender: Contender, path: str) -> bool:
    """Whether a swept setting applies to a contender."""
    return path.startswith("scenario.") or path in protocol_settings({path: None}, contender.protocol)


def _unswept(campaign: Campaign, contender: Contender, template: Run) -> dict[str, Any]:
    """The values of all swept settings where no grid changes them: those of the file, else the defaults."""
    values: dict[str, Any] = {}
    for path in column_names(campaign):
        head, _, rest = path.partition(".")
        written: Any = campaign.scenario if head == "scenario" else contender.parameters
        default: Any = template.scenario if head == "scenario" else protocol_parameters(contender.protocol, {})
        for part in rest.split("."):
            written = written.get(part) if isinstance(written, dict) else None
            default = getattr(default, part, None)
        values[path] = default if written is None else written
    return values


def _template(campaign: Campaign, contender: Contender, inside: dict[str, Any], own: dict[str, Any]) -> Run:
    given = contender.parameters | {path.partition(".")[2]: value for path, value in own.items()}
    understood = msgspec.to_builtins(protocol_parameters(contender.protocol, given))
    tables = {
        "scenario": written_into(campaign.scenario, inside),
        "protocol": contender.protocol,
        "parameters": {name: understood[name] for name in sorted(given)},
    }
    return run_from_tables(tables, source=campaign.source)


def column_names(campaign: Campaign) -> dict[str, str]:
    """Swept path -> its column: the last word of the path if that is unique, else the whole path."""
    paths = list(dict.fromkeys(path for axes in campaign.sweeps for axis in axes for path in axis.paths))
    lasts = [path.rpartition(".")[2] for path in paths]
    taken = {*RUN_COLUMNS.names, *MEASURES, SWEEPS}
    return {
        path: last if lasts.count(last) == 1 and last not in taken else path.replace(".", "_")
        for path, last in zip(paths, lasts, strict=True)
    }


def plan_table(campaign: Campaign, chosen: Iterable[tuple[Point, int]]) -> pa.Table:
    """The runs of these points and seeds, in this order."""
    columns = list(column_names(campaign).values())
    rows = [
        {
            "run_id": run_id(run),
            "place": point.place,
            "point": point.point,
            "protocol": point.label,
            "seed": seed,
            "run": msgspec.json.encode(run, order="deterministic").decode(),
        }
        | {column: point.settings.get(column) for column in columns}
        | {SWEEPS: " ".join(map(str, point.sweeps))}
        for point, seed in chosen
        for run in (point.run(seed),)
    ]
    schema = RUN_COLUMNS
    for column in columns:
        schema = schema.append(pa.field(column, pa.string()))
    if len(campaign.sweeps) > 1:
        schema = schema.append(pa.field(SWEEPS, pa.string()))
    return pa.Table.from_pylist(rows, schema=schema)


def replicates(campaign_points: Iterable[Point], seeds: Iterable[int]) -> Iterator[tuple[Point, int]]:
    """Every point with every seed, seed by seed."""
    whole = list(campaign_points)
    return ((point, seed) for seed in seeds for point in whole)


def decode_run(text: str) -> Run:
    return msgspec.json.decode(text, type=Run)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " x ".join(map(_text, value))
    if isinstance(value, float) and value.is_integer():  # 10 as a file writes it and 10.0 as a default are the same
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
