"""A consumer takes its deliveries in order and each once, whatever is lost and whoever makes them again."""

from tests.protocols.overlays.network import broker

from roamcast.events import Event, event_id
from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.overlays.messages import ClientDelivery
from roamcast.protocols.overlays.reception import REPEATED
from roamcast.testing import TinyNet, line

PRODUCER, BROKER, CONSUMER = range(3)


def network() -> TinyNet[Protocol]:
    settings = {"unicast": "oracle", "brokers": "1", "adaptors": "", "bootstrap_s": 2.0, "bootstrap_period_s": 0.3}
    net: TinyNet[Protocol] = TinyNet(line(3), "overlays", settings | {"retry_s": 0.5}, oracle=True)
    net.subscribe(CONSUMER, Intervals.of((0, 60)))
    net.run(4.0)
    return net


def test_what_comes_early_is_held_back_until_what_was_lost_has_come() -> None:
    net = network()
    net.drop("ClientDelivery", count=1)
    net.publish(PRODUCER, 1)
    net.publish(PRODUCER, 2)
    net.run(5.0)
    assert net.contents(CONSUMER) == [1, 2]


def test_an_event_that_a_cursor_calls_dealt_with_is_not_taken_again() -> None:
    """Events 6 and 7 had no output at one broker; another one, which has a newer modulator, makes one of event 7."""
    net = network()
    site = broker(net, BROKER)
    row = site.clients.table[CONSUMER]

    def deliver(sequence: int, number: int, cursor: int) -> None:
        event = Event(event_id(PRODUCER, number), net.now_s, number)
        cursors = ((PRODUCER, cursor),)
        site.deliveries.send(row, ClientDelivery(row.epoch, sequence, BROKER, 1, event, cursors))
        net.run(0.1)

    deliver(sequence=1, number=5, cursor=7)
    deliver(sequence=2, number=7, cursor=7)
    deliver(sequence=3, number=8, cursor=8)
    assert net.contents(CONSUMER) == [5, 8]
    assert [record.text for record in net.records if REPEATED in record.text]
