"""Steering by nodes, step by step: neighbours that disagree on who is where, homes that die and homes that move."""

from collections.abc import Callable
from typing import Any

from roamcast.interests import Topics
from roamcast.protocols.api import Point
from roamcast.protocols.georendezvous.cells import decimetres
from roamcast.protocols.georendezvous.routing import RouterTimer

Build = Callable[..., Any]
KEY = "7"
CARS = Topics.of("cars")


def around(point: Point, *offsets_m: tuple[float, float]) -> list[Point]:
    return [(point[0] + east_m, point[1] + north_m) for east_m, north_m in offsets_m]


def frames_of(network: Any, label: str) -> int:
    return int(network.net.frames[label])


def test_a_node_that_moves_a_little_stays_where_it_was(field: Build) -> None:
    """A sixteenth of the range is 12.5 m here."""
    network = field([(500.0, 500.0), (560.0, 500.0)], "georendezvous")
    network.net.run(2.0)
    network.move(0, (510.0, 500.0))
    network.net.run(3.0)
    assert network.net.node(0).table.router.here == (5000, 5000)
    network.move(0, (513.0, 500.0))
    network.net.run(3.0)
    assert network.net.node(0).table.router.here == (5130, 5000)
    assert network.net.node(1).table.router.neighbourhood.nodes[0].vertex == (5130, 5000)


def test_no_node_returns_a_packet_to_its_sender(field: Build, key_point: Build) -> None:
    """Node 0 has moved away from the key, but node 1 has not heard so."""
    point = key_point(KEY)
    network = field(around(point, (20, 0), (60, 0), (120, 30)), "georendezvous")
    network.net.run(3.0)
    network.net.drop("Beacon", sender=0, receiver=1, count=None)
    network.move(0, around(point, (90, 0))[0])
    network.net.run(1.5)
    assert network.net.node(1).table.router.neighbourhood.nodes[0].vertex == decimetres(around(point, (20, 0))[0])
    network.net.node(0).table.put(KEY, b"fire")
    network.net.run(0.5)
    assert frames_of(network, "Put") == 1
    router = network.net.node(1).table.router
    assert network.net.node(1).table.store.shelf(KEY).home == router.cell


def test_a_node_taken_for_closer_says_where_it_is(field: Build, key_point: Build) -> None:
    point = key_point(KEY)
    network = field(around(point, (95, 0), (60, 0)), "georendezvous", {"beacon_period_s": 60.0})
    network.net.run(3.0)
    network.net.drop("Beacon", sender=1, receiver=0)
    network.move(1, around(point, (150, 0))[0])
    network.net.node(1).on_timer((RouterTimer.BEACON, 0))
    network.net.run(0.2)
    heard = network.net.node(0).table.router.neighbourhood.nodes[1]
    assert heard.vertex == decimetres(around(point, (60, 0))[0])
    network.net.node(0).table.put(KEY, b"fire")
    network.net.run(0.2)
    assert network.net.node(0).table.router.neighbourhood.nodes[1].vertex == decimetres(around(point, (150, 0))[0])
    assert network.net.node(0).table.store.shelf(KEY).home == network.net.node(0).table.router.cell
    assert frames_of(network, "Put") == 2  # there and back


def test_of_many_backups_the_one_closest_to_a_dead_home_takes_over(field: Build, key_point: Build) -> None:
    point = key_point(KEY)
    ring = [(70, 0), (0, 75), (-80, 0), (0, -85), (65, 65), (-65, 65), (-65, -65), (65, -65)]
    network = field(around(point, (2, 2), *ring), "georendezvous")
    network.net.run(2.0)
    network.net.node(5).table.put(KEY, b"fire")
    network.net.run(1.0)
    assert all(network.net.node(node).table.store.shelf(KEY) is not None for node in range(9))
    network.net.crash(0)
    network.net.run(12.0)
    closest = network.net.node(1).table.router.cell
    assert {network.net.node(node).table.store.shelf(KEY).home for node in range(1, 9)} == {closest}
    assert frames_of(network, "Handover") == 0  # it had all it needed


def test_a_home_that_moves_does_not_answer_advertisements_again(field: Build, key_point: Build) -> None:
    point = key_point("topic:cars#0")
    network = field(around(point, (5, 0), (150, 0), (-150, 0)), "georendezvous", {"rendezvous_points": 1})
    network.net.run(1.0)
    network.net.node(1).advertise(CARS)
    network.net.run(3.0)
    network.net.subscribe(2, CARS)
    network.net.run(1.0)
    told = frames_of(network, "Attract")
    assert told >= 1
    before = network.net.node(0).table.router.cell
    network.move(0, around(point, (5, 80))[0])
    network.net.run(4.0)
    here = network.net.node(0).table.router.cell
    assert here != before
    assert network.net.node(0).table.store.shelf("topic:cars#0").home == here
    assert frames_of(network, "Attract") == told
    network.net.publish(1, "cars")
    network.net.run(0.5)
    assert network.net.contents(2) == ["cars"]
