"""Translates declared measures (`trace.expressions`) to Spark: native expressions, one aggregation per relation."""

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from roamcast.analysis.traces import RUN, ratio
from roamcast.trace import expressions as e

Relations = Callable[[str], DataFrame]


def evaluate(relations: Relations, runs: DataFrame, wanted: Mapping[str, e.Expression]) -> DataFrame:
    """Per run in `runs`, every wanted expression under its name; null where it is undefined."""
    asked = list(dict.fromkeys(each for expression in wanted.values() for each in e.aggregates(expression)))
    names = {each: f"_{place}" for place, each in enumerate(asked)}
    by_relation: dict[str, dict[e.Aggregate, str]] = {}
    for each, name in names.items():
        by_relation.setdefault(each.relation, {})[each] = name
    parts = [_aggregated(relations(relation), mine) for relation, mine in by_relation.items()]
    whole = reduce(lambda left, right: left.join(right, RUN, "left"), parts, runs.select(RUN))
    counted = [name for each, name in names.items() if each.how in ("count", "sum")]
    whole = whole.fillna(0, counted)
    return whole.select(RUN, *(_scalar(expression, names).alias(name) for name, expression in wanted.items()))


def _aggregated(rows: DataFrame, asked: Mapping[e.Aggregate, str]) -> DataFrame:
    """One row per run. Percentiles of the same values share one sorted list, so they are exact."""
    columns: list[Column] = []
    lists: dict[tuple[e.Expression | None, e.Expression | None], str] = {}
    for each, name in asked.items():
        if each.how == "percentile":
            key = (each.of, each.where)
            if key not in lists:
                lists[key] = f"_values{len(lists)}"
                columns.append(f.sort_array(f.collect_list(_met(each))).alias(lists[key]))
        else:
            columns.append(_aggregate(each).alias(name))
    sums = rows.groupBy(RUN).agg(*columns)
    return sums.select(
        RUN,
        *(
            _ranked(f.col(lists[each.of, each.where]), each.percent).alias(name)
            if each.how == "percentile"
            else f.col(name)
            for each, name in asked.items()
        ),
    )


def _aggregate(asked: e.Aggregate) -> Column:
    if asked.how == "count":
        return f.count(f.lit(1)) if asked.where is None else f.count_if(column(asked.where))
    return {"sum": f.sum, "mean": f.avg, "max": f.max}[asked.how](_met(asked))


def _met(asked: e.Aggregate) -> Column:
    """The aggregated value, null where the condition is not met."""
    assert asked.of is not None
    value = column(asked.of)
    return value if asked.where is None else f.when(column(asked.where), value)


def _ranked(ascending: Column, percent: int) -> Column:
    """The value of rank ceil(percent n / 100), from 1."""
    size = f.size(ascending)
    rank = f.ceil(percent * size / 100).cast("int")
    return f.when(size > 0, f.element_at(ascending, f.greatest(rank, f.lit(1))))


def _scalar(expression: e.Expression, names: Mapping[e.Aggregate, str]) -> Column:
    if isinstance(expression, e.Aggregate):
        return f.col(names[expression])
    if isinstance(expression, e.Combined):
        return _combined(expression.operator, _scalar(expression.left, names), _scalar(expression.right, names))
    if isinstance(expression, e.Constant):
        return f.lit(expression.value)
    raise TypeError(f"{expression!r} is not a number; columns stand inside aggregates only")


def column(expression: e.Expression) -> Column:
    """An expression over the columns of one relation."""
    if isinstance(expression, e.Column):
        return f.col(expression.name)
    if isinstance(expression, e.Constant):
        return f.lit(expression.value)
    if isinstance(expression, e.Inverted):
        return ~column(expression.condition)
    if isinstance(expression, e.Present):
        return column(expression.of).isNotNull()
    if isinstance(expression, e.Combined):
        return _combined(expression.operator, column(expression.left), column(expression.right))
    raise TypeError(f"{expression!r} stands inside an aggregate")


def _combined(operator: str, left: Column, right: Column) -> Column:
    operations: dict[str, Callable[[Column, Column], Column]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": ratio,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "is": lambda a, b: a == b,
        "and": lambda a, b: a & b,
    }
    return operations[operator](left, right)
