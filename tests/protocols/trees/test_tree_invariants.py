"""Randomised networks under faults: what must hold at every instant does, for all tree protocols."""

from collections.abc import Callable
from typing import Any

import pytest

from roamcast.checkers import (
    Agreement,
    CoverageChecker,
    InvariantError,
    Watch,
    check_deliveries,
    check_no_cycles,
    check_roles,
    check_served,
)
from roamcast.checkers.trees import uncovered
from roamcast.interests import Intervals
from roamcast.protocols.api import Host
from roamcast.protocols.catalogue import build_protocol, protocol_parameters
from roamcast.seeds import derive
from roamcast.testing import TinyNet, ring
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Causal, Faults, Mobility, Partition, Run, Scenario, Workload

PERFECT_AT_REST = ["ps-maodv", "sp-combo", "dsapst", "somer-plus"]
PROTOCOLS = [*PERFECT_AT_REST, "somer"]
NODES = 14  # of the hand-made network
ALL = Intervals.of((0, 100))
QUICK: dict[str, float] = {"refresh_period_s": 2.0}
"""Short periods, so that a short run sees many of them."""

AGREEMENT_S = 3 * 2.0 * 1.1 + 2.0 + 5.0
"""Silence makes either end forget the other; a refresh period and the linger time come on top."""


REPORTED_S = 0.5
"""A changed interest climbs a hop each 20 ms, and a new root comes down as fast as the refresh."""


def quick(protocol: str) -> dict[str, str | int | float | bool]:
    if not protocol.startswith("somer"):
        return {**QUICK}
    return {**QUICK, "out_period_s": 3.0, "advertisement_period_s": 2.0, "root_density": 0.15}


def troubled(seed: int, radio: Radio) -> Scenario:
    return Scenario(
        nodes=20,
        area_m=(600.0, 600.0),
        duration_s=40.0,
        mobility=Mobility(speed_min_mps=1.0, speed_max_mps=15.0),
        radio=radio,
        workload=Workload(
            publisher_share=0.4,
            rate_per_s=0.5,
            resubscribe_period_s=12.0,
            language="topics" if seed % 2 else "intervals",
            causal=Causal(dependencies="" if seed % 2 else "a => b; a => c; b => d", node_share=0.3),
        ),
        faults=Faults(
            crash_share=0.1,
            return_share=0.2,
            return_after_s=4.0,
            join_share=0.1,
            leave_share=0.1,
            partitions=(Partition(from_s=15, until_s=25, west_m=0, south_m=0, east_m=300, north_m=600),),
        ),
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(1, 7))
def test_invariants_hold_under_mobility_loss_crashes_and_a_partition(protocol: str, seed: int) -> None:
    radio = Ideal(loss=0.1 * (seed % 3)) if seed % 3 else Wifi80211b(preset="ns2")
    scenario = troubled(seed, radio)
    run = Run(scenario=scenario, protocol=protocol, parameters=quick(protocol), seed=seed)
    watch = Watch(run, check_no_cycles, check_roles, Agreement(AGREEMENT_S), step_s=0.0)
    watch.run_until(scenario.duration_s)
    watch.simulation.finish()
    check_deliveries(watch.simulation.recorder.table())


@pytest.mark.parametrize("protocol", PERFECT_AT_REST)
@pytest.mark.parametrize("seed", range(1, 4))
def test_once_faults_stop_every_reachable_subscriber_is_served(protocol: str, seed: int) -> None:
    """Stated bound: three silences and ten seconds after the last fault, all is as if nothing had happened."""
    settled_s = 20.0 + 3 * AGREEMENT_S + 10.0
    scenario = Scenario(
        nodes=25,
        area_m=(600.0, 600.0),
        duration_s=settled_s + 25.0,
        mobility=Mobility(model="static"),
        radio=Ideal(),
        workload=Workload(publisher_share=0.5, rate_per_s=0.3),
        faults=Faults(partitions=(Partition(from_s=8, until_s=20, west_m=0, south_m=0, east_m=300, north_m=600),)),
    )
    run = Run(scenario=scenario, protocol=protocol, parameters=quick(protocol), seed=seed)
    coverage = CoverageChecker(REPORTED_S, from_s=settled_s)
    watch = Watch(run, check_no_cycles, check_roles, Agreement(AGREEMENT_S), coverage, step_s=0.05)
    watch.run_until(scenario.duration_s)
    watch.simulation.finish()
    table = watch.simulation.recorder.table()
    check_deliveries(table)
    assert check_served(table, settled_s, within_s=1.0) > 50


@pytest.mark.parametrize("protocol", PERFECT_AT_REST)
@pytest.mark.parametrize("seed", range(1, 6))
def test_once_crashes_losses_and_joins_stop_everybody_is_served(protocol: str, seed: int) -> None:
    """The same bound after other faults, on hand-made links: nodes die, two of them for good, return and join late,
    links break, and of all frames a tenth is lost."""
    random = derive(seed, "faults")
    links = [*ring(NODES), *((node, (node + 3) % NODES) for node in range(0, NODES, 2))]
    net: TinyNet[Any] = TinyNet(links, _maker(protocol), seed=seed)
    late, dead = 5, (2, 9)
    net.crash(late)
    for node in set(range(NODES)) - {late}:
        net.subscribe(node, ALL)
    for step in range(40):
        victim = random.randrange(NODES)
        if step % 8 == 0 and victim not in (late, *dead):
            net.restart(victim)
            net.subscribe(victim, ALL)
        a, b = links[random.randrange(len(links))]
        net.drop(sender=a, receiver=b, count=3)
        net.unlink(a, b)
        net.publish(random.choice([n for n in range(NODES) if net.host(n).alive]), 1)
        net.run(0.5)
        net.link(a, b)
    for node in dead:
        net.crash(node)
    net.restart(late)
    net.subscribe(late, ALL)
    net.run(3 * AGREEMENT_S + 10.0)
    alive = [node for node in range(NODES) if node not in dead]
    for publisher in alive:
        event = net.publish(publisher, 7)
        net.run(1.0)
        assert net.receivers(event) == [node for node in alive if node != publisher]
    net.run(REPORTED_S)
    assert not uncovered({node: net.node(node) for node in alive})


def _maker(protocol: str) -> Callable[[Host], Any]:
    def make(host: Host) -> Any:
        return build_protocol(protocol, host, protocol_parameters(protocol, quick(protocol)))

    return make


def test_a_failure_names_the_run() -> None:
    def never(simulation: object) -> None:
        raise InvariantError("as told")

    run = Run(scenario=Scenario(nodes=2, radio=Ideal()), protocol="ps-maodv", seed=7)
    with pytest.raises(InvariantError, match=r'at 0\.100 s: as told; run \{.*"seed":7'):
        Watch(run, never).run_until(1.0)
