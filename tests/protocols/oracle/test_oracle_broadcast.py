"""The broadcast-tree oracle needs fewer senders than any other, and serves what can be served."""

from typing import Any

import pytest

from roamcast.interests import Intervals
from roamcast.testing import TinyNet, line
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.simulator import simulate

ALL = Intervals.of((0, 100))


def senders(net: TinyNet[Any]) -> list[int]:
    return [record.node for record in net.records if record.kind == "broadcast"]


def test_one_broadcast_serves_all_neighbours() -> None:
    net = TinyNet([(0, 1), (0, 2), (0, 3)], "oracle-broadcast", oracle=True)
    for node in (1, 2, 3):
        net.subscribe(node, ALL)
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [1, 2, 3]
    assert senders(net) == [0]


def test_a_path_that_serves_others_on_its_way_is_preferred() -> None:
    net = TinyNet([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4)], "oracle-broadcast", oracle=True)
    for node in (3, 4):
        net.subscribe(node, ALL)
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [3, 4]
    assert senders(net) == [0, 2]


def test_a_relay_that_missed_the_frame_gets_it_again() -> None:
    net = TinyNet(line(3), "oracle-broadcast", oracle=True)
    net.subscribe(2, ALL)
    net.drop("Branches", receiver=1)
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [2]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_reachable_subscriber_is_served_with_fewer_frames_than_shortest_paths(seed: int) -> None:
    scenario = Scenario(
        nodes=40,
        area_m=(900.0, 900.0),
        duration_s=20.0,
        mobility=Mobility(model="static"),
        radio=Ideal(),
        workload=Workload(),
    )
    by_protocol = {
        name: summarise(simulate(Run(scenario=scenario, protocol=name, seed=seed)).recorder.table())
        for name in ("oracle", "oracle-broadcast")
    }
    broadcast = by_protocol["oracle-broadcast"]
    assert broadcast["expected_reachable"] > 100
    assert broadcast["delivery_ratio_reachable"] == 1.0
    assert broadcast["duplicates"] == broadcast["unexpected"] == 0
    assert broadcast["frames_total"] < by_protocol["oracle"]["frames_total"]
