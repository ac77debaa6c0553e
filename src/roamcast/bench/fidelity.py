"""The 802.11 radios beside what ns-3 measured on the same layouts.

A layout file holds node positions, floods and unicasts with their set-up, and what ns-3 measured for them; see
`tests/reference/README.md` for its fields. We run the same workload through the simulator and the flooding protocol
that users run, and compare the figures.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.bench.payload import Packet, padding
from roamcast.bench.reference import flood_times, packets
from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals
from roamcast.protocols.flooding.messages import Flood
from roamcast.seeds import derive
from roamcast.world.radio.models import AnyRadio
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Mobility, Run, Scenario
from roamcast.world.simulator import Result, simulate
from roamcast.world.workload import Action, Publish, Subscribe

FLOOD_FIGURES = ("reach", "hops_mean", "delay_ms_mean", "loss", "transmissions")
UNICAST_FIGURES = ("data_frames_per_packet", "delay_ms_mean")

Figures = dict[str, float]


def read_layout(path: Path) -> dict[str, Any]:
    try:
        layout = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{path}: is not a layout: {error}") from None
    for field in ("positions_m", "range_m", "side_m", "flood"):
        if field not in layout:
            raise ConfigurationError(f"{path}: field {field!r} is missing")
    return layout


def compare(layout: dict[str, Any], seeds: int) -> dict[str, Any]:
    """Our figures, ns-3's and the relative differences, for one layout, each a mean over seeds."""
    flood = layout["flood"]
    ours = _mean([flood_figures(layout, seed) for seed in range(1, seeds + 1)])
    theirs = _mean([_flood_reference(run) for run in flood["ns3"]])
    ours = {name: ours[name] for name in theirs}
    answer: dict[str, Any] = {
        "layout": layout.get("layout"),
        "flood": {"ours": ours, "ns3": theirs, "difference": _differences(ours, theirs)},
    }
    if "unicast" in layout:
        answer["unicast"] = [_compare_unicast(layout, rate, seeds) for rate in _rates(layout)]
    return answer


def _compare_unicast(layout: dict[str, Any], rate: float, seeds: int) -> dict[str, Any]:
    ours = _mean([unicast_figures(layout, rate, seed) for seed in range(1, seeds + 1)])
    runs = [run for run in layout["unicast"]["ns3"] if run["packets_per_s_per_node"] == rate]
    theirs = _mean([{name: run[name] for name in UNICAST_FIGURES} for run in runs])
    return {
        "packets_per_s_per_node": rate,
        "ours": ours,
        "ns3": theirs,
        "difference": _differences(ours, theirs),
    }


def flood_figures(layout: dict[str, Any], seed: int) -> Figures:
    flood = layout["flood"]
    nodes = len(layout["positions_m"])
    payload = padding(Flood, flood["payload_bytes"])
    everything = Intervals.of((0, nodes))
    actions: list[Action] = [Subscribe(0.0, node, everything) for node in range(nodes)]
    times = list(flood_times(layout))
    actions += [Publish(t_s, source, 1, payload) for t_s, source in times]
    floods = sum(t_s < flood["measure_floods_started_before_s"] for t_s, _ in times)
    jitter_s = flood["rebroadcast_jitter_s"][1]
    result = _run(
        layout=layout,
        protocol="flooding",
        parameters={"jitter_s": jitter_s},
        duration_s=flood["duration_s"],
        seed=seed,
        actions=actions,
    )
    table = _measured(result, flood["measure_floods_started_before_s"])
    return {
        "reach": table.num_rows / (floods * (nodes - 1)),
        "hops_mean": _column_mean(table, "hops"),
        "delay_ms_mean": 1000 * _column_mean(table, "value"),
        "loss": 1 - result.medium.receptions / result.medium.receptions_possible,
        "transmissions": float(_frames(result, "Flood")),
    }


def unicast_figures(layout: dict[str, Any], rate: float, seed: int) -> Figures:
    unicast = layout["unicast"]
    payload = padding(Packet, unicast["payload_bytes"])
    sent = packets(layout, rate, seed) if "radio" in layout else _packets_on_discs(layout, rate, seed)
    actions: list[Action] = [Publish(t_s, node, neighbour, payload) for t_s, node, neighbour in sent]
    result = _run(
        layout=layout,
        protocol="roamcast.bench.neighbour:ToNeighbour",
        parameters={},
        duration_s=unicast["duration_s"],
        seed=seed,
        actions=actions,
    )
    table = _measured(result, unicast["measure_packets_started_before_s"])
    return {
        "data_frames_per_packet": _frames(result, "Packet") / len(actions),
        "delay_ms_mean": 1000 * _column_mean(table, "value"),
    }


def _packets_on_discs(layout: dict[str, Any], rate: float, seed: int) -> Iterator[tuple[float, int, int]]:
    random = derive(seed, "fidelity", "unicast")
    positions = np.array(layout["positions_m"])
    for node, position in enumerate(positions):
        distances = np.hypot(*(positions - position).T)
        neighbours = [int(other) for other in np.flatnonzero(distances <= layout["range_m"]) if other != node]
        t_s = random.uniform(0.5, 1.5) / rate
        while neighbours and t_s < layout["unicast"]["duration_s"]:
            yield t_s, node, random.choice(neighbours)
            t_s += random.uniform(0.5, 1.5) / rate


def _radio(layout: dict[str, Any]) -> Radio:
    if "radio" in layout:
        return msgspec.convert(layout["radio"] | {"range_m": layout["range_m"]}, AnyRadio)
    return Wifi80211b(range_m=layout["range_m"], carrier_sense_range_m=layout.get("carrier_sense_range_m"))


def _run(
    layout: dict[str, Any],
    protocol: str,
    parameters: dict[str, str | int | float | bool],
    duration_s: float,
    seed: int,
    actions: list[Action],
) -> Result:
    positions = tuple((float(x), float(y)) for x, y in layout["positions_m"])
    scenario = Scenario(
        nodes=len(positions),
        area_m=(layout["side_m"], layout["side_m"]),
        duration_s=duration_s,
        mobility=Mobility(model="static", positions_m=positions),
        radio=_radio(layout),
    )
    return simulate(Run(scenario=scenario, protocol=protocol, parameters=parameters, seed=seed), actions=actions)


def _measured(result: Result, before_s: float) -> pa.Table:
    """First deliveries of the events published before `before_s`."""
    table = result.recorder.table()
    return table.filter((pc.field("kind") == "delivered") & (pc.field("t") - pc.field("value") < before_s))


def _column_mean(table: pa.Table, column: str) -> float:
    return float(np.mean(table[column].to_numpy()))


def _frames(result: Result, label: str) -> int:
    return sum(load[label].count for load in result.medium.loads if label in load)


def _flood_reference(run: dict[str, Any]) -> Figures:
    figures = {name: float(run[name]) for name in FLOOD_FIGURES if name != "loss"}
    if "receptions" in run:
        figures["loss"] = 1 - run["receptions"] / run["receptions_possible"]
    return figures


def _rates(layout: dict[str, Any]) -> list[float]:
    return sorted({run["packets_per_s_per_node"] for run in layout["unicast"]["ns3"]})


def _mean(runs: list[Figures]) -> Figures:
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def _differences(ours: Figures, theirs: Figures) -> Figures:
    return {name: ours[name] / theirs[name] - 1 for name in theirs}
