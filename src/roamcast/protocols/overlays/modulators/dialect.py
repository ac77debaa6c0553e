"""Modulators as Python expressions, which become pipelines of operators.

    events.where(level > 2 and station != "north").average(level, last=10, by=station).every(5)
    events.runoff(columns=100, terrain=terrain, seconds=60, steps=10).crop(columns=100, box=(10, 10, 40, 30))

The source is Python's syntax and is read by Python's parser, but nothing of it is ever run: it is translated, at the
consumer, into the text of a pipeline (`pipeline`), and only that text travels. `1 < level <= 3`, `"flood" in kind`,
`not`, `and`, `or`, arithmetic and the functions of expressions mean what they mean in Python. Names are those of
`expression`.

| method | operator |
|---|---|
| `where(CONDITION)` | `filter` |
| `select("FIELD", ...)` | `project` |
| `emit(EXPRESSION)` | `transform` |
| `put(FIELD=EXPRESSION, ...)` | `assign`, one each |
| `every(N)` | `sample` |
| `average`, `total`, `lowest`, `highest`, `number` `(EXPRESSION, last=N, by=KEY, into="FIELD")` | `moving` |
| the same with `seconds=S` instead of `last` | `within` |
| the same with `batch=N` instead of `last` | `batch` |
| `changed(EXPRESSION, by_more_than=NUMBER, key=KEY)` | `changed` |
| `crop(columns=N, box=(LEFT, TOP, RIGHT, BOTTOM))` | `crop` |
| `downsample(columns=N, factor=N, using="max")` | `downsample` |
| `stencil(columns=N, steps=N, centre=W, sides=W, corners=W)` | `stencil` |
| `add`, `subtract`, `multiply` `(INPUT)` | `combine` |
| `measure("max")` | `measure` |
| `runoff(columns=N, terrain=INPUT, seconds=S, steps=N)` | `runoff` |
"""

import ast
from collections.abc import Callable
from typing import Final

from roamcast.errors import ConfigurationError
from roamcast.protocols.overlays.modulators.expression import FUNCTIONS, SOURCE_CHARACTERS_MAX

ROOT: Final = "events"
_WINDOWS: Final = {"average": "mean", "total": "sum", "lowest": "min", "highest": "max", "number": "count"}
_COMBINES: Final = ("add", "subtract", "multiply")
_SIGNS: Final[dict[str, str]] = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Mod": "%"}
_COMPARISONS: Final[dict[str, str]] = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}
_WORDS: Final = {True: "true", False: "false", None: "nothing"}


def is_python(source: str) -> bool:
    return source.lstrip().startswith(f"{ROOT}.")


def translate(source: str) -> str:
    """The pipeline that a Python expression describes; `ConfigurationError` if it describes none."""
    if len(source) > SOURCE_CHARACTERS_MAX:
        raise ConfigurationError(f"modulator: {len(source)} characters; allowed: at most {SOURCE_CHARACTERS_MAX}")
    try:
        node = ast.parse(source.strip(), mode="eval").body
        return " | ".join(_steps(node))
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"modulator: is not a Python expression: {_one_line(error)}") from None
    except (RecursionError, MemoryError):
        raise ConfigurationError("modulator: nested too deeply") from None


def _steps(node: ast.expr) -> list[str]:
    """The operators of a chain of calls, first to last."""
    steps: list[str] = []
    while not (isinstance(node, ast.Name) and node.id == ROOT):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            raise _refusal(node, f"a chain of calls is expected, as in {ROOT}.where(level > 2).every(5)")
        call = _Call(node.func.attr, node)
        steps[:0] = _METHODS.get(call.method, _unknown)(call)
        call.finish()
        node = node.func.value
    if not steps:
        raise ConfigurationError(f"modulator: {ROOT} alone is no modulator")
    return steps


class _Call:
    """A method with its arguments, each taken once."""

    def __init__(self, method: str, node: ast.Call) -> None:
        self.method = method
        self.node = node
        self._positional = list(node.args)
        self._named: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _refusal(node, "** is not allowed")
            self._named[keyword.arg] = keyword.value

    def take(self, name: str) -> str:
        """An argument that may be named or be the next one."""
        if name in self._named:
            return expression(self._named.pop(name))
        if not self._positional:
            raise _refusal(self.node, f"{self.method} needs {name}")
        return expression(self._positional.pop(0))

    def take_name(self, name: str) -> str:
        """An argument that is a name: of a field or an input, as a text or as it is."""
        node = self._named.pop(name) if name in self._named else self._next(name)
        found = node.value if isinstance(node, ast.Constant) else node.id if isinstance(node, ast.Name) else None
        if not isinstance(found, str) or not found.isidentifier() or not found.isascii():
            raise _refusal(node, f"{name} must be a name")
        return found

    def has(self, name: str) -> bool:
        return name in self._named

    def numbers(self, name: str) -> list[str]:
        node = self._named.pop(name) if name in self._named else self._next(name)
        if not isinstance(node, ast.Tuple | ast.List):
            raise _refusal(node, f"{name} must be several numbers in parentheses")
        return [expression(each) for each in node.elts]

    def rest(self) -> list[tuple[str, str]]:
        named, self._named = self._named, {}
        return [(name, expression(node)) for name, node in named.items()]

    def names(self) -> list[str]:
        return [self.take_name("field") for _ in range(len(self._positional))]

    def finish(self) -> None:
        if self._positional or self._named:
            extra = next(iter(self._named), "an argument")
            raise _refusal(self.node, f"{self.method} does not take {extra}")

    def _next(self, name: str) -> ast.expr:
        if not self._positional:
            raise _refusal(self.node, f"{self.method} needs {name}")
        return self._positional.pop(0)


