"""Opportunistic overlays step by step in tiny networks: the paper's examples, its parts, and how to add one."""

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.protocols.overlays.network import broker, node

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.adaptors import Adaptor
from roamcast.protocols.overlays.channel import BrokerDiscovery
from roamcast.protocols.overlays.event_channels import EventChannel
from roamcast.protocols.overlays.modulators import compile_modulation
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 1000))
QUICK: dict[str, Any] = {
    "unicast": "oracle",
    "bootstrap_s": 2.0,
    "bootstrap_period_s": 0.3,
    "discovery_period_s": 4.0,
    "update_period_s": 6.0,
}


def tiny(links: list[tuple[int, int]], brokers: str, **parameters: Any) -> TinyNet[Protocol]:
    return TinyNet(links, "overlays", QUICK | {"brokers": brokers} | parameters, oracle=True)


def diamond() -> TinyNet[Protocol]:
    """Producer 0 at broker 1; consumer 4 hears brokers 2 and 3. Nobody moves unless told."""
    net = tiny(
        [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)],
        "1-3",
        adaptors="",
        discovery_period_s=1000.0,
        detour_ack_to_destination=True,
    )
    net.subscribe(4, ALL)
    return net


SENT = re.compile(r"Routed source=(\d+) destination=(\d+) hops=1 .*payload=\[(\w+)")


def steps(net: TinyNet[Protocol], since_s: float) -> list[str]:
    """Who sent what to whom, in order, each message once however many hops it took."""
    found = (SENT.search(record.text) for record in net.records if record.kind == "send" and record.time_s >= since_s)
    return [f"{sent[1]} > {sent[2]} {sent[3]}" for sent in found if sent is not None]


def test_an_event_goes_from_producer_to_home_broker_to_home_broker_to_consumer() -> None:
    """Section 2.1: 0 publishes, 1 and 3 are brokers, 4 consumes; 2 is only a relay."""
    net = tiny(line(5), "1,3")
    net.subscribe(4, ALL)
    net.run(5.0)
    net.publish(0, 42)
    net.run(1.0)
    assert net.contents(4) == [42]
    assert net.deliveries[0].hops == 4
    assert node(net, 0).member.home == 1
    assert node(net, 4).member.home == 3
    assert broker(net, 1).brokers.path(3) == (3,)
    assert broker(net, 3).brokers.neighbours == {1: 2}


def test_applications_on_a_brokers_node_use_that_broker_and_do_not_get_their_own_events() -> None:
    net = tiny(line(2), "0,1")
    net.subscribe(0, ALL)
    net.subscribe(1, ALL)
    net.run(4.0)
    net.publish(0, 7)
    net.run(1.0)
    assert node(net, 0).member.home == 0
    assert [(delivery.node, delivery.event.content) for delivery in net.deliveries] == [(1, 7)]


def test_the_relocation_protocol_takes_the_steps_of_the_paper() -> None:
    """Section 2.4, step 3, as far as they show on the air: producer 0 at broker 1, consumer 4 moves from 2 to 3."""
    net = diamond()
    net.run(2.5)
    net.publish(0, 1)
    net.run(2.0)
    assert node(net, 4).member.home == 2
    began_s = net.now_s
    assert broker(net, 2).relocation.migrate(4, 3)
    net.run(0.05)
    assert steps(net, began_s) == [
        "2 > 3 HandoffRequest",
        "3 > 2 HandoffAck",
        "2 > 1 Detour",
        "1 > 2 DetourAck",
        "1 > 3 DetourAck",
        "2 > 3 HandoffState",
        "3 > 4 Welcome",
        "3 > 2 HandoffDone",
        "4 > 3 WelcomeAck",
    ]
    assert node(net, 4).member.home == 3
    assert 4 not in broker(net, 2).clients.table
    net.publish(0, 2)
    net.run(1.0)
    assert net.contents(4) == [1, 2]


def test_events_that_were_under_way_are_processed_by_the_source_and_later_ones_by_the_destination() -> None:
    net = diamond()
    net.run(3.0)
    broker(net, 2).relocation.migrate(4, 3)
    for content in range(20):
        net.publish(0, content)
        net.run(0.001)
    net.run(2.0)
    assert net.contents(4) == list(range(20))


@pytest.mark.parametrize("lost", ["HandoffRequest", "HandoffAck", "Detour", "DetourAck", "HandoffState", "Welcome"])
def test_a_relocation_survives_the_loss_of_any_of_its_messages(lost: str) -> None:
    net = diamond()
    net.run(3.0)
    net.drop(lost, count=4)
    broker(net, 2).relocation.migrate(4, 3)
    for content in range(10):
        net.publish(0, content)
        net.run(1.0)
    net.run(20.0)
    assert net.contents(4) == list(range(10))
    assert node(net, 4).member.home == 3


