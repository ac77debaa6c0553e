"""Simulating the runs of a plan on Spark, batch by batch.

A batch is one Spark job. Its runs are dealt out to tasks, whose executors write trace files (see `worker`), and the
driver commits what they wrote (see `store`). The size of a batch balances two losses: a driver that is killed loses
the batches under way, and every job costs Spark some tenths of a second. So it follows the measured length of the
runs. Two batches are under way at a time: tasks of the second fill the cores that the end of the first leaves idle. The
last batch has shorter tasks, so that all cores end at about the same time.

Runs are assigned by their expected length, taken from runs of the same point that are over, also those of earlier
rounds and of a campaign that is continued. Each goes to the task with the least work, longest first, and the longest
tasks start first. The number of cores is asked before each batch, since executors come and go.

A task's answer reaches the driver when the task ends. So when a campaign is interrupted, or a job fails, the tasks
that ended are committed all the same, even if Spark's Java process has ended, too.

A run that raises is recorded by its worker. A run that takes its whole worker down (out of memory, a crash in native
code) fails the job however often Spark repeats the task. What is left of such a batch is halved until the run is
alone, and then recorded as failed by the driver. Any other failure of a job is no fault of a run and ends the campaign
with its error.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from heapq import heapify, heappop, heappush
from math import ceil
from time import monotonic
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import AccumulatorParam, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from roamcast.campaign.commits import FAILED, RunOutcome
from roamcast.campaign.interruption import deferred_signals
from roamcast.campaign.plan import decode_run
from roamcast.campaign.reasons import reason, worker_died
from roamcast.campaign.shipping import on_path
from roamcast.campaign.store import LostFilesError, Store, Written
from roamcast.campaign.worker import Task, Worker, perform, simulate_runs
from roamcast.errors import RoamcastError
from roamcast.trace.arrow import SCHEMA

TRACE_SCHEMA = from_arrow_schema(SCHEMA)

BATCH_S = 10.0  # what one batch should take
TASK_S = 4.0  # what one task should take: Spark computes something around each
LAST_TASK_S = 1.0  # the same in the last batch, after which cores have nothing to do
TASKS_PER_SLOT = 2  # at least, in a batch of several runs, so that an unlucky deal evens out
BATCH_RUNS_MAX = 5000
REST_MAX = 1.5  # batches; what is left then is one batch
GROWTH_MAX = 4  # a batch is at most this many times the one before: the first runs may have been short
UNDER_WAY = 2
POLL_S = 0.25  # a signal, such as Ctrl-C, waits so long at most
REPORT_S = 1.0  # between two questions to Spark how far its jobs are
DIED = "the worker process died while it simulated this run (out of memory?)"


class CampaignStoppedError(RoamcastError):
    """Spark failed in a way that is not a run's fault."""


class ExecutionState(NamedTuple):
    """Where an execution is; `simulated` counts runs of finished tasks that are not committed yet."""

    committed: int
    failed: int
    simulated: int
    running: int


class PlannedRun(NamedTuple):
    run_id: str
    run: str  # as JSON
    point: int


