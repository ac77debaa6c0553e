"""Capacity: the highest rate of publication at which enough arrives, per protocol.

The rates tried are those of a ladder: the scenario's own rate times powers of the fourth root of two, so that
neighbours differ by 19 %. A candidate climbs from the scenario's rate in doublings as long as it passes (or descends in
halvings as long as it fails), and then the rungs in between are bisected. All candidates that wait for the same rate
are simulated together, as one campaign:

    DIR/rate-R.toml         what was run at rate R
    DIR/campaign/           all runs: those that are there are not simulated again, so the same command goes on
    DIR/capacity.json       the answer

A candidate passes a rate if the mean of the demanded measure over the seeds is inside the bound. That is a point
estimate from few networks; the two rungs that bracket it are given with what was measured there.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec
from pyspark.sql import SparkSession

from roamcast.advise.candidates import Candidate
from roamcast.advise.demands import Demand
from roamcast.advise.runs import MeasuredRuns, run_stage
from roamcast.campaign.conduct import Progress
from roamcast.campaign.grid import written_into
from roamcast.errors import ConfigurationError
from roamcast.world.scenario_file import Tables, run_from_tables

ANSWER: Final = "capacity.json"
RUNGS_PER_DOUBLING: Final = 4
DOUBLINGS_MAX: Final = 10  # of the scenario's rate
HALVINGS_MAX: Final = 4  # of it; at lower rates a run has too few events to say anything
RATE: Final = "workload.rate_per_s"


class Rung(msgspec.Struct, frozen=True):
    """A rate and the mean of the demanded measure there."""

    rate_per_s: float  # of each publisher
    mean: float | None  # None: undefined, nothing arrived


class Capacity(msgspec.Struct, frozen=True):
    label: str
    protocol: str
    passes: Rung | None  # the highest rate that passed; none: not even the lowest
    fails: Rung | None  # the lowest rate above it that failed; none: the highest passed
    error: str = ""  # runs that failed; then nothing is known


class Capacities(msgspec.Struct, frozen=True):
    """The answer: plain data, ready for JSON."""

    source: str
    demand: str
    seeds: int
    publishers: int
    capacities: tuple[Capacity, ...]  # the highest first


class Climb:
    """One candidate's search on the ladder. Rungs are whole numbers; 0 is the scenario's own rate."""

    def __init__(self) -> None:
        self.means: dict[int, float | None] = {}
        self._passed: int | None = None  # the highest that passed
        self._failed: int | None = None  # the lowest that failed

    @property
    def passed(self) -> int | None:
        return self._passed

    @property
    def failed(self) -> int | None:
        return self._failed

    def next_rung(self) -> int | None:
        """Where to measure next; None when it is over."""
        if self._passed is None and self._failed is None:
            return 0
        if self._failed is None:
            assert self._passed is not None
            above = self._passed + RUNGS_PER_DOUBLING
            return above if above <= RUNGS_PER_DOUBLING * DOUBLINGS_MAX else None
        if self._passed is None:
            below = self._failed - RUNGS_PER_DOUBLING
            return below if below >= -RUNGS_PER_DOUBLING * HALVINGS_MAX else None
        middle = (self._passed + self._failed) // 2
        return middle if middle > self._passed else None

    def measured(self, rung: int, mean: float | None, *, passes: bool) -> None:
        self.means[rung] = mean
        if passes:
            self._passed = rung
        else:
            self._failed = rung


class CapacitySearch:
    """The capacities of some candidates in a scenario. Making it refuses what makes no sense, before Spark starts."""

    def __init__(
        self,
        scenario: Tables,
        field: list[Candidate],
        demand: Demand,
        out: Path,
        *,
        source: str,
        master: str,
        seeds: tuple[int, ...],
    ) -> None:
        self._scenario = scenario
        self._candidates = {candidate.label: candidate for candidate in field}
        self._demand = demand
        self._out = out
        self._source = source
        self._master = master
        self._seeds = seeds
        described = run_from_tables({"scenario": scenario}, source=source).scenario
        self._rate_per_s = described.workload.rate_per_s
        if self._rate_per_s <= 0:
            raise ConfigurationError(f"{source}: scenario.{RATE} = {self._rate_per_s:g}: must be above 0 to start from")
        workload = described.workload
        share = round(workload.publisher_share * described.nodes)
        self._publishers = share if workload.publishers is None else workload.publishers
        out.mkdir(parents=True, exist_ok=True)

    def rate_per_s(self, rung: int) -> float:
        """Rounded, so that a rate is written the same everywhere."""
        return float(f"{self._rate_per_s * 2 ** (rung / RUNGS_PER_DOUBLING):.4g}")

    def run(
        self,
        session: SparkSession,
        *,
        on_rate: Callable[[float, Mapping[str, float | None]], None] = lambda rate_per_s, means: None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> Capacities:
        climbs = {name: Climb() for name in self._candidates}
        errors: dict[str, str] = {}
        while waiting := self._waiting(climbs, errors):
            rung = min(waiting)  # low rates first: they are quick
            stage = self._simulate(session, rung, waiting[rung], on_progress)
            errors |= stage.failed
            means = {}
            for name in waiting[rung]:
                if name in stage.failed:
                    continue
                values = stage.found.get(name, {}).get(self._demand.measure, {})
                means[name] = fmean(values.values()) if values else None
                mean = means[name]
                climbs[name].measured(rung, mean, passes=mean is not None and self._demand.margin(mean) >= 0)
            on_rate(self.rate_per_s(rung), means)
        answer = Capacities(
            source=self._source,
            demand=str(self._demand),
            seeds=len(self._seeds),
            publishers=self._publishers,
            capacities=tuple(sorted((self._capacity(name, climbs, errors) for name in climbs), key=_order)),
        )
        (self._out / ANSWER).write_bytes(msgspec.json.format(msgspec.json.encode(answer), indent=2))
        return answer

    def _waiting(self, climbs: Mapping[str, Climb], errors: Mapping[str, str]) -> dict[int, list[str]]:
        """Rung -> who is to be measured there next."""
        waiting: dict[int, list[str]] = {}
        for name, climb in climbs.items():
            rung = None if name in errors else climb.next_rung()
            if rung is not None:
                waiting.setdefault(rung, []).append(name)
        return waiting

    def _simulate(
        self, session: SparkSession, rung: int, names: list[str], on_progress: Callable[[Progress], None]
    ) -> MeasuredRuns:
        rate_per_s = self.rate_per_s(rung)
        tables = {
            "title": f"Capacity in {self._source} at {rate_per_s:g} per s",
            "protocols": [self._candidates[name].entry for name in names],
            "seeds": list(self._seeds),
            "scenario": written_into(self._scenario, {RATE: rate_per_s}),
        }
        return run_stage(
            session,
            tables,
            self._out / f"rate-{rate_per_s:g}.toml",
            self._out / "campaign",
            master=self._master,
            measures=[self._demand.measure],
            on_progress=on_progress,
        )

    def _capacity(self, name: str, climbs: Mapping[str, Climb], errors: Mapping[str, str]) -> Capacity:
        candidate, climb = self._candidates[name], climbs[name]
        if name in errors:
            return Capacity(name, candidate.protocol, None, None, errors[name])

        def rung(at: int | None) -> Rung | None:
            return None if at is None else Rung(self.rate_per_s(at), climb.means[at])

        return Capacity(name, candidate.protocol, rung(climb.passed), rung(climb.failed))


def _order(capacity: Capacity) -> tuple[float, str]:
    return (-capacity.passes.rate_per_s if capacity.passes else 0.0), capacity.label
