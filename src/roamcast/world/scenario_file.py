"""Runs from TOML: a file with any part of a `Run`; what it does not say keeps its default.

```toml
protocol = "gossip"
seed = 7

[parameters]
probability = 0.6

[scenario]
area_m = 1500            # one number is a square; [1500, 300] a rectangle
duration_s = 200

[scenario.mobility]
positions_file = "hall.txt"   # or movements_file, contacts_file: read now and embedded; paths start at this file;
                              # an empty name is no file, so that a campaign can sweep it
# movements_format = "csv"    # only if it cannot be told from the file; `roamcast.world.files` has the formats
```

Fields are those of `roamcast.world.scenario`. What a named file says holds unless it is given here: `nodes`, for
movements and contacts `duration_s`, for movements `area_m`. A refusal names the file, the field, its value and what is
allowed.
"""

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.world import files
from roamcast.world.radio.models import RADIOS
from roamcast.world.radio.signals import SIGNALS
from roamcast.world.scenario import Run, Scenario

Tables = dict[str, Any]
"""A run as nested tables, not yet checked: what TOML gives, and what command-line options are laid over."""


class _Reading(NamedTuple):
    """A field that names a file, the mobility model that the file's content belongs to, and how it is read."""

    model: str
    read: Callable[[Path, Any], tuple[Tables, Tables]]  # fields of mobility, and of the scenario unless given there


def _positions(path: Path, _: Any) -> tuple[Tables, Tables]:
    rows = files.read_positions(path)
    return {"positions_m": rows}, {"nodes": len(rows)}


def _movements(path: Path, named: Any) -> tuple[Tables, Tables]:
    recording = files.read_movements(path, named)
    fields: Tables = {"paths": recording.paths, "names": recording.names, "present": recording.present}
    if recording.origin_deg is not None:
        fields["origin_deg"] = recording.origin_deg
    told = {"nodes": len(recording.paths), "area_m": recording.area_m, "duration_s": recording.duration_s}
    return fields, {name: value for name, value in told.items() if value is not None}


def _contacts(path: Path, _: Any) -> tuple[Tables, Tables]:
    rows = files.read_contacts(path)
    nodes = 1 + max(max(a, b) for a, b, _, _ in rows)
    return {"contacts": rows}, {"nodes": nodes, "duration_s": max(until_s for _, _, _, until_s in rows)}


DEFAULT_RADIO: Final = str(type(Scenario().radio).__struct_config__.tag)

FILE_FIELDS: Final = ("positions_file", "movements_file", "contacts_file")  # of `mobility`
_READ_FIELDS: Final = ("positions_m", "paths", "names", "present", "contacts")  # checked when they were read
_READINGS: Final = {
    "positions_file": _Reading("static", _positions),
    "movements_file": _Reading("movements", _movements),
    "contacts_file": _Reading("contacts", _contacts),
}


def read_run(path: Path) -> Run:
    return run_from_tables(read_tables(path), source=str(path))


