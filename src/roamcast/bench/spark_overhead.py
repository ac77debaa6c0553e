"""What Spark costs on top of the simulations: the same runs through a campaign's execution and through a process pool.

Both have the same width, both are warm, and session start-up is left out. The pool only simulates; the campaign also
moves every trace row through Arrow into Parquet and commits it. Half of the pool's runs come before the campaign's and
half after them, so that a machine that slows down meanwhile does so for both. Runs are made to take about `RUN_S`,
whatever the machine and the form of the simulator.
"""

import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from roamcast.bench.processes import Stopwatch
from roamcast.campaign.execute import RunExecution
from roamcast.campaign.plan import decode_run
from roamcast.campaign.session import spark_session
from roamcast.campaign.store import Store
from roamcast.world.scenario import Run, Scenario, Workload, run_id
from roamcast.world.simulator import simulate

WIDTH = 2
RUN_S = 0.2
WARM_UP_RUNS = 8


class Overhead(NamedTuple):
    runs: int
    run_s: float  # mean length of a run in the pool
    pool_s: float
    spark_s: float
    ratio: float
    cpu_ratio: float  # the same of CPU times; the campaign's include those of Java


def measure(runs: int = 200) -> Overhead:
    scenario = _scenario()
    texts = [_text(Run(scenario=scenario, seed=seed)) for seed in range(1, runs + WARM_UP_RUNS + 1)]
    warm_up, texts = texts[:WARM_UP_RUNS], texts[WARM_UP_RUNS:]
    half = runs // 2
    with ProcessPoolExecutor(WIDTH, mp_context=get_context("spawn")) as pool:
        list(pool.map(_simulate, warm_up))
        with spark_session(f"local[{WIDTH}]") as session:
            _execute(session, warm_up)
            (before_s, before_cpu_s), before_run_s = _in_pool(pool, texts[:half])
            spark_s, spark_cpu_s = _execute(session, texts)
            (after_s, after_cpu_s), after_run_s = _in_pool(pool, texts[half:])
    pool_s, pool_cpu_s = before_s + after_s, before_cpu_s + after_cpu_s
    run_s = (before_run_s + after_run_s) / runs
    return Overhead(
        runs, run_s, pool_s, spark_s, ratio=spark_s / pool_s, cpu_ratio=spark_cpu_s / pool_cpu_s
    )


def _scenario() -> Scenario:
    """As long as makes a run take `RUN_S`."""
    scenario = Scenario(nodes=50, area_m=(800.0, 800.0), duration_s=40.0, workload=Workload(rate_per_s=0.5))
    for seed in (1, 2):  # the first one also warms up
        took_s = simulate(Run(scenario=scenario, seed=seed)).wall_s
    return msgspec.structs.replace(scenario, duration_s=float(round(40.0 * RUN_S / took_s)))


def _in_pool(pool: ProcessPoolExecutor, texts: list[str]) -> tuple[tuple[float, float], float]:
    """How long they took, by the clock and in CPU time, and the sum over the runs."""
    watch = Stopwatch()
    runs_s = sum(pool.map(_simulate, texts))
    return watch.stop(), runs_s


def _text(run: Run) -> str:
    return msgspec.json.encode(run).decode()


def _simulate(text: str) -> float:
    result = simulate(decode_run(text))
    result.recorder.trace_hash()
    return result.wall_s


def _execute(session: SparkSession, texts: list[str]) -> tuple[float, float]:
    names = [run_id(decode_run(text)) for text in texts]
    plan = pa.table({"run_id": names, "seed": list(range(len(texts))), "run": texts})
    directory = Path(tempfile.mkdtemp(prefix="roamcast-bench-"))
    store = Store(directory)
    try:
        watch = Stopwatch()
        outcomes = RunExecution(session, store).execute(plan)
        spent = watch.stop()
        assert len(outcomes) == len(texts)
        assert not any(outcome.failed for outcome in outcomes)
    finally:
        shutil.rmtree(directory)
    return spent
