"""A load: what every simulator of `roamcast bench peers` is given, as a file that any language reads in a few lines.

One statement per line, words separated by blanks:

    range_m 200.0               frames are heard and sensed up to here
    duration_s 10.0
    measured_before_s 9.0       reach and delay are those of what began before
    jitter_s 0.01               a flood is repeated after a uniform time up to this
    payload_bytes 64            on top come 36 bytes of headers and a preamble of 192 µs
    node X_M Y_M                once per node, in the order of their numbers
    flood T_S SOURCE            a payload for all; each node that hears it repeats it once
    packet T_S FROM TO          a payload for one neighbour, acknowledged

A load for 802.11g says so, and how strong signals are:

    radio 802.11g
    data_rate_mbps 24           of packets
    broadcast_rate_mbps 6       of floods
    gain_db FROM TO DB          above the weakest signal that can be received; pairs that are not listed do not meet
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from roamcast.bench.flood import PAYLOAD_BYTES, flood_run
from roamcast.errors import ConfigurationError
from roamcast.seeds import derive
from roamcast.world.mobility import scenario_movements
from roamcast.world.workload import Publish

TAIL_S = 1.0  # what begins in the last second may not arrive before the end
FLOODING_JITTER_S = 0.01


class Load(NamedTuple):
    range_m: float
    duration_s: float
    measured_before_s: float
    jitter_s: float
    payload_bytes: int
    positions_m: tuple[tuple[float, float], ...]
    floods: tuple[tuple[float, int], ...] = ()  # when, from whom
    packets: tuple[tuple[float, int, int], ...] = ()  # when, from whom, to whom
    radio: str = "802.11b"
    data_rate_mbps: float = 2.0
    broadcast_rate_mbps: float = 2.0
    gains_db: tuple[tuple[int, int, float], ...] = ()  # from, to


SETTINGS = Load._fields[:5]


def flood_load(nodes: int, duration_s: float, seed: int) -> Load:
    """The floods of `roamcast bench flood`."""
    run, actions = flood_run(nodes, duration_s, seed)
    movements = scenario_movements(run.scenario, seed)
    assert movements is not None
    return Load(
        range_m=run.scenario.radio.range_m,
        duration_s=duration_s,
        measured_before_s=duration_s - TAIL_S,
        jitter_s=FLOODING_JITTER_S,
        payload_bytes=PAYLOAD_BYTES,
        positions_m=tuple(movements.position(node, 0.0) for node in range(nodes)),
        floods=tuple((action.t_s, action.node) for action in actions if isinstance(action, Publish)),
    )


def unicast_load(layout: dict[str, Any], packets_per_s: float, seed: int) -> Load:
    """The unicasts of a reference layout: every node sends to random neighbours, at this rate."""
    unicast = layout["unicast"]
    positions = tuple((float(x), float(y)) for x, y in layout["positions_m"])
    return Load(
        range_m=layout["range_m"],
        duration_s=unicast["duration_s"],
        measured_before_s=unicast["measure_packets_started_before_s"],
        jitter_s=0.0,
        payload_bytes=unicast["payload_bytes"],
        positions_m=positions,
        packets=tuple(_packets(positions, layout["range_m"], unicast["duration_s"], packets_per_s, seed)),
    )


def _packets(
    positions_m: tuple[tuple[float, float], ...], range_m: float, duration_s: float, packets_per_s: float, seed: int
) -> Iterator[tuple[float, int, int]]:
    random = derive(seed, "bench", "unicast")
    places = np.array(positions_m)
    for node, place in enumerate(places):
        distances = np.hypot(*(places - place).T)
        neighbours = [int(other) for other in np.flatnonzero(distances <= range_m) if other != node]
        t_s = random.uniform(0.5, 1.5) / packets_per_s
        while neighbours and t_s < duration_s:
            yield t_s, node, random.choice(neighbours)
            t_s += random.uniform(0.5, 1.5) / packets_per_s


def write_load(load: Load) -> str:
    lines = [f"{name} {getattr(load, name)}" for name in SETTINGS]
    if load.radio != "802.11b":
        lines += [f"radio {load.radio}", f"data_rate_mbps {load.data_rate_mbps:g}"]
        lines += [f"broadcast_rate_mbps {load.broadcast_rate_mbps:g}"]
    lines += [f"gain_db {source} {receiver} {db:.4f}" for source, receiver, db in load.gains_db]
    lines += [f"node {x_m} {y_m}" for x_m, y_m in load.positions_m]
    lines += [f"flood {t_s} {source}" for t_s, source in load.floods]
    lines += [f"packet {t_s} {source} {destination}" for t_s, source, destination in load.packets]
    return "\n".join(lines) + "\n"


def read_load(text: str) -> Load:
    settings: dict[str, Any] = {}
    positions: list[tuple[float, float]] = []
    floods: list[tuple[float, int]] = []
    packets: list[tuple[float, int, int]] = []
    for line in text.splitlines():
        match line.split():
            case ["payload_bytes", value]:
                settings["payload_bytes"] = int(value)
            case [name, value] if name in SETTINGS:
                settings[name] = float(value)
            case ["node", x_m, y_m]:
                positions.append((float(x_m), float(y_m)))
            case ["flood", t_s, source]:
                floods.append((float(t_s), int(source)))
            case ["packet", t_s, source, destination]:
                packets.append((float(t_s), int(source), int(destination)))
            case _:
                raise ConfigurationError(f"load: {line!r} is no statement of a load (roamcast/bench/load.py has them)")
    missing = [name for name in SETTINGS if name not in settings]
    if missing:
        raise ConfigurationError(f"load: {', '.join(missing)} missing")
    return Load(**settings, positions_m=tuple(positions), floods=tuple(floods), packets=tuple(packets))
