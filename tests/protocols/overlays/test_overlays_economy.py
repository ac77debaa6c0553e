"""What Overlays save on the air beyond the paper, and how quickly they notice a lost home broker."""

from typing import Any

import pytest
from tests.protocols.overlays.network import broker, node

from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.overlays.channel import BrokerDiscovery
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


FORK = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 6)]


def forked(**parameters: Any) -> TinyNet[Protocol]:
    """Producer 0 at broker 1; consumers 5 and 6 at brokers 3 and 4, which both lie behind broker 2."""
    net = tiny(FORK, "1-4", adaptors="", discovery_period_s=1000.0, **parameters)
    for consumer in (5, 6):
        net.subscribe(consumer, ALL)
    net.node(0).advertise(ALL)
    net.run(5.0)
    return net


def copies(net: TinyNet[Protocol], sender: int, receiver: int, since_s: float) -> int:
    """Copies of events that a broker sent to its neighbour."""
    sent = (r for r in net.records if r.kind == "send" and r.node == sender and r.time_s >= since_s)
    return sum(r.text.startswith(f"-> {receiver} ") and ("Spread" in r.text or "Forward" in r.text) for r in sent)


@pytest.mark.parametrize(("event_tree", "expected"), [(True, 1), (False, 2)])
def test_paths_that_share_a_stretch_share_the_copy_on_it(event_tree: bool, expected: int) -> None:
    net = forked(event_tree=event_tree)
    began_s = net.now_s
    net.publish(0, 7)
    net.run(1.0)
    assert (net.contents(5), net.contents(6)) == ([7], [7])
    assert [delivery.hops for delivery in net.deliveries] == [4, 4]
    assert copies(net, 1, 2, began_s) == expected
    assert copies(net, 2, 3, began_s) == copies(net, 2, 4, began_s) == 1


def test_a_tree_of_paths_goes_around_a_broker_that_cannot_be_reached() -> None:
    net = tiny([*FORK, (1, 7), (7, 3), (3, 4)], "1-4,7", adaptors="", discovery_period_s=1000.0)
    for consumer in (5, 6):
        net.subscribe(consumer, ALL)
    net.node(0).advertise(ALL)
    net.run(5.0)
    net.crash(2)
    net.publish(0, 7)
    net.run(1.0)  # before anything is repeated
    assert (net.contents(5), net.contents(6)) == ([7], [7])


@pytest.mark.parametrize(("receipt_patience", "expected"), [(0.6, 1), (0.0, 2)])
def test_one_receipt_tells_that_an_event_was_processed_and_that_the_client_has_it(
    receipt_patience: float, expected: int
) -> None:
    net = tiny(line(4), "1,2", adaptors="", discovery_period_s=1000.0, receipt_patience=receipt_patience)
    net.subscribe(3, ALL)
    net.node(0).advertise(ALL)
    net.run(5.0)
    net.publish(0, 7)
    net.run(1.9)  # less than retry_s
    assert net.frames["Receipt"] == expected
    assert net.frames["Forward"] == 1


def test_a_client_whose_acknowledgement_is_late_is_receipted_before_the_event_is_repeated() -> None:
    net = tiny(line(4), "1,2", adaptors="", discovery_period_s=1000.0)
    net.subscribe(3, ALL)
    net.node(0).advertise(ALL)
    net.run(5.0)
    net.drop("DeliveryAck", count=None)
    net.publish(0, 7)
    net.run(3.0)
    assert net.frames["Receipt"] >= 1
    assert net.frames["Forward"] == 1


@pytest.mark.parametrize(("release_delay_s", "expected"), [(5.0, 1), (0.0, 2)])
def test_a_producer_is_told_with_the_next_acknowledgement_what_it_may_forget(
    release_delay_s: float, expected: int
) -> None:
    settings = {"adaptors": "", "discovery_period_s": 1.0, "linger_s": 0.0, "store_lifetime_s": 3.0}
    net = tiny(line(4), "1,2", release_delay_s=release_delay_s, **settings)
    net.subscribe(3, ALL)
    net.node(0).advertise(ALL)
    net.run(9.0)
    net.publish(0, 7)
    net.run(2.5)
    assert net.frames["PublishAck"] == expected
    net.run(8.0)
    assert net.frames["PublishAck"] == 2


def radii(net: TinyNet[Protocol], address: int, since_s: float) -> set[str]:
    sent = (r for r in net.records if r.kind == "broadcast" and r.node == address and r.time_s >= since_s)
    return {r.text.split("ttl=")[1].split()[0] for r in sent if f"Seek origin={address} " in r.text}


@pytest.mark.parametrize(("search_within_home", "expected"), [(True, {"1"}), (False, {"1", "3", "5", "7"})])
def test_a_client_searches_no_farther_than_its_home_is_away(search_within_home: bool, expected: set[str]) -> None:
    net = tiny(line(3), "1", search_within_home=search_within_home)
    net.subscribe(0, ALL)
    net.run(10.0)
    assert node(net, 0).member.home == 1
    net.drop("Found", count=None)
    began_s = net.now_s
    net.run(5.0)
    assert radii(net, 0, began_s) == expected


