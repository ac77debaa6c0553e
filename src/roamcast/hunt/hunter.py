"""The hunt: cases are drawn, judged on all cores or on Spark, and entered in the ledger; failures are shrunk.

Which cases there are follows from the seed alone: case 0 of every protocol, case 1, and so on. A hunt that is
interrupted, or goes on later with more hours, leaves out those that the ledger has.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from time import monotonic
from typing import Any, NamedTuple

from roamcast.form import source_digest
from roamcast.hunt.case import Case, read_case
from roamcast.hunt.draw import draw_case
from roamcast.hunt.judge import judge
from roamcast.hunt.ledger import Ledger, LedgerEntry
from roamcast.hunt.shrink import shrink

REPEATED_EVERY = 8
REPEATED_NODE_HOURS = 0.5
"""Every eighth case, and every short one, is run twice, and the traces are compared."""

BATCH = 200  # cases of a Spark job


class HuntTask(NamedTuple):
    seed: int
    number: int
    protocol: str


def perform(task: HuntTask) -> tuple[LedgerEntry, Case | None]:
    """Judges one case; shrinks it if it fails."""
    case = draw_case(task.seed, task.number, task.protocol)
    repeated = task.number % REPEATED_EVERY == 0 or case.node_hours <= REPEATED_NODE_HOURS
    verdict = judge(case, again=repeated)
    shrunk = None
    if verdict.failure is not None:
        shrunk = shrink(case, verdict.failure.kind)
    entry = LedgerEntry(
        number=task.number,
        protocol=task.protocol,
        seed=task.seed,
        sources=source_digest(),
        node_hours=case.node_hours * (1 + repeated) if verdict.failure is None else 0.0,  # a failure ends a run early
        faults=verdict.faults,
        trace_hash=verdict.trace_hash,
        owed=verdict.owed,
        paid=verdict.paid,
        promised=verdict.promised,
        repeated=repeated and verdict.failure is None,
        wall_s=verdict.wall_s,
        failure="" if verdict.failure is None else verdict.failure.kind,
        detail="" if verdict.failure is None else verdict.failure.detail,
        file="" if verdict.failure is None else f"failures/{task.protocol}-{task.number}.json",
    )
    return entry, shrunk


def tasks(
    ledger: Ledger, protocols: tuple[str, ...], shortest: float = 0.0, longest: float | None = None
) -> Iterator[HuntTask]:
    """What is still to be judged, without an end; from `shortest` to `longest` node-hours."""
    done = ledger.done()
    number = 0
    while True:
        for protocol in protocols:
            if (protocol, number) in done:
                continue
            node_hours = draw_case(ledger.seed, number, protocol).node_hours
            if node_hours >= shortest and (longest is None or node_hours <= longest):
                yield HuntTask(ledger.seed, number, protocol)
        number += 1


def retry_open(ledger: Ledger) -> list[LedgerEntry]:
    """Judges all open failures again; returns those that are mended."""
    mended = []
    for entry in ledger.open_failures():
        if judge(read_case(ledger.directory / entry.file), again=entry.failure == "determinism").failure is None:
            ledger.mend(entry)
            mended.append(entry)
    return mended


class Limit(NamedTuple):
    """When a hunt ends, whichever comes first."""

    runs: int | None = None
    until_s: float | None = None  # on the monotonic clock
    shortest: float = 0.0  # node-hours of a case; others are left for later
    longest: float | None = None

    def reached(self, runs: int) -> bool:
        enough = self.runs is not None and runs >= self.runs
        return enough or (self.until_s is not None and monotonic() >= self.until_s)


def hunt_on_cores(ledger: Ledger, protocols: tuple[str, ...], limit: Limit, jobs: int) -> Iterator[LedgerEntry]:
    """Judges cases on `jobs` processes until the limit; entries come as they are made. One job is this process."""
    todo = tasks(ledger, protocols, limit.shortest, limit.longest)
    begun = 0
    while jobs == 1 and not limit.reached(begun):
        entry, shrunk = perform(next(todo))
        begun += 1
        ledger.add(entry, shrunk)
        yield entry
    if jobs == 1:
        return
    context = multiprocessing.get_context("spawn")  # each process has its own hash seed
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        pending: set[Future[tuple[LedgerEntry, Case | None]]] = set()
        while True:
            while len(pending) < 2 * jobs and not limit.reached(begun):
                pending.add(pool.submit(perform, next(todo)))
                begun += 1
            if not pending:
                return
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                entry, shrunk = future.result()
                ledger.add(entry, shrunk)
                yield entry


def hunt_on_spark(ledger: Ledger, protocols: tuple[str, ...], limit: Limit, session: Any) -> Iterator[LedgerEntry]:
    """The same as Spark jobs of `BATCH` cases each."""
    todo = tasks(ledger, protocols, limit.shortest, limit.longest)
    begun = 0
    while not limit.reached(begun):
        size = BATCH if limit.runs is None else min(BATCH, limit.runs - begun)
        batch = [next(todo) for _ in range(size)]
        begun += size
        for entry, shrunk in session.sparkContext.parallelize(batch, size).map(_perform_plain).toLocalIterator():
            ledger.add(entry, shrunk)
            yield entry


def _perform_plain(task: tuple[int, int, str]) -> tuple[LedgerEntry, Case | None]:
    return perform(HuntTask(*task))
