"""The subset of XPath that subscriptions are written in: from text to a tree, with no knowledge of any schema.

    expression  = location { "|" location }
    location    = ( "/" | "//" ) ( name | "*" ) { predicate } { "/" step }
    step        = ( name | "@" name ) { predicate }
    predicate   = "[" or "]"
    or          = and { "or" and }
    and         = test { "and" test }
    test        = "(" or ")" | "not" "(" or ")" | comparison | function | path
    comparison  = path operator literal | literal operator path
    operator    = "=" | "!=" | "<" | "<=" | ">" | ">="
    function    = ( "starts-with" | "ends-with" | "contains" ) "(" path "," string ")"
    path        = "." | step { "/" step }
    literal     = [ "-" ] number | string

An event matches if the expression selects anything in it. `//` may only begin a location: inside a predicate it makes
general engines search the whole document again for every node, and so on down. Positions, axes, arithmetic, variables
and other functions are outside. `ends-with` is from XPath 2.0, all else from 1.0. Names carry no prefix: they are in
the namespace of the event type.

The work is linear in the length of the text, and length and nesting are bounded.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from roamcast.errors import ConfigurationError

EXPRESSION_CHARACTERS_MAX: Final = 4096
LOCATIONS_MAX: Final = 64
NESTING_MAX: Final = 16

FUNCTIONS: Final = ("starts-with", "ends-with", "contains")
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"""
    r"""|(?P<string>'[^']*'|"[^"]*")|(?P<sign>//|\.\.|::|!=|<=|>=|[/@\[\]().,|=<>*\-+$:]))""",
    re.ASCII,
)


class PathStep(NamedTuple):
    name: str  # an attribute's begins with `@`; "*" stands for any element
    predicates: tuple[Condition, ...] = ()


class Location(NamedTuple):
    anywhere: bool  # begins with `//`
    steps: tuple[PathStep, ...]


class AllOf(NamedTuple):
    parts: tuple[Condition, ...]


class AnyOf(NamedTuple):
    parts: tuple[Condition, ...]


class Not(NamedTuple):
    part: Condition


class Exists(NamedTuple):
    path: tuple[PathStep, ...]  # () is `.`


class Compare(NamedTuple):
    path: tuple[PathStep, ...]
    operator: str  # a comparison's, or a function's name
    literal: str | float


Condition = AllOf | AnyOf | Not | Exists | Compare


class _Token(NamedTuple):
    kind: str  # name, number, string, sign, end
    text: str
    at: int


