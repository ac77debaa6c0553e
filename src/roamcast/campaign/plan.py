"""The plan: a campaign as a table with one row a run.

| column | meaning |
|---|---|
| `run_id` | belongs to everything that decides the run's trace, so the same run has the same name in every campaign |
| `place` | number of the scenario: all contenders of a place and seed meet the same network, so they can be paired |
| `point` | number of the contender with its swept parameters at a place: seeds of a point are replicates |
| `protocol` | the contender's label |
| `seed` | |
| `run` | the whole run as JSON |
| one per swept setting | its value at this point as text; null where the contender lacks the parameter |

Numbers of places and points follow the order of the file, and do not depend on the seeds.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from roamcast.campaign.file import Campaign, Contender
from roamcast.campaign.grid import combinations, protocol_settings, scenario_settings, written_into
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


class Point(msgspec.Struct, frozen=True):
    """A contender with its parameters at a place; with a seed it is a run."""

    point: int
    place: int
    label: str
    template: Run
    settings: dict[str, str]  # column -> the swept setting's value, only those that this point has

    def run(self, seed: int) -> Run:
        return msgspec.structs.replace(self.template, seed=seed)


def points(campaign: Campaign) -> list[Point]:
    """Every point of the campaign; refuses combinations that make no sense."""
    names = column_names(campaign)
    places: dict[bytes, int] = {}
    found: dict[tuple[str, ...], Point] = {}
    for combination in combinations(campaign.axes):
        for contender in campaign.contenders:
            own = protocol_settings(combination, contender.protocol)
            template = _template(campaign, contender, scenario_settings(combination), own)
            place = places.setdefault(msgspec.json.encode(template.scenario), len(places))
            swept = {path: value for path, value in combination.items() if path.startswith("scenario.") or path in own}
            settings = {names[path]: _text(value) for path, value in swept.items()}
            key = (contender.label, *(f"{name}={value}" for name, value in settings.items()))
            if key not in found:
                found[key] = Point(len(found), place, contender.label, template, settings)
    return list(found.values())


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
    """Swept path -> its column: the last word of the path where that is unique, else the whole path."""
    paths = [path for axis in campaign.axes for path in axis.paths]
    lasts = [path.rpartition(".")[2] for path in paths]
    taken = {*RUN_COLUMNS.names, *MEASURES}
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
        for point, seed in chosen
        for run in (point.run(seed),)
    ]
    schema = RUN_COLUMNS
    for column in columns:
        schema = schema.append(pa.field(column, pa.string()))
    return pa.Table.from_pylist(rows, schema=schema)


def replicates(campaign_points: Iterable[Point], seeds: Iterable[int]) -> Iterator[tuple[Point, int]]:
    """Each of the points with each of the seeds, seed by seed."""
    whole = list(campaign_points)
    return ((point, seed) for seed in seeds for point in whole)


def decode_run(text: str) -> Run:
    return msgspec.json.decode(text, type=Run)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " x ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
