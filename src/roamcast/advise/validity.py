"""Where a scenario is beyond what the simulator was validated for.

`roamcast bench fidelity` holds the radio against ns-3 on static layouts (`tests/reference`): 802.11b on discs with 250
nodes, 802.11g with log-distance path loss and 4 dB of shadowing with 80 nodes, and AODV on 802.11b among moving nodes.
Protocols are compared in the arena, at up to 20 m/s.
"""

from typing import Final

from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.radio.signals import Disc, LogDistance
from roamcast.world.scenario import Scenario

NODES_MAX: Final = 250
SPEED_MAX_MPS: Final = 20.0
SHADOWING_MAX_DB: Final = 4.0


def warnings(scenario: Scenario) -> tuple[str, ...]:
    """What about a scenario no measurement backs, one sentence each."""
    radio, signal = scenario.radio, scenario.radio.signal
    said = []
    if isinstance(radio, Lora):
        said.append("The LoRa radio follows its specification; it has not been held against measurements.")
    elif not isinstance(radio, Wifi80211b | Wifi80211g):
        said.append("The ideal radio has no collisions: real networks lose more and take longer.")
    elif isinstance(radio, Wifi80211b) and type(signal) is not Disc:
        said.append("802.11b was held against ns-3 on discs only; here signals differ in strength.")
    if signal.fading != "none":
        said.append("Fading per frame has not been held against ns-3.")
    if isinstance(signal, LogDistance) and signal.shadowing_db > SHADOWING_MAX_DB:
        said.append(f"Shadowing was validated up to {SHADOWING_MAX_DB:g} dB; here it is {signal.shadowing_db:g} dB.")
    if scenario.nodes > NODES_MAX:
        said.append(f"The radio was validated with up to {NODES_MAX} nodes; here there are {scenario.nodes}.")
    moves = scenario.mobility.model in ("waypoint", "group", "roads", "golf")
    if moves and scenario.mobility.speed_max_mps > SPEED_MAX_MPS:
        speed = f"{scenario.mobility.speed_max_mps:g} m/s"
        said.append(f"Protocols were compared at up to {SPEED_MAX_MPS:g} m/s; here nodes move at up to {speed}.")
    if scenario.mobility.model == "contacts":
        said.append("Recorded contacts have no positions: who disturbs whom beyond its range is not modelled.")
    return tuple(said)
