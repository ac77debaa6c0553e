"""The unicast services in the simulator: moving nodes, true contacts, both radios."""

from typing import Any

import pytest

from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.testing import Courier
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate


def roam(monkeypatch: pytest.MonkeyPatch, service: str, radio: type[Radio]) -> dict[str, Any]:
    """The summary of a run in which 30 nodes roam and events travel by unicast."""
    monkeypatch.setitem(PROTOCOLS, "courier", Courier)
    scenario = Scenario(
        nodes=30,
        area_m=(700.0, 700.0),
        duration_s=30.0,
        mobility=Mobility(speed_min_mps=1.0, speed_max_mps=15.0),
        radio=radio(range_m=220.0),
        workload=Workload(publishers=4, rate_per_s=1.0, subscribers=8, selectivity=0.5, start_s=1.0),
    )
    result = simulate(Run(scenario=scenario, protocol="courier", parameters={"unicast": service}, seed=3))
    return summarise(result.recorder.table()) | {"trace_hash": result.recorder.trace_hash()}


def test_the_oracle_reaches_whoever_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = roam(monkeypatch, "oracle", Ideal)
    assert summary["delivery_ratio_reachable"] > 0.99
    assert summary["stretch_mean"] < 1.01
    assert set(summary["frames"]) == {"Parcel"}


@pytest.mark.parametrize("radio", [Ideal, Wifi80211b])
def test_aodv_delivers_while_nodes_roam(monkeypatch: pytest.MonkeyPatch, radio: type[Radio]) -> None:
    summary = roam(monkeypatch, "aodv", radio)
    assert summary["delivery_ratio_reachable"] > 0.9
    assert 1.0 <= summary["stretch_mean"] < 1.5
    assert {"Rreq", "Rrep", "Rerr", "Parcel"} <= set(summary["frames"])


def test_the_same_run_gives_the_same_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert roam(monkeypatch, "aodv", Wifi80211b) == roam(monkeypatch, "aodv", Wifi80211b)
