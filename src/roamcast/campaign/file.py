"""Campaign files: one TOML file that says what to simulate.

    title = "How far does gossip get?"
    protocols = ["flooding", { name = "gossip", label = "gossip 0.5", probability = 0.5 }]
    seeds = 20                                  # or a list of seeds, or a [stop] rule

    [scenario]                                  # as for `roamcast simulate`
    duration_s = 60
    workload.rate_per_s = 1

    [grid]                                      # every combination is simulated
    scenario.mobility.speed_max_mps = [1, 10]
    gossip.certain_hops = [1, 2]                # one protocol's parameter; `parameters.jitter_s` is for all
    size = [                                    # settings that change together
        { scenario.nodes = 25, scenario.area_m = [700, 700] },
        { scenario.nodes = 50, scenario.area_m = [1000, 1000] },
    ]

    [[grid]]                                    # or several grids: the campaign has the points of all of them.
    scenario.nodes = [25, 50]                   # A setting that a grid does not sweep has its value from [scenario],
                                                # so a point that several grids share is simulated once.

    [[exclude]]                                 # contenders that cannot run at some places, and why
    protocols = ["georendezvous"]
    where = { scenario.positioning.source = "none" }
    because = "it steers by positions"

    [stop]                                      # instead of seeds
    measure = "delivery_ratio"
    half_width = 0.02                           # of the 95 % interval; or relative = 0.05, of the mean
    least = 20                                  # seeds before it may stop
    batch = 5
    cap = 100

An invalid file is refused with one line that names the field, the value and what is allowed.
"""

from pathlib import Path
from typing import Any

import msgspec

from roamcast.campaign.grid import SCENARIO, Axis, leaves, read_axes
from roamcast.errors import ConfigurationError
from roamcast.protocols.api import require
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.trace.measures import MEASURES, RUN_MEASURES
from roamcast.world.scenario_file import FILE_FIELDS, Tables, read_tables

Value = str | int | float | bool

CAP_MOST = 10_000


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Replicate in batches until the mean of `measure` is known well enough at every point."""

    measure: str
    half_width: float | None = None  # target for the half-width of the 95 % confidence interval
    relative: float | None = None  # the same as a share of the mean
    least: int = 20  # seeds before the first look, or `cap` if that is less
    batch: int = 5  # seeds that are added at a time
    cap: int = 100  # seeds after which it stops, precise or not

    def __post_init__(self) -> None:
        require(self.measure in RUN_MEASURES, "measure", self.measure, f"one of {', '.join(RUN_MEASURES)}")
        given = [target for target in (self.half_width, self.relative) if target is not None]
        require(len(given) == 1, "half_width, relative", (self.half_width, self.relative), "given one or the other")
        require(given[0] > 0, "half_width" if self.relative is None else "relative", given[0], "above 0")
        require(self.least >= 2, "least", self.least, "at least 2")
        require(self.batch >= 1, "batch", self.batch, "at least 1")
        require(2 <= self.cap <= CAP_MOST, "cap", self.cap, f"between 2 and {CAP_MOST}")

    @property
    def rounds(self) -> list[range]:
        """The seeds of each round; after each there is a look."""
        ends = [min(self.least, self.cap)]
        while ends[-1] < self.cap:
            ends.append(min(ends[-1] + self.batch, self.cap))
        return [range(start + 1, end + 1) for start, end in zip([0, *ends], ends, strict=False)]

    @property
    def looks(self) -> int:
        """How often it may look. Each look's interval is corrected for that, so the promise holds whenever it stops."""
        return len(self.rounds)

    def target(self, mean: float) -> float:
        """The widest half-width that is precise enough around `mean`."""
        return self.half_width if self.half_width is not None else (self.relative or 0.0) * abs(mean)


class Contender(msgspec.Struct, frozen=True):
    """A protocol that is compared, with its parameters from the file."""

    label: str  # what it is called in tables and figures
    protocol: str
    parameters: dict[str, Value]


class Exclusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contenders that a campaign leaves out at the places with these settings."""

    protocols: tuple[str, ...]  # labels
    where: dict[str, Any]  # settings of the scenario by dotted path, all of which must hold
    because: str

    def holds(self, label: str, settings: dict[str, Any]) -> bool:
        return label in self.protocols and all(settings.get(path) == value for path, value in self.where.items())


class Campaign(msgspec.Struct, frozen=True):
    source: str  # where the file was
    title: str
    description: str
    scenario: Tables  # as written; the grid writes into it before it is checked
    contenders: tuple[Contender, ...]
    sweeps: tuple[tuple[Axis, ...], ...]  # one per grid
    seeds: tuple[int, ...]  # empty if a stopping rule decides
    stop: Stop | None
    baseline: str  # label of the contender that the others are compared with
    measures: tuple[str, ...]  # what the report shows, in order; empty shows the usual ones
    exclusions: tuple[Exclusion, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file as it is written."""

    title: str = ""
    description: str = ""
    scenario: Tables = {}
    protocols: list[str | dict[str, Value]]
    grid: dict[str, Any] | list[dict[str, Any]] = {}
    seeds: int | list[int] | None = None
    stop: Stop | None = None
    baseline: str | None = None
    measures: list[str] = []
    exclude: list[Exclusion] = []


