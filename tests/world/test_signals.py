"""Signals of different strength: path loss, shadowing, fading, and what a receiver makes of them."""

import math
from collections.abc import Iterable
from statistics import fmean, pstdev

import pytest

from roamcast.bench.payload import Packet
from roamcast.events import Event, event_id
from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import derive
from roamcast.world.mobility import Movements
from roamcast.world.radio.links import RadioLinks, update_period_s
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.radio.phy import answer_mbps, dsss, erp_ofdm
from roamcast.world.radio.settings import Radio, Surroundings
from roamcast.world.radio.signals import LogDistance, Signal, TwoRay
from roamcast.world.radio.snir import SnirMedium
from roamcast.world.radio.station import DcfFrame
from roamcast.world.scenario import Faults, Mobility, Partition, Run, Scenario, Workload
from roamcast.world.scheduler import Scheduler
from roamcast.world.simulator import simulate
from roamcast.world.topology import Topology

MESSAGE = Packet(Event(event_id(0, 1), 0.0, 0, b""))
OFDM = erp_ofdm(20e-6)


def resting(places: Iterable[tuple[float, float]]) -> Movements:
    return Movements([[(0.0, *place)] for place in places])


def links(signal: Signal, movements: Movements, range_m: float = 200.0, floor_db: float = 10.0) -> RadioLinks:
    return RadioLinks(signal, range_m, floor_db, movements, derive(1, "shadowing"))  # type: ignore[arg-type]


class Ear(Listener):
    def __init__(self, heard: list[tuple[int, int]], node: int) -> None:
        self._heard = heard
        self._node = node

    def on_message(self, sender: int, message: Message) -> None:
        self._heard.append((sender, self._node))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self._heard.append((-1, self._node))


class Net:
    """Nodes on a line."""

    def __init__(self, places_m: list[float], radio: Radio, seed: int = 1) -> None:
        self.scheduler = Scheduler()
        topology = Topology(len(places_m))
        powers = links(radio.signal, resting((x_m, 0.0) for x_m in places_m), radio.range_m, radio.floor_db)
        powers.update(0.0, ())
        topology.load_one_way(*powers.lists())
        medium = radio.medium(Surroundings(self.scheduler, topology, derive(seed, "radio"), None, powers))
        assert isinstance(medium, SnirMedium)
        self.medium = medium
        self.heard: list[tuple[int, int]] = []
        for node in range(len(places_m)):
            medium.attach(node, Ear(self.heard, node))

    def send(self, sender: int, receiver: int = NOBODY, at: float = 0.0, size: int = 64) -> None:
        self.scheduler.at(at, lambda _: self.medium.transmit(sender, receiver, MESSAGE, size), None)


# -- path loss ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signal", [LogDistance(exponent=3.5), TwoRay(), TwoRay(frequency_mhz=914.0)])
def test_the_mean_signal_is_just_enough_at_the_range_and_falls(signal: Signal) -> None:
    loss = signal.path_loss(250.0)
    assert loss.margin_db(250.0) == pytest.approx(0.0)
    margins = [loss.margin_db(distance_m) for distance_m in (10.0, 50.0, 100.0, 250.0, 400.0, 800.0)]
    assert margins == sorted(margins, reverse=True)
    for distance_m in (30.0, 250.0, 700.0):
        assert loss.distance_m(loss.margin_db(distance_m)) == pytest.approx(distance_m)


def test_two_ray_falls_with_the_square_and_then_with_the_fourth_power() -> None:
    loss = TwoRay(frequency_mhz=914.0).path_loss(250.0)
    assert loss.margin_db(20.0) - loss.margin_db(40.0) == pytest.approx(20 * math.log10(2))
    assert loss.margin_db(200.0) - loss.margin_db(400.0) == pytest.approx(40 * math.log10(2))
    assert loss.margin_db(86.1) == pytest.approx(loss.margin_db(86.3), abs=0.1)  # the crossover of ns-2 is at 86 m


# -- shadowing ---------------------------------------------------------------------------------------------------