def test_an_upstream_relocation_leaves_the_home_and_a_downstream_one_brings_the_modulator_back() -> None:
    net = tiny(line(5), "1,3", adaptors="", discovery_period_s=2.0)
    net.subscribe(4, ALL)
    net.run(4.0)
    assert broker(net, 3).relocation.migrate(4, 1, "upstream")
    net.run(2.0)
    net.publish(0, 5)
    net.run(3.0)
    assert 4 in broker(net, 1).clients.table
    assert node(net, 4).member.home == 3
    assert net.contents(4) == [5]
    assert broker(net, 1).relocation.migrate(4, 3, "downstream")
    net.run(2.0)
    net.publish(0, 6)
    net.run(1.0)
    assert 4 in broker(net, 3).clients.table
    assert net.contents(4) == [5, 6]
    assert not broker(net, 3).relocation.migrate(4, 1, "downstream")


def test_a_client_that_comes_nearer_to_another_broker_is_handed_over() -> None:
    """Section 2.4, figure 4."""
    net = tiny([(0, 1), (1, 2), (1, 3), (2, 4)], "1-3", adaptors="home-broker")
    net.subscribe(4, ALL)
    net.run(3.0)
    net.publish(0, 1)
    net.run(0.5)
    assert node(net, 4).member.home == 2
    net.unlink(2, 4)
    net.link(3, 4)
    net.run(8.0)
    assert node(net, 4).member.home == 3
    net.publish(0, 2)
    net.run(1.0)
    assert net.contents(4) == [1, 2]


def discovery(candidate_load: float, own_load: float, home_hops: int = 3, distance_hops: int = 1) -> bool:
    """Whether broker 1 gives its client 0 away to candidate 2 under these loads."""
    net = tiny([(0, 1), (1, 2), (0, 2)], "1,2", adaptors="home-broker", discovery_period_s=1000.0)
    net.subscribe(0, ALL)
    net.run(3.0)
    assert node(net, 0).member.home == 1
    here = broker(net, 1)
    here.resources.load = own_load
    here.relocation.migrate(9, 2)  # nobody's client: nothing happens
    here.adaptors[0].process(BrokerDiscovery(0, 2, distance_hops, candidate_load, home_hops))
    return here.relocation.is_relocating(0)


def test_the_home_broker_is_selected_by_load_first_and_by_path_if_nobody_is_overloaded() -> None:
    """Section 2.4, step 2, items 2 to 4."""
    assert discovery(candidate_load=0.1, own_load=0.1)
    assert not discovery(candidate_load=0.1, own_load=0.1, home_hops=1)
    assert not discovery(candidate_load=0.9, own_load=0.1)
    assert discovery(candidate_load=0.1, own_load=0.9, home_hops=1)
    assert discovery(candidate_load=0.8, own_load=0.9, home_hops=1)
    assert not discovery(candidate_load=0.9, own_load=0.8)


def test_an_overloaded_broker_gives_work_to_the_least_loaded_neighbour() -> None:
    net = tiny(
        [(0, 1), (1, 2), (3, 1), (4, 1)],
        "1,2",
        adaptors="topology,load-balancing",
        modulator="work(0.4)",
        discovery_period_s=1000.0,
    )
    for consumer in (3, 4):
        net.subscribe(consumer, ALL)
    net.run(3.0)
    for content in range(60):
        net.publish(0, content)
        net.run(0.5)
    homes = {node(net, consumer).member.home for consumer in (3, 4)}
    assert homes == {1, 2}
    net.run(60.0)
    for consumer in (3, 4):
        assert net.contents(consumer) == list(range(60))


def test_load_is_the_share_of_time_that_modulators_take_and_delays_what_they_produce() -> None:
    net = tiny(line(3), "1", modulator="work(0.5)", adaptors="")
    net.subscribe(2, ALL)
    net.run(3.0)
    for content in range(20):
        net.publish(0, content)
        net.run(1.0)
    assert broker(net, 1).resources.load == pytest.approx(0.5, abs=0.15)
    last = net.deliveries[-1]
    assert last.time_s - last.event.time_s == pytest.approx(0.502, abs=0.001)


class Restless(Adaptor):
    """A third-party adaptor: it sends every client that reports to the other broker."""

    events = (BrokerDiscovery,)

    def process(self, event: BrokerDiscovery) -> None:
        self.services.relocation.migrate(event.client, 3 - self.services.host.address)


