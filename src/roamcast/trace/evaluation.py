"""Evaluates measures over one run, in memory, with Arrow and numpy. See `expressions` for what they mean."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.trace.expressions import Aggregate, Column, Combined, Constant, Expression, Inverted, Present

Value = int | float | None
Relations = Callable[[str], pa.Table]

_ARROW: dict[str, Any] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "is": pc.equal,
    "and": pc.and_kleene,
}


class Evaluator:
    """The measures of one run. Aggregates that several measures share are computed once."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._known: dict[Aggregate, Value] = {}
        self._sorted: dict[tuple[str, Expression | None, Expression | None], npt.NDArray[np.float64]] = {}

    def value(self, expression: Expression) -> Value:
        """The number that an expression over aggregates stands for."""
        if isinstance(expression, Aggregate):
            if expression not in self._known:
                self._known[expression] = self._aggregate(expression)
            return self._known[expression]
        if isinstance(expression, Constant) and not isinstance(expression.value, str):
            return expression.value
        if isinstance(expression, Combined):
            return _combined(expression.operator, self.value(expression.left), self.value(expression.right))
        raise TypeError(f"{expression!r} is not a number; columns stand inside aggregates only")


    def _aggregate(self, asked: Aggregate) -> Value:
        rows = self._relations(asked.relation)
        if asked.how != "percentile":
            return _aggregate(asked, rows)
        key = (asked.relation, asked.of, asked.where)  # percentiles of the same values share their order
        if key not in self._sorted:
            self._sorted[key] = np.sort(np.asarray(pc.drop_null(_met(asked, rows)), dtype=np.float64))
        return percentile(self._sorted[key], asked.percent)


def percentile(ascending: npt.NDArray[np.float64], percent: int) -> float | None:
    """The value of rank ceil(percent n / 100); in whole numbers, so that no rounding moves the rank."""
    rank = -(-percent * len(ascending) // 100)
    return float(ascending[rank - 1]) if len(ascending) else None


def _combined(operator: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right if right else None
    raise TypeError(f"operator {operator!r} combines no numbers")


def _aggregate(asked: Aggregate, rows: pa.Table) -> Value:
    if asked.of is None:
        return len(rows) if asked.where is None else int(pc.sum(_is_met(asked.where, rows)).as_py() or 0)
    values = _met(asked, rows)
    if asked.how == "sum":
        summed: Value = pc.sum(values).as_py()
        return summed or 0
    if asked.how == "mean":
        middle: Value = pc.mean(values).as_py()
        return middle
    most: Value = pc.max(values).as_py()
    return most


def _met(asked: Aggregate, rows: pa.Table) -> Any:
    """The aggregated values of the rows that meet the condition."""
    assert asked.of is not None
    values = _column(asked.of, rows)
    return values if asked.where is None else pc.filter(values, _is_met(asked.where, rows))


def _is_met(condition: Expression, rows: pa.Table) -> Any:
    return pc.fill_null(_column(condition, rows), False)


def _column(expression: Expression, rows: pa.Table) -> Any:
    """A value per row."""
    if isinstance(expression, Column):
        return rows[expression.name]
    if isinstance(expression, Constant):
        return pa.scalar(expression.value)
    if isinstance(expression, Inverted):
        return pc.invert(_column(expression.condition, rows))
    if isinstance(expression, Present):
        return pc.is_valid(_column(expression.of, rows))
    if isinstance(expression, Combined):
        left, right = _column(expression.left, rows), _column(expression.right, rows)
        if expression.operator == "/":
            divisor: Any = pc.cast(right, pa.float64())
            is_usable: Any = pc.not_equal(divisor, pa.scalar(0.0))
            return pc.divide(pc.cast(left, pa.float64()), pc.if_else(is_usable, divisor, pa.scalar(None, pa.float64())))
        return _ARROW[expression.operator](left, right)
    raise TypeError(f"{expression!r} stands inside an aggregate")
