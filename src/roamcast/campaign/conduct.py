"""Conducting a campaign: from its file to a place that holds every run.

With fixed seeds there is one round. With a stopping rule there are rounds of `batch` seeds: after each, the places at
which some point is not known precisely enough get another round, all contenders of a place together, so that their
differences stay paired. Whether a place goes on depends only on runs of earlier rounds, so a campaign that was
interrupted and resumed makes the same decisions as one that was not.

The analysis says how precise a point is: it comes in as a function. The figures of papers have rounds and a rule of
their own (`papers/reproduce.py`).
"""

import os
import platform
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import roamcast
from roamcast.campaign.delta import refresh
from roamcast.campaign.execute import ExecutionState, Lengths, RunExecution
from roamcast.campaign.file import Campaign, Stop, load_campaign
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.plan import Point, plan_table, points, replicates
from roamcast.campaign.preflight import prepare
from roamcast.campaign.session import LOCAL
from roamcast.campaign.store import Manifest, RunOutcome, Store
from roamcast.campaign.verify import Damage
from roamcast.campaign.worker import Worker, simulate_runs
from roamcast.errors import ConfigurationError
from roamcast.form import source_digest

Precise = Callable[[Stop, list[str]], set[int]]
"""Given a rule and the runs that count so far, the points whose mean is known precisely enough."""


class Progress(NamedTuple):
    """How far a campaign is."""

    planned: int
    done: int  # committed, failed ones included
    failed: int
    simulated: int  # finished, not yet committed
    running: int


class Ending(NamedTuple):
    """How a campaign ended."""

    planned: int
    skipped: int  # were there already
    failed: list[RunOutcome]
    damages: tuple[Damage, ...] = ()  # files that were found damaged at the start; their runs were simulated again


class Conductor:
    """One campaign and its place. Making it refuses a wrong file before Spark is started."""

    def __init__(self, file: Path, out: str | Path | StoreLocation, *, master: str) -> None:
        self.campaign: Campaign = load_campaign(file)
        self.store = Store(out)
        self.command = resume_command(file, out, master)
        self._points = points(self.campaign)
        self._manifest = Manifest(
            campaign=self.campaign,
            text=file.read_text(encoding="utf-8"),
            command=self.command,
            environment=_environment(master),
        )

    def runs_planned_first(self) -> int:
        """How many runs the first round has."""
        return len(self._points) * len(self._rounds()[0])

    def refuse_another_campaign(self) -> None:
        """Refuses to go on in a place whose campaign has another file and no point in common with this one."""
        try:
            other = self.store.manifest().campaign
        except ConfigurationError:  # there is none, or it is damaged and will be written again
            return
        if Path(other.source).resolve() == Path(self.campaign.source).resolve():
            return
        here = {_identity(point) for point in self._points}
        try:
            there = {_identity(point) for point in points(other)}
        except ConfigurationError:  # a protocol or setting that there is no longer
            there = set()
        if not here & there:
            raise ConfigurationError(
                f"out: {str(self.store.directory)!r} holds another campaign ({other.title!r}, from {other.source}); "
                "name another place"
            )

    def conduct(
        self,
        session: SparkSession,
        *,
        precise: Precise,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        on_damage: Callable[[list[Damage]], None] = lambda damages: None,
        tell: Callable[[str], None] = lambda line: None,
        worker: Worker = simulate_runs,
        retry_failed: bool = False,
    ) -> Ending:
        """Simulates whatever is not there yet; with `retry_failed`, also runs that failed."""
        with self.store.opened(self._manifest) as damages:
            on_damage(damages)
            archives = prepare(session, self.store, [each.protocol for each in self.campaign.contenders], tell)
            over = self.store.outcomes()
            if retry_failed:
                over = {name: outcome for name, outcome in over.items() if not outcome.failed}
            before = set(over)
            chosen: list[tuple[Point, int]] = []
            going_on = self._points
            for seeds in self._rounds():
                chosen += replicates(going_on, seeds)
                plan = plan_table(self.campaign, chosen)
                self.store.write_plan(plan)
                planned = dict.fromkeys(
                    map(str, plan["run_id"].to_pylist())
                )  # contenders may share a run: it is simulated once
                done = [over[name] for name in planned if name in over]

                def report(
                    standing: ExecutionState, done: list[RunOutcome] = done, planned: int = len(planned)
                ) -> None:
                    failed = sum(outcome.failed for outcome in done) + standing.failed
                    committed = len(done) + standing.committed
                    on_progress(Progress(planned, committed, failed, standing.simulated, standing.running))

                report(ExecutionState(0, 0, 0, 0))
                missing = _rows_of(plan, [name for name in planned if name not in over])
                execution = RunExecution(
                    session,
                    self.store,
                    worker=worker,
                    archives=archives,
                    environment=self._manifest.environment | {"command": self.command},
                    lengths=_lengths(plan, over),
                    on_progress=report,
                )
                over |= {outcome.run_id: outcome for outcome in execution.execute(missing)}
                going_on = self._imprecise(going_on, precise, list(planned))
                if not going_on:
                    break
            try:
                refresh(self.store)
            except ConfigurationError as error:  # the runs are there all the same
                tell(str(error))
            failed = [over[name] for name in planned if over[name].failed]
            return Ending(len(planned), len(before & planned.keys()), failed, tuple(damages))

    def _rounds(self) -> Sequence[Sequence[int]]:
        stop = self.campaign.stop
        if stop is None:
            return [list(self.campaign.seeds)]
        return stop.rounds

    def _imprecise(self, going_on: list[Point], precise: Precise, planned: list[str]) -> list[Point]:
        """The points of the places that need another round."""
        if self.campaign.stop is None:
            return []
        good = precise(self.campaign.stop, planned)
        places = {point.place for point in going_on if point.point not in good}
        return [point for point in going_on if point.place in places]


def _identity(point: Point) -> bytes:
    return msgspec.json.encode((point.label, point.template), order="deterministic")


def resume_command(file: Path, out: str | Path | StoreLocation, master: str) -> str:
    """The command that continues the campaign, or repeats it in another directory; without a key in the URI."""
    words = ["roamcast", "campaign", "run", str(file), "--out", str(StoreLocation(out))]
    if master != LOCAL:
        words += ["--master", master]
    return shlex.join(words)


def _rows_of(plan: pa.Table, names: list[str]) -> pa.Table:
    places = {name: row for row, name in reversed(list(enumerate(plan["run_id"].to_pylist())))}
    return plan.take(pa.array([places[name] for name in names], pa.int64()))


def _lengths(plan: pa.Table, over: dict[str, RunOutcome]) -> Lengths:
    """Of the planned runs that are over."""
    lengths = Lengths()
    for name, point in zip(plan["run_id"].to_pylist(), plan["point"].to_numpy().tolist(), strict=True):
        if name in over and not over[name].failed:
            lengths.add(point, over[name].wall_s)
    return lengths


def _environment(master: str) -> dict[str, str]:
    return {
        "roamcast": roamcast.__version__,
        "form": roamcast.FORM,
        "sources": source_digest(),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "pyarrow": pa.__version__,
        "master": master,
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
    }
