"""What an operator is, and what all of them share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, Final

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.protocols.overlays.modulators.expression import Formula, Parser

CALL_S: Final = 2e-6
STEP_S: Final = 0.5e-6  # per node of an expression
BYTE_S: Final = 2e-9  # of a payload that is looked into or copied
COUNT_MAX: Final = 1_000_000  # of a sample or a window

State = list[float] | bytes
"""What an operator remembers, to travel to another broker."""


class Fate(Enum):
    """What happens to an event that an operator does not pass on."""

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

    def least_s(self) -> float:
        """CPU time that it stands for, even where time is measured."""
        return 0.0

    def state(self) -> State:
        """What it remembers."""
        return []

    def restore(self, state: State) -> None:
        """Goes on from there; `ValueError` if it cannot."""
        if state:
            raise ValueError(f"{self.name} remembers nothing")


def expression_cost_s(expression: Formula, event: Event) -> float:
    looked_into = len(event.payload) if event.payload.startswith(b"{") else 0
    return CALL_S + expression.nodes * STEP_S + looked_into * BYTE_S


def numbers_of(state: State, count: int) -> list[float]:
    """A state that is this many finite numbers."""
    if isinstance(state, bytes) or len(state) != count or not all(map(math.isfinite, state)):
        raise ValueError(f"not {count} numbers")
    return state


# -- Reading arguments ---------------------------------------------------------------------------------------------


def whole(parser: Parser) -> int:
    text = parser.read("number", "a whole number")
    if not text.isdigit() or len(text) > 9:
        raise ConfigurationError(f"modulator: {text} is not a whole number below a billion")
    return int(text)


def whole_between(parser: Parser, low: int, high: int) -> int:
    number = whole(parser)
    if not low <= number <= high:
        raise ConfigurationError(f"modulator: {number}: must be between {low} and {high}")
    return number


def count(parser: Parser) -> int:
    return whole_between(parser, 1, COUNT_MAX)


def seconds(parser: Parser, high: float) -> float:
    number = float(parser.read("number", "seconds"))
    if not 0 < number <= high:
        raise ConfigurationError(f"modulator: {number:g} s: must be above 0 and at most {high:g}")
    return number


def one_of(parser: Parser, names: tuple[str, ...]) -> str:
    found = parser.accept(*names)
    if found is None:
        raise parser.refusal(f"one of {', '.join(names)} expected")
    return found


def signed(parser: Parser) -> float:
    sign = -1.0 if parser.accept("-") else 1.0
    return sign * float(parser.read("number", "a number"))


AGGREGATES: Final[dict[str, Callable[[list[float]], float]]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "sum": math.fsum,
    "min": min,
    "max": max,
    "count": lambda values: float(len(values)),
}
