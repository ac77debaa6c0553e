"""Adversaries do what they are there for, are counted, and take nothing else with them."""

from typing import Any

import pytest

from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.protocols.odmrp.messages import JoinRequest, JoinTable
from roamcast.trace.summary import summarise
from roamcast.world.adversaries import address_fields, adversaries
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Security, Workload
from roamcast.world.simulator import Simulation

KINDS = ("dropper", "liar", "replayer", "flooder", "sybil")
DEPLOYABLE = [name for name, kind in PROTOCOLS.items() if not kind.is_limit]
MARKS = {"liar": "lie", "replayer": "replay", "flooder": "junk", "sybil": "sybil"}


def run(kind: Any, protocol: str, *, radio: Radio | None = None, signed: bool = False, share: float = 0.2) -> Run:
    scenario = Scenario(
        nodes=10,
        area_m=(500.0, 500.0),
        duration_s=20.0,
        mobility=Mobility(model="static"),
        radio=radio or Ideal(range_m=250.0),
        workload=Workload(publisher_share=0.5, rate_per_s=0.5, selectivity=0.5),
        faults=Faults(adversary=kind, adversary_share=share),
        security=Security(protection="signed" if signed else "none"),
    )
    return Run(scenario=scenario, protocol=protocol, seed=3)


def simulated(asked: Run) -> Simulation:
    simulation = Simulation(asked)
    simulation.run_until(asked.scenario.duration_s)
    simulation.finish()
    return simulation


@pytest.mark.parametrize("protocol", DEPLOYABLE)
@pytest.mark.parametrize("kind", KINDS)
def test_no_protocol_breaks(kind: str, protocol: str) -> None:
    simulation = simulated(run(kind, protocol, radio=Wifi80211b(range_m=250.0)))
    summary = summarise(simulation.recorder.table())
    assert summary["duplicates"] == 0
    assert summary["delivered"] > 0


@pytest.mark.parametrize("kind", ["liar", "replayer", "flooder", "sybil"])
def test_they_are_at_work(kind: str) -> None:
    assert simulated(run(kind, "ps-maodv")).mishaps[MARKS[kind]] > 10


@pytest.mark.parametrize("kind", ["replayer", "sybil"])
def test_signatures_stop_those_who_speak_in_other_names(kind: str) -> None:
    open_network, signed = simulated(run(kind, "waymark")), simulated(run(kind, "waymark", signed=True))
    assert "forged" not in open_network.medium.lost
    assert signed.medium.lost["forged"] > 10


def test_a_sybil_changes_names_of_nodes_and_no_other_number() -> None:
    """A life that was equal to the Sybil's address would be forged as a far later one."""
    assert address_fields(JoinRequest) == ("publisher",)
    assert address_fields(JoinTable) == ("publisher", "next_hop")


def test_a_larger_share_includes_the_smaller_one() -> None:
    few, many = (run("liar", "flooding", share=share).scenario for share in (0.01, 0.5))
    assert len(adversaries(few, 1)) == 1
    assert adversaries(few, 1) < adversaries(many, 1)
    assert len(adversaries(many, 1)) == 5
    assert adversaries(run("none", "flooding").scenario, 1) == set()


def test_a_share_of_none_changes_nothing() -> None:
    asked, plain = run("liar", "waymark", share=0.0), run("none", "waymark", share=0.0)
    assert simulated(asked).recorder.trace_hash() == simulated(plain).recorder.trace_hash()
