"""Modulators belong to subscriptions: channels of one consumer, changed while running, refused one by one, moved."""

import struct
from typing import Any

import pytest
from tests.protocols.overlays.network import broker, node

from roamcast.errors import CallerError, ConfigurationError
from roamcast.events import Event, event_id
from roamcast.interests import Intervals
from roamcast.protocols.api import Protocol
from roamcast.protocols.modulation import Modulation
from roamcast.protocols.overlays.messages import ClientDelivery
from roamcast.protocols.overlays.modulators import Modulator, Outcome, compile_modulation
from roamcast.protocols.routing import Routed
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 1000))
LOW, HIGH = Intervals.of((0, 10)), Intervals.of((5, 1000))
QUICK: dict[str, Any] = {
    "unicast": "oracle",
    "bootstrap_s": 2.0,
    "bootstrap_period_s": 0.3,
    "discovery_period_s": 1000.0,
    "update_period_s": 6.0,
    "adaptors": "",
}


def network(links: list[tuple[int, int]], brokers: str, **parameters: Any) -> TinyNet[Protocol]:
    return TinyNet(links, "overlays", QUICK | {"brokers": brokers} | parameters, oracle=True)


def publish(net: TinyNet[Protocol], *contents: int) -> None:
    for content in contents:
        net.publish(0, content)
        net.run(1.5)


def got(net: TinyNet[Protocol], address: int, channel: int) -> list[Any]:
    return [each.event.content for each in net.deliveries if (each.node, each.channel) == (address, channel)]


def test_each_subscription_has_its_own_modulator_and_plain_ones_none() -> None:
    net = network(line(3), "1")
    net.subscribe(2, LOW)
    node(net, 2).open_channel(1, ALL, Modulation("transform(content * 100)"))
    node(net, 2).open_channel(2, HIGH, Modulation("sample(2)"))
    net.run(4.0)
    publish(net, 1, 7, 20, 30)
    assert got(net, 2, 0) == [1, 7]
    assert got(net, 2, 1) == [100.0, 700.0, 2000.0, 3000.0]
    assert got(net, 2, 2) == [7, 30]


def test_a_modulator_changes_while_running_and_the_others_keep_their_state() -> None:
    net = network(line(3), "1")
    node(net, 2).open_channel(1, ALL, Modulation("aggregate(sum, content, 3)"))
    node(net, 2).open_channel(2, ALL, Modulation("sample(2)"))
    net.run(4.0)
    publish(net, 1, 2)
    node(net, 2).open_channel(2, ALL, Modulation("transform(content + 0.5)"))
    net.run(2.0)
    publish(net, 3, 4)
    assert got(net, 2, 1) == [6.0]
    assert got(net, 2, 2) == [1, 3.5, 4.5]
    node(net, 2).close_channel(1)
    net.run(2.0)
    publish(net, 5, 6, 7)
    assert got(net, 2, 1) == [6.0]
    assert got(net, 2, 2)[-3:] == [5.5, 6.5, 7.5]


def test_a_refused_modulator_stops_its_channel_alone_and_the_application_hears_why() -> None:
    net = network(line(3), "1")
    net.subscribe(2, LOW)
    node(net, 2).open_channel(1, ALL, Modulation("sample(1)"))
    node(net, 2).open_channel(2, ALL, Modulation("sample(1)"))
    node(net, 2).member._modulations[2] = Modulation("resample(2)")  # our own client would not say such a thing
    net.run(4.0)
    publish(net, 3, 4)
    assert (got(net, 2, 0), got(net, 2, 1), got(net, 2, 2)) == ([3, 4], [3, 4], [])
    assert "resample" in node(net, 2).refusal(2)
    assert node(net, 2).refusal(1) == ""
    assert net.transcript("refused").count("is refused the modulator of channel 2: modulator: one of filter") == 1
    node(net, 2).open_channel(2, ALL, Modulation("transform(content + 10)"))
    net.run(3.0)
    publish(net, 5)
    assert got(net, 2, 2)[-1] == 15.0
    assert node(net, 2).refusal(2) == ""


