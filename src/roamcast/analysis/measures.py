"""All measures of all runs with Spark, straight from raw traces: one wide row per run, named as in `trace.measures`.

This is the independent twin of `roamcast.trace.summary`: relations are found by joins instead of numpy, and a test
compares every measure of both.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame

from roamcast.analysis.evaluation import evaluate
from roamcast.analysis.relations import SparkRelations, TraceContents
from roamcast.analysis.traces import RUN, of_kind
from roamcast.trace.measures import RUN_FACTS, RUN_MEASURES


def measure_runs(
    trace: DataFrame,
    *,
    has: TraceContents | None = None,
    met: DataFrame | None = None,
    names: Iterable[str] = tuple(RUN_MEASURES),
) -> DataFrame:
    """Per run that came to its end: its facts and the named measures; null where one is undefined.

    `has` is `contents(trace)` and `met` is `pairs(trace)`, for callers that have them already.
    """
    runs = of_kind(trace, "end").select(RUN).distinct()
    wanted = RUN_FACTS | {name: RUN_MEASURES[name].value for name in names}
    return evaluate(SparkRelations(trace, has, met), runs, wanted).select(RUN, *wanted)