def test_an_adaptor_is_added_by_naming_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(pytest)("somebodys_adaptors")
    monkeypatch.setattr(module, "Restless", Restless, raising=False)
    monkeypatch.setitem(sys.modules, "somebodys_adaptors", module)
    net = tiny([(0, 1), (1, 2), (0, 2)], "1,2", adaptors="topology,somebodys_adaptors:Restless")
    net.subscribe(0, ALL)
    net.run(3.0)
    homes = [node(net, 0).member.home]
    for _ in range(3):
        net.run(4.0)
        homes.append(node(net, 0).member.home)
    assert homes in ([1, 2, 1, 2], [2, 1, 2, 1])


@pytest.mark.parametrize("adaptors", ["topologie", "somewhere:Else", "json:loads"])
def test_an_unknown_adaptor_is_refused_on_every_node(adaptors: str) -> None:
    with pytest.raises(ConfigurationError, match="adaptors: "):
        tiny(line(2), "0", adaptors=adaptors)


@pytest.mark.parametrize(
    "setting",
    [{"brokers": "a-b"}, {"broker_share": 2.0}, {"retry_s": 0.0}, {"neighbours_max": 0}, {"relocation": "sloppy"}],
)
def test_nonsensical_parameters_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        TinyNet(line(2), "overlays", QUICK | setting, oracle=True)


def test_a_modulator_that_makes_no_sense_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigurationError, match="modulator: "):
        tiny(line(2), "0", modulator="explode(1)")


def test_a_long_event_travels_in_pieces_and_arrives_whole() -> None:
    net = tiny(line(5), "1,3")
    net.subscribe(4, ALL)
    net.run(4.0)
    payload = bytes(range(256)) * 40
    net.publish(0, 1, payload)
    net.run(1.0)
    assert net.deliveries[0].event.payload == payload
    assert net.frames["Fragment"] > 30  # the link of each host cuts it


def run_until(net: TinyNet[Protocol], condition: Callable[[], bool], patience_s: float) -> None:
    until_s = net.now_s + patience_s
    while not condition() and net.now_s < until_s:
        net.run(0.5)


def test_static_brokers_keep_the_overlay_of_the_start() -> None:
    for adaptors, expected in (("", {1: 1}), ("topology", {2: 1})):
        net = tiny([(0, 1), (1, 2)], "0-2", adaptors=adaptors)
        net.run(3.0)
        assert broker(net, 0).brokers.neighbours == {1: 1}
        net.unlink(0, 1)
        net.link(0, 2)
        net.run(20.0)
        assert broker(net, 0).brokers.neighbours == expected


def test_what_is_published_while_cut_off_is_stored_and_delivered_in_order_later() -> None:
    net = tiny(line(5), "1,3", store_lifetime_s=100.0)
    net.subscribe(4, ALL)
    net.run(4.0)
    net.unlink(2, 3)
    for content in range(8):
        net.publish(0, content)
        net.run(2.0)
    assert net.contents(4) == []
    net.link(2, 3)
    run_until(net, lambda: len(net.contents(4)) == 8, 30.0)
    assert net.contents(4) == list(range(8))


def test_what_cannot_be_delivered_within_its_lifetime_is_dropped_and_counted_and_the_rest_arrives() -> None:
    net = tiny(line(5), "1,3", store_lifetime_s=20.0)
    net.subscribe(4, ALL)
    net.run(4.0)
    net.publish(0, 0)
    net.run(1.0)
    net.unlink(2, 3)
    net.publish(0, 1)
    net.run(18.0)
    net.publish(0, 2)
    net.run(6.0)
    net.link(2, 3)
    run_until(net, lambda: net.contents(4) == [0, 2], 40.0)
    assert net.contents(4) == [0, 2]
    assert any("store lifetime" in record.text for record in net.records if record.kind == "dropped")


def test_clients_of_a_crashed_broker_find_another_and_miss_nothing() -> None:
    net = tiny([(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)], "1-3", home_timeout_s=6.0, discovery_period_s=3.0)
    net.subscribe(4, ALL)
    net.run(4.0)
    net.publish(0, 1)
    net.run(1.0)
    home = node(net, 4).member.home
    assert home in (2, 3)
    net.crash(home)
    for content in (2, 3, 4):
        net.publish(0, content)
        net.run(5.0)
    run_until(net, lambda: len(net.contents(4)) == 4, 40.0)
    assert node(net, 4).member.home == 5 - home
    assert net.contents(4) == [1, 2, 3, 4]


