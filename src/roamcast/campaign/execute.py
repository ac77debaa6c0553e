"""Simulating the runs of a plan on Spark, batch by batch.

A batch is one Spark job: its runs are dealt out to tasks, and `mapInArrow` turns them into trace files in the staging
directory (see `worker`), which are then committed (see `store`). The size of a batch balances two losses: an
interruption throws away the batches under way, and every job costs Spark some tenths of a second. So it follows the
measured length of the runs. Two batches are under way at a time, because tasks of the second fill the cores that the
end of the first leaves idle.

A run that raises is recorded by its worker. A run that takes its whole worker down (out of memory, a crash in native
code) fails the job however often Spark repeats the task; such a batch is halved until the run is alone, and then
recorded as failed by the driver. Any other failure of a job is no fault of a run and ends the campaign with its error.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from math import ceil
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from roamcast.campaign.store import Outcome, Store
from roamcast.campaign.worker import ANSWER, FAILED, Worker, outcome_row, simulate_runs, write_runs
from roamcast.errors import RoamcastError
from roamcast.trace.files import TraceWriter
from roamcast.trace.schema import SCHEMA

TRACE_SCHEMA = from_arrow_schema(SCHEMA)

BATCH_S = 10.0  # what one batch should take
TASK_S = 2.0  # what one task should take: about ten runs of 0.2 s
TASKS_PER_SLOT = 2  # at least, in a batch of several runs, so that an unlucky deal evens out
BATCH_RUNS_MAX = 5000
GROWTH_MAX = 4  # a batch is at most so many times the one before: the first runs may have been the short ones
UNDER_WAY = 2
POLL_S = 0.25

_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker terminated", "ExecutorLostFailure")


class CampaignStoppedError(RoamcastError):
    """Spark failed in a way that is not a run's fault."""


class Standing(NamedTuple):
    """Where an execution is; `simulated` counts runs of finished tasks that are not committed yet."""

    committed: int
    failed: int
    simulated: int
    running: int


