"""Reference layouts for the 802.11g radio with log-distance path loss and shadowing, measured by ns-3.

A layout is drawn from a seed: positions, and a gain for every pair of nodes in reach. ns-3 is given the gains as they
are (`peers/ns3/wireless.cc`), so both simulators have the same links and differ only in how they use the channel.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from roamcast.bench.load import Load, write_load
from roamcast.bench.processes import ask
from roamcast.seeds import derive
from roamcast.world.mobility import Movements
from roamcast.world.radio.links import RadioLinks
from roamcast.world.radio.signals import LogDistance

Layout = dict[str, Any]

FLOOD_FIGURES = ("reach", "hops_mean", "delay_ms_mean", "transmissions")
UNICAST_FIGURES = ("reach", "data_frames_per_packet", "delay_ms_mean")

FOLLOWED_DB = 19.0
"""ns-3 ignores signals below -101 dBm, 19 dB below the weakest preamble that it detects."""


class LayoutPlan(NamedTuple):
    """What is drawn and measured."""

    nodes: int = 80
    side_m: float = 1000.0
    range_m: float = 200.0
    exponent: float = 3.0
    shadowing_db: float = 4.0
    data_rate_mbps: float = 24.0
    broadcast_rate_mbps: float = 6.0
    payload_bytes: int = 64
    neighbour_db: float = 3.0  # unicasts go to neighbours whose signal exceeds the necessary one by at least this
    flood_sources: int = 8
    flood_period_s: float = 0.1
    flood_s: float = 3.0
    packets_per_s: tuple[float, ...] = (50.0, 120.0)
    unicast_s: float = 2.0
    seeds: int = 2


def draw_layout(plan: LayoutPlan, seed: int) -> Layout:
    """Positions and shadowing; not yet measured."""
    random = derive(seed, "reference")
    positions = [
        [round(random.uniform(0, plan.side_m), 2), round(random.uniform(0, plan.side_m), 2)] for _ in range(plan.nodes)
    ]
    pairs = [(a, b) for a in range(plan.nodes) for b in range(a + 1, plan.nodes)]
    links_db = [[a, b, round(random.gauss(0, plan.shadowing_db), 2)] for a, b in pairs]
    sources = [
        {"node": node, "start_s": round(random.uniform(0, plan.flood_period_s), 4)}
        for node in sorted(random.sample(range(plan.nodes), plan.flood_sources))
    ]
    return {
        "layout": f"g-{seed}",
        "side_m": plan.side_m,
        "range_m": plan.range_m,
        "radio": {
            "model": "802.11g",
            "data_rate_mbps": plan.data_rate_mbps,
            "broadcast_rate_mbps": plan.broadcast_rate_mbps,
            "signal": {"model": "log-distance", "exponent": plan.exponent, "links_db": links_db},
        },
        "positions_m": positions,
        "flood": {
            "payload_bytes": plan.payload_bytes,
            "duration_s": plan.flood_s,
            "period_s": plan.flood_period_s,
            "rebroadcast_jitter_s": [0, 0.01],
            "measure_floods_started_before_s": plan.flood_s - 0.5,
            "sources": sources,
        },
        "unicast": {
            "payload_bytes": plan.payload_bytes,
            "duration_s": plan.unicast_s,
            "neighbour_db": plan.neighbour_db,
            "measure_packets_started_before_s": plan.unicast_s - 0.5,
        },
    }


def measure_with_ns3(layout: Layout, ns3: Path, plan: LayoutPlan) -> Layout:
    """The layout with what ns-3 measured on it."""
    floods = []
    for seed in range(1, plan.seeds + 1):
        answer = _ask(ns3, flood_load(layout), seed)
        floods.append({"seed": seed, **{name: answer[name] for name in FLOOD_FIGURES}})
    unicasts = []
    for rate in plan.packets_per_s:
        for seed in range(1, plan.seeds + 1):
            answer = _ask(ns3, unicast_load(layout, rate, seed), seed)
            figures = {name: answer[name] for name in UNICAST_FIGURES}
            unicasts.append({"seed": seed, "packets_per_s_per_node": rate, **figures})
    layout["flood"]["ns3"] = floods
    layout["unicast"]["ns3"] = unicasts
    return layout


def gains_db(layout: Layout) -> dict[tuple[int, int], float]:
    """How strong each node is at each other one, in dB above the weakest signal that can be received."""
    signal = {name: value for name, value in layout["radio"]["signal"].items() if name != "model"}
    links_db = tuple((a, b, db) for a, b, db in signal.pop("links_db"))
    movements = Movements([[(0.0, x_m, y_m)] for x_m, y_m in layout["positions_m"]])
    settings = LogDistance(**signal, links_db=links_db)
    links = RadioLinks(settings, layout["range_m"], FOLLOWED_DB, movements, derive(1, "unused"))
    return links.gains_db(0.0)


def neighbours(layout: Layout) -> list[list[int]]:
    """Per node, whom its unicasts go to."""
    least_db = layout["unicast"]["neighbour_db"]
    found: list[list[int]] = [[] for _ in layout["positions_m"]]
    for (a, b), gain_db in sorted(gains_db(layout).items()):
        if gain_db >= least_db:
            found[a].append(b)
    return found


def packets(layout: Layout, rate: float, seed: int) -> Iterator[tuple[float, int, int]]:
    """When, from whom, to whom: every node sends to random neighbours at this rate."""
    random = derive(seed, "fidelity", "unicast")
    for node, choices in enumerate(neighbours(layout)):
        t_s = random.uniform(0.5, 1.5) / rate
        while choices and t_s < layout["unicast"]["duration_s"]:
            yield t_s, node, random.choice(choices)
            t_s += random.uniform(0.5, 1.5) / rate


def flood_times(layout: Layout) -> Iterator[tuple[float, int]]:
    """When, from whom."""
    flood = layout["flood"]
    for source in flood["sources"]:
        t_s = source["start_s"]
        while t_s < flood["duration_s"]:
            yield t_s, source["node"]
            t_s += flood["period_s"]


def flood_load(layout: Layout) -> Load:
    flood = layout["flood"]
    before_s, jitter_s = flood["measure_floods_started_before_s"], flood["rebroadcast_jitter_s"][1]
    load = _load(layout, flood, before_s, jitter_s)
    return load._replace(floods=tuple(flood_times(layout)))


def unicast_load(layout: Layout, rate: float, seed: int) -> Load:
    unicast = layout["unicast"]
    load = _load(layout, unicast, unicast["measure_packets_started_before_s"], 0.0)
    return load._replace(packets=tuple(packets(layout, rate, seed)))


def _load(layout: Layout, part: dict[str, Any], measured_before_s: float, jitter_s: float) -> Load:
    radio = layout["radio"]
    return Load(
        range_m=layout["range_m"],
        duration_s=part["duration_s"],
        measured_before_s=measured_before_s,
        jitter_s=jitter_s,
        payload_bytes=part["payload_bytes"],
        positions_m=tuple((x_m, y_m) for x_m, y_m in layout["positions_m"]),
        radio=radio["model"],
        data_rate_mbps=radio["data_rate_mbps"],
        broadcast_rate_mbps=radio["broadcast_rate_mbps"],
        gains_db=tuple((a, b, db) for (a, b), db in sorted(gains_db(layout).items())),
    )


def _ask(ns3: Path, load: Load, seed: int) -> dict[str, Any]:
    with TemporaryDirectory(prefix="roamcast-reference-") as directory:
        path = Path(directory, "load")
        path.write_text(write_load(load), encoding="utf-8")
        return ask("ns-3", (str(ns3), str(path), str(seed)))
