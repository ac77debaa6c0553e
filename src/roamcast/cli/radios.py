"""`roamcast radios`: the radios that can be simulated, and what can be set about each."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.cli.protocols import type_name
from roamcast.world.radio.models import RADIOS


def radios(as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON array.")] = False) -> None:
    """List the radios and their settings."""
    listed = [
        {"name": name, "summary": kind.summary, "settings": _settings(kind)} for name, kind in RADIOS.items()
    ]
    if as_json:
        print_json(listed)
    else:
        _tell(listed)


def _settings(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Every setting with its type and default."""
    defaults = msgspec.to_builtins(kind())
    return [
        {"name": field.name, "type": type_name(field.type), "default": defaults[field.name]}
        for field in msgspec.structs.fields(kind)
    ]


def _tell(listed: list[dict[str, Any]]) -> None:
    table = Table("model", "what it is", "setting", "default", box=None, pad_edge=False)
    for model in listed:
        name, summary = model["name"], model["summary"]
        for setting in model["settings"] or [{"name": "", "default": ""}]:
            default = setting["default"]
            table.add_row(name, summary, setting["name"], "by preset" if default is None else str(default))
            name = summary = ""
    console().print(table)