def considers(home_hops: int, candidate: int = 2, **parameters: Any) -> bool:
    """Whether broker 1 gives its client 0 away to a candidate one hop from it; broker 3 serves a producer."""
    links = [(0, 1), (1, 2), (0, 2), (1, 3), (2, 3), (3, 4)]
    net = tiny(links, "1-3", adaptors="home-broker", discovery_period_s=1000.0, **parameters)
    net.subscribe(0, ALL)
    net.node(4).advertise(ALL)
    net.run(5.0)
    assert node(net, 0).member.home == 1
    broker(net, 1).adaptors[0].process(BrokerDiscovery(0, candidate, 1, 0.0, home_hops))
    return broker(net, 1).relocation.is_relocating(0)


def test_a_client_moves_only_if_that_saves_more_than_one_hop() -> None:
    assert not considers(home_hops=2)
    assert considers(home_hops=3)
    assert considers(home_hops=2, hysteresis_hops=0.0)


def test_a_candidate_that_the_topology_table_does_not_know_is_not_next_to_the_producers() -> None:
    assert not considers(home_hops=9, candidate=77)


def test_only_rows_that_changed_propagate() -> None:
    frames = {}
    for refresh_periods in (1, 5):
        net = tiny(line(4), "0-3", adaptors="topology", refresh_periods=refresh_periods)
        net.run(10.0)
        before = net.frames["TopologyRows"]
        net.run(120.0)
        frames[refresh_periods] = net.frames["TopologyRows"] - before
        assert broker(net, 0).brokers.known == [0, 1, 2, 3]
    assert frames[5] < frames[1] / 2


def test_a_broker_that_crashed_is_forgotten_and_one_that_is_quiet_is_not() -> None:
    net = tiny(line(4), "0-3", adaptors="topology", refresh_periods=5, silent_periods=10)
    net.run(20.0)
    net.crash(3)
    net.run(120.0)
    assert broker(net, 0).brokers.known == [0, 1, 2]


def test_load_above_one_shows_that_work_arrives_faster_than_it_gets_done() -> None:
    net = tiny(line(3), "1", modulator="work(0.5)", adaptors="")
    net.subscribe(2, ALL)
    net.run(3.0)
    for content in range(80):
        net.publish(0, content)
        net.run(0.25)
    assert broker(net, 1).resources.load == pytest.approx(2.0, abs=0.3)
    net.run(10.0)
    assert broker(net, 1).resources.load == pytest.approx(1.0, abs=0.3)  # the queue is being worked off


TWO_HOMES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]


def test_a_producer_replaces_a_crashed_home_broker_within_two_seconds_of_its_next_event() -> None:
    net = tiny(TWO_HOMES, "1-3", unicast="aodv", adaptors="topology,home-broker", discovery_period_s=20.0)
    net.subscribe(4, ALL)
    net.node(0).advertise(ALL)
    net.run(6.0)
    home = node(net, 0).member.home
    assert home in (1, 2)
    net.crash(home)
    net.publish(0, 7)
    net.run(2.0)
    assert node(net, 0).member.home == 3 - home
    net.run(3.0)
    assert net.contents(4) == [7]


@pytest.mark.parametrize("home_check_s", [1.5, 0.0])
def test_a_consumer_replaces_a_crashed_home_broker_after_its_next_report(home_check_s: float) -> None:
    net = tiny(TWO_HOMES, "1-3", unicast="aodv", home_check_s=home_check_s)
    net.subscribe(0, ALL)
    net.run(6.0)
    home = node(net, 0).member.home
    net.crash(home)
    net.run(4.0 + 2.5)
    assert (node(net, 0).member.home == 3 - home) == bool(home_check_s)


def test_a_home_broker_that_only_moved_out_of_range_is_kept() -> None:
    net = tiny([(0, 1), (1, 2), (0, 3), (3, 4)], "1", unicast="aodv", adaptors="")
    net.subscribe(0, ALL)
    net.run(6.0)
    epoch = broker(net, 1).clients.table[0].epoch
    net.unlink(0, 1)
    net.link(3, 1)
    net.run(12.0)
    assert broker(net, 1).clients.table[0].epoch == epoch  # asked over the new path, it answered


def test_a_consumer_of_a_producer_that_was_quiet_for_long_is_not_taken_for_silent() -> None:
    net = tiny(line(4), "1,2", store_lifetime_s=15.0, silent_lifetimes=2.0)
    net.subscribe(3, ALL)
    net.node(0).advertise(ALL)
    net.run(60.0)
    for content in range(8):
        net.publish(0, content)
        net.run(0.5)
    net.run(3.0)
    assert net.contents(3) == list(range(8))


def test_a_consumer_takes_5000_events_in_a_second() -> None:
    """Found live: 64 unacknowledged deliveries per 0.25 s, so 256 events per second and consumer at most."""
    net = tiny([(0, 1), (1, 2)], "1")
    net.subscribe(2, ALL)
    net.node(0).advertise(ALL)
    net.run(3.0)
    for _ in range(100):
        for _ in range(50):
            net.publish(0, 7)
        net.run(0.01)
    net.run(0.1)
    assert len(net.contents(2)) == 5000


def test_an_answer_to_a_narrower_ring_that_comes_late_ends_the_search() -> None:
    """Found live: where 50 nodes in one group start at once, answers take longer than a ring waits."""
    net = tiny([(0, 1)], "1", hop_time_s=0.0001)  # a ring waits for 0.4 ms, shorter than an answer takes
    net.subscribe(0, ALL)
    net.run(1.0)
    assert net.node(0).member.home == 1  # type: ignore[attr-defined]
