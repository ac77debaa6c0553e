"""The small language in which measures are declared.

A measure is an expression over *relations*: tables that a trace yields (`roamcast.trace.relations` lists them). An
aggregate takes expressions over the columns of one relation; a measure combines aggregates with each other:

    DELIVERED = count("pairs", col("expected") & (col("arrivals") > 0))
    EXPECTED = count("pairs", col("expected"))
    delivery_ratio = DELIVERED / EXPECTED

An expression is plain data. `roamcast.trace.evaluation` evaluates it over one run with numpy, and
`roamcast.analysis.evaluation` translates it to Spark; a test compares both for every measure.

Absent values behave as in SQL. A comparison with an absent value is absent, and a condition that is absent is not met.
Aggregates skip absent values. A count or a sum of nothing is 0; a mean, a maximum or a percentile of nothing is absent.
A quotient whose divisor is 0 is absent.
"""

from dataclasses import dataclass
from typing import Literal

Number = int | float
Operator = Literal["+", "-", "*", "/", "<", "<=", ">", ">=", "is", "and"]
How = Literal["count", "sum", "mean", "max", "percentile"]


class Expression:
    """Base of all nodes. Operators build larger expressions; nothing is computed here."""

    def __add__(self, other: "Operand") -> "Combined":
        return Combined("+", self, operand(other))

    def __sub__(self, other: "Operand") -> "Combined":
        return Combined("-", self, operand(other))

    def __mul__(self, other: "Operand") -> "Combined":
        return Combined("*", self, operand(other))

    def __rmul__(self, other: "Operand") -> "Combined":
        return Combined("*", operand(other), self)

    def __truediv__(self, other: "Operand") -> "Combined":
        return Combined("/", self, operand(other))

    def __lt__(self, other: "Operand") -> "Combined":
        return Combined("<", self, operand(other))

    def __le__(self, other: "Operand") -> "Combined":
        return Combined("<=", self, operand(other))

    def __gt__(self, other: "Operand") -> "Combined":
        return Combined(">", self, operand(other))

    def __ge__(self, other: "Operand") -> "Combined":
        return Combined(">=", self, operand(other))

    def __and__(self, other: "Expression") -> "Combined":
        return Combined("and", self, other)

    def __invert__(self) -> "Inverted":
        return Inverted(self)

    def equals(self, other: "Operand") -> "Combined":
        """Equality; `==` compares the expressions themselves."""
        return Combined("is", self, operand(other))

    @property
    def is_present(self) -> "Present":
        return Present(self)


Operand = Expression | int | float | str


@dataclass(frozen=True)
class Column(Expression):
    """A column of the relation that the enclosing aggregate names."""

    name: str


@dataclass(frozen=True)
class Constant(Expression):
    value: int | float | str


@dataclass(frozen=True)
class Combined(Expression):
    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Inverted(Expression):
    """True where a condition is false."""

    condition: Expression


@dataclass(frozen=True)
class Present(Expression):
    """Whether there is a value."""

    of: Expression


@dataclass(frozen=True)
class Aggregate(Expression):
    """One number from the rows of a relation that meet a condition."""

    how: How
    relation: str
    of: Expression | None = None  # nothing for a count
    where: Expression | None = None  # all rows
    percent: int = 0  # of a percentile


def col(name: str) -> Column:
    return Column(name)


def operand(value: Operand) -> Expression:
    return value if isinstance(value, Expression) else Constant(value)


def count(relation: str, where: Expression | None = None) -> Aggregate:
    return Aggregate("count", relation, None, where)


def total(relation: str, of: Expression, where: Expression | None = None) -> Aggregate:
    return Aggregate("sum", relation, of, where)


def mean(relation: str, of: Expression, where: Expression | None = None) -> Aggregate:
    return Aggregate("mean", relation, of, where)


def largest(relation: str, of: Expression, where: Expression | None = None) -> Aggregate:
    return Aggregate("max", relation, of, where)


def percentile(percent: int, relation: str, of: Expression, where: Expression | None = None) -> Aggregate:
    """The value of rank ceil(percent n / 100) in ascending order, from 1: always one that occurred."""
    return Aggregate("percentile", relation, of, where, percent)


def aggregates(expression: Expression) -> list[Aggregate]:
    """Every aggregate in an expression, in order of appearance."""
    if isinstance(expression, Aggregate):
        return [expression]
    if isinstance(expression, Combined):
        return [*aggregates(expression.left), *aggregates(expression.right)]
    if isinstance(expression, (Inverted, Present)):
        return aggregates(expression.condition if isinstance(expression, Inverted) else expression.of)
    return []
