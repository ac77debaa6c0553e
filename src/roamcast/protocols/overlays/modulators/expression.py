"""A small safe language of expressions over one event.

    content > 30 and publisher != 7
    depth * 2.5 >= limit or contains(kind, "flood")

Names: `content` (the number or text that the event is about), `publisher`, `number`, `time` (s), `size` (of the
payload, bytes); any other name is a field of the payload, if the payload is a JSON object. Values are numbers, texts,
truth values and nothing. What makes no sense, such as a missing field, a text plus a number or a division by zero, is
nothing; nothing compares as false and makes nothing of what is computed with it. So an expression never fails.

It cannot do harm either: it is parsed into the few kinds of nodes below and interpreted, with no names of Python in
reach. There are no loops, no recursion and no way to build a text, so an event costs at most one step per node and no
memory that grows. Text length, number of nodes and depth are bounded.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import Event

SOURCE_CHARACTERS_MAX: Final = 2048
NODES_MAX: Final = 256
DEPTH_MAX: Final = 32
RECORD_BYTES_MAX: Final = 65_536  # a longer payload is not looked into

Value = float | str | bool | None


class Scope:
    """What an expression can see of an event."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self._record: dict[str, object] | None = None

    def value(self, name: str) -> Value:
        event = self.event
        match name:
            case "content":
                return event.content if isinstance(event.content, str) else _finite(event.content)
            case "publisher":
                return float(event.publisher)
            case "number":
                return float(event.number)
            case "time":
                return event.time_s
            case "size":
                return float(len(event.payload))
        found = self.record.get(name)
        if isinstance(found, (str, bool)):
            return found
        return _finite(found) if isinstance(found, (int, float)) else None

    @property
    def record(self) -> dict[str, object]:
        """The payload as a record; empty if it is none."""
        if self._record is None:
            self._record = parse_record(self.event.payload)
        return self._record


def parse_record(payload: bytes) -> dict[str, object]:
    if not payload.startswith(b"{") or len(payload) > RECORD_BYTES_MAX:
        return {}
    try:
        return msgspec.json.decode(payload, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


class ConstantTerm(NamedTuple):
    constant: Value

    def evaluate(self, scope: Scope) -> Value:
        return self.constant


class NamedTerm(NamedTuple):
    name: str

    def evaluate(self, scope: Scope) -> Value:
        return scope.value(self.name)


class CalledTerm(NamedTuple):
    """An operator or a function, applied to its arguments."""

    function: Callable[..., Value]
    arguments: "tuple[Term, ...]"

    def evaluate(self, scope: Scope) -> Value:
        return self.function(*[argument.evaluate(scope) for argument in self.arguments])


Term = ConstantTerm | NamedTerm | CalledTerm


class Formula(NamedTuple):
    root: Term
    nodes: int  # steps that one evaluation takes at most

    def evaluate(self, scope: Scope) -> Value:
        return self.root.evaluate(scope)

    def holds(self, scope: Scope) -> bool:
        value = self.root.evaluate(scope)
        return value is not None and bool(value)


def _finite(number: float) -> float | None:
    try:
        value = float(number)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _arithmetic(compute: Callable[[float, float], float]) -> Callable[[Value, Value], Value]:
    def function(one: Value, other: Value) -> Value:
        if not isinstance(one, float) or not isinstance(other, float):
            return None
        try:
            return _finite(compute(one, other))
        except (ZeroDivisionError, OverflowError, ValueError):
            return None

    return function


def _comparison(compare: Callable[[float | str, float | str], bool]) -> Callable[[Value, Value], Value]:
    def function(one: Value, other: Value) -> Value:
        if isinstance(one, float) and isinstance(other, float):
            return compare(one, other)
        return isinstance(one, str) and isinstance(other, str) and compare(one, other)

    return function


def _equal(one: Value, other: Value) -> Value:
    return one is not None and type(one) is type(other) and one == other


def _different(one: Value, other: Value) -> Value:
    return one is not None and other is not None and not _equal(one, other)


def _on_number(compute: Callable[[float], float]) -> Callable[[Value], Value]:
    def function(number: Value) -> Value:
        try:
            return _finite(compute(number)) if isinstance(number, float) else None
        except (ValueError, OverflowError):
            return None

    return function


def _on_texts(test: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    return lambda one, other: isinstance(one, str) and isinstance(other, str) and test(one, other)


def _length(text: Value) -> Value:
    return float(len(text)) if isinstance(text, str) else None


def _truth(value: Value) -> bool:
    return value is not None and bool(value)


COMPARISONS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "<": _comparison(lambda one, other: one < other),  # type: ignore[operator]  # both are numbers, or both texts
    "<=": _comparison(lambda one, other: one <= other),  # type: ignore[operator]
    ">": _comparison(lambda one, other: one > other),  # type: ignore[operator]
    ">=": _comparison(lambda one, other: one >= other),  # type: ignore[operator]
    "==": _equal,
    "!=": _different,
}
SUMS: Final = {"+": _arithmetic(lambda a, b: a + b), "-": _arithmetic(lambda a, b: a - b)}
PRODUCTS: Final = {
    "*": _arithmetic(lambda a, b: a * b),
    "/": _arithmetic(lambda a, b: a / b),
    "%": _arithmetic(math.fmod),
}
FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Value]]]] = {  # name -> number of arguments, function
    "abs": (1, _on_number(abs)),
    "floor": (1, _on_number(math.floor)),
    "round": (1, _on_number(round)),
    "sqrt": (1, _on_number(math.sqrt)),
    "min": (2, _arithmetic(min)),
    "max": (2, _arithmetic(max)),
    "length": (1, _length),
    "contains": (2, _on_texts(lambda one, other: other in one)),
    "starts": (2, _on_texts(str.startswith)),
    "ends": (2, _on_texts(str.endswith)),
}
_WORDS: Final = {"true": True, "false": False, "nothing": None}

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)|(?P<text>"[^"]*")|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"""
    r"""|(?P<sign><=|>=|==|!=|[-+*/%<>()|,]))"""
)


