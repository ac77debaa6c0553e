"""The measures that a campaign has stored, completed by measuring what lacks them.

Workers store the measures of each run beside its trace (`roamcast.trace.summary`). A report reads these rows alone, so
its cost does not grow with the traces. Runs whose measures are missing, or were computed by other definitions than
today's, are measured from their traces on Spark (`filewise`); a session is started only if there are any.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from roamcast.analysis.filewise import TraceFile, measured_files
from roamcast.campaign.commits import trace_files
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.shipping import for_executors
from roamcast.campaign.store import Store
from roamcast.trace.arrow import SCHEMA
from roamcast.trace.measures import RUN_FACTS, RUN_MEASURES
from roamcast.trace.summary import DEFINITIONS, definitions_digest

Spark = SparkSession | Callable[[], SparkSession]
"""A session, or what starts one when it is needed."""

THREADS = 8
COLUMNS = ["run_id", "t", "value", "category", "detail"]
_ROWS = pa.schema([SCHEMA.field(name) for name in COLUMNS])


def started(spark: Spark) -> SparkSession:
    """The session; a function that starts one must answer with the same one when it is called again."""
    return spark() if callable(spark) else spark


def measure_table(spark: Spark, store: Store, runs: Iterable[str]) -> pa.Table:
    """The `measure` rows of those of `runs` that came to their end; columns as in `COLUMNS`."""
    wanted = set(runs)
    groups = trace_groups(store)
    stored = _stored(groups, wanted)
    outcomes = store.outcomes()
    over = {name for name in wanted if name in outcomes and not outcomes[name].failed}
    missing = over - set(stored["run_id"].unique().to_pylist())
    if not missing:
        return stored
    return pa.concat_tables([stored, measure_groups(started(spark), groups, frozenset(missing))])


def wide(rows: pa.Table) -> pd.DataFrame:
    """One row per run with its facts and every measure; not a number where a measure is undefined."""
    numbers = rows.filter(pc.is_in(rows["detail"], value_set=pa.array([*RUN_FACTS, *RUN_MEASURES])))
    table = numbers.select(["run_id", "detail", "value"]).to_pandas()
    found = table.pivot(index="run_id", columns="detail", values="value")
    return found.reindex(columns=[*RUN_FACTS, *RUN_MEASURES]).rename_axis(columns=None).reset_index()


def trace_groups(store: Store) -> dict[str, list[TraceFile]]:
    """The trace files of a campaign by the attempt that wrote them: all rows of a run are in one group."""
    groups: dict[str, list[TraceFile]] = {}
    found = trace_files(store.directory)
    for file in found.files:
        batch, attempt = file.path.partition("/")[0], file.path.rpartition("/")[2].rpartition("-")[0]
        groups.setdefault(f"{batch}/{attempt}", []).append((file.kind, (found.root / file.path).absolute))
    return groups


def _stored(groups: dict[str, list[TraceFile]], wanted: set[str]) -> pa.Table:
    """The stored rows of the wanted runs that were computed by today's definitions."""
    paths = [path for files in groups.values() for kind, path in files if kind == "measure"]
    with ThreadPoolExecutor(THREADS) as threads:
        tables = list(threads.map(_read, paths))
    rows = pa.concat_tables([_ROWS.empty_table(), *tables]).combine_chunks()
    is_note = pc.equal(rows["detail"], pa.scalar(DEFINITIONS))
    current = rows.filter(pc.and_(is_note, pc.equal(rows["category"], pa.scalar(definitions_digest()))))
    kept = [name for name in current["run_id"].to_pylist() if name in wanted]
    return rows.filter(pc.is_in(rows["run_id"], value_set=pa.array(kept, pa.string())))


def _read(path: str) -> pa.Table:
    with StoreLocation(path).opened() as file:
        return pq.ParquetFile(file, page_checksum_verification=True).read(COLUMNS)


def measure_groups(
    session: SparkSession, groups: dict[str, list[TraceFile]], only: frozenset[str] | None = None
) -> pa.Table:
    """Measures the runs in groups of files, or those in `only`, one group per task.

    A plain job without DataFrames: planning a query and passing rows through Java took longer than measuring them.
    Spark Connect has no such jobs; there, this process measures.
    """
    measure = partial(measured_files, only=only)
    if isinstance(session, SparkSession):
        tasks = session.sparkContext.parallelize(list(groups.values()), max(1, len(groups)))
        answers = tasks.map(for_executors(session, measure)).collect()
    else:
        answers = list(map(measure, groups.values()))
    measured = [pa.ipc.open_stream(answer).read_all().select(COLUMNS) for answer in answers]
    return pa.concat_tables([SCHEMA.empty_table().select(COLUMNS), *measured]).cast(_ROWS)
