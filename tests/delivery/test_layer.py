"""The delivery layer above every protocol, in a tiny network: what was lost live is not lost any more."""

import msgspec
import pytest

from roamcast.checkers.receipts import ReceiptCounts, judge
from roamcast.delivery.custody import ANSWERS_MAX, LISTED_MAX, MISSING_MAX, NEIGHBOURS_MAX
from roamcast.delivery.layer import DeliveryLayer
from roamcast.delivery.messages import IDS_MAX, KINDS, Ask, Beat, Carried, Carry, Fetch, Offer, RecordUpdate, Want
from roamcast.delivery.registry import NODES_MAX
from roamcast.delivery.settings import DeliverySettings
from roamcast.errors import ConfigurationError
from roamcast.events import Event, event_id
from roamcast.interests import Intervals
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.testing import TinyNet, line
from roamcast.testing.layered import layered

ALL = Intervals.of((0, 1000))
HOPS = 6


def verdict(net: TinyNet[DeliveryLayer], wanted: dict[int, list[Event]]) -> ReceiptCounts:
    received: dict[int, list[int]] = {}
    for delivery in net.deliveries:
        received.setdefault(delivery.node, []).append(delivery.event.id)
    return judge({node: [event.id for event in events] for node, events in wanted.items()}, received)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_six_hops_with_30_percent_loss_lose_nothing(protocol: str) -> None:
    """Without the layer flooding delivers about a third of these events."""
    net = layered(line(HOPS + 1), protocol, loss=0.3)
    net.subscribe(HOPS, ALL)
    net.run(10)
    events = []
    for number in range(50):
        events.append(net.publish(0, number))
        net.run(0.2)
    net.run(20)
    found = verdict(net, {HOPS: events})
    assert found.lost / found.expected <= 0.01, found
    assert found.twice == found.unasked == 0, found


def test_without_the_layer_the_same_network_loses_most() -> None:
    net = TinyNet(line(HOPS + 1), "flooding", loss=0.3)
    net.subscribe(HOPS, ALL)
    for number in range(50):
        net.publish(0, number)
        net.run(0.2)
    net.run(20)
    assert len(net.contents(HOPS)) < 25


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if not PROTOCOLS[name].is_limit])
def test_a_node_that_was_away_gets_what_it_missed_once(protocol: str) -> None:
    net = layered(line(3), protocol)
    net.subscribe(2, ALL)
    net.run(10)
    net.unlink(1, 2)
    events = []
    for number in range(30):
        events.append(net.publish(0, number))
        net.run(1.0)
    net.link(1, 2)
    net.run(15)
    assert verdict(net, {2: events}).is_perfect or verdict(net, {2: events})._replace(disordered=0).is_perfect


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if not PROTOCOLS[name].is_limit])
def test_events_published_before_the_interest_was_known_arrive(protocol: str) -> None:
    net = layered(line(4), protocol)
    events = [net.publish(0, number) for number in range(5)]
    net.subscribe(3, ALL)
    net.run(20)
    assert verdict(net, {3: events})._replace(disordered=0).is_perfect


def test_events_from_long_before_a_subscription_do_not_arrive() -> None:
    net = layered(line(2))
    net.publish(0, 1)
    net.run(DeliverySettings().history_s + 5)
    later = net.publish(0, 2)
    net.subscribe(1, ALL)
    net.run(10)
    assert verdict(net, {1: [later]}).is_perfect


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if not PROTOCOLS[name].is_limit])
def test_300_disjoint_intervals_per_node(protocol: str) -> None:
    net = layered(line(4), protocol)
    for node in range(4):
        ranges = [(float(1000 * each + 10 * node), float(1000 * each + 10 * node + 5)) for each in range(300)]
        net.subscribe(node, Intervals.of(*ranges))
    net.run(10)
    events = [net.publish(0, 1000.0 * each + 30.0) for each in (0, 150, 299)]
    net.run(15)
    assert verdict(net, {3: events})._replace(disordered=0).is_perfect


def test_an_ordered_subscription_gets_every_publisher_in_order() -> None:
    net = layered(line(HOPS + 1), loss=0.3, seed=3)
    net.node(HOPS).attach("log", Intervals.of((0, 500)), is_ordered=True, is_durable=False)
    net.run(10)
    events = []
    for number in range(60):
        events.append(net.publish(0, number if number % 3 else 700))  # every third is not for it
        events.append(net.publish(3, number))
        net.run(0.2)
    net.run(30)
    wanted = [event for event in events if event.content != 700]
    assert verdict(net, {HOPS: wanted}).is_perfect, verdict(net, {HOPS: wanted})


def test_without_order_the_same_events_come_out_of_order() -> None:
    net = layered(line(HOPS + 1), loss=0.3, seed=3)
    net.subscribe(HOPS, ALL)
    net.run(10)
    events = []
    for number in range(60):
        events.append(net.publish(0, number))
        net.run(0.2)
    net.run(30)
    found = verdict(net, {HOPS: events})
    assert found.disordered > 0
    assert found.lost == 0