def test_shadowing_has_its_deviation_and_is_the_same_in_both_directions() -> None:
    random = derive(1, "places")
    movements = resting((random.uniform(0, 300), random.uniform(0, 300)) for _ in range(60))
    signal = LogDistance(shadowing_db=6.0)
    gains = links(signal, movements, floor_db=60.0).gains_db(0.0)
    plain = links(LogDistance(), movements, floor_db=60.0).gains_db(0.0)
    shadowing = [gains[pair] - plain[pair] for pair in plain if pair in gains]
    assert len(shadowing) == 60 * 59
    assert fmean(shadowing) == pytest.approx(0.0, abs=0.5)
    assert pstdev(shadowing) == pytest.approx(6.0, rel=0.05)
    assert all(gains[a, b] == gains[b, a] for a, b in gains)


def test_asymmetric_links_differ_by_direction() -> None:
    movements = resting((10.0 * node, 0.0) for node in range(20))
    gains = links(LogDistance(shadowing_db=6.0, symmetric=False), movements, floor_db=60.0).gains_db(0.0)
    assert sum(gains[a, b] != gains[b, a] for a, b in gains) == len(gains)


def test_shadowing_decorrelates_as_nodes_move() -> None:
    """Gudmundson: the correlation after d metres is exp(-d / correlation_m)."""
    pairs = 800
    paths = []
    for pair in range(pairs):  # each pair far from all others; one end goes 10 m
        paths.append([(0.0, 0.0, 10_000.0 * pair)])
        paths.append([(0.0, 100.0, 10_000.0 * pair), (10.0, 110.0, 10_000.0 * pair)])
    process = links(LogDistance(shadowing_db=6.0, correlation_m=20.0), Movements(paths), floor_db=30.0)
    plain = links(LogDistance(), Movements(paths), floor_db=30.0)

    def shadowing(t_s: float) -> list[float]:
        gains, without = process.gains_db(t_s), plain.gains_db(t_s)
        return [gains[2 * pair, 2 * pair + 1] - without[2 * pair, 2 * pair + 1] for pair in range(pairs)]

    first = shadowing(0.0)
    assert shadowing(0.0) == first  # nobody has moved
    for step in range(1, 11):
        later = shadowing(float(step))
    covariance = fmean(a * b for a, b in zip(first, later, strict=True))
    assert covariance / 36 == pytest.approx(math.exp(-0.5), abs=0.1)
    assert pstdev(later) == pytest.approx(6.0, rel=0.1)


def test_measured_links_replace_drawn_ones() -> None:
    movements = resting([(0.0, 0.0), (200.0, 0.0), (400.0, 0.0)])
    gains = links(LogDistance(links_db=((0, 1, -3.0), (1, 2, 5.0))), movements).gains_db(0.0)
    assert gains[0, 1] == pytest.approx(-3.0)
    assert gains[2, 1] == pytest.approx(5.0)
    gains = links(LogDistance(links_db=((0, 1, -3.0), (1, 0, 2.0), (2, 1, 5.0))), movements).gains_db(0.0)
    assert [gains[pair] for pair in ((0, 1), (1, 0), (1, 2))] == pytest.approx([-3.0, 2.0, 5.0])


def test_links_are_updated_by_how_fast_nodes_move() -> None:
    assert update_period_s(LogDistance(), 200.0, resting([(0, 0), (9, 9)]), 10.0) == math.inf
    moving = Movements([[(0.0, 0.0, 0.0), (10.0, 100.0, 0.0)], [(0.0, 50.0, 0.0)]])
    assert update_period_s(LogDistance(), 200.0, moving, 10.0) == pytest.approx(0.25)
    assert update_period_s(LogDistance(update_period_s=2.0), 200.0, moving, 10.0) == 2.0


def test_only_sensible_signals_are_accepted() -> None:
    with pytest.raises(ValueError, match="shadowing_db = -1"):
        LogDistance(shadowing_db=-1.0)
    with pytest.raises(ValueError, match=r"signal\.fading"):
        Ideal(signal=LogDistance(fading="rayleigh"))


# -- reception ---------------------------------------------------------------------------------------------------


def test_a_weak_signal_is_lost_to_noise_at_fast_rates_only() -> None:
    def arrived(data_rate_mbps: float) -> int:
        net = Net([0.0, 190.0], Wifi80211g(signal=LogDistance(), data_rate_mbps=data_rate_mbps))
        for number in range(50):
            net.send(0, 1, at=0.1 * number)
        net.scheduler.run(10.0)
        return net.medium.loads[0]["Packet"].count

    assert arrived(6.0) == 50
    assert arrived(54.0) == 50 * 7  # in vain, every one


