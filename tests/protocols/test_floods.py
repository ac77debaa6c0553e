"""Flooding and gossip, step by step."""

from typing import Any

import pytest

from roamcast.interests import Intervals
from roamcast.testing import TinyNet, line


@pytest.mark.parametrize("protocol", ["flooding", "gossip"])
def test_a_publisher_does_not_repeat_its_own_event_when_it_comes_back(protocol: str) -> None:
    net: TinyNet[Any] = TinyNet(line(3), protocol, seed=1, language="intervals")
    net.subscribe(1, Intervals.of((0, 100)))
    net.run(1.0)
    net.records.clear()
    net.publish(0, 7)
    net.run(5.0)
    sent = [record.node for record in net.records if record.kind == "broadcast"]
    assert sorted(sent) == [0, 1, 2]
    assert net.contents(1) == [7]


@pytest.mark.parametrize("protocol", ["flooding", "gossip"])
def test_a_copy_that_comes_again_is_neither_delivered_nor_repeated(protocol: str) -> None:
    net: TinyNet[Any] = TinyNet([(0, 1), (1, 2), (0, 2)], protocol, seed=1, language="intervals")
    for node in range(3):
        net.subscribe(node, Intervals.of((0, 100)))
    net.run(1.0)
    for content in range(20):
        net.publish(content % 3, content)
    net.run(5.0)
    assert [len(net.contents(node)) for node in range(3)] == [13, 13, 14]
    assert sum(net.frames.values()) <= 60
