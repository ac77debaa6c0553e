"""Measures that compare the runs of one place: latency over pairs that all contenders delivered.

Mean latency punishes a contender that delivers late what others lose. Over the pairs that every contender delivered
under the same seed, all are compared on the same events and receivers. These pairs are the relation `common` (columns
`latency_s`, `hops`) of the measures whose scope is a place.

A group is what contends at one place under one seed. Its measures need the traces of all its runs, so they are computed
with Spark and kept with the campaign (`PLACES`), each group under a digest of its runs. A report computes only what is
new.
"""

from hashlib import blake2b

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from roamcast.analysis.evaluation import evaluate
from roamcast.analysis.relations import SparkRelations
from roamcast.analysis.stored import Spark, started
from roamcast.analysis.traces import RUN, only_runs, read_traces
from roamcast.campaign.sealed import AlteredError, sealed_table, unsealed_table
from roamcast.campaign.store import PLACES, Store
from roamcast.trace.measures import PLACE_MEASURES

GROUP = "group"


def place_measures(spark: Spark, store: Store, plan: pd.DataFrame) -> pd.DataFrame:
    """Per run of the plan that contends with others: the measures of its place. `plan` has the measured runs only."""
    grouped = _grouped(plan)
    known = _kept(store)
    known = known[known[GROUP].isin(grouped[GROUP])]
    fresh = grouped[~grouped[GROUP].isin(known[GROUP])]
    if len(fresh):
        measured = measure_places(started(spark), read_traces(started(spark), store.trace), fresh)
        known = pd.concat([known, measured], ignore_index=True)
        _keep(store, known)
    return known.drop(columns=GROUP)


def measure_places(session: SparkSession, trace: DataFrame, grouped: pd.DataFrame) -> pd.DataFrame:
    """The measures of the groups in `grouped` (`run_id`, `group`), from raw traces."""
    groups = session.createDataFrame(pa.Table.from_pandas(grouped[[RUN, GROUP]], preserve_index=False))
    relations = SparkRelations(only_runs(trace, groups))
    met = relations.pairs()
    tables = {"pairs": met, "common": common_pairs(met, groups)}
    values = {name: measure.value for name, measure in PLACE_MEASURES.items()}
    found = evaluate(tables.__getitem__, groups.select(RUN), values).toPandas()
    return found.merge(grouped[[RUN, GROUP]], on=RUN)[_COLUMNS]


def common_pairs(met: DataFrame, groups: DataFrame) -> DataFrame:
    """The relation `common`: per run, the expected pairs that every run of its group delivered."""
    sizes = groups.groupBy(GROUP).agg(f.count(f.lit(1)).alias("contenders"))
    delivered = met.where(f.col("expected") & (f.col("arrivals") > 0)).join(f.broadcast(groups), RUN)
    by_pair = delivered.groupBy(GROUP, "event_id", "node").agg(f.count(f.lit(1)).alias("delivering"))
    by_all = by_pair.join(f.broadcast(sizes), GROUP).where(f.col("delivering") == f.col("contenders"))
    shared = by_all.select(GROUP, "event_id", "node")
    return delivered.join(shared, [GROUP, "event_id", "node"], "left_semi").select(RUN, "latency_s", "hops")


_COLUMNS = [RUN, GROUP, *PLACE_MEASURES]


def _grouped(plan: pd.DataFrame) -> pd.DataFrame:
    """The runs of places and seeds where several contend, with the digest of their group."""
    runs = plan[[RUN, "place", "seed"]].drop_duplicates()
    parts = []
    for _, group in runs.groupby(["place", "seed"], sort=True):
        if len(group) > 1:
            told = "\n".join([*sorted(group[RUN]), *(repr(measure.value) for measure in PLACE_MEASURES.values())])
            parts.append(group[[RUN]].assign(group=blake2b(told.encode(), digest_size=8).hexdigest()))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({RUN: [], GROUP: []}, dtype=str)


def _kept(store: Store) -> pd.DataFrame:
    """What an earlier report measured; nothing if that is missing, damaged or of other measures."""
    try:
        found = unsealed_table(store.directory.read(PLACES)).to_pandas()
    except (FileNotFoundError, AlteredError):
        found = pd.DataFrame()
    return found if list(found.columns) == _COLUMNS else pd.DataFrame({name: [] for name in _COLUMNS})


def _keep(store: Store, table: pd.DataFrame) -> None:
    store.directory.write(PLACES, sealed_table(pa.Table.from_pandas(table, preserve_index=False)))