def test_interference_adds_up() -> None:
    """Two interferers that node 1 withstands one at a time destroy its frame together."""

    def received(interferers: list[int]) -> int:
        net = Net([0.0, 100.0, 218.0, 218.0], Wifi80211b(signal=LogDistance(exponent=4.0)))
        rate = dsss().rates[2.0]
        for number in range(20):
            for sender in [0, *interferers]:  # by themselves the interferers, in one place, would take turns
                frame = DcfFrame(net.medium, sender, NOBODY, MESSAGE, "Packet", 1000, rate.duration_s(1000), rate, 0.0)
                net.scheduler.at(0.1 * number + 0.0001 * sender, net.medium._start, frame)
        net.scheduler.run(5.0)
        return net.heard.count((0, 1))

    assert received([]) == received([2]) == received([3]) == 20
    assert received([2, 3]) < 10


def test_far_signals_disturb_without_being_received() -> None:
    """54 Mbit/s needs 17 dB: a sender well beyond the range is enough to spoil a frame."""

    def repetitions(is_disturbed: bool) -> int:
        radio = Wifi80211g(signal=LogDistance(), data_rate_mbps=54.0, interference_floor_db=15.0)
        net = Net([0.0, 90.0, 400.0], radio)
        for number in range(100):
            net.send(0, 1, at=0.01 * number, size=800)
            if is_disturbed:
                net.send(2, at=0.01 * number, size=1400)
        net.scheduler.run(5.0)
        return net.medium.loads[0]["Packet"].count

    assert repetitions(is_disturbed=False) < 110
    assert repetitions(is_disturbed=True) > 150


@pytest.mark.parametrize(
    ("apart_m", "setting_db", "waits"), [(150.0, 20.0, False), (150.0, 0.0, True), (10.0, 20.0, True)]
)
def test_a_missed_frame_is_sensed_only_if_it_is_strong(apart_m: float, setting_db: float, waits: bool) -> None:
    """Node 1 sends while a long frame of node 0 begins, and has another one to send before that ends."""
    net = Net([0.0, apart_m], Wifi80211g(signal=LogDistance(), energy_detection_db=setting_db))
    rate = OFDM.rates[6.0]
    frames = []
    for sender, size in ((1, 100), (0, 1500)):
        airtime_s = rate.duration_s(size)
        frame = DcfFrame(net.medium, sender, NOBODY, MESSAGE, "Packet", size, airtime_s, rate, 0.0)
        frames.append(frame)
        net.scheduler.at(0.0001 * len(frames), net.medium._start, frame)
    began_s: list[float] = []
    net.send(1, at=0.0005)
    net.medium.on_start = lambda frame: began_s.append(frame.start)
    net.scheduler.run(1.0)
    assert len(began_s) == 3
    assert (began_s[2] > frames[1].end) == waits


@pytest.mark.parametrize(("signal", "expected"), [
    (LogDistance(fading="rayleigh"), math.exp(-1)),
    (LogDistance(fading="nakagami", nakagami_shape=1.0), math.exp(-1)),
    (LogDistance(fading="nakagami", nakagami_shape=3.0), 0.4232),
])  # fmt: skip
def test_fading_at_the_edge_of_the_range(signal: LogDistance, expected: float) -> None:
    """The share of frames above the mean power: exp(-1) for Rayleigh, the gamma distribution's for Nakagami."""
    net = Net([0.0, 200.0], Wifi80211b(signal=signal))
    for number in range(3000):
        net.send(0, at=0.002 * number)
    net.scheduler.run(10.0)
    assert len(net.heard) / 3000 == pytest.approx(expected, abs=0.04)


def test_all_power_is_gone_when_the_air_is_silent() -> None:
    random = derive(1, "traffic")
    net = Net([40.0 * node for node in range(15)], Wifi80211g(signal=LogDistance(shadowing_db=4.0, fading="rayleigh")))
    for _ in range(500):
        sender = random.randrange(15)
        net.send(sender, random.choice([NOBODY, (sender + 1) % 15]), at=random.random())
    net.scheduler.run(30.0)
    for station in net.medium._stations:
        assert (station.power, station.signals, station.lock, station.head) == (0.0, 0, None, None)


# -- 802.11g -----------------------------------------------------------------------------------------------------


