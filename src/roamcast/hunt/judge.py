"""Judging a case: it is simulated under the eyes of its checkers, then its trace is gone through.

| failure | what happened |
|---|---|
| `invariant:NAME` | the checker NAME objected at some instant |
| `exception:TYPE` | the protocol, or the simulator, raised |
| `storm` | far more frames were sent than any network of this size needs (`FRAMES_MAX`); the run ended there |
| `deliveries` | an application got an event twice in one life, its own, or one that it did not want |
| `order` | a protocol that promises order delivered events of one publisher out of order |
| `lost`, `late` | after the time to heal, an event did not arrive, or not in time |
| `accountant` | the measures and the accountant disagree |
| `determinism` | the same run had another trace |
"""

import traceback
from collections import Counter
from time import perf_counter
from typing import Final

import msgspec

from roamcast.checkers import InvariantError
from roamcast.hunt.accountant import Books, account
from roamcast.hunt.case import Case
from roamcast.hunt.checks import checkers_of, name_of
from roamcast.trace.summary import summarise
from roamcast.world.radio.medium import Frame
from roamcast.world.simulator import Simulation, simulate

DETAIL_CHARACTERS = 600
FRAMES_MAX: Final = 200_000
FRAMES_MAX_PER_NODE_S: Final = 100
"""More than both together is a storm. Of 822 short cases without one, none sent more than 30 per node and second."""

ORDERED: Final = ("overlays",)
"""Protocols that promise the order of each publisher's events [Opportunistic Overlays, 2.4]."""


class CaseFailure(msgspec.Struct, frozen=True):
    kind: str
    detail: str


class Verdict(msgspec.Struct, frozen=True):
    """How a case went."""

    failure: CaseFailure | None
    faults: dict[str, int]  # by kind: incidents, and messages and timers that they hit
    trace_hash: str
    owed: int
    paid: int
    promised: int  # pairs that were judged by the protocol's promise
    wall_s: float


class _FailedError(Exception):
    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind)
        self.failure = CaseFailure(kind, detail[:DETAIL_CHARACTERS])


def judge(case: Case, *, again: bool = False) -> Verdict:
    """Simulates the case; with `again` a second time, at one stretch, for the comparison of traces."""
    began_s = perf_counter()
    judgement = _Judgement(case)
    failure: CaseFailure | None = None
    try:
        judgement.pass_sentence(again)
    except _FailedError as failed:
        failure = failed.failure
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{error} ({where.filename.rpartition('roamcast/')[2]}:{where.lineno} {where.name})"
        failure = CaseFailure(f"exception:{type(error).__name__}", said[:DETAIL_CHARACTERS])
    return Verdict(
        failure=failure,
        faults=judgement.faults(),
        trace_hash=judgement.trace_hash,
        owed=judgement.owed,
        paid=judgement.paid,
        promised=judgement.promised,
        wall_s=perf_counter() - began_s,
    )


class _Judgement:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._simulation: Simulation | None = None
        self._frames_left = FRAMES_MAX + int(FRAMES_MAX_PER_NODE_S * case.node_hours * 3600)
        self.trace_hash = ""
        self.owed = self.paid = self.promised = 0

    def faults(self) -> dict[str, int]:
        faults = self._case.run.scenario.faults
        counts: Counter[str] = Counter(str(incident.what) for incident in faults.incidents)
        counts["partition"] += len(faults.partitions)
        if self._simulation is not None:
            counts.update(self._simulation.mishaps)
            counts["lost frame"] += self._simulation.medium.lost.get("loss", 0)
        return {what: count for what, count in sorted(counts.items()) if count}

    def pass_sentence(self, again: bool) -> None:
        simulation = self._simulation = Simulation(self._case.run)
        simulation.watch_frames(self._count_frame)
        self._watch(simulation)
        simulation.finish()
        self.trace_hash = simulation.recorder.trace_hash()
        books = account(simulation.recorder.table())
        self.owed, self.paid = books.owed, books.paid
        found, self.promised = objections(self._case, books)
        for failure in found:
            raise _FailedError(failure.kind, failure.detail)
        measured = summarise(simulation.recorder)
        for name, booked in (("expected", books.owed), ("delivered", books.paid), ("duplicates", books.duplicated)):
            if measured[name] != booked:
                raise _FailedError("accountant", f"{name}: measured {measured[name]}, booked {booked}")
        if again and simulate(self._case.run).recorder.trace_hash() != self.trace_hash:
            raise _FailedError("determinism", "a second run has another trace")

    def _count_frame(self, frame: Frame) -> None:
        self._frames_left -= 1
        if self._frames_left < 0:
            raise _FailedError("storm", f"too many frames by {frame.start:.3f} s; the latest is {frame.label}")

    def _watch(self, simulation: Simulation) -> None:
        """Runs to the end; checkers look at every step."""
        scheduler = simulation.scheduler
        end_s, step_s = self._case.run.scenario.duration_s, self._case.step_s
        checkers = checkers_of(self._case, simulation)
        if not checkers:
            simulation.run_until(end_s)
        while scheduler.now < end_s:
            simulation.run_until(min(end_s, scheduler.now + step_s if step_s else scheduler.next_s(end_s)))
            for checker in checkers:
                try:
                    checker(simulation)
                except InvariantError as broken:
                    raise _FailedError(f"invariant:{name_of(checker)}", f"at {scheduler.now:.3f} s: {broken}") from None


def objections(case: Case, books: Books) -> tuple[list[CaseFailure], int]:
    """What is wrong with what applications got, the worst first, and how many pairs the promise covers."""
    found: list[CaseFailure] = []

    def object_to(kind: str, detail: str) -> None:
        found.append(CaseFailure(kind, detail[:DETAIL_CHARACTERS]))

    for sentence in books.unexpected:
        object_to("deliveries", sentence)
    if books.repeated:
        object_to("deliveries", f"{books.repeated} deliveries were repeated within a life")
    if case.run.protocol in ORDERED and books.reordered:
        object_to("order", f"{books.reordered} deliveries came after a later event of the same publisher")
    promised = 0
    for debt in books.debts if case.settled_s is not None else ():
        if debt.published_s < (case.settled_s or 0.0) or debt.hops < 0:
            continue
        if case.hops is not None and debt.hops > case.hops:
            continue
        promised += 1
        delay_s = books.delays_s.get((debt.event_id, debt.node))
        what = f"event {debt.event_id}, published at {debt.published_s:.3f} s, {debt.hops} hops from {debt.node},"
        if delay_s is None:
            object_to("lost", f"{what} did not arrive ({books.lost} of {books.owed} pairs in all)")
        elif delay_s > case.within_s:
            object_to("late", f"{what} arrived after {delay_s:.3f} s; promised: {case.within_s:g} s")
    return found, promised