def _window(call: _Call) -> list[str]:
    value = call.take("value")
    operator, size = "", ""
    for argument, name in (("last", "moving"), ("seconds", "within"), ("batch", "batch")):
        if call.has(argument):
            operator, size = name, call.take(argument)
            break
    if not operator:
        raise _refusal(call.node, f"{call.method} needs last, seconds or batch")
    key = call.take("by") if call.has("by") else "1"
    into = f", {call.take_name('into')}" if call.has("into") else ""
    return [f"{operator}({_WINDOWS[call.method]}, {value}, {size}, {key}{into})"]


def _put(call: _Call) -> list[str]:
    return [f"assign({field}, {value})" for field, value in call.rest()] or _unknown(call)


def _changed(call: _Call) -> list[str]:
    value, by = call.take("value"), call.take("by_more_than")
    return [f"changed({value}, {by}, {call.take('key') if call.has('key') else '1'})"]


def _listed(operator: str, *names: str) -> Callable[[_Call], list[str]]:
    """An operator whose arguments come one after the other; those that begin with a star are names."""

    def translated(call: _Call) -> list[str]:
        values = [call.take_name(name[1:]) if name[0] == "*" else call.take(name) for name in names]
        return [f"{operator}({', '.join(values)})"]

    return translated


def _unknown(call: _Call) -> list[str]:
    raise _refusal(call.node, f"{call.method} is not a method; there are {', '.join(_METHODS)}")


_METHODS: Final[dict[str, Callable[[_Call], list[str]]]] = {
    "where": _listed("filter", "condition"),
    "select": lambda call: [f"project({', '.join(call.names())})"],
    "emit": _listed("transform", "value"),
    "put": _put,
    "every": _listed("sample", "n"),
    **dict.fromkeys(_WINDOWS, _window),
    "changed": _changed,
    "crop": lambda call: [f"crop({call.take('columns')}, {', '.join(call.numbers('box'))})"],
    "downsample": _listed("downsample", "columns", "factor", "*using"),
    "stencil": _listed("stencil", "columns", "steps", "centre", "sides", "corners"),
    **dict.fromkeys(_COMBINES, lambda call: [f"combine({call.method}, {call.take_name('input')})"]),
    "measure": _listed("measure", "*function"),
    "runoff": _listed("runoff", "columns", "*terrain", "seconds", "steps"),
    "work": _listed("work", "seconds"),
}


# -- Expressions ---------------------------------------------------------------------------------------------------


def expression(node: ast.expr) -> str:
    """An expression in the language of pipelines."""
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        return f"({word.join(expression(value) for value in node.values)})"
    if isinstance(node, ast.UnaryOp):
        return _unary(node)
    if isinstance(node, ast.BinOp):
        sign = _SIGNS.get(type(node.op).__name__)
        if sign is None:
            raise _refusal(node, f"only {' '.join(_SIGNS.values())} are there")
        return f"({expression(node.left)} {sign} {expression(node.right)})"
    if isinstance(node, ast.Compare):
        return _compared(node)
    if isinstance(node, ast.Call):
        return _called(node)
    if isinstance(node, ast.Name) and node.id.isascii() and node.id != ROOT:
        return node.id
    if isinstance(node, ast.Constant):
        return _constant(node)
    raise _refusal(node, "only values, names, operators and functions are allowed")


def _unary(node: ast.UnaryOp) -> str:
    operand = expression(node.operand)
    if isinstance(node.op, ast.Not):
        return f"(not {operand})"
    if isinstance(node.op, ast.USub):
        return f"-{operand}" if isinstance(node.operand, ast.Constant) else f"(-{operand})"
    raise _refusal(node, "only - and not are there")


def _compared(node: ast.Compare) -> str:
    parts: list[str] = []
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        name = type(operator).__name__
        if name in ("In", "NotIn"):
            found = f"contains({expression(right)}, {expression(left)})"
            parts.append(found if name == "In" else f"(not {found})")
        elif name in _COMPARISONS:
            parts.append(f"{expression(left)} {_COMPARISONS[name]} {expression(right)}")
        else:
            raise _refusal(node, f"only {' '.join(_COMPARISONS.values())} and in are there")
        left = right
    return f"({' and '.join(parts)})"


def _called(node: ast.Call) -> str:
    names = {"len": "length"}
    if not isinstance(node.func, ast.Name) or node.keywords:
        raise _refusal(node, f"only the functions {', '.join(FUNCTIONS)} are there")
    name = names.get(node.func.id, node.func.id)
    if name not in FUNCTIONS:
        raise _refusal(node, f"{node.func.id} is not a function; there are {', '.join(FUNCTIONS)}")
    return f"{name}({', '.join(expression(argument) for argument in node.args)})"


def _constant(node: ast.Constant) -> str:
    value = node.value
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, str) and '"' not in value:
        return f'"{value}"'
    if isinstance(value, int) and value < 10**15:
        return str(value)
    if isinstance(value, float) and value < 1e300:
        return repr(value)
    raise _refusal(node, "only numbers, and texts without quotation marks, are values")


def _refusal(node: ast.expr, why: str) -> ConfigurationError:
    shown = _one_line(ast.unparse(node))
    return ConfigurationError(f"modulator: {why}; found {shown[:60]!r}")


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
