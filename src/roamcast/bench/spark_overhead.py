"""What Spark costs on top of the simulations: the same runs through a campaign's execution and through a process pool.

Both have the same width, both are warm, and session start-up is left out. The pool only simulates; the campaign also
moves every trace row through Arrow into Parquet and commits it.
"""

import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from roamcast.campaign.execute import Execution
from roamcast.campaign.plan import decode_run
from roamcast.campaign.session import spark_session
from roamcast.campaign.store import Store
from roamcast.world.scenario import Run, Scenario, Workload, run_id
from roamcast.world.simulator import simulate

WIDTH = 2
WARM_UP_RUNS = 8


class Overhead(NamedTuple):
    runs: int
    run_s: float  # mean length of a run in the pool
    pool_s: float
    spark_s: float
    ratio: float


def measure(runs: int = 200) -> Overhead:
    scenario = Scenario(nodes=50, area_m=(800, 800), duration_s=40, workload=Workload(rate_per_s=0.5))
    texts = [_text(Run(scenario=scenario, seed=seed)) for seed in range(1, runs + WARM_UP_RUNS + 1)]
    warm_up, texts = texts[:WARM_UP_RUNS], texts[WARM_UP_RUNS:]
    with ProcessPoolExecutor(WIDTH, mp_context=get_context("spawn")) as pool:
        list(pool.map(_simulate, warm_up))
        began = perf_counter()
        run_s = sum(pool.map(_simulate, texts)) / runs
        pool_s = perf_counter() - began
    with spark_session(f"local[{WIDTH}]") as session:
        _execute(session, warm_up)
        spark_s = _execute(session, texts)
    return Overhead(runs, run_s, pool_s, spark_s, spark_s / pool_s)


def _text(run: Run) -> str:
    return msgspec.json.encode(run).decode()


def _simulate(text: str) -> float:
    result = simulate(decode_run(text))
    result.recorder.trace_hash()
    return result.wall_s


def _execute(session: SparkSession, texts: list[str]) -> float:
    names = [run_id(decode_run(text)) for text in texts]
    plan = pa.table({"run_id": names, "seed": list(range(len(texts))), "run": texts})
    directory = Path(tempfile.mkdtemp(prefix="roamcast-bench-"))
    store = Store(directory)
    store.trace.mkdir()
    try:
        began = perf_counter()
        outcomes = Execution(session, store).execute(plan)
        spent = perf_counter() - began
        assert len(outcomes) == len(texts)
        assert not any(outcome.failed for outcome in outcomes)
    finally:
        shutil.rmtree(directory)
    return spent
