"""Waymark, step by step, in networks of a few nodes."""

from typing import Any

from roamcast.events import event_id
from roamcast.interests import Intervals
from roamcast.protocols.api import Site
from roamcast.protocols.waymark.messages import News, Want, Where
from roamcast.protocols.waymark.records import is_newer
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 100))
SITE = Site(1000.0, 1000.0, 250.0)
Links = list[tuple[int, int]]


def settled(links: Links, subscribers: list[int], places: dict[int, tuple[float, float]] | None = None) -> TinyNet[Any]:
    """A network in which everybody knows who wants what."""
    net: TinyNet[Any] = TinyNet(links, "waymark", site=SITE, positions_m=places or {})
    for node in subscribers:
        net.subscribe(node, ALL)
    net.run(25.0)
    return net


def carriers(net: TinyNet[Any], since_s: float) -> list[int]:
    """Who sent the event on."""
    return [
        r.node for r in net.records if r.time_s >= since_s and r.kind in ("broadcast", "send") and "Carry" in r.text
    ]


def test_an_event_takes_the_path_to_its_subscriber_and_no_other() -> None:
    net = settled([*line(4), (0, 4), (4, 5)], [3])
    start_s = net.now_s
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [3]
    assert carriers(net, start_s) == [0, 1, 2]


def test_one_frame_serves_all_neighbours() -> None:
    net = settled([(0, 1), (0, 2), (0, 3), (0, 4)], [1, 2, 3])
    start_s = net.now_s
    event = net.publish(0, 42)
    net.run(2.0)
    assert net.receivers(event) == [1, 2, 3]
    assert carriers(net, start_s) == [0]


def test_nobody_sends_what_nobody_wants() -> None:
    net = settled(line(3), [2])
    start_s = net.now_s
    net.publish(0, 500)
    net.run(1.0)
    assert carriers(net, start_s) == []


def test_places_stand_in_for_lists_of_links() -> None:
    places = {node: (200.0 * node, 0.0) for node in range(4)}
    net = settled(line(4), [3], places)
    known = net.node(0).records.known[3]
    assert known.has_place
    assert known.extra == ()
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [3]


def test_without_places_nodes_tell_their_links() -> None:
    net = settled(line(4), [3])
    assert net.node(0).records.known[2].extra == (1, 3)


def test_a_lost_frame_is_sent_again() -> None:
    net = settled(line(4), [3])
    net.drop("Carry", receiver=2)
    event = net.publish(0, 42)
    net.run(2.0)
    assert net.receivers(event) == [3]


def test_a_leaf_that_confirms_nothing_gets_the_event_again() -> None:
    net = settled([(0, 1), (0, 2)], [1, 2])
    net.drop("Carry", receiver=2)
    event = net.publish(0, 42)
    net.run(0.01)
    assert net.receivers(event) == [1]
    net.run(3.0)
    assert net.receivers(event) == [1, 2]


def test_an_event_goes_around_a_relay_that_crashed() -> None:
    net = settled([(0, 1), (1, 3), (0, 2), (2, 3)], [3])
    event = net.publish(0, 1)
    net.run(1.0)
    relay = carriers(net, 25.0)[1]
    net.crash(relay)
    event = net.publish(0, 2)
    net.run(1.0)
    assert net.receivers(event) == [3]


def test_an_event_goes_around_a_relay_that_only_says_it_has_passed_it_on() -> None:
    """The relay gets the event and acknowledges it, but its own frames with events are lost."""
    net = settled([(0, 1), (1, 3), (0, 2), (2, 3)], [1, 2, 3])
    net.publish(0, 1)
    net.run(1.0)
    relay = carriers(net, 25.0)[1]
    net.drop("Carry", sender=relay, count=None)
    for number in range(2, 8):
        start_s = net.now_s
        event = net.publish(0, number)
        net.run(1.0)
        assert net.receivers(event) == [1, 2, 3]
    assert relay not in carriers(net, start_s)  # it is not asked any more, but still gets what it wants
    assert net.node(0).links.is_idle(relay)


def test_a_relay_that_is_heard_passing_events_on_may_be_missed_once() -> None:
    net = settled([(0, 1), (1, 3), (0, 2), (2, 3)], [3])
    relays: list[int] = []
    for number in range(6):
        start_s = net.now_s
        if number == 4:
            net.drop("Carry", sender=relays[-1], receiver=0)
        event = net.publish(0, number)
        net.run(3.0)
        assert net.receivers(event) == [3]
        relays += carriers(net, start_s)[1:2]
    assert len(set(relays)) == 1
    assert not net.node(0).links.is_idle(relays[0])


