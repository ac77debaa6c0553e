"""How fast the simulator is: floods with the full DCF radio, through the simulator and protocol that users run.

The density is constant (250 nodes on 2236 m), so a frame has the same number of hearers at every size and the time per
transmission should hardly grow with the network.
"""

from math import sqrt
from typing import NamedTuple

from roamcast.bench.payload import padding
from roamcast.interests import Intervals
from roamcast.protocols.flooding.messages import Flood
from roamcast.seeds import derive
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Mobility, Run, Scenario
from roamcast.world.simulator import simulate
from roamcast.world.workload import Action, Publish, Subscribe

SOURCES = 22
PAYLOAD_BYTES = 64
SIDE_M_OF_250 = 2236.0


class FloodFigures(NamedTuple):
    nodes: int
    simulated_s: float
    wall_s_per_simulated_s: float
    times_real_time: float
    events_per_s: float
    us_per_transmission: float
    transmissions: int
    deliveries: int


def flood_run(nodes: int, duration_s: float, seed: int) -> tuple[Run, list[Action]]:
    """What is simulated: the first nodes publish once a second, all nodes subscribe to everything."""
    side_m = SIDE_M_OF_250 * sqrt(nodes / 250)
    random = derive(seed, "bench", "flood")
    payload = padding(Flood, PAYLOAD_BYTES)
    actions: list[Action] = [Subscribe(0.0, node, Intervals.of((0, 2))) for node in range(nodes)]
    for source in range(min(SOURCES, nodes)):
        phase = random.random()
        actions += [Publish(phase + second, source, 1, payload) for second in range(int(duration_s))]
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=duration_s,
        mobility=Mobility(model="static"),
        radio=Wifi80211b(preset="ns3", range_m=200.0),
    )
    return Run(scenario=scenario, protocol="flooding", seed=seed), actions


def measure(nodes: int, duration_s: float, seed: int) -> FloodFigures:
    run, actions = flood_run(nodes, duration_s, seed)
    result = simulate(run, actions=actions)
    table = result.recorder.table()
    transmissions = sum(tally.count for load in result.medium.loads for tally in load.values())
    return FloodFigures(
        nodes=nodes,
        simulated_s=duration_s,
        wall_s_per_simulated_s=result.wall_s / duration_s,
        times_real_time=duration_s / result.wall_s,
        events_per_s=result.events / result.wall_s,
        us_per_transmission=1e6 * result.wall_s / transmissions,
        transmissions=transmissions,
        deliveries=table["kind"].to_pylist().count("delivered"),
    )
