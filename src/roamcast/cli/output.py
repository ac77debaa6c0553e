"""How commands answer: one JSON object, or text for a reader."""

from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table


def print_json(answer: Any) -> None:
    typer.echo(msgspec.json.encode(answer).decode())


def console() -> Console:
    """For readers. Without a terminal, lines are not wrapped."""
    here = Console(highlight=False)
    return here if here.is_terminal else Console(highlight=False, width=160)


def number(value: float | None, unit: str = "") -> str:
    """A measure as people read it; a measure of nothing is a dash."""
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{text} {unit}" if unit else text


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console().print(table)