class Failing(Modulator):
    """Fails with its second event."""

    def __init__(self) -> None:
        self._seen = 0

    def process(self, event: Event) -> Outcome:
        self._seen += 1
        return Outcome((event,)) if self._seen < 2 else Outcome((), failure="modulator: out of fuel")

    def cost_s(self, event: Event) -> float:
        return 0.001

    def state(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def test_a_modulator_that_fails_is_stopped_and_its_consumer_hears_why() -> None:
    net = network(line(3), "1")
    node(net, 2).open_channel(1, ALL, Modulation("sample(1)"))
    net.subscribe(2, LOW)
    net.run(4.0)
    broker(net, 1).clients.table[2].channels[1].modulator = Failing()
    publish(net, 1, 2, 3)
    assert got(net, 2, 1) == [1]
    assert got(net, 2, 0) == [1, 2, 3]
    assert node(net, 2).refusal(1) == "modulator: out of fuel"
    assert 1 not in broker(net, 1).clients.table[2].channels


def test_channels_and_their_states_travel_together() -> None:
    net = network([(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)], "1-3")
    node(net, 4).open_channel(1, ALL, Modulation("aggregate(sum, content, 4)"))
    node(net, 4).open_channel(2, HIGH, Modulation("sample(2)"))
    net.run(4.0)
    publish(net, 1, 10)
    home = node(net, 4).member.home
    assert broker(net, home).relocation.migrate(4, 5 - home)
    net.run(2.0)
    assert node(net, 4).member.home == 5 - home
    publish(net, 20, 30)
    assert got(net, 4, 1) == [61.0]
    assert got(net, 4, 2) == [10, 30]


def test_another_home_broker_is_asked_again_for_what_the_first_refused() -> None:
    net = network([(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)], "1-3", home_check_s=0.5)
    node(net, 4).open_channel(1, ALL, Modulation("sample(1)"))
    net.run(4.0)
    home = node(net, 4).member.home
    broker(net, home).clients.table[4].channels[1].modulator = Failing()
    publish(net, 1, 2)
    assert node(net, 4).refusal(1)
    net.crash(home)
    node(net, 4).member._seek_home()
    net.run(30.0)
    assert node(net, 4).member.home not in (home, -1)
    publish(net, 3)
    assert got(net, 4, 1)[-1] == 3
    assert node(net, 4).refusal(1) == ""


def test_several_outcomes_of_one_event_arrive_once_each_whatever_is_made_again() -> None:
    """A home broker is lost after the first of two outcomes: the next one makes both again."""
    net = network(line(3), "1")
    node(net, 2).open_channel(1, ALL, Modulation("sample(1)"))
    net.subscribe(2, ALL)
    net.run(4.0)
    member = node(net, 2).member
    event = Event(event_id(0, 7), 0.0, 70)

    def told(sequence: int, channel: int, part: int, cursors: tuple[tuple[int, int], ...]) -> None:
        delivery = ClientDelivery(
            epoch=member._home.epoch,
            sequence=sequence,
            site=1,
            hops=1,
            event=event,
            cursors=cursors,
            channel=channel,
            part=part,
        )
        net.node(2).on_message(1, Routed(1, 2, 1, 0, delivery))

    told(1, 0, 0, ())
    told(2, 0, 0, ())  # again
    told(3, 1, 1, ((0, 7),))
    told(4, 1, 1, ((0, 7),))
    net.run(0.2)
    assert (got(net, 2, 0), got(net, 2, 1)) == ([70], [70])


def test_the_client_information_table_knows_where_a_client_is() -> None:
    parameters = QUICK | {"brokers": "1", "discovery_period_s": 2.0}
    net: TinyNet[Protocol] = TinyNet(line(3), "overlays", parameters, oracle=True, positions_m={2: (30.0, 40.0)})
    net.subscribe(2, ALL)
    net.run(8.0)
    row = broker(net, 1).clients.table[2]
    assert (row.position, row.home_hops) == ((30.0, 40.0), 1)


def test_what_cannot_be_sent_is_refused_at_the_call() -> None:
    net = network(line(2), "0")
    with pytest.raises(ConfigurationError, match="modulator: one of"):
        node(net, 1).open_channel(1, ALL, Modulation("explode(1)"))
    large = tuple((f"part{number}", bytes(90_000)) for number in range(2))
    with pytest.raises(ConfigurationError, match="together have 180009 bytes; allowed"):
        node(net, 1).open_channel(1, ALL, Modulation("sample(1)", large))
    for channel in range(1, 16):
        node(net, 1).open_channel(channel, ALL, Modulation("sample(1)"))
    with pytest.raises(ConfigurationError, match="at most 15"):
        node(net, 1).open_channel(16, ALL, Modulation("sample(1)"))
    flooding: TinyNet[Protocol] = TinyNet(line(2), "flooding")
    with pytest.raises(CallerError, match="flooding does not modulate"):
        flooding.node(1).open_channel(1, ALL, Modulation("sample(1)"))


def test_what_stays_the_same_in_front_of_a_change_keeps_its_state() -> None:
    net = network(line(3), "1")
    node(net, 2).open_channel(1, ALL, Modulation("moving(sum, content, 9) | transform(content + 1)"))
    net.run(4.0)
    publish(net, 1, 2)
    node(net, 2).open_channel(1, ALL, Modulation("moving(sum, content, 9)|transform(content * 10)"))
    net.run(2.0)
    publish(net, 3)
    node(net, 2).open_channel(1, ALL, Modulation("moving(sum, content, 8)|transform(content * 10)"))
    net.run(2.0)
    publish(net, 4)
    assert got(net, 2, 1) == [2.0, 4.0, 60.0, 40.0]


def test_a_flood_of_the_papers_size_moves_with_its_water() -> None:
    """Figures 16 and 17: grids of 100 x 100 doubles. Here the modulator is the real model, and it moves half way."""
    net = network([(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)], "1-3")
    whole = Modulation("runoff(100, plane, 60, 2) | crop(100, 45, 60, 55, 70) | measure(max)")
    node(net, 4).open_channel(1, ALL, whole)
    net.run(4.0)
    rain = struct.pack("<d", 60.0) * 10_000
    alone = compile_modulation(whole)
    expected: list[Any] = []
    for number in range(1, 5):
        net.publish(0, 1, rain)
        net.run(3.0)
        expected += [output.content for output in alone.process(Event(event_id(0, number), 0.0, 1, rain)).outputs]
        if number == 2:
            home = node(net, 4).member.home
            assert broker(net, home).relocation.migrate(4, 5 - home)
            net.run(3.0)
            assert node(net, 4).member.home == 5 - home
    assert got(net, 4, 1) == expected
    assert expected == sorted(expected)
    assert expected[-1] > 0.001
