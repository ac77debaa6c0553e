"""One simulated run, from keyword arguments, a scenario or a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.library.traces import Trace
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.world import simulator
from roamcast.world.scenario import Run, Scenario
from roamcast.world.scenario_file import Tables, read_tables, run_from_tables


def simulate(
    scenario: Scenario | str | Path | None = None,
    *,
    protocol: str | None = None,
    parameters: Mapping[str, str | int | float | bool] | None = None,
    seed: int | None = None,
    raw_frames: bool = False,
    **settings: Any,
) -> Trace:
    """Simulates one network and returns its trace::

        roamcast.simulate(protocol="waymark", nodes=30, duration_s=60, workload={"rate_per_s": 2})

    `scenario` is a `Scenario` or the name of a TOML file, which may name the protocol and its parameters too. The other
    arguments override it; `settings` are fields of `Scenario`, groups of fields as dictionaries. A mistake is a
    `ConfigurationError` that names the field and what is allowed.
    """
    run = described_run(scenario, protocol=protocol, parameters=parameters, seed=seed, **settings)
    return Trace(simulator.simulate(run, raw_frames=raw_frames).recorder, run)


def described_run(
    scenario: Scenario | str | Path | None = None,
    *,
    protocol: str | None = None,
    parameters: Mapping[str, str | int | float | bool] | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Run:
    """The run that the arguments of `simulate` describe."""
    tables, source = _tables(scenario)
    below = tables.setdefault("scenario", {})
    if not isinstance(below, dict):
        raise ConfigurationError(f"{source}: scenario: must be a table")
    _lay_over(below, settings)
    given = {"protocol": protocol, "seed": seed, "parameters": None if parameters is None else dict(parameters)}
    _lay_over(tables, {name: value for name, value in given.items() if value is not None})
    return as_understood(run_from_tables(tables, source))


def as_understood(run: Run) -> Run:
    """The run with its parameters as the protocol understands them, so that 3 and "3" name the same run."""
    parameters = msgspec.to_builtins(protocol_parameters(run.protocol, dict(run.parameters)))
    return msgspec.structs.replace(run, parameters={name: parameters[name] for name in run.parameters})


def _tables(scenario: Scenario | str | Path | None) -> tuple[Tables, str]:
    if scenario is None:
        return {}, ""
    if isinstance(scenario, Scenario):
        return {"scenario": msgspec.to_builtins(scenario)}, ""
    return read_tables(Path(scenario)), str(scenario)


def _lay_over(tables: Tables, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        present = tables.get(name)
        if isinstance(value, Mapping) and isinstance(present, dict) and not _names_another_model(value, present):
            _lay_over(present, value)
        else:
            tables[name] = msgspec.to_builtins(value)


def _names_another_model(settings: Mapping[str, Any], present: Tables) -> bool:
    """Another radio or signal has other settings, so nothing of the former one is kept."""
    return "model" in settings and bool(settings["model"] != present.get("model"))
