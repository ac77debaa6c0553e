"""Roamcast beside ns-3, SimPy and plain C++: the same loads, one after the other on the same machine.

Every simulator is a program that is given a load (`bench/load.py`) and a seed, runs in a process of its own and says
how long it computed and what came out. Layout, sources and times are the load's; the seed decides backoffs, jitter and
bit errors. Simulators take turns, so that a machine that slows down slows all of them down. Times are medians over the
runs, reach and delay means. The other programs are ours (`peers/`).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from roamcast.bench.fidelity import read_layout
from roamcast.bench.load import Load, flood_load, unicast_load, write_load
from roamcast.bench.processes import FORMS, WORKER, Machine, ask, this_machine
from roamcast.errors import ConfigurationError

NS3 = "ns-3"
SIMPY = "SimPy"
LIMIT = "C++ limit"
COMPILED, INTERPRETED = (f"Roamcast, {form}" for form in FORMS)

DURATIONS_S = {50: 40.0, 250: 10.0, 1000: 5.0}
"""Of floods by network size: the larger, the shorter, so that ns-3 is done in minutes."""

LONG_S = 30.0  # what took longer than this is not run a second time
SHORT_S = 2.0  # what took less altogether is run again, since its times scatter most; unless one run was asked for
RUNS_MAX = 15  # but no more often than this
LAYOUT_SEED = 1


class Simulator(NamedTuple):
    name: str
    command: tuple[str, ...]  # load and seed follow
    unicast: bool = True  # whether it models packets to one neighbour
    form: str = ""  # of Roamcast


class Named(NamedTuple):
    title: str
    load: Load
    runs: int
    short_again: bool = True  # whether short runs are repeated


class Measurement(msgspec.Struct, frozen=True):
    """One simulator under one load."""

    load: str
    simulator: str
    version: str
    nodes: int
    simulated_s: float
    runs: int
    cpu_s_per_simulated_s: float
    wall_s_per_simulated_s: float
    us_per_transmission: float  # of processor time
    transmissions: float  # all frames, acknowledgements too
    reach: float
    delay_ms_mean: float
    data_frames_per_packet: float | None  # unicast
    peak_mib: float | None


class Comparison(msgspec.Struct, frozen=True):
    machine: Machine
    compiler: str  # that built the ns-3 program
    measurements: tuple[Measurement, ...]

    def find(self, load: str, simulator: str) -> Measurement | None:
        for measurement in self.measurements:
            if measurement.load == load and measurement.simulator == simulator:
                return measurement
        return None

    def times_faster(self, measurement: Measurement) -> float | None:
        """Than ns-3 under the same load, by processor time; None without ns-3."""
        reference = self.find(measurement.load, NS3)
        if reference is None:
            return None
        return reference.cpu_s_per_simulated_s / measurement.cpu_s_per_simulated_s


def simulators(ns3: Path | None, simpy: tuple[Path, Path] | None, limit: Path | None = None) -> list[Simulator]:
    """Those at hand; `simpy` is a Python that has it, and our program."""
    found = [Simulator(NS3, (str(ns3),))] if ns3 else []
    if simpy:
        found.append(Simulator(SIMPY, (str(simpy[0]), str(simpy[1])), unicast=False))
    if limit:
        found.append(Simulator(LIMIT, (str(limit),), unicast=False))
    found += [Simulator(name, WORKER, form=form) for name, form in zip((COMPILED, INTERPRETED), FORMS, strict=True)]
    return found


def flood_title(nodes: int) -> str:
    return f"flood, {nodes} nodes"


def loads(sizes: Iterable[int], duration_s: float | None, layouts: Iterable[Path], runs: int) -> list[Named]:
    named = []
    for nodes in sizes:
        lasts_s = duration_s or DURATIONS_S.get(nodes, 10.0)
        named.append(Named(flood_title(nodes), flood_load(nodes, lasts_s, LAYOUT_SEED), runs, runs > 1))
    for path in layouts:
        layout = read_layout(path)
        if "unicast" not in layout:
            raise ConfigurationError(f"{path}: field 'unicast' is missing")
        for rate in sorted({run["packets_per_s_per_node"] for run in layout["unicast"]["ns3"]}):
            title = f"unicast, {path.stem}, {rate:g}/s"
            named.append(Named(title, unicast_load(layout, rate, LAYOUT_SEED), 1, runs > 1))
    return named


def compare(contestants: list[Simulator], named_loads: list[Named], tell: Callable[[str], None]) -> Comparison:
    machine = this_machine()
    compiler = ""
    measurements = []
    with TemporaryDirectory(prefix="roamcast-peers-") as directory:
        for number, named in enumerate(named_loads):
            path = Path(directory, f"load-{number}")
            path.write_text(write_load(named.load), encoding="utf-8")
            here = [each for each in contestants if each.unicast or not named.load.packets]
            for simulator, answers in zip(here, _take_turns(here, named, path, tell), strict=True):
                measurements.append(_measurement(named, simulator, answers))
                compiler = answers[0].get("compiler", compiler)
    return Comparison(machine, compiler, tuple(measurements))


def _take_turns(
    contestants: list[Simulator], named: Named, path: Path, tell: Callable[[str], None]
) -> list[list[dict[str, Any]]]:
    answers: list[list[dict[str, Any]]] = [[] for _ in contestants]
    runs_max = max(named.runs, RUNS_MAX) if named.short_again else named.runs
    for seed in range(1, runs_max + 1):
        for simulator, so_far in zip(contestants, answers, strict=True):
            if so_far and so_far[-1]["wall_s"] > LONG_S:
                continue
            if seed > named.runs and sum(answer["wall_s"] for answer in so_far) >= SHORT_S:
                continue
            answer = ask(simulator.name, (*simulator.command, str(path), str(seed)), form=simulator.form)
            so_far.append(answer)
            tell(f"{named.title}, run {seed}: {simulator.name} {answer['cpu_s']:.3g} s")
    return answers


def _measurement(named: Named, simulator: Simulator, answers: list[dict[str, Any]]) -> Measurement:
    simulated_s = named.load.duration_s
    peaks = [answer["peak_mib"] for answer in answers if "peak_mib" in answer]
    per_packet = [answer["data_frames_per_packet"] for answer in answers] if named.load.packets else []
    return Measurement(
        load=named.title,
        simulator=simulator.name,
        version=answers[0]["version"],
        nodes=len(named.load.positions_m),
        simulated_s=simulated_s,
        runs=len(answers),
        cpu_s_per_simulated_s=median(answer["cpu_s"] for answer in answers) / simulated_s,
        wall_s_per_simulated_s=median(answer["wall_s"] for answer in answers) / simulated_s,
        us_per_transmission=1e6 * median(answer["cpu_s"] / answer["transmissions"] for answer in answers),
        transmissions=fmean(answer["transmissions"] for answer in answers),
        reach=fmean(answer["reach"] for answer in answers),
        delay_ms_mean=fmean(answer["delay_ms_mean"] for answer in answers),
        data_frames_per_packet=fmean(per_packet) if per_packet else None,
        peak_mib=max(peaks) if peaks else None,
    )


COLUMNS = (
    *("load", "simulator", "CPU s/s", "wall s/s", "× ns-3", "µs/transmission", "transmissions"),
    *("reach", "delay ms", "frames/packet", "runs"),
)
"""s/s: seconds per simulated second; × ns-3: how many times faster, by processor time."""

TEXT_COLUMNS = 2


def table(comparison: Comparison) -> list[list[str]]:
    """Rows under `COLUMNS`."""
    return [_row(comparison, measurement) for measurement in comparison.measurements]


def _row(comparison: Comparison, measurement: Measurement) -> list[str]:
    faster = comparison.times_faster(measurement)
    per_packet = measurement.data_frames_per_packet
    return [
        measurement.load,
        measurement.simulator,
        f"{measurement.cpu_s_per_simulated_s:.4f}",
        f"{measurement.wall_s_per_simulated_s:.4f}",
        "–" if faster is None else f"{faster:.1f}",
        f"{measurement.us_per_transmission:.2f}",
        f"{measurement.transmissions:,.0f}",
        f"{measurement.reach:.3f}",
        f"{measurement.delay_ms_mean:.2f}",
        "–" if per_packet is None else f"{per_packet:.3f}",
        str(measurement.runs),
    ]
