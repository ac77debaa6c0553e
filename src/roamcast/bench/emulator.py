"""The simulator beside the emulator: the same scenarios, the ideal radio, equal delays, the same draws.

Where they differ, one of them has a bug, or the machine was too slow for real time, or a few milliseconds decide: which
of several nodes becomes a root first may settle the structure for the whole run. Real processes begin within
`START_S`. So each network is simulated several times with nodes that begin that far apart, which shows what such chance
does, and protocols are judged by their means over networks. Each emulation is a process of its own, because an emulator
leaves its network for good.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean, median
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.seeds import derive
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
faults.incidents = [{incidents}]
"""
DELAY_S = 0.01  # of a hop; long beside what a busy machine adds
CALIBRATION_S = 40.0
DELIVERY_GAP_MAX = 0.02
FRAMES_GAP_MAX = 0.1
START_S = 0.005  # nodes of an emulation begin within this
DRAWS = 5  # of when they do, in the simulator
BEHIND_S_MAX = 0.1  # an emulation that was later than that is worth another try


class Network(msgspec.Struct, frozen=True):
    """One network, simulated several times and emulated."""

    seed: int
    delivery_simulated: float  # of the reachable; like the next two the mean over the draws
    frames_simulated: float
    latency_ms_simulated: float
    frames_least: int  # of the draws
    frames_most: int
    delivery_emulated: float
    frames_emulated: int
    latency_ms_emulated: float
    behind_s: float


class Beside(msgspec.Struct, frozen=True):
    """One protocol, simulated and emulated."""

    protocol: str
    networks: tuple[Network, ...]

    def mean(self, name: str) -> float:
        """Of a figure, over the networks."""
        return fmean(getattr(network, name) for network in self.networks)

    @property
    def behind_s(self) -> float:
        return max(network.behind_s for network in self.networks)

    @property
    def frames_ratio(self) -> float:
        return self.mean("frames_emulated") / max(1.0, self.mean("frames_simulated"))

    @property
    def agrees(self) -> bool:
        delivery_gap = abs(self.mean("delivery_emulated") - self.mean("delivery_simulated"))
        return delivery_gap <= DELIVERY_GAP_MAX and abs(self.frames_ratio - 1) <= FRAMES_GAP_MAX


def deployable() -> list[str]:
    """The protocols that exist outside the simulator."""
    return [name for name, kind in PROTOCOLS.items() if not kind.is_limit]


def hop_overhead_s(*, nodes: int, seed: int) -> float:
    """What machine and programs add to the delay of a hop: the median over the deliveries of an emulated flooding."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "trace")
        run: dict[str, Any] = {"protocol": "flooding", "seed": seed, "nodes": nodes, "duration_s": CALIBRATION_S}
        _emulated(_scenario(folder, **run, delay_s=DELAY_S), out)
        delivered = table_of_kind(read_trace(out), "delivered")
        hops_s = [
            t_s / hops for t_s, hops in zip(*(delivered[name].to_pylist() for name in ("value", "hops")), strict=True)
        ]
    return max(0.0, float(median(hops_s)) - DELAY_S)


def compare(protocol: str, networks: int, *, nodes: int, duration_s: float, seed: int, overhead_s: float) -> Beside:
    """With `networks` of them, of this seed and the following. The air's delay is shorter by the overhead, so that a
    hop takes as long as in the simulator."""
    run: dict[str, Any] = {"protocol": protocol, "nodes": nodes, "duration_s": duration_s}
    return Beside(protocol, tuple(_network({**run, "seed": seed + k}, overhead_s) for k in range(networks)))


def _network(run: dict[str, Any], overhead_s: float) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        simulated = [
            summarise(simulate(read_run(_scenario(folder, **run, delay_s=DELAY_S, draw=draw))).recorder.table())
            for draw in range(DRAWS)
        ]
        file = _scenario(folder, **run, delay_s=max(0.1 * DELAY_S, DELAY_S - overhead_s))
        emulated = _emulated(file, Path(folder, "trace"))
        if emulated["behind_s"] > BEHIND_S_MAX:
            again = _emulated(file, Path(folder, "again"))
            emulated = min(emulated, again, key=lambda each: each["behind_s"])
    frames = [sum(each["frames"].values()) for each in simulated]
    return Network(
        seed=run["seed"],
        delivery_simulated=fmean(each["delivery_ratio_reachable"] or 0.0 for each in simulated),
        frames_simulated=fmean(frames),
        latency_ms_simulated=fmean(each["latency_ms_p50"] or 0.0 for each in simulated),
        frames_least=min(frames),
        frames_most=max(frames),
        delivery_emulated=emulated["delivery_ratio_reachable"] or 0.0,
        frames_emulated=sum(emulated["frames"].values()),
        latency_ms_emulated=emulated["latency_ms_p50"] or 0.0,
        behind_s=emulated["behind_s"],
    )


def _scenario(folder: str, *, draw: int = 0, **settings: Any) -> Path:
    """In draw 0 all nodes begin at the same instant."""
    random = derive(settings["seed"], "start", draw)
    starts = [
        f"{{what = 'join', node = {node}, from_s = {random.uniform(0, START_S)}}}" for node in range(settings["nodes"])
    ]
    file = Path(folder, "scenario.toml")
    text = SCENARIO.format(**settings, incidents=", ".join(starts if draw else []))
    file.write_text(text, encoding="utf-8")
    return file


def _emulated(file: Path, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "roamcast", "emulate", str(file), "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(done.stderr.strip().splitlines()[-1].removeprefix("roamcast: "))
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer
