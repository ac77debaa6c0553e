"""How well a campaign keeps a cluster busy: a standalone Spark cluster on loopback, and runs that sleep.

The cluster is real: a master and workers from the installed PySpark, each worker a process of its own with an executor
of its own. Runs sleep, so that this machine's cores do not limit how many of them can be under way at once.
Everything else is as in a campaign: batches, tasks, trace files, digests and commits.

Utilisation is the time that runs took, over the time that the slots had. Starting the cluster, the preflight and a
warm-up are timed apart. The warm-up starts one Python process per slot; on a machine with fewer cores than slots these
queue for the cores. A machine that is busy with other work has low figures here: each task costs some computation.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from roamcast.bench.standalone import HOST, standalone_cluster
from roamcast.campaign.execute import RunExecution
from roamcast.campaign.preflight import prepare
from roamcast.campaign.session import spark_session
from roamcast.campaign.store import Store
from roamcast.campaign.worker import DONE, Worker, outcome_row
from roamcast.errors import RoamcastError
from roamcast.world.scenario import Run, run_id

SLOTS_PER_EXECUTOR = 8


class Utilisation(NamedTuple):
    slots: int
    runs: int
    run_s: float
    start_s: float  # until there are executors that passed the preflight
    warm_up_s: float  # two runs per slot, which also start the Python processes
    wall_s: float  # of the runs
    utilisation: float  # runs * run_s / (slots * wall_s)


def measure(runs: int = 960, slots: int = 32, run_s: float = 1.0) -> Utilisation:
    executors = max(1, slots // SLOTS_PER_EXECUTOR)
    slots -= slots % executors
    place = Path(tempfile.mkdtemp(prefix="roamcast-bench-"))
    try:
        with standalone_cluster(place, executors, slots // executors) as master:
            began = perf_counter()
            settings = {
                "spark.executor.memory": "512m",
                "spark.executor.cores": str(slots // executors),
                "spark.executor.instances": str(executors),
                "spark.driver.host": HOST,
                "spark.driver.bindAddress": HOST,
            }
            with spark_session(master, settings=settings) as session:
                return _measured(session, place, runs=runs, slots=slots, run_s=run_s, began=began)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _measured(session: SparkSession, place: Path, *, runs: int, slots: int, run_s: float, began: float) -> Utilisation:
    store = Store(place / "campaign")
    archives = prepare(session, store, [])
    ready = perf_counter()
    execute(session, store, archives, range(1, 2 * slots + 1), run_s)
    warm = perf_counter()
    execute(session, store, archives, range(2 * slots + 1, 2 * slots + runs + 1), run_s)
    wall_s = perf_counter() - warm
    return Utilisation(
        slots=slots,
        runs=runs,
        run_s=run_s,
        start_s=ready - began,
        warm_up_s=warm - ready,
        wall_s=wall_s,
        utilisation=runs * run_s / (slots * wall_s),
    )


def execute(session: SparkSession, store: Store, archives: list[str], seeds: Iterable[int], run_s: float) -> None:
    """Runs with these seeds, all of which sleep instead of simulating."""
    planned = [Run(seed=seed) for seed in seeds]
    texts = [msgspec.json.encode(run).decode() for run in planned]
    names = list(map(run_id, planned))
    plan = pa.table({"run_id": names, "seed": [run.seed for run in planned], "run": texts})
    outcomes = RunExecution(session, store, worker=sleeper(run_s), archives=archives).execute(plan)
    if sorted(outcome.run_id for outcome in outcomes) != sorted(names):
        raise RoamcastError("not every run was committed once")


def sleeper(run_s: float) -> Worker:
    """A worker whose runs take `run_s` and no computation."""

    def sleep_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch["run_id"].to_pylist():
                sleep(run_s)
                yield outcome_row(str(name), DONE, "", run_s, 0)

    return sleep_through