def test_ofdm_frames_last_whole_symbols() -> None:
    assert OFDM.rates[24.0].duration_s(100) == pytest.approx(62e-6)  # as traced in ns-3
    assert OFDM.rates[24.0].duration_s(14) == pytest.approx(34e-6)
    assert OFDM.rates[6.0].duration_s(100) == pytest.approx(166e-6)
    assert OFDM.rates[54.0].duration_s(1536) == pytest.approx((20 + 4 * 57 + 6) * 1e-6)
    assert [answer_mbps(rate) for rate in (6.0, 9.0, 12.0, 18.0, 24.0, 54.0)] == [6, 6, 12, 12, 24, 24]


@pytest.mark.parametrize(
    ("rate", "table_db"),  # where ns-3's TableBasedErrorRateModel loses one in ten frames of 100 bytes
    [(6.0, 0.02), (9.0, 1.89), (12.0, 3.06), (18.0, 5.51), (24.0, 8.59), (36.0, 11.77), (48.0, 15.88), (54.0, 17.21)],
)
def test_ofdm_needs_the_signal_that_ns3_needs(rate: float, table_db: float) -> None:
    log_survival = OFDM.rates[rate].log_bit_survival_at
    needed_db = next(db / 10 for db in range(-50, 400) if 800 * log_survival(10 ** (-db / 100)) > math.log(0.9))
    assert needed_db == pytest.approx(table_db, abs=0.75 if rate == 9 else 0.4)


@pytest.mark.parametrize("rate", [*OFDM.rates.values(), *dsss().rates.values()])
def test_the_table_of_bit_errors_agrees_with_the_formula(rate: object) -> None:
    for decibels in (-3.3, 0.0, 4.71, 11.03, 17.77, 25.5):
        noise = 10 ** (-decibels / 10)
        exact = math.log1p(-rate.modulation.bit_error_rate(noise))  # type: ignore[attr-defined]
        looked_up = rate.log_bit_survival_at(noise)  # type: ignore[attr-defined]
        assert looked_up == pytest.approx(exact, rel=0.02, abs=1e-9)


# -- in the simulator --------------------------------------------------------------------------------------------


def moving(radio: Radio, **settings: object) -> Scenario:
    return Scenario(
        nodes=20,
        area_m=(500.0, 500.0),
        duration_s=15.0,
        mobility=Mobility(speed_min_mps=2.0, speed_max_mps=10.0),
        radio=radio,
        workload=Workload(rate_per_s=0.5, selectivity=0.5, start_s=1.0),
        **settings,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("protocol", ["flooding", "oracle"])
def test_moving_nodes_with_one_way_links_deliver(protocol: str) -> None:
    signal = LogDistance(shadowing_db=6.0, symmetric=False)
    for radio in (Wifi80211g(signal=signal), Ideal(signal=signal)):
        results = [simulate(Run(scenario=moving(radio), protocol=protocol, seed=2)) for _ in range(2)]
        kinds = results[0].recorder.table()["kind"].to_pylist()
        assert kinds.count("delivered") > 20
        assert kinds.count("contact") > 50
        assert results[0].recorder.trace_hash() == results[1].recorder.trace_hash()


def test_protocols_meet_the_same_links() -> None:
    def contacts(protocol: str) -> list[tuple[object, ...]]:
        scenario = moving(Wifi80211g(signal=LogDistance(shadowing_db=6.0)))
        rows = simulate(Run(scenario=scenario, protocol=protocol, seed=3)).recorder.table().to_pylist()
        return [(row["t"], row["node"], row["peer"], row["value"]) for row in rows if row["kind"] == "contact"]

    assert contacts("flooding") == contacts("gossip")


def test_a_partition_cuts_signals() -> None:
    partition = Partition(from_s=0.0, until_s=15.0, west_m=-1.0, south_m=-1.0, east_m=250.0, north_m=501.0)
    scenario = moving(Ideal(signal=LogDistance()), faults=Faults(partitions=(partition,)))
    still = Mobility(model="static")
    run = Run(scenario=Scenario(**{name: getattr(scenario, name) for name in scenario.__struct_fields__
                                   if name != "mobility"}, mobility=still))  # fmt: skip
    rows = simulate(run).recorder.table().to_pylist()
    west = {row["node"] for row in rows if row["kind"] == "position" and row["x_m"] < 250}
    crossing = [row for row in rows if row["kind"] == "contact" and (row["node"] in west) != (row["peer"] in west)]
    assert all(row["t"] == 15.0 for row in crossing)
    assert any(row["kind"] == "contact" for row in rows)
