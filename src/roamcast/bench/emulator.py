"""The simulator beside the emulator: the same scenarios, the ideal radio, equal delays, the same draws.

Where they differ, one of them has a bug, or the machine was too slow for real time. Each emulation is a process of its
own, because an emulator leaves its network for good.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.trace.arrow import table_of_kind
from roamcast.trace.files import read_trace
from roamcast.trace.summary import summarise
from roamcast.world.scenario_file import read_run
from roamcast.world.simulator import simulate

SCENARIO = """
protocol = "{protocol}"
seed = {seed}
[scenario]
nodes = {nodes}
area_m = 500
duration_s = {duration_s}
radio.model = "ideal"
radio.range_m = 180
radio.delay_s = {delay_s}
mobility.speed_max_mps = 3
workload.language = "topics"
workload.selectivity = 0.2
workload.rate_per_s = 0.5
workload.start_s = 15
workload.tail_s = 5
"""
DELAY_S = 0.01  # of a hop; long beside what a busy machine adds
CALIBRATION_S = 40.0
DELIVERY_GAP_MAX = 0.02
FRAMES_GAP_MAX = 0.1
BEHIND_S_MAX = 0.1  # an emulation that was later than that is worth another try


class Beside(msgspec.Struct, frozen=True):
    """One protocol, simulated and emulated."""

    protocol: str
    delivery_simulated: float  # of the reachable
    delivery_emulated: float
    frames_simulated: int
    frames_emulated: int
    latency_ms_simulated: float
    latency_ms_emulated: float
    behind_s: float

    @property
    def agrees(self) -> bool:
        frames = abs(self.frames_emulated - self.frames_simulated) <= FRAMES_GAP_MAX * self.frames_simulated
        return frames and abs(self.delivery_emulated - self.delivery_simulated) <= DELIVERY_GAP_MAX


def deployable() -> list[str]:
    """The protocols that exist outside the simulator."""
    return [name for name, kind in PROTOCOLS.items() if not kind.is_limit]


def hop_overhead_s(*, nodes: int, seed: int) -> float:
    """What machine and programs add to the delay of a hop: the median over the deliveries of an emulated flooding."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "trace")
        run = {"protocol": "flooding", "seed": seed, "nodes": nodes, "duration_s": CALIBRATION_S}
        _emulated(_scenario(folder, **run, delay_s=DELAY_S), out)
        delivered = table_of_kind(read_trace(out), "delivered")
        hops_s = [
            t_s / hops for t_s, hops in zip(*(delivered[name].to_pylist() for name in ("value", "hops")), strict=True)
        ]
    return max(0.0, float(median(hops_s)) - DELAY_S)


def compare(
    protocol: str, *, nodes: int, duration_s: float, seed: int, overhead_s: float = 0.0, tries: int = 1
) -> Beside:
    """The air's delay is shorter by the overhead, so that a hop takes as long as in the simulator.

    Emulates again, up to `tries` times in all, while the machine was late, and takes the one that was least so."""
    with tempfile.TemporaryDirectory() as folder:
        run = {"protocol": protocol, "seed": seed, "nodes": nodes, "duration_s": duration_s}
        simulated = summarise(simulate(read_run(_scenario(folder, **run, delay_s=DELAY_S))).recorder.table())
        file = _scenario(folder, **run, delay_s=max(0.1 * DELAY_S, DELAY_S - overhead_s))
        emulated: dict[str, Any] = {}
        for number in range(tries):
            again = _emulated(file, Path(folder, f"trace{number}"))
            emulated = min(emulated or again, again, key=lambda each: each["behind_s"])
            if emulated["behind_s"] <= BEHIND_S_MAX:
                break
    return Beside(
        protocol=protocol,
        delivery_simulated=simulated["delivery_ratio_reachable"] or 0.0,
        delivery_emulated=emulated["delivery_ratio_reachable"] or 0.0,
        frames_simulated=sum(simulated["frames"].values()),
        frames_emulated=sum(emulated["frames"].values()),
        latency_ms_simulated=simulated["latency_ms_p50"] or 0.0,
        latency_ms_emulated=emulated["latency_ms_p50"] or 0.0,
        behind_s=emulated["behind_s"],
    )


def _scenario(folder: str, **settings: Any) -> Path:
    file = Path(folder, "scenario.toml")
    file.write_text(SCENARIO.format(**settings), encoding="utf-8")
    return file


def _emulated(file: Path, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "roamcast", "emulate", str(file), "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(done.stderr.strip().splitlines()[-1].removeprefix("roamcast: "))
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer
