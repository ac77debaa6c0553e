"""LoRa: airtime by the chip maker's formula, ALOHA by theory, and the rules of the channel."""

from math import dist, exp

import pytest

from roamcast.bench.payload import Packet
from roamcast.events import Event, event_id
from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import derive
from roamcast.world.mobility import Movements
from roamcast.world.radio.links import RadioLinks
from roamcast.world.radio.lora import LoraMedium, airtime_s
from roamcast.world.radio.models.lora import Lora
from roamcast.world.radio.settings import Surroundings
from roamcast.world.radio.signals import LogDistance
from roamcast.world.scenario import Mobility, Run, Scenario, Workload
from roamcast.world.scheduler import Scheduler
from roamcast.world.simulator import simulate
from roamcast.world.topology import Topology

MESSAGE = Packet(Event(event_id(0, 1), 0.0, 0, b""))


class Ear(Listener):
    def __init__(self, net: "Net", node: int) -> None:
        self._net = net
        self._node = node

    def on_message(self, sender: int, message: Message) -> None:
        self._net.heard.append((self._net.scheduler.now, sender, self._node))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self._net.failed.append((self._node, neighbour))


class Net:
    def __init__(
        self, nodes: int, links: list[tuple[int, int]], radio: Lora, places: list[float] | None = None
    ) -> None:
        self.scheduler = Scheduler()
        self.topology = Topology(nodes)
        self.topology.load(links, [])
        powers = None
        if places is not None:
            movements = Movements([[(0.0, x_m, 0.0)] for x_m in places])
            powers = RadioLinks(LogDistance(), radio.range_m, radio.floor_db, movements, derive(1, "shadowing"))
            powers.update(0.0, ())
            self.topology.load_one_way(*powers.lists())
        medium = radio.medium(Surroundings(self.scheduler, self.topology, derive(1, "radio"), None, powers))
        assert isinstance(medium, LoraMedium)
        self.medium = medium
        self.heard: list[tuple[float, int, int]] = []
        self.failed: list[tuple[int, int]] = []
        for node in range(nodes):
            self.medium.attach(node, Ear(self, node))

    def send(self, sender: int, receiver: int = NOBODY, at: float = 0.0, size: int = 12) -> None:
        self.scheduler.at(at, lambda _: self.medium.transmit(sender, receiver, MESSAGE, size), None)

    def heard_from(self, sender: int) -> int:
        return sum(who == sender for _, who, _ in self.heard)


@pytest.mark.parametrize(
    ("size", "spreading_factor", "bandwidth_khz", "coding_rate", "milliseconds"),
    [
        # Worked out by hand from the data sheet: explicit header, CRC, 8 symbols of preamble.
        (10, 7, 125, 1, 41.216),
        (51, 7, 125, 1, 102.656),
        (255, 7, 125, 1, 399.616),
        (20, 9, 125, 1, 185.344),
        (20, 12, 125, 1, 1318.912),
        (51, 10, 125, 1, 616.448),
        (20, 12, 500, 4, 428.032),
        (13, 11, 125, 1, 577.536),
    ],
)
def test_airtime_is_that_of_the_chip_maker(
    size: int, spreading_factor: int, bandwidth_khz: int, coding_rate: int, milliseconds: float
) -> None:
    assert 1000 * airtime_s(size, spreading_factor, bandwidth_khz * 1e3, coding_rate) == pytest.approx(milliseconds)


@pytest.mark.parametrize("load", [0.1, 0.25, 0.5, 1.0])
def test_pure_aloha_carries_what_theory_says(load: float) -> None:
    """Poisson arrivals at many nodes, one receiver: throughput G exp(-2 G)."""
    nodes, frames = 401, 40_000
    radio = Lora(duty_cycle=1.0, capture_db=None)
    net = Net(nodes, [(0, node) for node in range(1, nodes)], radio)
    airtime = airtime_s(20, 7, 125e3)
    random = derive(1, "aloha")
    t_s = 0.0
    for _ in range(frames):
        t_s += random.expovariate(load / airtime)
        net.send(random.randrange(1, nodes), at=t_s)
    net.scheduler.run(t_s + 10)
    received = sum(receiver == 0 for _, _, receiver in net.heard)
    assert received * airtime / t_s == pytest.approx(load * exp(-2 * load), rel=0.03)


