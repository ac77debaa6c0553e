"""Evaluates measures over one run, in memory, with numpy. See `expressions` for what they mean."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from roamcast.trace.columns import Booleans, ColumnValues, Rows
from roamcast.trace.expressions import Aggregate, Column, Combined, Constant, Expression, Inverted, Present

Value = int | float | None
Relations = Callable[[str], Rows]

_NUMPY: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.eq,
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
            self._sorted[key] = np.sort(_met(asked, rows).astype(np.float64, copy=False))
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


def _aggregate(asked: Aggregate, rows: Rows) -> Value:
    if asked.of is None:
        return len(rows) if asked.where is None else int(np.count_nonzero(_is_met(asked.where, rows)))
    values = _met(asked, rows)
    if asked.how == "sum":
        return _plain(values.sum()) if len(values) else 0
    if not len(values):
        return None
    return _plain(values.mean() if asked.how == "mean" else values.max())


def _plain(value: Any) -> Value:
    """Python's number."""
    number: Value = value.item()
    return number


def _met(asked: Aggregate, rows: Rows) -> npt.NDArray[Any]:
    """The aggregated values that are present, of the rows that meet the condition."""
    assert asked.of is not None
    column = _column(asked.of, rows)
    chosen = column.present
    if asked.where is not None:
        met = _is_met(asked.where, rows)
        chosen = met if chosen is None else chosen & met
    return column.values if chosen is None else column.values[chosen]


def _is_met(condition: Expression, rows: Rows) -> Booleans:
    column = _column(condition, rows)
    return column.values if column.present is None else column.values & column.present


def _column(expression: Expression, rows: Rows) -> ColumnValues:
    """A value per row."""
    if isinstance(expression, Column):
        return rows[expression.name]
    if isinstance(expression, Constant):
        return ColumnValues(np.broadcast_to(np.asarray(expression.value), len(rows)))
    if isinstance(expression, Inverted):
        inverted = _column(expression.condition, rows)
        return ColumnValues(~inverted.values, inverted.present)
    if isinstance(expression, Present):
        return ColumnValues(_column(expression.of, rows).is_present)
    if isinstance(expression, Combined):
        left, right = _column(expression.left, rows), _column(expression.right, rows)
        if expression.operator == "and":
            return _both(left, right)
        if expression.operator == "/":
            return _quotient(left, right)
        if left.texts is not None:
            return _is_text(left, expression.right)
        return ColumnValues(
            _NUMPY[expression.operator](left.values, right.values), _in_both(left.present, right.present)
        )
    raise TypeError(f"{expression!r} stands inside an aggregate")


def _both(left: ColumnValues, right: ColumnValues) -> ColumnValues:
    """False if either is false, whatever the other is; otherwise absent if either is absent."""
    values = left.values & right.values
    if left.present is None and right.present is None:
        return ColumnValues(values)
    is_false = (left.is_present & ~left.values) | (right.is_present & ~right.values)
    return ColumnValues(values & ~is_false, (left.is_present & right.is_present) | is_false)


def _quotient(left: ColumnValues, right: ColumnValues) -> ColumnValues:
    is_usable = right.values != 0
    divisor = np.where(is_usable, right.values, 1).astype(np.float64)
    present = _in_both(left.present, right.present)
    return ColumnValues(left.values / divisor, is_usable if present is None else is_usable & present)


def _is_text(column: ColumnValues, other: Expression) -> ColumnValues:
    """Texts are only compared with a constant."""
    if not (isinstance(other, Constant) and isinstance(other.value, str) and column.texts is not None):
        raise TypeError(f"texts are compared with a text, not with {other!r}")
    place = column.texts.index(other.value) if other.value in column.texts else -1
    return ColumnValues(column.values == place, column.present)


def _in_both(left: Booleans | None, right: Booleans | None) -> Booleans | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right
