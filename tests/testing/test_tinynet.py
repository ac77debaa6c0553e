"""The tiny network keeps its promises: order, links, losses, timers, and readable transcripts."""

from typing import Any, ClassVar

import pytest

from roamcast.errors import CallerError, ConfigurationError
from roamcast.interests import Intervals
from roamcast.protocols.api import Host, Message, Timer
from roamcast.testing import Courier, TinyNet, grid, line, ring


class Ping(Message, frozen=True, tag=16):
    number: int


class Listener:
    """A guest that is not a protocol: it keeps what it is told."""

    messages: ClassVar[Any] = Ping

    def __init__(self, host: Host) -> None:
        self.host = host
        self.log: list[object] = []

    def start(self) -> None:
        self.log.append("start")

    def on_message(self, sender: int, message: Message) -> None:
        self.log.append((sender, message))

    def on_timer(self, timer: Timer) -> None:
        self.log.append((self.host.now(), timer))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self.log.append(("failed", neighbour, message))


def test_a_flood_reads_as_a_transcript() -> None:
    net = TinyNet(line(3), "flooding", {"jitter_s": 0.0})
    net.subscribe(2, Intervals.of((0, 100)))
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.contents(2) == [42]
    assert net.receivers(event) == [2]
    assert net.frames == {"Flood": 3}
    assert net.transcript().splitlines() == [
        "   0.000   0 -> *  Flood hops=1 event=event 0/1(42)",
        "   0.001   1 -> *  Flood hops=2 event=event 0/1(42)",
        "   0.002   2 delivers event 0/1(42) after 2 hops",
        "   0.002   2 -> *  Flood hops=3 event=event 0/1(42)",
    ]
    assert net.transcript("deliver") == "   0.002   2 delivers event 0/1(42) after 2 hops"


def test_links_decide_who_hears() -> None:
    net = TinyNet([(0, 1)], Listener, nodes=3)
    net.host(0).broadcast(Ping(1))
    net.host(0).send(2, Ping(2))
    net.run(0.01)
    assert net.node(1).log == ["start", (0, Ping(1))]
    assert net.node(2).log == ["start"]
    assert net.node(0).log == ["start", ("failed", 2, Ping(2))]
    net.link(0, 2)
    net.unlink(0, 1)
    net.host(0).broadcast(Ping(3))
    net.run(0.01)
    assert (net.node(1).log[-1], net.node(2).log[-1]) == ((0, Ping(1)), (0, Ping(3)))


def test_a_link_that_breaks_loses_the_frame_under_way() -> None:
    net = TinyNet([(0, 1)], Listener)
    net.host(0).send(1, Ping(1))
    net.unlink(0, 1)
    net.run(0.01)
    assert net.node(0).log == ["start", ("failed", 1, Ping(1))]


def test_chosen_frames_are_dropped() -> None:
    net = TinyNet([(0, 1), (0, 2)], Listener)
    net.drop("Ping", receiver=1)
    net.host(0).broadcast(Ping(1))
    net.host(0).broadcast(Ping(2))
    net.run(0.01)
    assert net.node(1).log == ["start", (0, Ping(2))]
    assert net.node(2).log == ["start", (0, Ping(1)), (0, Ping(2))]
    assert net.transcript("lost") == "   0.001   1 <x 0  Ping"


def test_timers_move_and_cancel() -> None:
    net = TinyNet([], Listener, nodes=1)
    host = net.host(0)
    host.set_timer(1.0, ("a", 0))
    host.set_timer(2.0, ("a", 0))
    host.set_timer(1.5, ("b", 7))
    host.set_timer(1.0, ("c", 0))
    host.cancel_timer(("c", 0))
    assert host.timers == [("a", 0), ("b", 7)]
    net.run(3.0)
    assert net.node(0).log == ["start", (1.5, ("b", 7)), (2.0, ("a", 0))]
    with pytest.raises(CallerError, match="delay_s"):
        host.set_timer(-1.0, ("a", 0))


def test_a_restarted_node_remembers_nothing() -> None:
    net = TinyNet([(0, 1)], Listener)
    net.host(1).set_timer(1.0, ("old life", 0))
    net.crash(1)
    net.host(0).send(1, Ping(1))
    net.run(0.5)
    assert net.node(0).log[-1] == ("failed", 1, Ping(1))
    net.restart(1)
    net.host(0).send(1, Ping(2))
    net.run(2.0)
    assert net.node(1).log == ["start", (0, Ping(2))]


def test_what_cannot_travel_is_refused() -> None:
    class Unheard(Message, frozen=True, tag=17):
        number: int

    net = TinyNet([(0, 1)], Listener)
    with pytest.raises(CallerError, match=r"wire.*Unheard"):
        net.host(0).broadcast(Unheard(1))


def test_checkers_run_after_every_step() -> None:
    net = TinyNet(line(3), "flooding", {"jitter_s": 0.0})
    seen: list[float] = []
    net.check(lambda: seen.append(net.now_s))
    net.publish(0, 1)
    net.after(0.5, lambda: None)
    net.run(1.0)
    assert seen == sorted(seen)
    assert seen[-1] == 0.5
    assert net.now_s == 1.0


def test_the_oracle_sees_links_and_subscriptions() -> None:
    net = TinyNet(ring(6), "flooding", oracle=True)
    oracle = net.host(0).oracle
    assert oracle is not None
    assert [oracle.hops(0, n) for n in range(6)] == [0, 1, 2, 3, 2, 1]
    assert oracle.next_hop(0, 3) == 1
    net.unlink(0, 1)
    assert (oracle.next_hop(0, 3), oracle.hops(0, 1)) == (5, 5)
    assert (oracle.next_hop(0, 0), oracle.next_hop(0, 99)) == (-1, -1)
    net.subscribe(4, Intervals.of((0, 10)))
    assert oracle.subscribers(net.publish(0, 3)) == [4]


def test_mistakes_are_named() -> None:
    with pytest.raises(CallerError, match="there is no 7"):
        TinyNet(line(2), Listener).node(7)
    with pytest.raises(CallerError, match="not a Protocol"):
        TinyNet(line(2), Listener).publish(0, 1)
    with pytest.raises(CallerError, match="nothing is due"):
        TinyNet(line(2), Listener).step()
    with pytest.raises(ConfigurationError, match="unknown"):
        TinyNet(line(2), "carrier pigeons")


def test_topologies() -> None:
    assert line(3) == [(0, 1), (1, 2)]
    assert ring(3) == [(0, 1), (1, 2), (0, 2)]
    assert grid(2, 2) == [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_the_courier_serves_subscribers() -> None:
    net = TinyNet(line(3), Courier.maker(unicast="oracle"), oracle=True)
    net.subscribe(2, Intervals.of((0, 10)))
    net.publish(0, 5)
    net.run(1.0)
    assert [(d.node, d.hops) for d in net.deliveries] == [(2, 2)]
