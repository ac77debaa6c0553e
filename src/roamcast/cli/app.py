"""`roamcast app`: applications with pages of their own. One module per application; each is imported when it runs."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

APPLICATIONS: dict[str, str] = {
    "flood-watch": "Water depths for rescue teams, computed by brokers on vehicles.",
    "golf-forum": "What happens on a golf course, told by the gallery.",
}
"""Name and what it is. `golf-forum` is the function `golf_forum` of the module `roamcast.cli.app_golf_forum`."""


class _LazyApplication(TyperCommand):
    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        name = str(self.name).replace("-", "_")
        run: Callable[..., Any] = getattr(import_module(f"roamcast.cli.app_{name}"), name)
        application = typer.Typer(add_completion=False, rich_markup_mode=None)
        application.command(self.name)(run)
        return typer.main.get_command(application).make_context(info_name, args, parent=parent, **extra)


class _Applications(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(APPLICATIONS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in APPLICATIONS:
            return None
        return _LazyApplication(cmd_name, help=APPLICATIONS[cmd_name])


app = typer.Typer(cls=_Applications, add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _app() -> None:
    """Run an application on live nodes, with pages in a browser."""
