"""`roamcast protocols`: what can be simulated and run, and what can be set about it."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.protocols.api import Parameters
from roamcast.protocols.catalogue import PROTOCOLS


def protocols(as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON array.")] = False) -> None:
    """List the protocols and their parameters."""
    listed = [
        {"name": name, "summary": kind.summary, "parameters": _parameters(kind.Parameters)}
        for name, kind in PROTOCOLS.items()
    ]
    if as_json:
        print_json(listed)
    else:
        _tell(listed)


def _parameters(kind: type[Parameters]) -> list[dict[str, Any]]:
    """Every parameter with its type and default: all of a protocol's parameters have one."""
    defaults = msgspec.to_builtins(kind())
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return [{"name": name, "type": type_name(types[name]), "default": value} for name, value in defaults.items()]


def type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _tell(listed: list[dict[str, Any]]) -> None:
    table = Table("protocol", "what it does", "parameter", "default", box=None, pad_edge=False)
    for protocol in listed:
        name, summary = protocol["name"], protocol["summary"]
        for parameter in protocol["parameters"] or [{"name": "", "default": ""}]:
            table.add_row(name, summary, parameter["name"], str(parameter["default"]))
            name = summary = ""
    console().print(table)
