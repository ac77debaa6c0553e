"""Nodes of recorded movements that come late or go early."""

from roamcast.world.contacts import scenario_contacts
from roamcast.world.faults import GOODBYE_S, Fault, fault_plan
from roamcast.world.mobility import scenario_movements
from roamcast.world.scenario import Faults, Mobility, Run, Scenario
from roamcast.world.simulator import Simulation

PATHS = tuple(((0.0, float(node), 0.0), (20.0, float(node), 5.0)) for node in range(4))
PRESENT = ((0.0, 20.0), (5.0, 20.0), (0.0, 12.0), (90.0, 95.0))


def scenario(crash_share: float = 0.0) -> Scenario:
    mobility = Mobility(model="movements", paths=PATHS, present=PRESENT)
    return Scenario(nodes=4, duration_s=20.0, mobility=mobility, faults=Faults(crash_share=crash_share))


def test_contacts_are_those_of_nodes_that_are_there() -> None:
    plan = scenario_contacts(scenario(), scenario_movements(scenario(), 1))
    found = list(zip(plan.a.tolist(), plan.b.tolist(), plan.from_s.tolist(), plan.until_s.tolist(), strict=True))
    assert found == [(0, 2, 0.0, 12.0), (0, 1, 5.0, 20.0), (1, 2, 5.0, 12.0)]


def test_nodes_join_and_leave_with_their_recording() -> None:
    expected = [Fault(5.0, 1, "join"), Fault(12.0 - GOODBYE_S, 2, "leave"), Fault(90.0, 3, "join")]
    assert [fault for fault in fault_plan(scenario(), 1) if fault.t_s < 91] == expected


def test_nothing_else_happens_to_them() -> None:
    crashed = {fault.node for fault in fault_plan(scenario(crash_share=1.0), 1) if fault.what == "crash"}
    assert crashed == {0}


def test_the_simulator_switches_them_on_and_off() -> None:
    simulation = Simulation(Run(scenario=scenario()))
    up = []
    for t_s in (1.0, 6.0, 13.0, 19.0):
        simulation.run_until(t_s)
        up.append([node for node, protocol in enumerate(simulation.protocols) if protocol is not None])
    assert up == [[0, 2], [0, 1, 2], [0, 1], [0, 1]]
