"""GeoRendezvous step by step: who tells whom what, and when."""

from collections.abc import Callable
from typing import Any

import pytest

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals, Topics
from roamcast.protocols.georendezvous.messages import ADVERTISEMENT
from roamcast.testing import TinyNet, line

Build = Callable[..., Any]
CARS = Topics.of("cars")


@pytest.fixture
def road(field: Build, place: Build) -> Any:
    """Cells (1, 7) to (13, 7) with one node each: publisher 0 at the west end, subscribers wherever a test wants."""
    parameters = {"rendezvous_points": 4, "nearest_points": 4, "refresh_period_s": 4.0, "advertisement_period_s": 4.0}
    network = field([place(column, 7) for column in range(1, 14)], "georendezvous", parameters)
    network.net.run(1.0)
    network.net.node(0).advertise(CARS)
    network.net.run(0.5)
    return network


def published(road: Any, content: str = "cars") -> dict[str, int]:
    """Publishes at node 0 and answers with the frames that this caused, by label."""
    before = dict(road.net.frames)
    road.net.publish(0, content)
    road.net.run(0.3)
    return {label: count - before.get(label, 0) for label, count in road.net.frames.items()}


def settle(road: Any) -> None:
    """Lets the publisher's first guess pass, publishes once, and lets subscribers choose."""
    road.net.run(2.0)
    published(road)
    road.net.run(1.0)


def test_section_2_2_only_the_first_subscriber_is_forwarded_to_the_publisher(road: Any) -> None:
    road.net.run(2.5)
    road.net.subscribe(12, CARS)
    road.net.run(0.5)
    first = road.net.frames["Attract"]
    assert first > 0
    road.net.subscribe(11, CARS)
    road.net.run(0.3)
    assert road.net.frames["Attract"] == first


def test_section_2_3_the_first_event_comes_by_every_point_the_next_by_the_shortest_way(road: Any) -> None:
    road.net.subscribe(12, CARS)
    road.net.run(0.5)
    published(road)
    copies = [record for record in road.net.records if record.node == 12 and "duplicate" in record.text]
    assert len(copies) == 3
    road.net.run(1.0)
    after = published(road)
    assert road.net.contents(12) == ["cars", "cars"]
    assert len([record for record in road.net.records if "duplicate" in record.text]) == 3
    first, second = (delivery.hops for delivery in road.net.deliveries)
    assert second <= first
    assert after["Notification"] + after["ForwardedNotification"] == second


def test_prunes_reach_the_publisher_only_when_nobody_is_left(road: Any) -> None:
    road.net.subscribe(12, CARS)
    road.net.subscribe(2, CARS)
    settle(road)
    assert road.net.frames["Repel"] > 0
    published(road)
    assert [delivery.node for delivery in road.net.deliveries[-2:]] == [2, 12]
    road.net.unsubscribe(2, CARS)
    road.net.run(0.5)
    published(road)
    assert road.net.contents(12) == ["cars"] * 3
    assert road.net.contents(2) == ["cars"] * 2
    road.net.unsubscribe(12, CARS)
    road.net.run(0.5)
    assert published(road).get("Notification", 0) == 0


def test_section_2_3_advertisements_stay_and_serve_later_subscribers(road: Any) -> None:
    road.net.subscribe(12, CARS)
    settle(road)
    road.net.unsubscribe(12, CARS)
    road.net.run(3.0)
    shelves = [shelf for node in range(13) for shelf in road.net.node(node).table.store if shelf.present(ADVERTISEMENT)]
    assert {shelf.key for shelf in shelves} >= {f"topic:cars#{point}" for point in range(4)}
    road.net.subscribe(5, CARS)
    road.net.run(0.5)
    published(road)
    assert road.net.contents(5) == ["cars"]


def test_a_client_that_no_longer_refreshes_is_removed_and_the_publisher_told(road: Any) -> None:
    road.net.subscribe(12, CARS)
    settle(road)
    road.net.crash(12)
    road.net.run(45.0)
    assert published(road).get("Notification", 0) == 0


def test_an_event_that_nobody_announced_is_not_lost(road: Any) -> None:
    road.net.subscribe(12, Topics.of("boats"))
    road.net.subscribe(6, Topics.of("*"))
    road.net.run(0.5)
    published(road, "boats")
    assert road.net.contents(12) == ["boats"]
    assert road.net.contents(6) == ["boats"]


def numbers_on_the_road(field: Build, place: Build, filters: bool) -> Any:
    """Publishes 5, 20 and 80 to a subscriber for 0 to 10; 20 shares the bucket of 5, 80 does not."""
    parameters = {
        "interval_buckets": 2,
        "interval_pool": 100.0,
        "rendezvous_points": 2,
        "filter_at_rendezvous": filters,
    }
    road = field([place(column, 7) for column in range(1, 14)], "georendezvous", parameters)
    road.net.run(1.0)
    road.net.subscribe(12, Intervals.of((0, 10)))
    road.net.run(0.5)
    for number in (5, 20, 80):
        road.net.publish(0, number)
        road.net.run(1.0)
    return road


