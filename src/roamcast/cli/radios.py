"""`roamcast radios`: the radios that can be simulated, and what can be set about each."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.cli.protocols import setting_row
from roamcast.documented import documented
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
    return [msgspec.to_builtins(setting) for setting in documented(kind)]


def _tell(listed: list[dict[str, Any]]) -> None:
    for model in listed:
        console().print(f"[bold]{model['name']}[/bold]: {model['summary']}\n", highlight=False)
        table = Table("setting", "default", "unit", "allowed", "meaning", box=None, pad_edge=False)
        for setting in model["settings"]:
            table.add_row(*setting_row(setting))
        console().print(table)
        console().print()
