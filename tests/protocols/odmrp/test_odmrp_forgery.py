"""A member that sends in the name of others does not silence them for good."""

from roamcast.interests import Intervals
from roamcast.protocols.odmrp.messages import Attach, JoinRequest
from roamcast.protocols.routing import Routed
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 100))


def test_no_peer_replaces_a_nodes_own_subscriptions() -> None:
    net = TinyNet(line(3), "odmrp")
    net.subscribe(2, ALL)
    net.run(1.0)
    net.node(2).on_message(1, Routed(2, 2, 1, 0, Attach(1, 0, 1, ())))
    net.publish(0, 7)
    net.run(10.0)
    assert net.contents(2) == [7]


def test_requests_in_a_publishers_name_do_not_use_up_its_numbers() -> None:
    net = TinyNet(line(3), "odmrp")
    net.subscribe(2, ALL)
    net.run(1.0)
    for sequence in range(400):
        net.node(1).on_message(9, JoinRequest(0, net.host(0).life, sequence, 255, b"\x90", 0, None))
    net.run(40.0)  # longer than a route without requests is kept
    net.publish(0, 7)
    net.run(10.0)
    assert net.contents(2) == [7]