def load_campaign(path: Path) -> Campaign:
    """The campaign that the file describes. Its scenarios are checked when it is planned."""
    tables = read_tables(path)
    _find_files(tables.get("grid"), path.parent)
    try:
        file = msgspec.convert(tables, _File)
        return _campaign(file, path)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {_explained(str(error), tables)}") from None
    except (ValueError, ConfigurationError) as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _campaign(file: _File, path: Path) -> Campaign:
    contenders = tuple(_contender(entry) for entry in file.protocols)
    labels = [contender.label for contender in contenders]
    require(bool(contenders), "protocols", [], "at least one protocol")
    require(len(set(labels)) == len(labels), "protocols", labels, "told apart by different label = ... entries")
    baseline = labels[0] if file.baseline is None else file.baseline
    require(baseline in labels, "baseline", baseline, f"one of {', '.join(labels)}")
    for measure in file.measures:
        require(measure in MEASURES, "measures", measure, f"one of {', '.join(MEASURES)}")
    grids = file.grid if isinstance(file.grid, list) else [file.grid]
    protocols = {contender.protocol for contender in contenders}
    both = file.seeds is not None and file.stop is not None
    neither = file.seeds is None and file.stop is None
    require(not (both or neither), "seeds, stop", "both" if both else "neither", "one or the other")
    return Campaign(
        source=str(path),
        title=file.title or path.stem,
        description=file.description,
        scenario=file.scenario,
        contenders=contenders,
        sweeps=tuple(read_axes(grid, protocols) for grid in grids),
        seeds=_seeds(file.seeds),
        stop=file.stop,
        baseline=baseline,
        measures=tuple(file.measures),
        exclusions=tuple(_exclusion(entry, labels) for entry in file.exclude),
    )


def _find_files(part: Any, directory: Path) -> None:
    """Makes names of files in grids relative to where the user is, as `read_tables` does in the scenario."""
    if isinstance(part, list):
        for each in part:
            _find_files(each, directory)
    if isinstance(part, dict):
        for name, value in part.items():
            if name.rpartition(".")[2] not in FILE_FIELDS:
                _find_files(value, directory)
            elif isinstance(value, list):
                part[name] = [_found(each, directory) for each in value]
            else:
                part[name] = _found(value, directory)


def _found(name: Any, directory: Path) -> Any:
    return str(directory / name) if isinstance(name, str) and name else name


def _exclusion(entry: Exclusion, labels: list[str]) -> Exclusion:
    for label in entry.protocols:
        require(label in labels, "exclude.protocols", label, f"one of {', '.join(labels)}")
    where = dict(leaves(entry.where))
    for path in where:
        require(path.startswith(f"{SCENARIO}."), "exclude.where", path, "a setting of the scenario")
    require(bool(where) and bool(entry.because), "exclude", entry, "given with settings and a reason")
    return Exclusion(entry.protocols, where, entry.because)


def _contender(entry: str | dict[str, Value]) -> Contender:
    table: dict[str, Value] = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = table.pop("name", None)
    require(isinstance(name, str), "protocols", entry, 'a name, or a table with name = "..."')
    label = table.pop("label", name)
    require(isinstance(label, str) and bool(label), "protocols.label", label, "text")
    protocol_parameters(str(name), table)
    return Contender(str(label), str(name), table)


def _seeds(seeds: int | list[int] | None) -> tuple[int, ...]:
    if isinstance(seeds, int):
        require(1 <= seeds <= CAP_MOST, "seeds", seeds, f"between 1 and {CAP_MOST}")
        return tuple(range(1, seeds + 1))
    if seeds is not None:
        require(bool(seeds) and len(set(seeds)) == len(seeds), "seeds", seeds, "at least one, each once")
    return tuple(seeds or ())


def _explained(refusal: str, tables: Tables) -> str:
    """One line with the value, which msgspec's own message lacks, and the known fields."""
    message, _, place = refusal.partition(" - at `$")
    path = place.strip("`.")
    if "unknown field" in message or "missing required" in message:
        kind = Stop if path == "stop" else _File
        return f"{path + ': ' if path else ''}{message}; allowed: {', '.join(kind.__struct_fields__)}"
    if " = " in message:  # from `require`
        return f"{path}.{message}" if path else message
    value: Any = tables
    for part in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
    return f"{path} = {value!r}: {message}"