class Execution:
    """Runs to simulate, and how far they are."""

    def __init__(
        self,
        session: SparkSession,
        store: Store,
        *,
        worker: Worker = simulate_runs,
        on_progress: Callable[[Standing], None] = lambda standing: None,
    ) -> None:
        self._session = session
        self._store = store
        self._worker = worker
        self._on_progress = on_progress
        self._slots = session.sparkContext.defaultParallelism
        self._next_batch = store.next_batch()
        self._size = 0  # of the last batch, in runs
        self._run_s: float | None = None  # mean length of the runs so far
        self._committed = 0
        self._failed = 0

    def execute(self, runs: pa.Table) -> list[Outcome]:
        """Simulates and commits all of `runs` (columns `run_id`, `seed`, `run`), and says how they went."""
        # By seed, so that what is done first is a whole, if rough, picture; within a seed in no order, so that long and
        # short runs mix and the measured length is typical.
        mixed = runs.sort_by([("seed", "ascending"), ("run_id", "ascending")])
        waiting = deque(_rows(mixed.select(["run_id", "run"])))
        retries: deque[pa.Table] = deque()  # halves of batches whose worker died
        jobs: dict[Future[list[str]], _Batch] = {}
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(UNDER_WAY) as threads:
            try:
                while waiting or retries or jobs:
                    while (waiting or retries) and len(jobs) < (UNDER_WAY if self._run_s else 1):
                        batch = self._take(waiting, retries)
                        jobs[threads.submit(self._simulate, batch)] = batch
                    ended, _ = wait(jobs, POLL_S, FIRST_COMPLETED)
                    for job in ended:
                        batch = jobs.pop(job)
                        outcomes += self._settle(job, batch, retries)
                    self._report(jobs.values())
            except BaseException:
                self._session.sparkContext.setLogLevel("OFF")  # cancelled tasks would fill the screen
                self._session.sparkContext.cancelAllJobs()
                raise
        return outcomes

    def _take(self, waiting: "deque[_Row]", retries: "deque[pa.Table]") -> "_Batch":
        number = self._next_batch
        self._next_batch += 1
        if retries:
            runs = retries.popleft()
            return _Batch(number, runs, len(runs))
        if self._run_s is None:
            size, per_task = self._slots * TASKS_PER_SLOT, 1
        else:
            size = min(
                BATCH_RUNS_MAX, GROWTH_MAX * self._size, max(self._slots, round(BATCH_S * self._slots / self._run_s))
            )
            per_task = max(1, min(round(TASK_S / self._run_s), ceil(len(waiting) / (self._slots * TASKS_PER_SLOT))))
        self._size = size
        rows = [waiting.popleft() for _ in range(min(size, len(waiting)))]
        return _Batch(number, _table(rows), ceil(len(rows) / per_task))

    def _simulate(self, batch: "_Batch") -> list[str]:
        """Where in the batch's staging directory its runs are."""
        context = self._session.sparkContext
        context.setJobGroup(batch.group(self._store), "roamcast campaign")
        stage = self._store.stage(batch.number).resolve()
        stage.mkdir(parents=True)  # here, because tasks that make it together may trip over each other
        runs = self._session.createDataFrame(batch.runs).repartition(batch.tasks)
        answers = runs.mapInArrow(partial(write_runs, self._worker, str(stage)), ANSWER).collect()
        return [answer.attempt for answer in answers]

    def _settle(self, job: Future[list[str]], batch: "_Batch", retries: "deque[pa.Table]") -> list[Outcome]:
        error = job.exception()
        if error is not None:
            if not any(sign in str(error) for sign in _WORKER_DIED):
                raise CampaignStoppedError(f"Spark gave up: {_reason(error)}") from error
            if len(batch.runs) > 1:
                half = len(batch.runs) // 2
                retries.extend([batch.runs.slice(0, half), batch.runs.slice(half)])
                return []
            attempts = [self._record_loss(batch)]
        else:
            attempts = job.result()
        outcomes = self._store.commit(batch.number, attempts)
        self._committed += len(outcomes)
        self._failed += sum(outcome.failed for outcome in outcomes)
        spent = sum(outcome.wall_s for outcome in outcomes) / len(outcomes)
        self._run_s = max(1e-3, spent if self._run_s is None else (self._run_s + spent) / 2)
        return outcomes

    def _record_loss(self, batch: "_Batch") -> str:
        """Notes, in the worker's place, that its run took it down."""
        name = batch.runs["run_id"][0].as_py()
        row = outcome_row(name, FAILED, "the worker process died while it simulated this run (out of memory?)", 0.0, 0)
        TraceWriter(self._store.stage(batch.number) / "lost").append([row])
        return "lost"

    def _report(self, batches: Iterable["_Batch"]) -> None:
        tracker = self._session.sparkContext.statusTracker()
        simulated = running = 0
        for batch in batches:
            for job in tracker.getJobIdsForGroup(batch.group(self._store)):
                info = tracker.getJobInfo(job)
                last = tracker.getStageInfo(max(info.stageIds)) if info and info.stageIds else None
                if last is not None and last.numTasks == batch.tasks:
                    simulated += len(batch.runs) * last.numCompletedTasks // batch.tasks
                    running += last.numActiveTasks
        self._on_progress(Standing(self._committed, self._failed, simulated, min(running, self._slots)))


class _Batch(NamedTuple):
    number: int
    runs: pa.Table
    tasks: int

    def group(self, store: Store) -> str:
        """The name under which Spark knows the batch's job."""
        return store.stage(self.number).name


_Row = tuple[str, str]


def _rows(runs: pa.Table) -> Iterable[_Row]:
    return zip(*(column.to_pylist() for column in runs.columns), strict=True)


def _table(rows: list[_Row]) -> pa.Table:
    names, texts = zip(*rows, strict=True)
    return pa.table({"run_id": names, "run": texts})


def _reason(error: BaseException) -> str:
    """The innermost cause in one line; Spark wraps it in a stack trace of its own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return causes[-1].removeprefix("Caused by: ") if causes else lines[0]