class RunExecution:
    """Runs to simulate, and how far they are."""

    def __init__(
        self,
        session: SparkSession,
        store: Store,
        *,
        worker: Worker = simulate_runs,
        archives: Iterable[str] = (),
        environment: dict[str, str] | None = None,
        lengths: "Lengths | None" = None,
        on_progress: Callable[[ExecutionState], None] = lambda standing: None,
    ) -> None:
        self._context: SparkContext = session.sparkContext
        self._store = store
        self._worker = worker
        self._archives = list(archives)
        self._environment = environment
        self._on_progress = on_progress
        self._lengths = lengths or Lengths()  # of runs that are over, perhaps from an earlier execution
        self._size = BATCH_RUNS_MAX if self._lengths.known else 0  # of the last batch, in runs
        self._committed = 0
        self._failed = 0
        self._reported_s = monotonic()

    def execute(self, runs: pa.Table) -> list[RunOutcome]:
        """Simulates and commits all of `runs` (columns `run_id`, `seed`, `run`, perhaps `point`), and says how they
        went."""
        waiting = deque(_by_seed(runs))
        retries: deque[list[PlannedRun]] = deque()  # halves of batches whose worker died
        jobs: dict[Future[list[bytes]], _Batch] = {}
        outcomes: list[RunOutcome] = []
        with deferred_signals() as hand_over_signals, ThreadPoolExecutor(UNDER_WAY) as threads:
            try:
                while waiting or retries or jobs:
                    while (waiting or retries) and len(jobs) < UNDER_WAY:
                        batch = self._take(waiting, retries)
                        jobs[threads.submit(self._simulate, batch)] = batch
                    ended, _ = wait(jobs, POLL_S, FIRST_COMPLETED)
                    hand_over_signals()  # first: who stops a campaign may have stopped Spark or its workers, too
                    for job in ended:
                        outcomes += self._settle(job, jobs.pop(job), retries)
                    if ended or monotonic() >= self._reported_s + REPORT_S:
                        self._report(jobs.values())
            except BaseException as error:
                self._abandon(jobs, error)
                if isinstance(error, CampaignStoppedError):
                    hand_over_signals()
                raise
        return outcomes

    def _take(self, waiting: deque[PlannedRun], retries: deque[list[PlannedRun]]) -> "_Batch":
        number = self._store.next_batch()
        with _asking_spark():
            slots = self._context.defaultParallelism
        if retries:
            runs = retries.popleft()
            return self._batch(number, [[run] for run in runs], slots)
        if not self._lengths.known:
            size = slots * TASKS_PER_SLOT
        else:
            wanted = max(slots, round(BATCH_S * slots / self._lengths.mean_s))
            size = min(BATCH_RUNS_MAX, GROWTH_MAX * self._size, wanted)
        self._size = max(size, slots)
        is_last = len(waiting) <= self._size * (REST_MAX if self._lengths.known else 1)
        runs = [waiting.popleft() for _ in range(len(waiting) if is_last else self._size)]
        expected_s = sum(map(self._lengths.expected_s, runs)) if self._lengths.known else TASK_S * len(runs)
        task_s = LAST_TASK_S if is_last else TASK_S
        tasks = min(len(runs), max(ceil(expected_s / task_s), slots * TASKS_PER_SLOT))
        return self._batch(number, deal(runs, tasks, self._lengths.expected_s), slots)

    def _batch(self, number: int, tasks: list[list[PlannedRun]], slots: int) -> "_Batch":
        ended = self._context.accumulator([], _list_accumulator())
        return _Batch(number, tasks, slots, f"{self._store.owner}-{number}", ended)

    def _simulate(self, batch: "_Batch") -> list[bytes]:
        """What each task of the batch wrote."""
        self._context.setJobGroup(batch.group, "roamcast campaign")
        trace = self._store.trace.absolute
        work = on_path(self._archives, partial(perform, self._worker, trace, batch.number, self._store.owner))
        ended = batch.ended

        def simulate_task(task: Task) -> bytes:
            written: bytes = work(task)
            ended.add([written])
            return written

        tasks: list[Task] = [[(run.run_id, run.run) for run in task] for task in batch.tasks]
        return self._context.parallelize(tasks, len(tasks)).map(simulate_task).collect()

    def _settle(self, job: Future[list[bytes]], batch: "_Batch", retries: deque[list[PlannedRun]]) -> list[RunOutcome]:
        error = job.exception()
        if error is None:
            return self._commit(batch, [msgspec.json.decode(each, type=Written) for each in job.result()])
        if not worker_died(error):
            self._commit(batch, batch.written())
            raise CampaignStoppedError(f"Spark gave up: {reason(error)}") from error
        kept = batch.written()
        over = {run.run_id for part in kept for run in part.runs}
        left = [run for run in batch.runs() if run.run_id not in over]
        if len(left) == 1:
            kept.append(Written([], [RunOutcome(left[0].run_id, FAILED, DIED, 0.0, 0)]))
        elif left:
            half = len(left) // 2
            retries.extend([left[:half], left[half:]])
        return self._commit(batch, kept)

    def _commit(self, batch: "_Batch", written: list[Written]) -> list[RunOutcome]:
        if not written:
            return []
        runs = [run for part in written for run in part.runs]
        planned = {run.run_id: run for run in batch.runs()}
        try:
            outcomes = self._store.commit(
                batch.number,
                written,
                parameters=_parameters([planned[run.run_id] for run in runs if run.run_id in planned]),
                environment=self._environment,
            )
        except LostFilesError as error:
            raise CampaignStoppedError(str(error)) from error
        self._committed += len(outcomes)
        self._failed += sum(outcome.failed for outcome in outcomes)
        for outcome in outcomes:
            if outcome.run_id in planned:
                self._lengths.add(planned[outcome.run_id].point, outcome.wall_s)
        return outcomes

    def _abandon(self, jobs: "dict[Future[list[bytes]], _Batch]", error: BaseException) -> None:
        """Ends the jobs under way and commits the tasks that ended."""
        with suppress(CampaignStoppedError), _asking_spark():
            self._context.setLogLevel("OFF")  # cancelled tasks would fill the screen
            for batch in jobs.values():
                self._context.cancelJobGroup(batch.group)
        wait(jobs)
        if isinstance(error, OSError | LostFilesError):
            return
        for batch in jobs.values():
            self._commit(batch, batch.written())
        self._report([])

    def _report(self, batches: Iterable["_Batch"]) -> None:
        self._reported_s = monotonic()
        simulated = running = failed = 0
        slots = 0
        for batch in batches:
            slots = max(slots, batch.slots)
            ended = [run for part in batch.written() for run in part.runs]
            simulated += len(ended)
            failed += sum(run.failed for run in ended)
            running += self._tasks_under_way(batch)
        self._on_progress(ExecutionState(self._committed, self._failed + failed, simulated, min(running, slots)))

    def _tasks_under_way(self, batch: "_Batch") -> int:
        with _asking_spark():
            tracker = self._context.statusTracker()
            found = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(batch.group)]
            stages = [tracker.getStageInfo(stage) for job in found if job is not None for stage in job.stageIds]
            return sum(stage.numActiveTasks for stage in stages if stage is not None)