def test_the_duty_cycle_is_kept() -> None:
    net = Net(2, [(0, 1)], Lora(duty_cycle=0.1))
    for _ in range(20):
        net.send(0)
    net.scheduler.run(3.0)
    airtime = airtime_s(20, 7, 125e3)
    assert net.heard_from(0) == pytest.approx(3.0 * 0.1 / airtime, abs=1)


def test_carrier_detection_avoids_collisions() -> None:
    def received(carrier_detection: bool) -> int:
        net = Net(3, [(0, 1), (1, 2), (0, 2)], Lora(duty_cycle=1.0, carrier_detection=carrier_detection))
        for number in range(50):
            net.send(0, at=2.0 * number)
            net.send(2, at=2.0 * number + 0.01)
        net.scheduler.run(200)
        return sum(receiver == 1 for _, _, receiver in net.heard)

    assert received(carrier_detection=False) == 0
    assert received(carrier_detection=True) >= 95


def test_the_stronger_frame_is_captured_and_the_weaker_lost() -> None:
    places = [0.0, 300.0, 1900.0]  # 8 dB and more between the two at node 1
    net = Net(3, [], Lora(), places)
    net.send(0, at=1.0, size=100)
    net.send(2, at=1.05, size=100)
    net.scheduler.run(5)
    assert [(sender, receiver) for _, sender, receiver in net.heard if receiver == 1] == [(0, 1)]
    net = Net(3, [], Lora(capture_db=None), places)
    net.send(0, at=1.0, size=100)
    net.send(2, at=1.05, size=100)
    net.scheduler.run(5)
    assert [receiver for _, _, receiver in net.heard if receiver == 1] == []
    assert dist((places[0],), (places[1],)) < dist((places[2],), (places[1],))


def test_a_sender_hears_nothing() -> None:
    net = Net(2, [(0, 1)], Lora())
    net.send(0, at=1.0, size=200)
    net.send(1, at=1.1, size=10)
    net.scheduler.run(5)
    assert net.heard == []
    assert net.medium.lost["half-duplex"] == 2


def test_a_unicast_is_acknowledged_repeated_and_given_up() -> None:
    net = Net(3, [(0, 1)], Lora(duty_cycle=1.0))
    net.send(0, 1, at=0.0)
    net.send(0, 2, at=5.0)
    net.scheduler.run(60)
    assert [(sender, receiver) for _, sender, receiver in net.heard] == [(0, 1)]
    assert net.medium.loads[1]["ACK"].count == 1
    assert net.medium.loads[0]["Packet"].count == 1 + 3
    assert net.failed == [(0, 2)]
    assert net.medium.backlog(0) == 0


def test_lossy_unicasts_arrive_once() -> None:
    net = Net(2, [(0, 1)], Lora(duty_cycle=1.0, loss=0.3))
    for number in range(60):
        net.send(0, 1, at=20.0 * number)
    net.scheduler.run(1300)
    assert net.heard_from(0) <= 60
    assert net.heard_from(0) + len(net.failed) >= 60
    assert net.medium.loads[0]["Packet"].count > 70


def test_frames_have_at_most_255_bytes() -> None:
    net = Net(2, [(0, 1)], Lora())
    assert net.medium.frame_bytes_max == 247
    net.send(0, size=247)
    net.send(0, size=248)
    net.scheduler.run(100)
    assert net.heard_from(0) == 1
    assert net.medium.lost["oversized"] == 1


def test_a_network_of_lora_nodes_floods_events() -> None:
    scenario = Scenario(
        nodes=12,
        area_m=(5000.0, 5000.0),
        duration_s=300.0,
        mobility=Mobility(model="grid"),
        radio=Lora(duty_cycle=0.1),
        workload=Workload(publishers=1, rate_per_s=0.02, selectivity=1.0, payload_bytes=20, tail_s=60.0),
    )
    run = Run(scenario=scenario, protocol="flooding", parameters={"jitter_s": 5.0}, seed=1)
    table = simulate(run).recorder.table()
    assert table["kind"].to_pylist().count("delivered") > 20
