"""The documentation of settings, read from where they are declared.

A setting is a field of a struct. Its comment says what it means, on the same line or on the lines above it; the
`require` calls of the struct's `__post_init__` say what is allowed (`protocols/parameters.py`); the annotation and the
default say the rest. So there is one place for all of it, and commands and guides show what the code does.
"""

import ast
import inspect
import io
import tokenize
from typing import Any, get_args

import msgspec

from roamcast.protocols.parameters import ranges


class Setting(msgspec.Struct, frozen=True):
    name: str
    type: str  # as users write it: a number, true or false, one of several words
    default: Any
    unit: str  # "" if it has none
    meaning: str
    allowed: str  # "" if any value of the type is


UNITS = {
    "s": "s", "ms": "ms", "m": "m", "mps": "m/s", "bytes": "bytes", "bps": "bit/s", "db": "dB", "dbm": "dBm",
    "hz": "Hz", "mw": "mW", "mj": "mJ", "hops": "hops", "frames": "frames", "events": "events", "bits": "bits",
    "deg": "degrees", "mbps": "Mbit/s", "khz": "kHz", "mhz": "MHz", "j": "J", "symbols": "symbols",
}  # fmt: skip
"""By the last word of a setting's name, or the one before `max` and `min`."""


def documented(kind: type[msgspec.Struct]) -> list[Setting]:
    """Every field of a struct whose fields all have defaults, in the order of declaration."""
    defaults = msgspec.to_builtins(kind())
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    allowed = ranges(kind)
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            meanings |= {name: text for name, text in _comments(_source(base)).items() if text}
    return [
        Setting(
            name=name,
            type=type_name(of),
            default=defaults[name],
            unit=_unit(name, of),
            meaning=meanings.get(name, ""),
            allowed=allowed.get(name, ""),
        )
        for name, of in types.items()
    ]


def type_name(kind: Any) -> str:
    """A type in words: `number`, `whole number`, `true or false`, or the words that are allowed."""
    names: dict[Any, str] = {
        float: "number", int: "whole number", bool: "true or false", str: "text", type(None): "nothing",
    }  # fmt: skip
    if kind in names:
        return names[kind]
    choices = get_args(kind)
    if type(None) in choices:
        others = [choice for choice in choices if choice is not type(None)]
        return " or ".join([*(type_name(other) for other in others), names[type(None)]])
    if choices and all(isinstance(choice, str) for choice in choices):
        return ", ".join(choices)
    if choices and all(choice in names for choice in choices):
        return " or ".join(names[choice] for choice in choices)
    if choices and all(isinstance(choice, type) for choice in choices):
        return " or ".join(choice.__name__ for choice in choices)
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _unit(name: str, kind: Any) -> str:
    if kind is bool or kind is str:
        return ""
    words = [word for word in name.split("_") if word not in ("max", "min")]
    return UNITS.get(words[-1], "") if len(words) > 1 else ""


def _source(kind: type) -> str:
    try:
        return inspect.cleandoc("\n" + inspect.getsource(kind))
    except (OSError, TypeError):
        return ""  # made at run time: there is no source


def _comments(source: str) -> dict[str, str]:
    """The comment of each field: behind it, or else above it; fields right below each other share one above."""
    found: dict[str, str] = {}
    above = ""
    fields = {
        node.lineno: (node.target.id, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    behind = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for number, line in enumerate(source.splitlines(), start=1):
        if line.strip().startswith("#"):
            text = behind.get(number, "")
            above = f"{above} {text}" if above and not above.endswith("\n") else text
        elif number in fields:
            name, end = fields[number]
            found[name] = behind.get(end) or above.rstrip("\n")
            above = above if above.endswith("\n") or not above else above + "\n"  # a new comment starts afresh
        else:
            above = ""
    return found