@contextmanager
def _asking_spark() -> Iterator[None]:
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        raise CampaignStoppedError("Spark ended") from error


class _Batch(NamedTuple):
    number: int
    tasks: list[list[PlannedRun]]
    slots: int
    group: str  # the name under which Spark knows the batch's job
    ended: Any  # accumulates the answers of tasks that ended; an attempt that Spark repeated may be there twice

    def runs(self) -> list[PlannedRun]:
        return [run for task in self.tasks for run in task]

    def written(self) -> list[Written]:
        """What the tasks that ended so far wrote, each run once."""
        parts: dict[str, Written] = {}
        for answer in list(self.ended.value):
            part = msgspec.json.decode(answer, type=Written)
            parts.setdefault(part.runs[0].run_id, part)
        return list(parts.values())


class Lengths:
    """How long runs take, by point."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[float, int]] = {}
        self.mean_s = 0.0  # recent runs count more
        self.known = False

    def add(self, point: int, wall_s: float) -> None:
        total, count = self._sums.get(point, (0.0, 0))
        self._sums[point] = total + wall_s, count + 1
        self.mean_s = max(1e-3, wall_s if not self.known else 0.98 * self.mean_s + 0.02 * wall_s)
        self.known = True

    def expected_s(self, run: PlannedRun) -> float:
        total, count = self._sums.get(run.point, (self.mean_s, 1))
        return total / count


def deal(runs: list[PlannedRun], tasks: int, expected_s: Callable[[PlannedRun], float]) -> list[list[PlannedRun]]:
    """The runs in this many tasks of about the same length, the longest task first; none is empty."""
    longest_first = sorted(runs, key=lambda run: (-expected_s(run), run.run_id))
    heap: list[tuple[float, int]] = [(0.0, task) for task in range(tasks)]
    heapify(heap)
    dealt: list[list[PlannedRun]] = [[] for _ in range(tasks)]
    lengths = [0.0] * tasks
    for run in longest_first:
        length, task = heappop(heap)
        dealt[task].append(run)
        lengths[task] = length + max(1e-9, expected_s(run))  # above 0, so that every task gets one
        heappush(heap, (lengths[task], task))
    order = sorted(range(tasks), key=lambda task: (-lengths[task], task))
    return [dealt[task] for task in order if dealt[task]]


def _by_seed(runs: pa.Table) -> list[PlannedRun]:
    """By seed, so that the first results already cover all points; within a seed shuffled, so that long and short runs
    mix and the measured length is typical."""
    ordered = runs.sort_by([("seed", "ascending"), ("run_id", "ascending")])
    rows = ordered.to_pylist()
    return [PlannedRun(row["run_id"], row["run"], row.get("point", 0)) for row in rows]


def _parameters(runs: list[PlannedRun]) -> dict[str, dict[str, int]]:
    """For the commit: each run without its seed as JSON, and the seeds that it had."""
    found: dict[str, dict[str, int]] = {}
    for planned in runs:
        run = decode_run(planned.run)
        text = msgspec.json.encode(msgspec.structs.replace(run, seed=0), order="deterministic").decode()
        found.setdefault(text, {})[planned.run_id] = run.seed
    return found


def _list_accumulator() -> "AccumulatorParam[list[bytes]]":
    """A local class travels by value, so executors need no Roamcast to unpickle it."""

    class Lists(AccumulatorParam):  # type: ignore[type-arg]  # not generic at run time
        def zero(self, value: list[bytes]) -> list[bytes]:
            return []

        def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
            return value1 + value2

    return Lists()