def test_an_ordered_subscription_does_not_wait_for_ever() -> None:
    settings = DeliverySettings(order_wait_s=5.0, age_max_s=10.0)
    net = layered(line(2), settings=settings)
    net.node(1).attach("log", ALL, is_ordered=True, is_durable=False)
    net.run(3)
    net.unlink(0, 1)
    net.publish(0, 1)
    net.run(12)  # its lifetime is over when the link is back
    net.link(0, 1)
    second = net.publish(0, 2)
    net.run(12)
    assert verdict(net, {1: [second]}).is_perfect


def test_an_event_whose_time_is_over_is_neither_kept_nor_delivered() -> None:
    net = layered(line(2))
    net.subscribe(1, ALL)
    net.run(3)
    net.unlink(0, 1)
    short = Event(event_id(0, 900), net.now_s, 7, utility="5s")
    net.node(0).publish(short)
    lasting = net.publish(0, 8)
    net.run(8)
    net.link(0, 1)
    net.run(5)
    assert verdict(net, {1: [lasting]}).is_perfect
    assert net.node(0).holdings.held(short.id) is None


def test_events_worth_more_stay_when_there_is_no_room() -> None:
    settings = DeliverySettings(bytes_max=65_536)
    net = layered(line(2), settings=settings)
    net.subscribe(1, ALL)
    net.run(3)
    important = Event(event_id(0, 900), net.now_s, 7, bytes(1000), utility="0:5")
    net.node(0).publish(important)
    net.run(2)
    for number in range(100):
        net.publish(0, number, bytes(2000))
        net.run(0.3)
    assert net.node(1).holdings.held(important.id) is not None
    assert net.node(1).holdings.bytes <= settings.bytes_max
    assert net.node(1).holdings.evicted > 0


def test_a_publisher_that_nobody_hears_is_told_when_its_journal_is_full() -> None:
    net = layered(line(2), settings=DeliverySettings(bytes_max=65_536))
    net.unlink(0, 1)
    for number in range(32):
        net.publish(0, number, bytes(2000))
    with pytest.raises(ConfigurationError, match=r"journal is full.*not published"):
        net.publish(0, 99, bytes(2000))


def test_custody_is_known_to_the_publisher() -> None:
    net = layered(line(3))
    net.subscribe(2, ALL)
    net.run(5)
    told: list[tuple[int, int]] = []
    net.node(1).on_custody = lambda event, neighbours: told.append((event, neighbours))
    event = net.publish(1, 5)
    assert net.node(1).custodians(event.id) == 0
    net.run(3)
    assert net.node(1).custodians(event.id) == 2
    assert told == [(event.id, 1), (event.id, 2)]


def test_a_stranger_cannot_grow_memory() -> None:
    net = layered(line(2))
    net.subscribe(1, ALL)
    layer = net.node(1)
    for stranger in range(10, 3000):
        layer.on_message(stranger, Beat(stranger, 0, tuple(event_id(stranger, n + 1) for n in range(IDS_MAX)), 1))
        want = Want(stranger, 1, 1, Intervals.of((stranger, stranger + 1)), is_ordered=False, age_s=0.0)
        layer.on_message(stranger, RecordUpdate((want,), ()))
    assert layer.custody.missing <= MISSING_MAX
    assert len(layer.custody._neighbours) <= NEIGHBOURS_MAX
    assert len(layer.registry._wants) <= NODES_MAX


def test_a_neighbour_that_makes_things_up_costs_a_bounded_share() -> None:
    """It asks, and lists events that do not exist, as fast as it can. Answers and room are limited; others go on."""
    net = layered(line(3))
    net.subscribe(1, ALL)
    net.subscribe(2, ALL)
    net.run(5)
    layer = net.node(1)
    net.frames.clear()
    for number in range(1000):
        layer.on_message(0, Ask(number, 0))
        layer.on_message(0, Offer(number, 1000, (event_id(9, number + 1),), 2000))
        layer.on_message(0, Fetch((event_id(9, number + 1),)))
    net.run(0.5)
    answers = net.frames[Offer.label] + net.frames[Ask.label] + net.frames[Carry.label]
    assert answers <= 2 * ANSWERS_MAX  # a beat may fall into this time
    for number in range(100):
        layer.on_message(0, Beat(7, 0, tuple(event_id(9, 128 * number + n + 1) for n in range(IDS_MAX)), 1))
    assert layer.custody.missing <= LISTED_MAX + 1000
    for number in range(20):
        net.publish(2, number)
    net.run(5)
    assert set(net.contents(1)) >= set(range(20))


def test_events_that_nobody_wants_are_not_kept_for_others() -> None:
    net = layered(line(2))
    carried = Carried(Event(event_id(9, 1), 0.0, 5), 0.0, 1)
    net.node(1).on_message(0, Carry((carried,), ()))
    assert len(net.node(1).holdings) == 0


def test_the_tags_of_the_layer_are_unlike_those_of_all_protocols() -> None:
    for protocol in PROTOCOLS.values():
        union = protocol.messages
        for kind in KINDS:
            union = union | kind
        msgspec.msgpack.Decoder(union)  # refuses two types with one tag


def test_an_answer_about_events_that_are_gone() -> None:
    net = layered(line(2))
    net.subscribe(1, ALL)
    net.run(2)
    layer = net.node(1)
    layer.on_message(0, Beat(77, 0, (event_id(9, 1),), layer.registry.digest))
    net.run(5)
    assert layer.custody.missing == 0
    assert net.frames[Fetch.label] >= 1
