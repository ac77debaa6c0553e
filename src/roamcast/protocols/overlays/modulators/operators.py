"""The closed set of operators that modulators are composed of.

| operator | what it does to an event |
|---|---|
| `filter(EXPRESSION)` | passes it if the expression holds |
| `project(FIELD, ...)` | keeps only these fields of its payload, a JSON object |
| `crop(COLUMNS, LEFT, TOP, RIGHT, BOTTOM)` | cuts a bounding box out of its payload, a grid of doubles, row by row |
| `sample(N)` | passes the first of every N |
| `aggregate(FUNCTION, EXPRESSION, N)` | replaces every N by one whose content is their mean, sum, min, max or count |
| `transform(EXPRESSION)` | replaces its content; drops it if that makes nothing |
| `assign(FIELD, EXPRESSION)` | sets a field of its payload, a JSON object |
| `work(SECONDS)` | passes it, and stands for a computation of this length, such as the paper's run-off model |

An operator's state is a few numbers, whatever it has seen. What it costs in the simulator is declared with constants of
the order that CPython shows on a current laptop; live, the time is measured instead.
"""

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.expression import Expression, Parser, Scope

CALL_S: Final = 2e-6
STEP_S: Final = 0.5e-6  # per node of an expression
BYTE_S: Final = 2e-9  # of a payload that is looked into or copied
COUNT_MAX: Final = 1_000_000  # of a sample or a window
DOUBLE_BYTES: Final = 8


class Fate(Enum):
    """What becomes of an event that an operator does not pass on."""

    DROPPED = "dropped"
    KEPT = "kept"


class Operator(ABC):
    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def parse(cls, parser: Parser) -> "Operator":
        """Reads the arguments between the parentheses."""

    @abstractmethod
    def apply(self, event: Event) -> Event | Fate:
        """The event as it goes on, or what became of it."""

    @abstractmethod
    def cost_s(self, event: Event) -> float:
        """Declared CPU time."""

    def state(self) -> list[float]:
        """What it remembers."""
        return []

    def restore(self, state: list[float]) -> None:
        """Goes on from there; `ValueError` if it cannot."""
        if state:
            raise ValueError(f"{self.name} remembers nothing")


class Filter(Operator):
    name: ClassVar[str] = "filter"

    def __init__(self, condition: Expression) -> None:
        self._condition = condition

    @classmethod
    def parse(cls, parser: Parser) -> "Filter":
        return cls(parser.expression())

    def apply(self, event: Event) -> Event | Fate:
        return event if self._condition.holds(Scope(event)) else Fate.DROPPED

    def cost_s(self, event: Event) -> float:
        return _cost_s(self._condition, event)