def read_tables(path: Path) -> Tables:
    """The file's tables; names of further files in them are made relative to where the user is."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: is not TOML: {error}") from None
    mobility = _table(_table(tables, "scenario"), "mobility")
    for field in _READINGS:
        if isinstance(mobility.get(field), str) and mobility[field]:
            mobility[field] = str(path.parent / mobility[field])
    return tables


def run_from_tables(tables: Tables, source: str = "") -> Run:
    """The run that the tables describe; `source` says in refusals where they come from."""
    where = f"{source}: " if source else ""
    tables = msgspec.to_builtins(tables)  # a copy that may be completed
    scenario = _table(tables, "scenario")
    if isinstance(scenario.get("area_m"), int | float):
        scenario["area_m"] = [scenario["area_m"]] * 2
    _embed(scenario, _table(scenario, "mobility"), where)
    _name_radio(_table(scenario, "radio"), where)
    _require_finite(tables, "", where)
    try:
        return msgspec.convert(tables, Run)
    except msgspec.ValidationError as error:
        raise ConfigurationError(where + _explained(str(error), tables)) from None


def _table(parent: Tables, name: str) -> Tables:
    """The named part, made if it is missing; what is there instead of a table is refused later, with all the rest."""
    part = parent.setdefault(name, {})
    return part if isinstance(part, dict) else {}


def _embed(scenario: Tables, mobility: Tables, where: str) -> None:
    """Puts the content of a named file in the place of its name."""
    for field in _READINGS:
        if mobility.get(field) == "":
            del mobility[field]
    given = [field for field in _READINGS if field in mobility]
    if len(given) > 1:
        raise ConfigurationError(f"{where}scenario.mobility: {' and '.join(given)} are given; allowed: one of them")
    named = mobility.pop("movements_format", None)
    if named is not None and (named not in files.FORMATS or "movements_file" not in given):
        allowed = f"one of {', '.join(files.FORMATS)}, with movements_file"
        raise ConfigurationError(f"{where}scenario.mobility.movements_format = {named!r}: must be {allowed}")
    for field in given:
        reading = _READINGS[field]
        path = mobility.pop(field)
        if not isinstance(path, str):
            raise ConfigurationError(f"{where}scenario.mobility.{field} = {path!r}: must be a file's name")
        model = mobility.setdefault("model", reading.model)
        if model != reading.model:
            allowed = f"{reading.model!r} with {field}"
            raise ConfigurationError(f"{where}scenario.mobility.model = {model!r}: must be {allowed}")
        fields, follows = reading.read(Path(path), named)
        mobility.update(fields)
        for name, value in follows.items():
            scenario.setdefault(name, value)


def _name_radio(radio: Tables, where: str) -> None:
    """A radio without a name is the default one."""
    model = radio.setdefault("model", DEFAULT_RADIO)
    if model == "dcf":
        raise ConfigurationError(f"{where}scenario.radio.model = 'dcf': is now called '802.11b'")
    if not isinstance(model, str) or model not in RADIOS:
        raise ConfigurationError(f"{where}scenario.radio.model = {model!r}: must be one of {', '.join(RADIOS)}")
    signal = radio.get("signal")
    if isinstance(signal, dict):
        name = signal.setdefault("model", "disc")
        if not isinstance(name, str) or name not in SIGNALS:
            allowed = f"must be one of {', '.join(SIGNALS)}"
            raise ConfigurationError(f"{where}scenario.radio.signal.model = {name!r}: {allowed}")
        _take_none(signal, SIGNALS[name])
    _take_none(radio, RADIOS[model])
    power = radio.get("power")
    if isinstance(power, dict):
        radio["power"] = msgspec.to_builtins(RADIOS[model]().power) | power


def _take_none(settings: Tables, kind: type[msgspec.Struct]) -> None:
    """TOML has no null: where a setting may be absent, the word "none" says so."""
    for name, declared in get_type_hints(kind).items():
        if settings.get(name) == "none" and type(None) in get_args(declared):
            settings[name] = None


def _require_finite(value: Any, field: str, where: str) -> None:
    """No setting means anything as infinity or NaN, which TOML can write and comparisons let slip."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigurationError(f"{where}{field} = {value}: must be a finite number")
    if isinstance(value, dict):
        for name, part in value.items():
            _require_finite(part, f"{field}.{name}" if field else name, where)
    if isinstance(value, list) and field.rpartition(".")[2] not in _READ_FIELDS:
        for part in value:
            _require_finite(part, field, where)


def _explained(refusal: str, tables: Tables) -> str:
    """The field by its full name, its value, and what is allowed, from what msgspec says."""
    match = re.fullmatch(r"(?s)(.*?)(?: - at `(.*)`)?", refusal)
    assert match is not None
    said, place = match[1], (match[2] or "$").removeprefix("$").removeprefix(".")
    kind, value = _at(place, tables)
    unknown = re.search(r"unknown field `(.*)`", said)
    if unknown:
        field = f"{place}.{unknown[1]}" if place else unknown[1]
        tag = [kind.__struct_config__.tag_field] if kind.__struct_config__.tag is not None else []
        return f"{field}: is not a field; allowed: {', '.join([*tag, *kind.__struct_fields__])}"
    if isinstance(value, dict):  # refused by the part as a whole, whose message names field, value and what is allowed
        return f"{place}: {said}" if place else said
    choices = [choice for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)]
    return f"{place} = {value!r}: {'must be one of ' + ', '.join(choices) if choices else said}"


def _at(place: str, tables: Tables) -> tuple[Any, Any]:
    """The declared type and the given value at a place such as `scenario.mobility.model`."""
    kind: Any = Run
    value: Any = tables
    for name, index in re.findall(r"(\w+)|\[(\d+|\.\.\.)\]", place):
        if name:
            kind = get_type_hints(kind).get(name, Any) if hasattr(kind, "__struct_fields__") else Any
            value = value.get(name) if isinstance(value, dict) else value
            kind = _tagged(kind, value)
        else:
            kind = next((part for part in get_args(kind) if part is not Ellipsis), Any)
            value = value[int(index)] if isinstance(value, list) and index.isdigit() else value
    return kind, value


def _tagged(kind: Any, value: Any) -> Any:
    """Of a union of tagged structs the one that the value names."""
    for choice in get_args(kind):
        config = getattr(choice, "__struct_config__", None)
        if config is not None and isinstance(value, dict) and value.get(config.tag_field) == config.tag:
            return choice
    return kind
