"""Operators on one event at a time. `windows` has those that look at several, `grids` those that compute on grids.

| operator | what it does to an event |
|---|---|
| `filter(EXPRESSION)` | passes it if the expression holds |
| `project(FIELD, ...)` | keeps only these fields of its payload, a JSON object |
| `sample(N)` | passes the first of every N |
| `aggregate(FUNCTION, EXPRESSION, N)` | replaces every N by one whose content is their mean, sum, min, max or count |
| `transform(EXPRESSION)` | replaces its content; drops it if that makes nothing |
| `assign(FIELD, EXPRESSION)` | sets a field of its payload, a JSON object |
| `work(SECONDS)` | passes it after this time, in which the CPU counts as busy: stands for a computation |

An operator's state is bounded, whatever it has seen. What it costs in the simulator is declared with constants of
the order that CPython shows on a current laptop; live, the time is measured instead.
"""

from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.expression import Formula, Parser, Scope
from roamcast.protocols.overlays.modulators.operator import (
    BYTE_S,
    CALL_S,
    Fate,
    Operator,
    State,
    count,
    expression_cost_s,
    numbers_of,
    one_of,
)

WORK_S_MAX: Final = 60.0


class Filter(Operator):
    name: ClassVar[str] = "filter"

    def __init__(self, condition: Formula) -> None:
        self._condition = condition

    @classmethod
    def parse(cls, parser: Parser) -> "Filter":
        return cls(parser.expression())

    def apply(self, event: Event) -> Event | Fate:
        return event if self._condition.holds(Scope(event)) else Fate.DROPPED

    def cost_s(self, event: Event) -> float:
        return expression_cost_s(self._condition, event)


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


class Sample(Operator):
    name: ClassVar[str] = "sample"

    def __init__(self, every: int) -> None:
        self._every = every
        self._seen = 0

    @classmethod
    def parse(cls, parser: Parser) -> "Sample":
        return cls(count(parser))

    def apply(self, event: Event) -> Event | Fate:
        first = self._seen == 0
        self._seen = (self._seen + 1) % self._every
        return event if first else Fate.DROPPED

    def cost_s(self, event: Event) -> float:
        return CALL_S

    def state(self) -> State:
        return [float(self._seen)]

    def restore(self, state: State) -> None:
        (seen,) = numbers_of(state, 1)
        if not (seen == int(seen) and 0 <= seen < self._every):
            raise ValueError(f"{seen} of {self._every} seen")
        self._seen = int(seen)


class AggregateOperator(Operator):
    name: ClassVar[str] = "aggregate"
    FUNCTIONS: ClassVar = ("mean", "sum", "min", "max", "count")

    def __init__(self, function: str, value: Formula, size: int) -> None:
        self._function = function
        self._value = value
        self._size = size
        self._begin()

    @classmethod
    def parse(cls, parser: Parser) -> "AggregateOperator":
        function = one_of(parser, cls.FUNCTIONS)
        parser.expect(",")
        value = parser.expression()
        parser.expect(",")
        return cls(function, value, count(parser))

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
        return expression_cost_s(self._value, event)

    def state(self) -> State:
        return [float(self._seen), float(self._valued), self._sum, self._min, self._max]

    def restore(self, state: State) -> None:
        seen, valued, self._sum, self._min, self._max = numbers_of(state, 5)
        if not (0 <= valued <= seen < self._size and seen == int(seen) and valued == int(valued)):
            raise ValueError(f"{valued} of {seen} of {self._size} seen")
        self._seen, self._valued = int(seen), int(valued)


class Transform(Operator):
    name: ClassVar[str] = "transform"

    def __init__(self, content: Formula) -> None:
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
        return expression_cost_s(self._content, event)


class Assign(Operator):
    name: ClassVar[str] = "assign"

    def __init__(self, field: str, value: Formula) -> None:
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
        return expression_cost_s(self._value, event)


class Work(Operator):
    name: ClassVar[str] = "work"

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds <= WORK_S_MAX:
            raise ConfigurationError(f"modulator: work({seconds:g}): must be between 0 and {WORK_S_MAX:g} s")
        self._seconds = seconds

    @classmethod
    def parse(cls, parser: Parser) -> "Work":
        return cls(float(parser.read("number", "seconds")))

    def apply(self, event: Event) -> Event | Fate:
        return event

    def cost_s(self, event: Event) -> float:
        return self._seconds

    def least_s(self) -> float:
        return self._seconds
