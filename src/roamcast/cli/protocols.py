"""`roamcast protocols`: what can be simulated and run, and its parameters."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.documented import documented
from roamcast.protocols.catalogue import PROTOCOLS, protocol_class


def protocols(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Describe only these, each with all its parameters; package.module:Class is a name too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON array.")] = False,
) -> None:
    """List the protocols, or describe some of them with the meaning and range of every parameter.

    Examples: roamcast protocols; roamcast protocols somer; roamcast protocols mypackage.mymodule:MyProtocol
    """
    listed = [_described(name) for name in names or PROTOCOLS]
    if as_json:
        print_json(listed)
    elif names:
        for protocol in listed:
            _describe(protocol)
    else:
        _list(listed)


def _described(name: str) -> dict[str, Any]:
    kind = protocol_class(name)
    return {
        "name": name,
        "summary": kind.summary,
        "is_limit": kind.is_limit,
        "parameters": [msgspec.to_builtins(setting) for setting in documented(kind.Parameters)],
    }


def _list(listed: list[dict[str, Any]]) -> None:
    table = Table("protocol", "what it does", "parameters", box=None, pad_edge=False)
    for protocol in listed:
        table.add_row(protocol["name"], protocol["summary"], str(len(protocol["parameters"])))
    console().print(table)
    console().print("\n`roamcast protocols NAME` describes the parameters of one.", highlight=False)


def _describe(protocol: dict[str, Any]) -> None:
    console().print(f"[bold]{protocol['name']}[/bold]: {protocol['summary']}\n", highlight=False)
    table = Table("parameter", "default", "unit", "allowed", "meaning", box=None, pad_edge=False)
    for setting in protocol["parameters"]:
        table.add_row(*setting_row(setting))
    console().print(table)
    console().print()


def setting_row(setting: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """A setting as a row of a table: name, default, unit, what is allowed, meaning."""
    default = {"": "empty", None: "by preset"}.get(setting["default"], str(setting["default"]))
    return setting["name"], default, setting["unit"], setting["allowed"] or setting["type"], setting["meaning"]