class Project(Operator):
    name: ClassVar[str] = "project"

    def __init__(self, fields: list[str]) -> None:
        self._fields = fields

    @classmethod
    def parse(cls, parser: Parser) -> "Project":
        fields = [parser.read("name", "a field")]
        while parser.accept(","):
            fields.append(parser.read("name", "a field"))
        return cls(fields)

    def apply(self, event: Event) -> Event | Fate:
        record = Scope(event).record
        if not record:
            return event
        kept = {field: record[field] for field in self._fields if field in record}
        return replace(event, payload=msgspec.json.encode(kept))

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class Crop(Operator):
    name: ClassVar[str] = "crop"

    def __init__(self, columns: int, left: int, top: int, right: int, bottom: int) -> None:
        if not (0 <= left < right <= columns and 0 <= top < bottom):
            raise ConfigurationError(
                f"modulator: crop({columns}, {left}, {top}, {right}, {bottom}): must be a box within the columns"
            )
        self._columns = columns
        self._left, self._top, self._right, self._bottom = left, top, right, bottom

    @classmethod
    def parse(cls, parser: Parser) -> "Crop":
        numbers = [_whole(parser)]
        while parser.accept(","):
            numbers.append(_whole(parser))
        if len(numbers) != 5:
            raise ConfigurationError(f"modulator: crop takes 5 numbers, not {len(numbers)}")
        return cls(*numbers)

    def apply(self, event: Event) -> Event | Fate:
        width = self._columns * DOUBLE_BYTES
        if not event.payload or len(event.payload) % width:
            return Fate.DROPPED
        rows = range(self._top, min(self._bottom, len(event.payload) // width))
        first, last = self._left * DOUBLE_BYTES, self._right * DOUBLE_BYTES
        box = b"".join(event.payload[row * width + first : row * width + last] for row in rows)
        return replace(event, payload=box)

    def cost_s(self, event: Event) -> float:
        return CALL_S + len(event.payload) * BYTE_S


class Sample(Operator):
    name: ClassVar[str] = "sample"

    def __init__(self, every: int) -> None:
        self._every = every
        self._seen = 0

    @classmethod
    def parse(cls, parser: Parser) -> "Sample":
        return cls(_count(parser))

    def apply(self, event: Event) -> Event | Fate:
        first = self._seen == 0
        self._seen = (self._seen + 1) % self._every
        return event if first else Fate.DROPPED

    def cost_s(self, event: Event) -> float:
        return CALL_S

    def state(self) -> list[float]:
        return [float(self._seen)]

    def restore(self, state: list[float]) -> None:
        (seen,) = state
        if not (seen == int(seen) and 0 <= seen < self._every):
            raise ValueError(f"{seen} of {self._every} seen")
        self._seen = int(seen)


class Aggregate(Operator):
    name: ClassVar[str] = "aggregate"
    FUNCTIONS: ClassVar = ("mean", "sum", "min", "max", "count")

    def __init__(self, function: str, value: Expression, size: int) -> None:
        self._function = function
        self._value = value
        self._size = size
        self._begin()

    @classmethod
    def parse(cls, parser: Parser) -> "Aggregate":
        function = parser.accept(*cls.FUNCTIONS)
        if function is None:
            raise parser.refusal(f"one of {', '.join(cls.FUNCTIONS)} expected")
        parser.expect(",")
        value = parser.expression()
        parser.expect(",")
        return cls(function, value, _count(parser))

    def _begin(self) -> None:
        self._seen = 0
        self._valued = 0  # events whose value is a number
        self._sum = 0.0
        self._min = 0.0
        self._max = 0.0

    def apply(self, event: Event) -> Event | Fate:
        value = self._value.evaluate(Scope(event))
        self._seen += 1
        if isinstance(value, float):
            self._min = value if not self._valued else min(value, self._min)
            self._max = value if not self._valued else max(value, self._max)
            self._sum += value
            self._valued += 1
        if self._seen < self._size:
            return Fate.KEPT
        result = self._result()
        self._begin()
        return Fate.DROPPED if result is None else replace(event, content=result, payload=b"")

    def _result(self) -> float | None:
        if self._function == "count":
            return float(self._valued)
        if not self._valued:
            return None
        whole = {"sum": self._sum, "mean": self._sum / self._valued, "min": self._min, "max": self._max}
        return whole[self._function]

    def cost_s(self, event: Event) -> float:
        return _cost_s(self._value, event)

    def state(self) -> list[float]:
        return [float(self._seen), float(self._valued), self._sum, self._min, self._max]

    def restore(self, state: list[float]) -> None:
        seen, valued, self._sum, self._min, self._max = state
        if not (0 <= valued <= seen < self._size and seen == int(seen) and valued == int(valued)):
            raise ValueError(f"{valued} of {seen} of {self._size} seen")
        self._seen, self._valued = int(seen), int(valued)


class Transform(Operator):
    name: ClassVar[str] = "transform"

    def __init__(self, content: Expression) -> None:
        self._content = content

    @classmethod
    def parse(cls, parser: Parser) -> "Transform":
        return cls(parser.expression())

    def apply(self, event: Event) -> Event | Fate:
        content = self._content.evaluate(Scope(event))
        if content is None:
            return Fate.DROPPED
        return replace(event, content=float(content) if isinstance(content, bool) else content)

    def cost_s(self, event: Event) -> float:
        return _cost_s(self._content, event)


class Assign(Operator):
    name: ClassVar[str] = "assign"

    def __init__(self, field: str, value: Expression) -> None:
        self._field = field
        self._value = value

    @classmethod
    def parse(cls, parser: Parser) -> "Assign":
        field = parser.read("name", "a field")
        parser.expect(",")
        return cls(field, parser.expression())

    def apply(self, event: Event) -> Event | Fate:
        scope = Scope(event)
        record = {**scope.record, self._field: self._value.evaluate(scope)}
        return replace(event, payload=msgspec.json.encode(record))

    def cost_s(self, event: Event) -> float:
        return _cost_s(self._value, event)


class Work(Operator):
    name: ClassVar[str] = "work"

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds <= 60:
            raise ConfigurationError(f"modulator: work({seconds:g}): must be between 0 and 60 s")
        self._seconds = seconds

    @classmethod
    def parse(cls, parser: Parser) -> "Work":
        return cls(float(parser.read("number", "seconds")))

    def apply(self, event: Event) -> Event | Fate:
        return event

    def cost_s(self, event: Event) -> float:
        return self._seconds


OPERATORS: Final[dict[str, type[Operator]]] = {
    kind.name: kind for kind in (Filter, Project, Crop, Sample, Aggregate, Transform, Assign, Work)
}


def _cost_s(expression: Expression, event: Event) -> float:
    looked_into = len(event.payload) if event.payload.startswith(b"{") else 0
    return CALL_S + expression.nodes * STEP_S + looked_into * BYTE_S


def _whole(parser: Parser) -> int:
    text = parser.read("number", "a whole number")
    if not text.isdigit() or len(text) > 9:
        raise ConfigurationError(f"modulator: {text} is not a whole number below a billion")
    return int(text)


def _count(parser: Parser) -> int:
    count = _whole(parser)
    if not 1 <= count <= COUNT_MAX:
        raise ConfigurationError(f"modulator: {count}: must be between 1 and {COUNT_MAX}")
    return count
