"""`roamcast radios`: the radios and signals that can be simulated, and what can be set about each."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from roamcast.cli.output import console, print_json
from roamcast.cli.protocols import setting_row
from roamcast.documented import documented
from roamcast.world.radio.models import RADIOS
from roamcast.world.radio.signals import SIGNALS


def radios(as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON object.")] = False) -> None:
    """List the radios, the signals they may have, and all their settings."""
    listed = {
        "radios": [_described(name, kind, kind.summary) for name, kind in RADIOS.items()],
        "signals": [_described(name, kind, kind.summary) for name, kind in SIGNALS.items()],
    }
    if as_json:
        print_json(listed)
    else:
        _tell("Radios: --radio NAME, --set-radio setting=value", listed["radios"])
        _tell("Signals: --signal NAME, --set-signal setting=value", listed["signals"])


def _described(name: str, kind: type[msgspec.Struct], summary: str) -> dict[str, Any]:
    return {"name": name, "summary": summary, "settings": _settings(kind)}


def _settings(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(setting) for setting in documented(kind)]


def _tell(title: str, listed: list[dict[str, Any]]) -> None:
    console().print(f"{title}\n", highlight=False)
    for model in listed:
        console().print(f"[bold]{model['name']}[/bold]: {model['summary']}\n", highlight=False)
        table = Table("setting", "default", "unit", "allowed", "meaning", box=None, pad_edge=False)
        for setting in model["settings"]:
            table.add_row(*setting_row(setting | {"default": _shown(setting["default"])}))
        console().print(table)
        console().print()


def _shown(default: Any) -> Any:
    if isinstance(default, dict):  # a part with a model, such as the signal, or with fields of its own
        return str(default.get("model") or ", ".join(f"{name} {value:g}" for name, value in default.items()))
    return default
