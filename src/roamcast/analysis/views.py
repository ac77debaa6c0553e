"""A campaign or a trace as SQL views, for `roamcast sql` and for sessions of your own.

    from roamcast.analysis.views import register_views

    register_views(spark, "results/quickstart")
    spark.sql("select protocol, mean from summaries join points using (point) where measure = 'within_250ms'")

`VIEWS` lists them; docs/sql.md has their columns, and a test compares it with what is there.

Only public DataFrame calls are used, so a Spark Connect session serves too; its server must be able to read the place.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.analyse import confidence_of, measured_runs
from roamcast.analysis.measures import measure_runs
from roamcast.analysis.places import place_measures
from roamcast.analysis.summaries import STATISTICS, in_long_form, summarise_points
from roamcast.analysis.traces import RUN, of_kind, read_traces
from roamcast.campaign.commits import is_campaign
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.plan import RUN_COLUMNS, SWEEPS
from roamcast.campaign.store import Store
from roamcast.trace.measures import RUN_MEASURES

VIEWS = ("runs", "points", "events", "deliveries", "frames", "measures", "summaries", "trace")
CAMPAIGN_ONLY = ("points", "summaries")
KINDS = {"runs": (), "points": (), "events": ("published",), "deliveries": ("delivered",), "frames": ("frame",)}
"""The kinds of rows that a view of a campaign reads; views that are not here may read all."""


def register_views(session: SparkSession, place: str | Path, names: Iterable[str] = VIEWS) -> list[str]:
    """Makes the named views of a campaign or a trace, as far as it has them, and says which."""
    maker = _campaign_views if is_campaign(StoreLocation(place)) else _trace_views
    makers = maker(session, str(place))
    made = [name for name in names if name in makers]
    for name in made:
        makers[name]().createOrReplaceTempView(name)
    return made


def named_views(query: str) -> list[str]:
    """The views whose names occur in a query."""
    words = set(re.findall(r"\w+", query.lower()))
    return [name for name in VIEWS if name in words]


Maker = Callable[[], DataFrame]


def _campaign_views(session: SparkSession, place: str) -> dict[str, Maker]:
    store = Store(place)
    makers = _rows_views(partial(read_traces, session, store.trace))
    makers["runs"] = lambda: _frame(session, _runs(store))
    makers["points"] = lambda: _frame(session, _points(store))
    makers["measures"] = lambda: _frame(session, _measures(session, store))
    makers["summaries"] = lambda: _frame(session, _summaries(session, store))
    return makers


def _trace_views(session: SparkSession, place: str) -> dict[str, Maker]:
    read = partial(read_traces, session, place)
    makers = _rows_views(read)
    makers["runs"] = lambda: read().select(RUN).distinct()
    makers["measures"] = lambda: _unpivoted(measure_runs(read()))
    return makers


def _rows_views(read: Callable[[], DataFrame]) -> dict[str, Maker]:
    return {
        "trace": read,
        "events": lambda: of_kind(read(), "published").select(
            RUN,
            "event_id",
            f.col("node").alias("publisher"),
            "t",
            f.col("category").alias("language"),
            f.col("value").alias("number"),
            f.col("detail").alias("text"),
            "bytes",
            "cause_id",
            "utility",
        ),
        "deliveries": lambda: of_kind(read(), "delivered").select(
            RUN,
            "event_id",
            "node",
            f.col("peer").alias("publisher"),
            "t",
            (1000 * f.col("value")).alias("latency_ms"),
            "hops",
            "bytes",
        ),
        "frames": lambda: of_kind(read(), "frame").select(
            RUN,
            "t",
            f.col("detail").alias("message"),
            "category",
            f.col("count").alias("frames"),
            "bytes",
            f.col("value").alias("airtime_s"),
        ),
    }


def _runs(store: Store) -> pd.DataFrame:
    plan = _plan(store).drop(columns="run")
    outcomes = store.outcomes()
    over = [outcomes.get(name) for name in plan["run_id"]]
    told: dict[str, Any] = {
        "status": ["missing" if each is None else each.status for each in over],
        "wall_s": [None if each is None else each.wall_s for each in over],
        "error": [each.detail if each is not None and each.failed else None for each in over],
    }
    return plan.assign(**told)


def _plan(store: Store) -> pd.DataFrame:
    """The plan, where swept settings whose values are all numbers are numbers."""
    plan = store.plan().to_pandas()
    for column in plan.columns.difference([*RUN_COLUMNS.names, SWEEPS]):
        numbers = pd.to_numeric(plan[column], errors="coerce")
        if (numbers.notna() == plan[column].notna()).all() and numbers.notna().any():
            plan[column] = numbers.astype("float64")
    return plan


def _points(store: Store) -> pd.DataFrame:
    plan = _plan(store).drop(columns=["run", "run_id", "seed"])
    return plan.drop_duplicates("point").sort_values("point")


def _measures(session: SparkSession, store: Store) -> pd.DataFrame:
    return in_long_form(_measured(session, store))


def _summaries(session: SparkSession, store: Store) -> pd.DataFrame:
    runs = _measured(session, store)
    level = confidence_of(store.manifest().campaign)
    columns = ["point", "measure", *(name for name in STATISTICS if name != "half_width")]
    return summarise_points(runs[["run_id", "point"]], in_long_form(runs), level)[columns]


def _measured(session: SparkSession, store: Store) -> pd.DataFrame:
    runs = measured_runs(session, store)
    return runs.merge(place_measures(session, store, runs), on="run_id", how="left")


def _unpivoted(measured: DataFrame) -> DataFrame:
    numbers = [f.col(name).cast("double").alias(name) for name in RUN_MEASURES]
    long = measured.select(RUN, *numbers).unpivot(RUN, list(RUN_MEASURES), "measure", "value")
    return long.where(f.col("value").isNotNull())


def _frame(session: SparkSession, table: pd.DataFrame) -> DataFrame:
    """Through Arrow, so that empty columns keep a type."""
    arrow: Any = pa.Table.from_pandas(table, preserve_index=False)
    for at, field in enumerate(arrow.schema):
        if pa.types.is_null(field.type):
            arrow = arrow.set_column(at, field.name, arrow.column(at).cast(pa.string()))
    return session.createDataFrame(arrow)