class Token(NamedTuple):
    kind: str  # number, text, name, sign or end
    text: str
    at: int  # place in the source


def tokens(source: str) -> list[Token]:
    if len(source) > SOURCE_CHARACTERS_MAX:
        raise ConfigurationError(f"modulator: {len(source)} characters; allowed: at most {SOURCE_CHARACTERS_MAX}")
    found: list[Token] = []
    at = 0
    end = len(source.rstrip())
    while at < end:
        match = _TOKEN.match(source, at)
        if match is None:
            raise ConfigurationError(f"modulator: {source[at : at + 20]!r} at {at} makes no sense")
        assert match.lastgroup is not None
        found.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    found.append(Token("end", "", end))
    return found


class Parser:
    """Recursive descent, one method per level of precedence; also the cursor over the tokens for the pipeline."""

    def __init__(self, source: str, inputs: Mapping[str, bytes] | None = None) -> None:
        self._inputs = inputs or {}
        self._tokens = tokens(source)
        self._at = 0
        self._nodes = 0
        self._depth = 0

    # -- The cursor --------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def accept(self, *texts: str) -> str | None:
        """Reads the current token if it is one of these signs or words."""
        token = self.token
        if token.kind in ("sign", "name") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            raise self.refusal(f"{text!r} expected")

    def read(self, kind: str, what: str) -> str:
        token = self.token
        if token.kind != kind:
            raise self.refusal(f"{what} expected")
        self._at += 1
        return token.text

    def input(self) -> bytes:
        """Reads the name of static data, and returns the data."""
        name = self.token.text
        if name not in self._inputs:
            known = ", ".join(sorted(self._inputs)) or "there is none"
            raise self.refusal(f"the name of an input expected ({known})")
        self.read("name", "an input")
        return self._inputs[name]

    def refusal(self, why: str) -> ConfigurationError:
        token = self.token
        where = f"{token.text!r} at {token.at}" if token.text else "its end"
        return ConfigurationError(f"modulator: {why}, not {where}")

    # -- Expressions -------------------------------------------------------------------------------------------------

    def expression(self) -> Formula:
        began = self._nodes
        root = self._either()
        return Formula(root, self._nodes - began)

    def _either(self) -> Term:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ConfigurationError(f"modulator: nested deeper than {DEPTH_MAX}")
        node = self._both()
        while self.accept("or"):
            node = self._call(lambda one, other: _truth(one) or _truth(other), node, self._both())
        self._depth -= 1
        return node

    def _both(self) -> Term:
        node = self._negation()
        while self.accept("and"):
            node = self._call(lambda one, other: _truth(one) and _truth(other), node, self._negation())
        return node

    def _negation(self) -> Term:
        negated = False
        while self.accept("not"):
            negated = not negated
        node = self._compared()
        return self._call(lambda value: not _truth(value), node) if negated else node

    def _compared(self) -> Term:
        node = self._sum()
        sign = self.accept(*COMPARISONS)
        return node if sign is None else self._call(COMPARISONS[sign], node, self._sum())

    def _sum(self) -> Term:
        node = self._product()
        while (sign := self.accept(*SUMS)) is not None:
            node = self._call(SUMS[sign], node, self._product())
        return node

    def _product(self) -> Term:
        node = self._signed()
        while (sign := self.accept(*PRODUCTS)) is not None:
            node = self._call(PRODUCTS[sign], node, self._signed())
        return node

    def _signed(self) -> Term:
        negative = False
        while self.accept("-"):
            negative = not negative
        node = self._atom()
        return self._call(_on_number(lambda number: -number), node) if negative else node

    def _atom(self) -> Term:
        if self.accept("("):
            node = self._either()
            self.expect(")")
            return node
        token = self.token
        if token.kind == "number":
            return self._leaf(ConstantTerm(_finite(float(token.text))))
        if token.kind == "text":
            return self._leaf(ConstantTerm(token.text[1:-1]))
        if token.kind != "name":
            raise self.refusal("a value expected")
        if token.text in _WORDS:
            return self._leaf(ConstantTerm(_WORDS[token.text]))
        if self._tokens[self._at + 1].text == "(":
            return self._applied()
        return self._leaf(NamedTerm(token.text))

    def _applied(self) -> Term:
        name = self.token.text
        if name not in FUNCTIONS:
            raise self.refusal(f"one of {', '.join(FUNCTIONS)} expected")
        self._at += 2
        count, function = FUNCTIONS[name]
        arguments = [self._either()]
        while self.accept(","):
            arguments.append(self._either())
        self.expect(")")
        if len(arguments) != count:
            raise ConfigurationError(f"modulator: {name} takes {count} arguments, not {len(arguments)}")
        return self._call(function, *arguments)

    def _leaf(self, node: ConstantTerm | NamedTerm) -> Term:
        self._at += 1
        self._count()
        return node

    def _call(self, function: Callable[..., Value], *arguments: Term) -> Term:
        self._count()
        return CalledTerm(function, arguments)

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise ConfigurationError(f"modulator: more than {NODES_MAX} values and operators")
