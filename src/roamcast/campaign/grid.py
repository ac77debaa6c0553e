"""The grid of a campaign: which settings are swept, and how a combination is applied.

A grid entry is a dotted path with a list of values, or a name with a list of tables whose settings change together. A
path starts with `scenario`, with `parameters` (every protocol that has the parameter), or with a protocol's name. An
axis of parameters adds no runs for protocols that lack them.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import protocol_class

Setting = Any  # a number, text, truth value or list as TOML knows them

SCENARIO, EVERYBODY = "scenario", "parameters"


class Axis(msgspec.Struct, frozen=True):
    """Settings that change together: one tuple of values per step, in the order of `paths`."""

    paths: tuple[str, ...]
    steps: tuple[tuple[Setting, ...], ...]

    @property
    def moves_scenario(self) -> bool:
        return any(path.startswith(f"{SCENARIO}.") for path in self.paths)


def read_axes(grid: dict[str, Any], protocols: set[str]) -> tuple[Axis, ...]:
    """The axes of a `[grid]` table, in the order of the file."""
    axes = []
    for name, values in leaves(grid):
        if not isinstance(values, list) or not values:
            raise ConfigurationError(f"grid.{name} = {values!r}: must be a list of at least one value")
        if all(isinstance(value, dict) for value in values):
            axes.append(_tied(name, values))
        else:
            axes.append(Axis((name,), tuple((value,) for value in values)))
    seen: set[str] = set()
    for axis in axes:
        for path in axis.paths:
            _check_path(path, protocols)
            if path in seen:
                raise ConfigurationError(f"grid.{path}: is swept twice; allowed: one axis per setting")
            seen.add(path)
        for step in axis.steps:
            if axis.steps.count(step) > 1:
                raise ConfigurationError(f"grid.{axis.paths[0]} = {step[0]!r}: must be given once")
    return tuple(axes)


def _tied(name: str, tables: list[dict[str, Any]]) -> Axis:
    rows = [dict(leaves(table)) for table in tables]
    for row in rows:
        if row.keys() != rows[0].keys():
            raise ConfigurationError(f"grid.{name} = {row!r}: must set {', '.join(rows[0])} like the first")
    return Axis(tuple(rows[0]), tuple(tuple(row[path] for path in rows[0]) for row in rows))


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and their values; quoted and nested keys are equivalent."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _check_path(path: str, protocols: set[str]) -> None:
    head, _, rest = path.partition(".")
    roots = [SCENARIO, EVERYBODY, *sorted(protocols)]
    if head not in roots or not rest:
        raise ConfigurationError(f"grid.{path}: is not a setting; allowed: {', '.join(f'{root}.…' for root in roots)}")
    if head == SCENARIO:
        return
    owners = sorted(protocols) if head == EVERYBODY else [head]
    known = {field for owner in owners for field in protocol_class(owner).Parameters.__struct_fields__}
    if rest not in known:
        raise ConfigurationError(f"grid.{path}: is not a parameter; allowed: {', '.join(sorted(known))}")


def combinations(axes: tuple[Axis, ...]) -> Iterator[dict[str, Setting]]:
    """Every combination of the axes' steps as path -> value; the last axis moves fastest."""
    for steps in itertools.product(*(axis.steps for axis in axes)):
        yield {
            path: value
            for axis, step in zip(axes, steps, strict=True)
            for path, value in zip(axis.paths, step, strict=True)
        }


def scenario_settings(settings: dict[str, Setting]) -> dict[str, Setting]:
    """The part of a combination that changes the scenario, by path inside it."""
    return {path.removeprefix(f"{SCENARIO}."): value for path, value in settings.items() if _head(path) == SCENARIO}


def protocol_settings(settings: dict[str, Setting], protocol: str) -> dict[str, Setting]:
    """The part of a combination that changes this protocol, by full path."""
    own = protocol_class(protocol).Parameters.__struct_fields__
    return {
        path: value
        for path, value in settings.items()
        if _head(path) == protocol or (_head(path) == EVERYBODY and path.partition(".")[2] in own)
    }


def written_into(table: dict[str, Any], settings: dict[str, Setting]) -> dict[str, Any]:
    """A copy of `table` with each dotted path set. Unknown fields are refused when the scenario is made."""
    copy: dict[str, Any] = msgspec.to_builtins(table)
    for path, value in settings.items():
        *parents, leaf = path.split(".")
        place = copy
        for parent in parents:
            below = place.setdefault(parent, {})
            if not isinstance(below, dict):
                raise ConfigurationError(f"grid.{SCENARIO}.{path}: {parent!r} is not a part of a scenario")
            place = below
        place[leaf] = value
    return copy


def _head(path: str) -> str:
    return path.partition(".")[0]