def test_a_node_that_leaves_is_forgotten_and_a_leaving_broker_sends_its_clients_away() -> None:
    net = tiny([(0, 1), (0, 2), (1, 2), (0, 3), (3, 1), (3, 2)], "1,2")
    net.subscribe(0, ALL)
    net.run(4.0)
    home = node(net, 0).member.home
    net.node(home).leave()
    net.run(0.1)
    net.crash(home)
    run_until(net, lambda: node(net, 0).member.home == 3 - home, 10.0)
    assert node(net, 0).member.home == 3 - home
    node(net, 0).leave()
    net.run(1.0)
    assert 0 not in broker(net, 3 - home).clients.table


def test_what_a_producer_that_vanished_had_handed_over_is_delivered_although_its_home_has_changed() -> None:
    net = tiny([(0, 1), (1, 2), (1, 3), (2, 3), (3, 4)], "1-3", adaptors="", discovery_period_s=1000.0)
    net.subscribe(4, ALL)
    net.node(0).advertise(ALL)
    net.run(4.0)
    assert node(net, 0).member.home == 1
    net.unlink(3, 4)
    net.publish(0, 7)
    net.run(1.0)
    net.crash(0)
    assert broker(net, 1).relocation.migrate(0, 2)
    net.run(5.0)
    assert 0 not in broker(net, 1).clients.table
    net.link(3, 4)
    run_until(net, lambda: bool(net.contents(4)), 30.0)
    assert net.contents(4) == [7]


def test_a_consumer_that_returns_gets_nothing_that_a_producer_published_before_and_brings_to_a_new_home() -> None:
    net = tiny([(0, 1), (0, 2), (1, 2), (1, 4), (2, 4)], "1,2", adaptors="", discovery_period_s=1000.0)
    net.subscribe(4, ALL)
    net.node(0).advertise(ALL)
    net.run(4.0)
    net.publish(0, 7)
    net.run(1.0)
    assert net.contents(4) == [7]
    net.restart(4)
    net.subscribe(4, ALL)
    net.run(2.0)
    assert broker(net, 1).relocation.migrate(0, 2)
    net.run(2.0)
    net.publish(0, 8)
    net.run(2.0)
    assert net.contents(4) == [7, 8]


def test_a_modulator_that_the_broker_cannot_run_is_refused_and_nothing_is_delivered_unmodulated() -> None:
    """The broker is of another version, say: here it does not know what the client's operator is called."""
    net = tiny(line(4), "1,2", adaptors="")
    consumer = node(net, 3)
    net.subscribe(3, ALL)
    # As a client of a later version would say; ours refuses it itself.
    consumer.member._modulations[0] = Modulation("resample(2)")
    net.run(4.0)
    for content in range(3):
        net.publish(0, content)
        net.run(2.0)
    assert net.contents(3) == []
    assert "resample" in consumer.refusal()
    assert "modulator refused" in net.transcript("dropped")
    net.subscribe(0, ALL)
    net.run(3.0)
    net.publish(3, 500)  # it is a client all the same
    net.run(3.0)
    assert net.contents(0) == [500]
    consumer.set_modulator("sample(2)")
    net.run(3.0)
    assert consumer.refusal() == ""
    for content in range(10, 14):
        net.publish(0, content)
        net.run(1.0)
    assert net.contents(3) == [0, 2, 11, 13]  # what the store had kept, too: every second one


def test_a_client_whose_new_modulator_is_refused_gets_nothing_until_it_has_another() -> None:
    net = tiny(line(4), "1,2", adaptors="")
    net.subscribe(3, ALL)
    node(net, 3).set_modulator("filter(content > 5)")
    net.run(4.0)
    node(net, 3).member._modulations[0] = Modulation("resample(2)")
    net.subscribe(3, Intervals.of((2000, 3000)))
    net.run(4.0)
    assert "resample" in node(net, 3).refusal()
    net.publish(0, 3)
    net.publish(0, 7)
    net.run(2.0)
    assert net.contents(3) == []


def test_a_broker_that_cannot_run_a_modulator_does_not_take_it_over() -> None:
    net = diamond()
    net.run(3.0)
    home = node(net, 4).member.home
    row = broker(net, home).clients.table[4]
    row.channels[0] = EventChannel(0, Modulation("resample(2)"), compile_modulation(Modulation("sample(2)")))
    broker(net, home).relocation.migrate(4, 5 - home)
    net.run(2.0)
    assert node(net, 4).member.home == home
    assert 4 not in broker(net, 5 - home).clients.table
