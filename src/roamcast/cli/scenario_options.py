"""The options of every command that simulates: one line each, laid over the scenario file.

An option is a name for a field of `Run`. Its type and its default come from there, so nothing is declared twice; what
has no option of its own can be set in the scenario file.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec
import typer

from roamcast.cli.settings import assignments, size_m, toml_value
from roamcast.library.simulations import as_understood
from roamcast.world.files import Format
from roamcast.world.radio.models import RADIOS
from roamcast.world.radio.power import Power
from roamcast.world.radio.signals import SIGNALS, Signal
from roamcast.world.scenario import Run
from roamcast.world.scenario_file import Tables, read_tables, run_from_tables

Placement = Literal["static", "waypoint", "grid", "beehive", "group", "gauss-markov", "roads", "golf"]
"""The mobility models that draw movements; the others come with their files."""

RadioName = Literal[tuple(RADIOS)]  # type: ignore[valid-type]  # for Typer; scenario files allow the same names

SignalName = Literal[tuple(SIGNALS)]  # type: ignore[valid-type]
TAGS = (RadioName, SignalName)




def _spelled(what: str, common: Sequence[str], kinds: Mapping[str, type[msgspec.Struct]]) -> str:
    """The names of all settings: those that every model has, then those of each."""
    known = [*common, "signal", "power"]  # which have settings of their own
    own = ((name, [each for each in kind.__struct_fields__ if each not in known]) for name, kind in kinds.items())
    told = [("all", list(common)), *((name, fields) for name, fields in own if fields)]
    listed = " ".join(f"{name}: {', '.join(fields)}." for name, fields in told)
    return f"A setting of the {what}, name=value; repeatable. {listed}"


RADIO_HELP = _spelled("radio", ("range_m", "loss", *(f"power.{name}" for name in Power.__struct_fields__)), RADIOS)
SIGNAL_HELP = _spelled("signal", Signal.__struct_fields__, SIGNALS)


class ScenarioOption(NamedTuple):
    name: str
    field: str  # of `Run`, or of the tables that become one
    help: str
    kind: Any = None  # the option's type, where it is not the field's

    @property
    def parameter(self) -> str:
        return f"set_{self.field.replace('.', '_')}"


OPTIONS = {
    "Run": (
        ScenarioOption("--protocol", "protocol", "As in roamcast protocols."),
        ScenarioOption("--seed", "seed", "Decides every random draw."),
    ),
    "Network": (
        ScenarioOption("--nodes", "scenario.nodes", "Number of nodes; with a file, as many as it has."),
        ScenarioOption("--area", "scenario.area_m", "Metres: 1000 is a square, 1500x300 a rectangle.", str),
        ScenarioOption("--duration", "scenario.duration_s", "Seconds; with movements or contacts, all they have."),
        ScenarioOption("--mobility", "scenario.mobility.model", "How nodes are placed and move.", Placement),
        ScenarioOption("--positions", "scenario.mobility.positions_file", "Static nodes: x y per line.", Path),
        ScenarioOption(
            "--movements", "scenario.mobility.movements_file", "ns-2, BonnMotion, The ONE, SUMO FCD, GPX or CSV.", Path
        ),
        ScenarioOption(
            "--movements-format", "scenario.mobility.movements_format", "If it cannot be told from the file.", Format
        ),
        ScenarioOption("--contacts", "scenario.mobility.contacts_file", "Contacts: a b from until per line.", Path),
        ScenarioOption("--speed-min", "scenario.mobility.speed_min_mps", "waypoint, group, roads, golf: m/s, above 0."),
        ScenarioOption("--speed-max", "scenario.mobility.speed_max_mps", "waypoint, group, roads, golf: m/s."),
        ScenarioOption("--pause-min", "scenario.mobility.pause_min_s", "The same: seconds of rest between moves."),
        ScenarioOption("--pause-max", "scenario.mobility.pause_max_s", "The same: seconds of rest between moves."),
        ScenarioOption("--groups", "scenario.mobility.groups", "group: how many."),
        ScenarioOption("--group-radius", "scenario.mobility.group_radius_m", "group, golf: metres around its centre."),
        ScenarioOption("--spacing", "scenario.mobility.spacing_m", "grid, beehive: metres; else the area is filled."),
        ScenarioOption("--speed-mean", "scenario.mobility.speed_mean_mps", "gauss-markov: m/s."),
        ScenarioOption("--memory", "scenario.mobility.memory", "gauss-markov: likeness to a second ago, 0 to 1."),
        ScenarioOption("--block", "scenario.mobility.block_m", "roads: metres between parallel roads."),
        ScenarioOption("--holes", "scenario.mobility.holes", "golf: announcers, one at each."),
        ScenarioOption("--flights", "scenario.mobility.flights", "golf: groups of players."),
        ScenarioOption("--players", "scenario.mobility.players", "golf: per flight; the other nodes watch."),
        ScenarioOption("--follow-delay", "scenario.mobility.follow_delay_s", "golf: seconds from flight to gallery."),
    ),
    "Positioning": (
        ScenarioOption("--positioning", "scenario.positioning.source", "none: nodes never learn where they are."),
        ScenarioOption("--position-bias", "scenario.positioning.bias_m", "A fixed error per node, metres (rms)."),
        ScenarioOption("--position-drift", "scenario.positioning.drift_m", "An error that wanders, metres (rms)."),
        ScenarioOption("--position-drift-time", "scenario.positioning.drift_time_s", "Seconds it resembles itself."),
    ),
    "Radio": (
        ScenarioOption("--radio", "scenario.radio.model", "As in roamcast radios.", RadioName),
        ScenarioOption("--preset", "scenario.radio.preset", "802.11b: as ns-2 or ns-3 models it."),
        ScenarioOption("--range", "scenario.radio.range_m", "Metres; the default depends on the radio.", float),
        ScenarioOption("--signal", "scenario.radio.signal.model", "As in roamcast radios.", SignalName),
        ScenarioOption("--loss", "scenario.radio.loss", "Share of receptions lost at random."),
    ),
    "Workload": (
        ScenarioOption("--language", "scenario.workload.language", "Of interests and events."),
        ScenarioOption("--publishers", "scenario.workload.publishers", "How many nodes publish."),
        ScenarioOption("--publisher-share", "scenario.workload.publisher_share", "The same as a share of all nodes."),
        ScenarioOption("--subscribers", "scenario.workload.subscribers", "How many nodes subscribe."),
        ScenarioOption("--subscriber-share", "scenario.workload.subscriber_share", "The same as a share of all nodes."),
        ScenarioOption("--selectivity", "scenario.workload.selectivity", "Share of events that one interest matches."),
        ScenarioOption("--rate", "scenario.workload.rate_per_s", "Events per second and publisher."),
        ScenarioOption("--pattern", "scenario.workload.pattern", "How the rate changes over time."),
        ScenarioOption("--payload", "scenario.workload.payload_bytes", "Bytes per event."),
    ),
    "Faults": (
        ScenarioOption("--crash-share", "scenario.faults.crash_share", "Nodes that crash for good."),
        ScenarioOption("--return-share", "scenario.faults.return_share", "Nodes that crash and come back."),
        ScenarioOption("--join-share", "scenario.faults.join_share", "Nodes that are switched on during the run."),
        ScenarioOption("--leave-share", "scenario.faults.leave_share", "Nodes that say goodbye and go."),
    ),
}


def takes_run(command: Callable[..., None]) -> Callable[..., None]:
    """Gives `command` all these options, `--scenario` and `--set`; what they add up to is its argument `run`."""

    def wrapped(
        scenario: Path | None,
        settings: list[str] | None,
        radio_settings: list[str] | None,
        signal_settings: list[str] | None,
        **arguments: Any,
    ) -> None:
        given = {option.field: arguments.pop(option.parameter) for group in OPTIONS.values() for option in group}
        radio = assignments("--set-radio", radio_settings or [])
        radio |= {f"signal.{name}": value for name, value in assignments("--set-signal", signal_settings or []).items()}
        command(run=_run(scenario, settings or [], radio, given), **arguments)

    own = inspect.signature(command).parameters.values()
    parameters = [
        _parameter("scenario", Path | None, ["--scenario"], "Run", "TOML file with any of this; options override it."),
        _parameter("settings", list[str] | None, ["--set"], "Run", "A protocol's parameter, name=value; repeatable."),
        _parameter("radio_settings", list[str] | None, ["--set-radio"], "Radio", RADIO_HELP),
        _parameter("signal_settings", list[str] | None, ["--set-signal"], "Radio", SIGNAL_HELP),
        *(_declared(option, panel) for panel, group in OPTIONS.items() for option in group),
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own if parameter.name != "run"),
    ]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    return wrapped


def _run(path: Path | None, settings: list[str], radio: dict[str, str], given: dict[str, Any]) -> Run:
    tables: Tables = {} if path is None else read_tables(path)
    for field, value in given.items():
        if value is not None:
            _lay_over(tables, field.split("."), size_m("--area", value) if field == "scenario.area_m" else value)
    for name, value in radio.items():
        _lay_over(tables, ["scenario", "radio", *name.split(".")], toml_value(value))
    for name, value in assignments("--set", settings).items():
        _lay_over(tables, ["parameters", name], value)
    return as_understood(run_from_tables(tables, source="" if path is None else str(path)))


def _lay_over(tables: Tables, path: list[str], value: Any) -> None:
    *parts, field = path
    for part in parts:
        below = tables.setdefault(part, {})
        if not isinstance(below, dict):
            return  # refused as a whole when the run is made
        tables = below
    tables[field] = str(value) if isinstance(value, Path) else value


def _declared(option: ScenarioOption, panel: str) -> inspect.Parameter:
    *parts, field = option.field.split(".")
    owner: Any = reduce(getattr, parts, Run())
    is_tag = any(option.kind is tag for tag in TAGS)
    default = owner.__struct_config__.tag if is_tag else getattr(owner, field, None)
    kind = option.kind or get_type_hints(type(owner))[field]
    shown = "x".join(f"{side:g}" for side in default) if isinstance(default, tuple) else default
    text = option.help if default is None else f"{option.help} (default {shown})"
    return _parameter(option.parameter, kind | None, [option.name], panel, text)


def _parameter(name: str, kind: Any, flags: list[str], panel: str, text: str) -> inspect.Parameter:
    option = typer.Option(*flags, help=text, rich_help_panel=panel, show_default=False)
    annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
