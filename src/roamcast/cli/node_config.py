"""The file behind `roamcast node --config`: every option of the command line as a key of the same name, in TOML.

A repeatable option is a list, `[set]` is a table of the protocol's parameters, `[door]` one of doors, which has more to
say than the option (`doors/settings.py`). Options win over the file. File names
are relative to the directory of the file. A key that is no option is refused, so that no typing error goes unnoticed.
"""

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer

from roamcast.errors import ConfigurationError

FILE_BYTES_MAX = 1 << 20
NOT_IN_FILE = {"config", "print_config", "print_unit", "held", "help", "demo", "simulate", "export", "seed", "stay"}
SET = "settings"  # the parameter behind --set
DOORS = "doors"  # the parameter behind --door
DOOR_FILES = {"users", "password_file"}  # names of files in the table of a door
FILES = {"key", "identity", "state", "journal", "trace", "schemas"}
_COMMAND_LINE = "COMMANDLINE"


def from_file(context: typer.Context, path: Path | None) -> Path | None:
    """Called for `--config` before other options: what the file says becomes their default."""
    if path is not None:
        context.default_map = _defaults(context, path)
    return path


def given(context: typer.Context) -> dict[str, Any]:
    """What the command line itself says, whatever a file does."""
    return {name: value for name, value in context.params.items() if _source(context, name) == _COMMAND_LINE}


def reread(context: typer.Context, path: Path) -> dict[str, Any]:
    """All options again, after the file has changed; those that no file may set stay as they are."""
    values = _defaults(context, path)
    options: dict[str, Any] = dict(context.params)
    for name, option in _options(context).items():
        value = values.get(name, option.default)
        options[name] = None if value is None else option.process_value(context, value)
    return options | given(context)


def as_toml(context: typer.Context, command: str = "node") -> str:
    """A file to start from: every option with its help, in use those that differ from their default."""
    lines = [f"# roamcast {command} --config FILE"]
    parameters: list[str] = []
    tables: list[str] = []
    for name, option in _options(context).items():
        value: Any = context.params.get(name)
        lines += ["", *(f"# {line}" for line in wrap(option.help or "", 110))]
        if name == SET:
            pairs = (text.partition("=") for text in value or [])
            parameters = [f"{key} = {_toml(_plain(text))}" for key, _, text in pairs]
            lines.append("# It is the table [set] at the end of this file.")
            continue
        if name == DOORS:
            tables = [f"{door} = {_toml(table)}" for door, table in door_table(value or []).items()]
            lines.append("# It is the table [door] at the end of this file.")
            continue
        is_set = _source(context, name) not in (None, "DEFAULT")
        if is_set and name in FILES:
            value = [path.absolute() for path in value] if option.multiple else value.absolute()
        lines.append(f"{'' if is_set else '# '}{_key(option)} = {_toml(value if is_set else _example(option))}")
    if tables:
        tables = ["", "[door]", *tables]
    return "\n".join([*lines, "", "[set]", *parameters, *tables, ""])


def door_table(texts: list[str]) -> dict[str, Any]:
    """What `--door NAME`, `--door NAME=HOST:PORT` and the table `[door]` say, one entry per door."""
    table: dict[str, Any] = {}
    for text in texts:
        name, has_value, value = text.partition("=")
        plain = _plain(value) if value[:1] in ("{", '"') or value in ("true", "false") else value
        table[name.strip()] = plain if has_value else True
    return table


def _located(path: Path, table: Any) -> Any:
    """The table of a door, its files relative to the directory of the configuration file."""
    if not isinstance(table, dict):
        return table
    return {key: str(path.parent / str(value)) if key in DOOR_FILES else value for key, value in table.items()}


def _source(context: typer.Context, name: str) -> str | None:
    source = context.get_parameter_source(name)
    return None if source is None else source.name


def _options(context: typer.Context) -> dict[str, Any]:
    return {str(option.name): option for option in context.command.params if option.name not in NOT_IN_FILE}


def _key(option: Any) -> str:
    """How the option is called, without dashes."""
    return str(max(option.opts, key=len)).lstrip("-")


def _defaults(context: typer.Context, path: Path) -> dict[str, Any]:
    by_key = {_key(option): option for option in _options(context).values()}
    values: dict[str, Any] = {}
    for key, value in _read(path).items():
        option = by_key.get(key) or by_key.get(key.replace("_", "-"))
        if option is None:
            near = get_close_matches(key, by_key, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(by_key)}"
            raise ConfigurationError(f"{path}: {key!r} is unknown{hint}")
        values[option.name] = _value(path, key, option, value)
    return values


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX or not path.is_file():
            raise ConfigurationError(f"--config {str(path)!r}: is not a configuration file")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"--config {str(path)!r}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: is not TOML: {error}") from None


def _value(path: Path, key: str, option: Any, value: Any) -> Any:
    """As the command line would have it."""
    if option.name == SET:
        if not isinstance(value, dict):
            raise ConfigurationError(f"{path}: {key!r} must be a table, as in [set]")
        return [f"{name}={_text(each)}" for name, each in value.items()]
    if option.name == DOORS:
        if not isinstance(value, dict):
            raise ConfigurationError(f"{path}: {key!r} must be a table, as in [door.http]")
        return [f"{name}={json.dumps(_located(path, each), default=str)}" for name, each in value.items()]
    if option.multiple != isinstance(value, list) or isinstance(value, dict):
        kind = "a list, as in [...]" if option.multiple else "one value"
        raise ConfigurationError(f"{path}: {key!r} must be {kind}")
    if option.is_flag:
        if not isinstance(value, bool):
            raise ConfigurationError(f"{path}: {key!r} must be true or false")
        return value
    texts = [_text(each) for each in (value if option.multiple else [value])]
    if option.name in FILES:
        texts = [str(path.parent / text) for text in texts]
    return texts if option.multiple else texts[0]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _plain(text: str) -> Any:
    """A parameter's text as the number or truth value that it may be."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _example(option: Any) -> Any:
    if option.default is not None:
        return option.default
    return [] if option.multiple else False if option.is_flag else ""


def _toml_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(name)} = {_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