def parse(text: str) -> list[Location]:
    """The locations of an expression."""
    return _Parser(text).expression()


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > EXPRESSION_CHARACTERS_MAX:
            raise ConfigurationError(
                f"interest: an expression of {len(text)} characters; allowed: at most {EXPRESSION_CHARACTERS_MAX}"
            )
        self._text = text
        self._tokens = self._scan(text)
        self._next = 0
        self._depth = 0

    def _scan(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                self._refuse(at, "this character has no meaning here")
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            at = found.end()
        tokens.append(_Token("end", "the end", len(text)))
        return tokens

    def _refuse(self, at: int, why: str) -> NoReturn:
        excerpt = self._text[max(0, at - 20) : at + 20]
        raise ConfigurationError(f"interest: {excerpt!r}, character {at + 1}: {why}")

    # -- Tokens --------------------------------------------------------------------------------------------------

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _sees(self, *texts: str) -> bool:
        token = self._token
        return token.kind in ("sign", "name") and token.text in texts

    def _sees_call(self, *names: str) -> bool:
        return self._sees(*names) and self._tokens[self._next + 1].text == "("

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        if self._sees(text):
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._refuse(self._token.at, f"expected {text!r}, found {self._token.text[:40]!r}")

    # -- Grammar -------------------------------------------------------------------------------------------------

    def expression(self) -> list[Location]:
        locations = [self._location()]
        while self._takes("|"):
            locations.append(self._location())
            if len(locations) > LOCATIONS_MAX:
                self._refuse(self._token.at, f"more than {LOCATIONS_MAX} locations")
        if self._token.kind != "end":
            self._refuse(self._token.at, f"expected the end, found {self._token.text[:40]!r}")
        return locations

    def _location(self) -> Location:
        if not self._sees("/", "//"):
            self._refuse(self._token.at, "a location begins with / or //, as in /PGMFORUM[hole = 7]")
        anywhere = self._take().text == "//"
        steps = [PathStep("*", self._predicates()) if self._takes("*") else self._step()]
        if steps[0].name.startswith("@"):
            self._refuse(self._token.at, "a location begins with an element")
        while self._takes("/"):
            steps.append(self._step())
        return Location(anywhere, tuple(steps))

    def _step(self) -> PathStep:
        mark = "@" if self._takes("@") else ""
        token = self._take()
        if token.kind != "name":
            why = {
                "//": "// is allowed only where a location begins",
                "/": "// is allowed only where a location begins",
                "..": "parents are outside the subset",
                "*": "* is allowed only as the first step",
                "$": "variables are outside the subset",
            }.get(token.text, f"expected a name, found {token.text[:40]!r}")
            self._refuse(token.at, why)
        if self._sees("::", ":", "("):
            what = {"::": "axes are", ":": "prefixes are", "(": f"the function {token.text[:40]!r} is"}
            self._refuse(token.at, f"{what[self._token.text]} outside the subset")
        return PathStep(mark + token.text, self._predicates())

    def _predicates(self) -> tuple[Condition, ...]:
        found: list[Condition] = []
        while self._takes("["):
            found.append(self._or())
            self._expect("]")
        return tuple(found)

    def _or(self) -> Condition:
        self._depth += 1
        if self._depth > NESTING_MAX:
            self._refuse(self._token.at, f"nested more than {NESTING_MAX} deep")
        parts = [self._and()]
        while self._takes("or"):
            parts.append(self._and())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _and(self) -> Condition:
        parts = [self._test()]
        while self._takes("and"):
            parts.append(self._test())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _test(self) -> Condition:
        if self._takes("("):
            inside = self._or()
            self._expect(")")
            return inside
        if self._sees_call("not"):
            self._next += 2
            inside = self._or()
            self._expect(")")
            return Not(inside)
        if self._sees_call(*FUNCTIONS):
            return self._function()
        if self._token.kind in ("number", "string") or self._sees("-"):
            at = self._token.at
            literal = self._literal()
            if self._token.text not in _MIRRORED:
                self._refuse(at, "a literal alone is no condition; positions are outside the subset")
            operator = _MIRRORED[self._take().text]
            return Compare(self._path(), operator, literal)
        path = self._path()
        if self._token.kind == "sign" and self._token.text in _MIRRORED:
            operator = self._take().text
            return Compare(path, operator, self._literal())
        if self._sees("+", "-", "*"):
            self._refuse(self._token.at, "arithmetic is outside the subset")
        return Exists(path)

    def _function(self) -> Condition:
        name = self._take().text
        self._expect("(")
        path = self._path()
        self._expect(",")
        at = self._token.at
        literal = self._literal()
        if not (isinstance(literal, str) and literal):
            self._refuse(at, f"{name} compares with a string that is not empty")
        self._expect(")")
        return Compare(path, name, literal)

    def _path(self) -> tuple[PathStep, ...]:
        if self._takes("."):
            if self._sees("/", "//"):
                self._refuse(self._token.at, "nothing may follow the step .")
            return ()
        if self._sees("/", "//"):
            self._refuse(self._token.at, "inside a predicate a path begins with a name; // is not allowed there")
        steps = [self._step()]
        while self._takes("/"):
            steps.append(self._step())
        if self._sees("//"):
            self._refuse(self._token.at, "// is allowed only where a location begins")
        return tuple(steps)

    def _literal(self) -> str | float:
        minus = self._takes("-")
        token = self._take()
        if token.kind == "number":
            if len(token.text) > 400:
                self._refuse(token.at, "a number of more than 400 digits")
            value = float(token.text)
            return -value + 0.0 if minus else value
        if token.kind == "string" and not minus:
            return token.text[1:-1]
        return self._refuse(token.at, f"expected a number or a string, found {token.text[:40]!r}")