def test_without_a_filter_what_the_bucket_brings_too_much_is_counted(field: Build, place: Build) -> None:
    road = numbers_on_the_road(field, place, filters=False)
    assert road.net.contents(12) == [5]
    unwanted = [record for record in road.net.records if record.node == 12 and "unwanted" in record.text]
    assert len(unwanted) == 1


def test_the_rendezvous_point_forwards_only_what_matches(field: Build, place: Build) -> None:
    road = numbers_on_the_road(field, place, filters=True)
    assert road.net.contents(12) == [5]
    assert not [record for record in road.net.records if "unwanted" in record.text]


def test_a_wider_interest_is_told_at_once(field: Build, place: Build) -> None:
    road = field([place(column, 7) for column in range(1, 14)], "georendezvous", {"refresh_period_s": 60.0})
    road.net.run(1.0)
    road.net.subscribe(12, Intervals.of((0, 10)))
    road.net.run(1.0)
    road.net.subscribe(12, Intervals.of((10, 30)))
    road.net.run(0.5)
    road.net.publish(0, 20)
    road.net.run(0.5)
    assert road.net.contents(12) == [20]


def test_an_interest_that_fits_no_entry_is_not_filtered(field: Build, place: Build) -> None:
    road = field([place(column, 7) for column in range(1, 14)], "georendezvous", {})
    road.net.run(1.0)
    road.net.subscribe(12, Intervals.of(*((2.5 * number, 2.5 * number + 1) for number in range(200))))
    road.net.run(0.5)
    for number in (250, 252):
        road.net.publish(0, number)
        road.net.run(0.5)
    assert road.net.contents(12) == [250]


def test_a_tree_shares_links_that_single_packets_pay_for_twice(field: Build, place: Build) -> None:
    """Two subscribers at the east end of a road, the publisher and the rendezvous point in the west."""
    frames = {}
    for tree in (True, False):
        parameters = {"rendezvous_points": 1, "notification_tree": tree}
        road = field([place(column, 7) for column in range(1, 14)], "georendezvous", parameters)
        road.net.run(1.0)
        for subscriber in (11, 12):
            road.net.subscribe(subscriber, CARS)
        settle(road)
        after = published(road)
        frames[tree] = after["Notification"] + after["ForwardedNotification"]
        assert road.net.contents(11) == road.net.contents(12) == ["cars", "cars"]
    assert frames[True] < frames[False]


def test_a_publisher_sends_one_tree_to_all_points(field: Build, place: Build) -> None:
    frames = {}
    for tree in (True, False):
        parameters = {"rendezvous_points": 8, "nearest_points": 8, "notification_tree": tree}
        road = field([place(column, 7) for column in range(1, 14)], "georendezvous", parameters)
        road.net.run(1.0)
        road.net.subscribe(12, CARS)
        road.net.run(0.5)
        frames[tree] = published(road)["Notification"]
        assert road.net.contents(12) == ["cars"]
    assert frames[True] < frames[False]


def test_an_application_is_not_served_its_own_events(road: Any) -> None:
    road.net.subscribe(0, CARS)
    road.net.run(0.5)
    published(road)
    assert road.net.deliveries == []


def test_a_subscriber_that_moves_chooses_other_points(field: Build, place: Build) -> None:
    parameters = {"rendezvous_points": 8, "nearest_points": 1, "refresh_period_s": 2.0}
    road = field([*(place(column, 7) for column in range(1, 14)), place(13, 7, 0.2, 0.2)], "georendezvous", parameters)
    road.net.run(1.0)
    road.net.node(0).advertise(CARS)
    road.net.subscribe(13, CARS)
    road.net.run(0.5)
    before = road.net.node(13).subscriber.followed["topic:cars"].points
    road.move(13, place(2, 7, 0.2, 0.2))
    road.net.run(4.0)
    assert road.net.node(13).subscriber.followed["topic:cars"].points != before
    published(road)
    assert road.net.contents(13) == ["cars"]
    road.net.run(4.0)
    left = f"topic:cars#{before[0]}"
    shelves = [road.net.node(node).table.store.shelf(left) for node in range(14)]
    assert all(kept.value is None for shelf in shelves if shelf for kept in shelf.kept.values() if kept.owner == 13)


def test_a_wrong_belief_heals_with_the_next_advertisement(road: Any) -> None:
    road.net.run(2.5)
    road.net.drop("Attract", receiver=0, count=4)
    road.net.subscribe(12, CARS)
    road.net.run(6.0)
    published(road)
    assert road.net.contents(12) == ["cars"]


def test_the_replay_can_draw_cells_homes_and_points(road: Any) -> None:
    road.net.subscribe(12, CARS)
    settle(road)
    aspects = {record.text.split()[1] for record in road.net.records if record.kind == "structure"}
    assert aspects == {"cell", "home", "rendezvous", "selected"}


def test_a_node_without_position_or_site_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="site is not set"):
        TinyNet(line(2), "georendezvous")
