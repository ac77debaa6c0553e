"""Prints, as JSON, the form that runs and the trace hash of runs of every protocol; `test_forms.py` compares forms."""

import json

from roamcast import FORM
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.radio.settings import Radio
from roamcast.world.radio.signals import LogDistance, TwoRay
from roamcast.world.scenario import Causal, Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

SCENARIOS = {
    "moving, DCF as in ns-2, faults": Scenario(
        nodes=30,
        area_m=(600.0, 600.0),
        duration_s=20.0,
        mobility=Mobility(model="waypoint", speed_min_mps=5.0, speed_max_mps=20.0),
        radio=Wifi80211b(preset="ns2", loss=0.02),
        workload=Workload(rate_per_s=0.5),
        faults=Faults(crash_share=0.1, return_share=0.1, return_after_s=5.0, leave_share=0.1, join_share=0.1),
    ),
    "static, DCF as in ns-3, topics": Scenario(
        nodes=40,
        area_m=(800.0, 800.0),
        duration_s=15.0,
        mobility=Mobility(model="static"),
        workload=Workload(language="topics", rate_per_s=0.5),
    ),
    "groups, ideal radio, content": Scenario(
        nodes=25,
        area_m=(500.0, 500.0),
        duration_s=15.0,
        mobility=Mobility(model="group"),
        radio=Ideal(loss=0.05),
        workload=Workload(language="content", rate_per_s=0.2),
    ),
    "causal": Scenario(
        nodes=30,
        area_m=(600.0, 600.0),
        duration_s=20.0,
        mobility=Mobility(model="grid"),
        workload=Workload(causal=Causal(dependencies="a => b; a => c; b => e", node_share=0.4, rate_per_s=0.5)),
    ),
}
RADIOS: dict[str, Radio] = {
    "802.11g, shadowing": Wifi80211g(signal=LogDistance(shadowing_db=6.0, symmetric=False)),
    "802.11g, fading": Wifi80211g(signal=TwoRay(fading="nakagami"), data_rate_mbps=54.0),
    "802.11b, fading": Wifi80211b(signal=LogDistance(fading="rayleigh"), rts_threshold_bytes=100),
    "lora": Lora(range_m=200.0, duty_cycle=1.0, carrier_detection=True, signal=LogDistance(shadowing_db=4.0)),
}
"""Each runs with a protocol that broadcasts and one that unicasts."""

VARIANTS: dict[str, list[dict[str, str | int | float | bool]]] = {
    "georendezvous": [{}, {"graph": "cells"}],
    "overlays": [{}, {"unicast": "aodv"}],
}


def main() -> None:
    hashes = {}
    for protocol in PROTOCOLS:
        for parameters in VARIANTS.get(protocol, [{}]):
            for name, scenario in SCENARIOS.items():
                for seed in (1, 2):
                    run = Run(scenario=scenario, protocol=protocol, parameters=parameters, seed=seed)
                    hashes[f"{protocol} {parameters}: {name}, seed {seed}"] = simulate(run).recorder.trace_hash()
    for name, radio in RADIOS.items():
        for protocol in ("flooding", "ps-maodv"):
            scenario = Scenario(nodes=25, area_m=(500.0, 500.0), duration_s=10.0, radio=radio)
            hashes[f"{protocol}: {name}"] = simulate(Run(scenario=scenario, protocol=protocol)).recorder.trace_hash()
    print(json.dumps({"form": FORM, "hashes": hashes}))


if __name__ == "__main__":
    main()
