"""Incidents: each does to its node what the scenario says, and nothing else."""

from typing import Any

import msgspec
import pytest

from roamcast.trace.summary import summarise
from roamcast.world.incident import Incident
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation, simulate


def run(*incidents: Incident, protocol: str = "flooding", duration_s: float = 20.0) -> Run:
    """A chain of three nodes, of which the first publishes."""
    return Run(
        scenario=Scenario(
            nodes=3,
            area_m=(600.0, 100.0),
            duration_s=duration_s,
            mobility=Mobility(model="static", positions_m=((50.0, 50.0), (250.0, 50.0), (450.0, 50.0))),
            radio=Ideal(range_m=250.0, loss=0.0),
            workload=Workload(publisher_share=1.0, selectivity=1.0, rate_per_s=1.0, tail_s=2.0),
            faults=Faults(incidents=incidents),
        ),
        protocol=protocol,
    )


def summary(*incidents: Incident) -> dict[str, Any]:
    return summarise(simulate(run(*incidents)).recorder.table())


def latency_s(*incidents: Incident) -> float:
    return float(summary(*incidents)["latency_ms_mean"]) / 1000


def test_without_incidents_everything_arrives() -> None:
    assert summary()["delivery_ratio"] == 1.0


@pytest.mark.parametrize("what", ["corrupt", "overflow"])
def test_what_is_corrupted_or_overflows_is_lost(what: Any) -> None:
    assert summary(Incident(what=what, node=1, from_s=0.0, amount=1.0))["delivery_ratio"] < 0.7


def test_a_deaf_node_does_not_hear_its_peer_which_hears_it() -> None:
    simulation = Simulation(run(Incident(what="deaf", node=1, peer=0, from_s=1.0, until_s=10.0)))
    assert simulation.neighbours(0) == [1]
    simulation.run_until(5.0)
    assert simulation.neighbours(0) == []
    assert simulation.neighbours(1) == [0, 2]
    assert simulation.next_hop(1, 0) == -1
    simulation.run_until(11.0)
    assert simulation.neighbours(0) == [1]
    assert simulation.next_hop(1, 0) == 0


@pytest.mark.parametrize("what", ["delay", "slow", "reorder"])
def test_messages_come_later(what: Any) -> None:
    assert latency_s(Incident(what=what, node=1, from_s=0.0, amount=0.3)) > latency_s() + 0.01


def test_a_paused_node_goes_on_where_it_was() -> None:
    paused = summary(Incident(what="pause", node=1, from_s=6.0, until_s=12.0))
    assert paused["delivery_ratio"] == 1.0
    assert paused["latency_ms_p99"] > 1000


def test_duplicates_are_not_delivered_twice() -> None:
    simulation = Simulation(run(Incident(what="duplicate", node=1, from_s=0.0, amount=1.0)))
    simulation.run_until(20.0)
    simulation.finish()
    assert simulation.mishaps["duplicate"] > 10
    assert summarise(simulation.recorder.table())["duplicates"] == 0


def test_lives_are_part_of_the_fault_plan() -> None:
    incidents = (
        Incident(what="join", node=0, from_s=3.0),
        Incident(what="crash", node=1, from_s=4.0, until_s=8.0),
        Incident(what="crash", node=1, from_s=10.0),
        Incident(what="leave", node=2, from_s=12.0),
    )
    rows = simulate(run(*incidents)).recorder.table().to_pylist()
    faults = [(row["t"], row["node"], row["detail"]) for row in rows if row["kind"] == "fault"]
    assert faults == [(3.0, 0, "join"), (4.0, 1, "crash"), (8.0, 1, "return"), (10.0, 1, "crash"), (12.0, 2, "leave")]


def test_clocks_jump_and_drift() -> None:
    jump = Incident(what="clock-jump", node=0, from_s=5.0, amount=100.0)
    drift = Incident(what="clock-drift", node=1, from_s=0.0, until_s=10.0, amount=0.1)
    simulation = Simulation(run(jump, drift))
    simulation.run_until(4.0)
    hosts = [protocol.host for protocol in simulation.protocols if protocol is not None]
    assert hosts[0].now() == 4.0
    assert hosts[1].now() == pytest.approx(4.4)
    simulation.run_until(15.0)
    assert [host.now() for host in hosts] == pytest.approx([115.0, 16.0, 15.0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"what": "corrupt", "node": 0, "from_s": 0.0, "amount": 2.0}, "amount"),
        ({"what": "deaf", "node": 0, "from_s": 0.0}, "peer"),
        ({"what": "pause", "node": 0, "from_s": 5.0, "until_s": 4.0}, "until_s"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Incident(**settings)


def test_lives_of_a_node_do_not_overlap() -> None:
    crash = Incident(what="crash", node=1, from_s=4.0, until_s=8.0)
    with pytest.raises(ValueError, match="one after another"):
        run(crash, Incident(what="leave", node=1, from_s=6.0))
    with pytest.raises(ValueError, match="a node below 3"):
        run(Incident(what="pause", node=3, from_s=4.0))


def test_what_an_application_does_during_a_pause_happens_in_order_even_if_the_node_leaves() -> None:
    scenario = msgspec.structs.replace(
        run().scenario,
        workload=Workload(publisher_share=1.0, selectivity=0.5, resubscribe_period_s=2.0),
        faults=Faults(
            incidents=(
                Incident(what="pause", node=1, from_s=3.0, until_s=15.0),
                Incident(what="leave", node=1, from_s=9.0),
            )
        ),
    )
    rows = simulate(Run(scenario=scenario)).recorder.table().to_pylist()
    asked = [(row["t"], row["kind"]) for row in rows if row["node"] == 1 and "subscribed" in row["kind"]]
    assert [kind for _, kind in asked][:5] == ["subscribed", *["unsubscribed", "subscribed"] * 2]
    assert len({t for t, _ in asked if t > 3.0}) >= 5  # one after another, so that the trace tells which was the last