def test_an_event_is_kept_until_there_is_a_path() -> None:
    net = settled(line(3), [2])
    net.unlink(1, 2)
    net.run(1.0)
    event = net.publish(0, 42)
    net.run(10.0)
    assert net.receivers(event) == []
    net.link(1, 2)
    net.run(20.0)
    assert net.receivers(event) == [2]


def test_custody_can_be_switched_off() -> None:
    net: TinyNet[Any] = TinyNet(line(3), "waymark", {"custody_s": 0.0})
    net.subscribe(2, ALL)
    net.run(25.0)
    net.unlink(1, 2)
    net.run(1.0)
    event = net.publish(0, 42)
    net.run(10.0)
    net.link(1, 2)
    net.run(30.0)
    assert net.receivers(event) == []


def test_a_node_that_knows_nothing_yet_spreads_its_event() -> None:
    net: TinyNet[Any] = TinyNet(line(4), "waymark")
    net.subscribe(3, ALL)
    event = net.publish(0, 42)
    net.run(0.5)
    assert net.frames["Spread"] >= 3
    assert net.receivers(event) == [3]


def test_a_newcomer_learns_everything_and_everybody_learns_of_it() -> None:
    net = settled(line(4), [0])
    net.restart(3)
    net.subscribe(3, ALL)
    net.run(20.0)
    assert sorted(net.node(3).records.known) == [0, 1, 2, 3]
    from_newcomer, to_newcomer = net.publish(3, 1), net.publish(0, 2)
    net.run(1.0)
    assert net.receivers(from_newcomer) == [0]
    assert net.receivers(to_newcomer) == [3]


def test_a_want_is_served_as_soon_as_the_publisher_hears_of_it() -> None:
    """What was published since the node has wanted it, though nobody else knew."""
    net = settled(line(4), [])
    early = net.publish(0, 41)
    net.run(1.0)
    net.subscribe(3, ALL)
    event = net.publish(0, 42)
    net.run(2.0)
    assert net.receivers(event) == [3]
    assert net.receivers(early) == []


def test_unsubscribing_is_heard_everywhere() -> None:
    net = settled(line(3), [2])
    net.unsubscribe(2, ALL)
    net.run(5.0)
    start_s = net.now_s
    net.publish(0, 42)
    net.run(1.0)
    assert carriers(net, start_s) == []


def test_what_a_node_says_itself_beats_what_others_say_of_it() -> None:
    net = settled(line(3), [2])
    records = net.node(1).records
    number = records.known[2].want_number
    assert records.learn_want(Want(2, number + 500, 0, None), False) == 1
    assert records.known[2].interest is None
    assert records.learn_want(Want(2, number + 1, 0, ALL), True) == 1
    assert records.known[2].interest == ALL


def test_a_node_contradicts_what_was_made_up_about_it() -> None:
    net = settled(line(3), [2])
    made_up = Want(2, net.node(2).records.own.want_number + 7, 0, None)
    net.node(0).on_message(1, News((made_up,)))
    net.node(1).on_message(0, News((made_up,)))
    net.run(30.0)
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [2]


def test_numbers_of_records_cannot_be_used_up() -> None:
    net = settled(line(3), [2])
    for number in (2**31 - 1, 2**32 - 1, 0, net.node(2).records.own.want_number):
        made_up = Want(2, number, 0, None)
        net.node(0).on_message(1, News((made_up,)))
        net.node(1).on_message(0, News((made_up,)))
        net.run(60.0)
        event = net.publish(0, 42)
        net.run(1.0)
        assert net.receivers(event) == [2], number


def test_the_newer_of_two_numbers_is_less_than_half_a_circle_ahead() -> None:
    assert is_newer(5, 4)
    assert not is_newer(4, 5)
    assert not is_newer(4, 4)
    assert is_newer(3, 2**32 - 3)
    assert not is_newer(2**32 - 3, 3)


def test_two_nodes_that_lack_a_third_silence_it_until_it_speaks() -> None:
    places = {0: (0.0, 0.0), 1: (200.0, 0.0), 2: (200.0, 100.0), 3: (350.0, 0.0)}
    net = settled([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], [3], places)
    graph, records = net.node(0).graph, net.node(0).records
    net.run(1.0)
    for node in (1, 2):
        assert not graph.is_silent(3), "one node alone silences nobody"
        known = records.known[node]
        net.node(0).on_message(node, News((), (Where(node, known.where_number + 1, (2000, 0, 0, 0), (), (3,)),)))
    assert graph.is_silent(3)
    net.run(180.0)  # hellos show that 0 was told other things than its neighbours
    assert not graph.is_silent(3)
    event = net.publish(0, 42)
    net.run(1.0)
    assert net.receivers(event) == [3]


