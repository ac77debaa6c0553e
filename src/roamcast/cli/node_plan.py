"""What the options of `roamcast node` say, checked before anything starts."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from roamcast.causal import Specification, parse_specification
from roamcast.causal.specification import ARROW
from roamcast.cli.node_config import door_table
from roamcast.cli.node_output import LogSettings, log_settings
from roamcast.cli.settings import assignments, size_m
from roamcast.delivery.settings import MIB, DeliverySettings
from roamcast.doors.settings import DoorSettings, door_settings
from roamcast.errors import ConfigurationError
from roamcast.interests import Interest, parse_interest
from roamcast.interests.content import register
from roamcast.interests.content.schema import SCHEMA_CHARACTERS_MAX
from roamcast.live.endpoints import default_listen, parse_endpoint
from roamcast.live.identity import read_identity
from roamcast.live.keys import read_ring
from roamcast.live.node import NodeSettings
from roamcast.live.quotas import quota_of
from roamcast.protocols.api import Point, Site

DEPENDENCIES_BYTES_MAX = 65_536


class NodePlan(msgspec.Struct, frozen=True):
    settings: NodeSettings
    wanted: list[Interest]
    offered: list[Interest]
    log: LogSettings
    as_json: bool
    ordered: bool
    duration_s: float | None
    held: bool
    doors: DoorSettings


def node_plan(options: Mapping[str, Any]) -> NodePlan:
    language, key, duration_s = options["language"], options["key"], options["duration_s"]
    group = None if options["group"] is None else parse_endpoint("--broadcast", options["group"])
    links = tuple(parse_endpoint("--peer", peer) for peer in options["peers"] or [])
    dependencies = None if options["dependencies"] is None else _dependencies(options["dependencies"], language)
    if duration_s is not None and not duration_s > 0:
        raise ConfigurationError(f"--duration = {duration_s:g}: must be above 0")
    if not 0 < options["cpu_share"] <= 1:
        raise ConfigurationError(f"--cpu-share = {options['cpu_share']:g}: must be above 0, at most 1")
    if not 1 <= options["port"] <= 65535:
        raise ConfigurationError(f"--port = {options['port']}: must be between 1 and 65535")
    site = _site(options["site"], options["range_m"], dependencies)
    if site is None and options["protocol"] == "georendezvous":
        raise ConfigurationError("--protocol georendezvous: needs --site and --range, the same at every node")
    parse_interest(language, "")  # refuses an unknown language even if nothing is subscribed yet
    if options["schemas"] and language != "content":
        raise ConfigurationError(f"--schema: only for --language content, not for {language!r}")
    for path in options["schemas"] or []:
        _register_schema(path)
    settings = NodeSettings(
        address=_address(options["address"], options["identity"]),
        protocol=options["protocol"],
        parameters=assignments("--set", options["settings"] or []),
        language=language,
        network=options["network"] or ("roamcast" if key is None else read_ring(key).network),
        listen=parse_endpoint("--listen", options["listen"]) if options["listen"] else default_listen(group, links),
        group=group,
        peers=links,
        interfaces=tuple(options["interfaces"] or []),
        discover=options["discover"] or None,
        port=options["port"],
        position=None if options["position"] is None else parse_point("--position", options["position"]),
        site=site,
        cpu_share=options["cpu_share"],
        seed=options["seed"],
        trace=options["trace"],
        state=options["state"],
        key=key,
        identity=options["identity"],
        quota=quota_of(options["peer_datagrams_per_s"], options["peer_bytes_per_s"]),
        plain=options["plain"],
        repair=options["repair"],
        journal=options["journal"],
        sync=options["sync"],
        delivery=DeliverySettings(
            bytes_max=options["journal_mib"] * MIB, age_max_s=options["keep_s"], away_max_s=options["keep_s"]
        ),
    )
    if options["ordered"] and not (settings.repair or settings.journal):
        raise ConfigurationError("--ordered: only with --repair or --journal")
    return NodePlan(
        settings,
        wanted=[parse_interest(language, text) for text in options["subscribe"] or []],
        offered=[parse_interest(language, text) for text in options["advertise"] or []],
        log=log_settings(options["log_level"], options["log_format"]),
        as_json=options["as_json"],
        ordered=options["ordered"],
        duration_s=duration_s,
        held=options["held"],
        doors=door_settings(door_table(options["doors"] or [])),
    )


def _register_schema(path: Path) -> None:
    """Adds the event types of a schema in a file, whatever is behind its name."""
    if not path.is_file():  # a pipe or a device could keep us reading for ever
        raise ConfigurationError(f"--schema {str(path)!r}: is not a file")
    try:
        with path.open("rb") as file:
            content = file.read(4 * SCHEMA_CHARACTERS_MAX + 1)
        register(content.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"--schema {str(path)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--schema {str(path)!r}: is not text in UTF-8") from None
    except ConfigurationError as error:
        reason = " ".join(str(error).removeprefix("schema: ").split())
        raise ConfigurationError(f"--schema {str(path)!r}: {reason}") from None


def _address(address: int | None, identity: Path | None) -> int:
    if identity is not None:
        return read_identity(identity).address if address is None else address
    if address is None:
        raise ConfigurationError("--address: must be given, or follows from --identity")
    return address


def parse_point(name: str, text: str) -> Point:
    try:
        x_m, y_m = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(f"{name}: {text!r} is not a place; write X,Y in metres, as in 120,40.5") from None
    if not (math.isfinite(x_m) and math.isfinite(y_m)):
        raise ConfigurationError(f"{name}: {text!r}: must be finite")
    return x_m, y_m


def _site(size: str | None, range_m: float | None, dependencies: Specification | None) -> Site | None:
    if size is None and range_m is None and dependencies is None:
        return None
    if size is None or range_m is None:
        named = "--site and --range" if dependencies is None else "--dependencies, --site and --range"
        raise ConfigurationError(f"{named}: must be given together")
    width_m, height_m = size_m("--site", size)
    if not (0 < width_m < math.inf and 0 < height_m < math.inf and 0 < range_m < math.inf):
        raise ConfigurationError(f"--site {size} --range {range_m:g}: must be above 0 and finite")
    return Site(width_m, height_m, range_m, dependencies)


def _dependencies(text: str, language: str) -> Specification:
    """The specification itself, or what a file of that name says."""
    if language == "content":
        raise ConfigurationError("--dependencies: only for --language intervals or topics, not for 'content'")
    if ARROW in text:
        return parse_specification(text, language=language)
    path = Path(text)
    if not path.is_file():  # a pipe or a device could keep us reading for ever
        raise ConfigurationError(f"--dependencies {text!r}: must be like 'a => b; b => c' or the name of a file")
    try:
        with path.open("rb") as file:
            content = file.read(DEPENDENCIES_BYTES_MAX + 1)
        if len(content) > DEPENDENCIES_BYTES_MAX:
            raise ConfigurationError(f"--dependencies {text!r}: must be at most {DEPENDENCIES_BYTES_MAX} bytes long")
        return parse_specification(content.decode("utf-8-sig"), language=language)
    except OSError as error:
        raise ConfigurationError(f"--dependencies {text!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--dependencies {text!r}: is not text in UTF-8") from None
