"""One timed simulation in a process of its own, so that the form of Roamcast can be chosen and memory counted.

    python -m roamcast.bench.worker LOAD SEED       a load (`bench/load.py`), as the other simulators are called
    python -m roamcast.bench.worker < RUN           a `Run` as JSON

The answer is one line of JSON. Timed is what a user waits for after the imports: building the network, running it, and
its trace as a table. A tiny simulation before it takes what libraries load and set up at their first use.
"""

import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast import FORM, __version__
from roamcast.bench.load import Load, read_load
from roamcast.bench.payload import Packet, padding
from roamcast.interests import Intervals
from roamcast.protocols.flooding.messages import Flood
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Mobility, Run, Scenario
from roamcast.world.simulator import Result, simulate
from roamcast.world.workload import Action, Publish, Subscribe

Answer = dict[str, Any]


def answer_load(load: Load, seed: int) -> Answer:
    run, actions = run_of(load, seed)
    answer, result, table = _timed(run, actions)
    began_in_time = pc.field("t") - pc.field("value") < load.measured_before_s
    delivered = table.filter((pc.field("kind") == "delivered") & began_in_time)
    measured = [sending for sending in (*load.floods, *load.packets) if sending[0] < load.measured_before_s]
    receivers = 1 if load.packets else len(load.positions_m) - 1
    answer["reach"] = delivered.num_rows / (len(measured) * receivers)
    answer["delay_ms_mean"] = 1000 * _mean(delivered, "value")
    answer["hops_mean"] = _mean(delivered, "hops")
    if load.packets:
        data_frames = sum(tallies["Packet"].count for tallies in result.medium.loads if "Packet" in tallies)
        answer["data_frames_per_packet"] = data_frames / len(load.packets)
    return answer


def answer_run(run: Run) -> Answer:
    answer, result, _ = _timed(run, None)
    return answer | {"trace_hash": result.recorder.trace_hash()}


def run_of(load: Load, seed: int) -> tuple[Run, list[Action]]:
    nodes = len(load.positions_m)
    side_m = max(max(position) for position in load.positions_m)
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=load.duration_s,
        mobility=Mobility(model="static", positions_m=load.positions_m),
        radio=Wifi80211b(preset="ns3", range_m=load.range_m),
    )
    actions: list[Action] = []
    if load.packets:
        payload = padding(Packet, load.payload_bytes)
        actions += [Publish(t_s, source, destination, payload) for t_s, source, destination in load.packets]
        return Run(scenario=scenario, protocol="roamcast.bench.neighbour:ToNeighbour", seed=seed), actions
    payload = padding(Flood, load.payload_bytes)
    actions += [Subscribe(0.0, node, Intervals.of((0, 2))) for node in range(nodes)]
    actions += [Publish(t_s, source, 1, payload) for t_s, source in load.floods]
    return Run(scenario=scenario, protocol="flooding", parameters={"jitter_s": load.jitter_s}, seed=seed), actions


def _timed(run: Run, actions: list[Action] | None) -> tuple[Answer, Result, pa.Table]:
    simulate(Run(scenario=Scenario(nodes=2, duration_s=10.0))).recorder.table()
    cpu_began_s, wall_began_s = process_time(), perf_counter()
    result = simulate(run, actions=actions)
    table = result.recorder.table()
    cpu_s, wall_s = process_time() - cpu_began_s, perf_counter() - wall_began_s
    answer = {
        "version": __version__,
        "form": FORM,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "transmissions": sum(tally.count for tallies in result.medium.loads for tally in tallies.values()),
        "peak_mib": _peak_mib(),
    }
    return answer, result, table


def _peak_mib() -> float:
    """Of this process. Where Linux says it, not `getrusage`, which also counts the parent until the program begins."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def _mean(table: pa.Table, column: str) -> float:
    return float(np.mean(table[column].to_numpy())) if table.num_rows else 0.0


def main() -> None:
    if len(sys.argv) == 3:
        answer = answer_load(read_load(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2]))
    else:
        answer = answer_run(msgspec.json.decode(sys.stdin.buffer.read(), type=Run))
    print(msgspec.json.encode(answer).decode())


if __name__ == "__main__":
    main()