def test_no_delivery_twice_and_none_of_its_own() -> None:
    net = settled([(0, 1), (1, 2), (2, 0)], [0, 1, 2])
    event = net.publish(0, 42)
    net.run(5.0)
    assert net.receivers(event) == [1, 2]
    assert event.id == event_id(0, 1)


def test_a_leaf_that_has_left_is_missed_at_once_where_no_place_vouches_for_it() -> None:
    net = settled([(0, 1), (0, 2), (1, 2)], [2])
    net.unlink(0, 2)
    net.run(1.5)  # 0 has not missed a hello of 2 yet, but its link is in doubt
    published_s = net.now_s
    event = net.publish(0, 42)
    net.run(0.2)
    assert net.receivers(event) == [2]
    assert carriers(net, published_s)[-1] == 1


def test_what_a_node_says_first_of_its_links_is_complete() -> None:
    net = settled([*line(5), (1, 3)], [])
    said = net.node(4).records.known[1]
    assert said.extra == (0, 2, 3)
    assert said.where_number % 4096 == 1


def parted(parameters: dict[str, Any]) -> TinyNet[Any]:
    """0 and 1 are linked, 2 wants everything and has just gone out of range of 1."""
    net: TinyNet[Any] = TinyNet(line(3), "waymark", parameters)
    net.subscribe(2, ALL)
    net.run(25.0)
    net.unlink(1, 2)
    net.run(1.0)
    return net


def test_kept_events_leave_in_the_order_of_their_publisher() -> None:
    net = parted({})
    events = [net.publish(0, content) for content in range(5)]
    net.run(5.0)
    net.link(1, 2)
    net.run(30.0)
    assert net.contents(2) == [event.content for event in events]


def test_custody_ends_when_an_event_is_too_old() -> None:
    net = parted({"custody_s": 8.0})
    event = net.publish(0, 42)
    net.run(12.0)
    net.link(1, 2)
    net.run(30.0)
    assert net.receivers(event) == []
    assert any("custody-over" in record.text for record in net.records)


def test_custody_is_bounded_in_bytes_and_the_oldest_go_first() -> None:
    net = parted({"custody_bytes": 300})
    for content in range(6):
        net.publish(0, content, payload=b"x" * 30)
        net.run(0.2)
    net.run(3.0)
    assert all(net.node(node).custody.kept_bytes <= 300 for node in (0, 1))
    net.link(1, 2)
    net.run(30.0)
    arrived = net.contents(2)
    assert 3 <= len(arrived) < 6
    assert arrived == list(range(6 - len(arrived), 6))


def test_where_custody_has_no_room_the_lowest_priority_goes_first() -> None:
    net = parted({"custody_bytes": 300})
    for content, utility in ((1, "0:5"), (2, ""), (3, "0:2"), (4, "0:0.5"), (5, "")):
        net.publish(0, content, payload=b"x" * 30, utility=utility)
        net.run(0.2)
    net.run(3.0)
    net.link(1, 2)
    net.run(30.0)
    assert net.contents(2) == [1, 3, 5]


def test_what_is_too_late_is_not_sent() -> None:
    net = parted({})
    net.publish(0, 1, utility="3s")
    net.publish(0, 2, utility="60s")
    net.run(6.0)
    net.link(1, 2)
    net.run(30.0)
    assert net.contents(2) == [2]


def test_a_utility_that_makes_no_sense_is_none() -> None:
    net = settled(line(4), [3])
    event = net.publish(0, 42, utility="soon, please")
    net.run(1.0)
    assert net.receivers(event) == [3]


def test_a_durable_node_gets_what_was_published_while_it_was_down() -> None:
    for durable, expected in ((True, [7]), (False, [])):
        net: TinyNet[Any] = TinyNet(line(3), "waymark", {"durable": durable})
        net.run(25.0)
        net.crash(2)
        net.run(1.0)
        net.publish(0, 7)
        net.run(5.0)
        net.restart(2)
        net.subscribe(2, ALL)
        net.run(30.0)
        assert net.contents(2) == expected


def test_a_neighbour_that_has_gone_is_forgotten() -> None:
    net = settled(line(3), [2])
    assert sorted(net.node(1).links.known) == [0, 2]
    net.unlink(0, 1)
    net.run(300.0)
    assert sorted(net.node(1).links.known) == [2]
    assert list(net.node(0).links.known) == []
