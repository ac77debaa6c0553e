"""Pub/Sub ODMRP step by step, on networks of a few nodes. Sections are the paper's."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from roamcast.errors import ConfigurationError
from roamcast.interests import Intervals, Topics, XPaths
from roamcast.interests.content import register, write
from roamcast.protocols.api import Host, Site
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.protocols.odmrp.context import questions_as_context
from roamcast.protocols.odmrp.mesh import UNCONFIRMED
from roamcast.protocols.odmrp.messages import JoinRequest, JoinTable, MemberEntry
from roamcast.protocols.odmrp.odmrp import Odmrp
from roamcast.protocols.odmrp.packed import JoinQuestion
from roamcast.protocols.odmrp.parameters import AS_PUBLISHED, OdmrpParameters
from roamcast.protocols.odmrp.publisher import NO_MEMBER
from roamcast.testing import TinyNet, line

LOW, HIGH = Intervals.of((0, 5000)), Intervals.of((5000, 10_000))
PLAIN: dict[str, Any] = {**AS_PUBLISHED, "shared_mesh": False}  # a forwarding group for each publisher
BRANCHES = [(0, 1), (1, 2), (1, 3), (3, 4)]  # a publisher, and two branches of which one is interested


def network(links: list[tuple[int, int]], **parameters: Any) -> TinyNet[Odmrp]:
    settings = OdmrpParameters(**{**PLAIN, "jitter_s": 0.0, **parameters})
    return TinyNet(links, lambda host: Odmrp(host, settings))


def with_brokers(links: list[tuple[int, int]], brokers: set[int], **parameters: Any) -> TinyNet[Odmrp]:
    def make(host: Host) -> Odmrp:
        share = 1.0 if host.address in brokers else 0.0
        return Odmrp(host, OdmrpParameters(**{**PLAIN, "broker_share": share, **parameters}))

    return TinyNet(links, make)


def senders(net: TinyNet[Odmrp], label: str, since_s: float = 0.0) -> list[int]:
    """Who sent frames with this label, in order."""
    found = [each for each in net.records if each.kind in ("broadcast", "send") and each.time_s >= since_s]
    return [each.node for each in found if f"  {label} " in f"{each.text} "]


def publish_later(net: TinyNet[Odmrp], delay_s: float, content: int | str) -> None:
    def publish() -> None:
        net.publish(0, content)

    net.after(delay_s, publish)


def question_of(content: int) -> JoinQuestion:
    encoder = OdmrpParameters().encoder()
    digest = encoder.digest(content)
    assert digest is not None
    return encoder.family.question(digest, 12.0)


def request(sequence: int, *questions: JoinQuestion, publisher: int = 0, life: int = 1) -> JoinRequest:
    context = questions_as_context(list(questions))
    return JoinRequest(publisher, life, sequence, hops=1, context=context, listing=0, channels=())


def forwarders(net: TinyNet[Odmrp], publisher: int = 0) -> list[int]:
    return [address for address in net.addresses if net.node(address).mesh.downstream.get(publisher)]


def test_the_operation_of_figure_5() -> None:
    """Section 3.5: every node repeats the request, only the interested answer, and only nodes on the paths to them
    forward."""
    net = network(BRANCHES)
    net.subscribe(2, LOW)
    net.subscribe(4, HIGH)
    net.publish(0, 42)
    net.run(2.0)
    assert sorted(senders(net, "JoinRequest")) == [0, 1, 2, 3, 4]
    assert senders(net, "JoinTable") == [2, 1]
    assert forwarders(net) == [1]
    assert senders(net, "Data") == [0, 1]
    assert net.contents(2) == [42]
    assert net.contents(4) == []
    assert [(each.node, each.hops) for each in net.deliveries] == [(2, 2)]
    assert not net.transcript("dropped")


def test_an_event_that_nobody_wants_stays_at_home() -> None:
    net = network(line(3))
    net.publish(0, 42)
    net.run(2.0)
    assert senders(net, "Data") == []
    assert NO_MEMBER in net.transcript("dropped")


def test_a_question_that_stands_is_not_asked_again_until_the_refresh() -> None:
    """Section 3.5.1: requests are periodic while the publisher sends."""
    net = network(line(3))
    net.subscribe(2, LOW)
    for second in range(16):
        publish_later(net, second + 0.1, 42)
    net.run(30.0)
    asked = [each.time_s for each in net.records if each.node == 0 and "JoinRequest" in each.text]
    assert asked == pytest.approx([0.1, 5.1, 10.1, 15.1])
    assert len(net.contents(2)) == 16
    first, *later = latencies_s(net)
    assert 0.05 < first < 0.15  # the way there and back, and the pause for others' answers
    assert max(later) < 0.01  # also when the refresh moves the newcomer to its channel


def test_only_members_that_are_not_known_yet_wait_for_their_routes() -> None:
    """A new digest is asked for, but members known to want the event get it at once (3.5.3)."""
    net = network([*line(4), (1, 4), (4, 5)])
    net.subscribe(3, LOW)
    net.publish(0, 42)
    net.run(1.0)
    net.subscribe(5, Intervals.of((3000, 5000)))
    net.publish(0, 4000)
    net.run(2.0)
    assert net.contents(3) == [42, 4000]
    assert net.contents(5) == [4000]
    to_known, to_newcomer = (each for each in net.deliveries if each.event.content == 4000)
    assert (to_known.node, to_newcomer.node) == (3, 5)
    assert to_known.time_s - to_known.event.time_s < 0.01
    assert 0.05 < to_newcomer.time_s - to_newcomer.event.time_s < 0.15
    # In the second sending node 2, which leads to the member that has the event, keeps still.
    assert senders(net, "Data", since_s=to_known.event.time_s) == [0, 1, 2, 0, 1, 4]


def test_a_near_member_does_not_wait_for_the_answers_of_far_ones() -> None:
    net = network(line(8))
    net.subscribe(1, LOW)
    net.subscribe(7, LOW)
    net.publish(0, 42)
    net.run(2.0)
    near, far = net.deliveries
    assert (near.node, far.node) == (1, 7)
    assert near.time_s < 0.1
    assert senders(net, "Data").count(0) == 2


def test_a_member_whose_route_broke_gets_the_event_over_its_new_one() -> None:
    net = network([(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)])
    net.subscribe(2, LOW)
    net.publish(0, 42)
    net.run(1.0)
    assert forwarders(net) == [1]
    net.crash(1)
    net.publish(0, 4000)  # known to be wanted: it is sent over the old, broken route, and its digest is asked for
    net.run(1.0)
    assert net.contents(2) == [42, 4000]
    assert set(forwarders(net)) >= {3, 4}


def test_answers_to_an_event_that_has_arrived_do_not_bring_it_again() -> None:
    net = network(line(4))
    net.subscribe(3, LOW)
    for content in (42, 1000, 2000, 3000, 4000):  # five digests
        net.publish(0, content)
        net.run(3.0)
    assert net.contents(3) == [42, 1000, 2000, 3000, 4000]
    assert senders(net, "JoinRequest").count(0) == 5
    assert senders(net, "Data") == [0, 1, 2] * 5


def test_an_event_is_not_sent_for_ever() -> None:
    """Whatever answers come, one after the other."""
    net = network([(0, 1)], route_wait_s=10.0)
    net.publish(0, 42)
    told = net.node(1).clients
    told.add(1, LOW)
    context = told.told().context
    for number in range(40):
        net.run(0.2)
        net.node(0).on_message(1, JoinTable(0, 0, (MemberEntry(100 + number, 1, context),)))
    net.run(5.0)
    assert senders(net, "Data") == [0] * 16


def latencies_s(net: TinyNet[Odmrp]) -> list[float]:
    return [each.time_s - each.event.time_s for each in net.deliveries]


def test_an_advertisement_sets_routes_up_before_there_is_data() -> None:
    """Section 3.5.1, advertisement mode."""
    net = network(line(4), advertisement=True)
    net.subscribe(3, LOW)
    net.node(0).advertise(Intervals.of((0, 10_000)))
    net.run(1.0)
    assert forwarders(net) == [1, 2]
    net.publish(0, 42)
    net.run(0.1)
    assert net.contents(3) == [42]
    net.publish(0, 7000)  # of the same type, but wanted by nobody
    net.run(0.1)
    assert len(senders(net, "Data")) == 3
    net.run(40.0)
    quiet_s = net.now_s
    net.run(60.0)
    assert senders(net, "JoinRequest", since_s=quiet_s) == []  # a publisher that falls silent stops asking


def test_a_member_known_for_one_type_of_events_is_found_for_another() -> None:
    register((Path(__file__).parents[3] / "examples" / "sighting.xsd").read_text(encoding="utf-8"))
    golf = golf_document("woods", 15)
    sighting = write("sighting", {"@team": "a", "sector": "north", "altitude": 1200, "urgency": "now"})
    net = network(line(4), advertisement=True)
    for expression in ("/PGMFORUM", "/sighting"):
        net.subscribe(3, XPaths.parse(expression))
    net.publish(0, golf)
    net.run(12.0)  # node 0 has asked again, and lists node 3 with the version that it knows
    net.publish(0, sighting)
    net.run(3.0)
    assert net.contents(3) == [golf, sighting]


def test_soft_state_fades_when_a_member_leaves() -> None:
    """Section 3.6: no message is needed to leave the group."""
    net = network(line(3), advertisement=True)
    net.subscribe(2, LOW)
    for second in range(60):
        publish_later(net, second + 0.1, 42)
    net.run(10.0)
    assert forwarders(net) == [1]
    got = len(net.contents(2))
    net.unsubscribe(2, LOW)
    net.run(35.0)
    assert len(net.contents(2)) == got
    assert forwarders(net) == []
    left_s = net.now_s
    net.run(20.0)
    assert senders(net, "Data", since_s=left_s) == []
    assert net.transcript("structure").splitlines()[-1].endswith("1 is forwarding peer=0")


def test_a_lost_join_table_is_sent_again() -> None:
    net = network(line(4))
    net.subscribe(3, LOW)
    net.drop("JoinTable", sender=2, receiver=1, count=2)
    net.publish(0, 42)
    net.run(2.0)
    assert net.contents(3) == [42]
    assert senders(net, "JoinTable").count(2) == 3


def test_a_lost_confirmation_brings_an_acknowledgement() -> None:
    net = network(line(4))
    net.subscribe(3, LOW)
    net.drop("JoinTable", sender=1, receiver=2)  # node 2 does not overhear that its table was passed on
    net.publish(0, 42)
    net.run(2.0)
    assert senders(net, "JoinAck").count(1) == 1
    assert net.contents(3) == [42]
    assert UNCONFIRMED not in net.transcript()


def test_a_member_that_cannot_be_reported_is_given_up() -> None:
    net = network(line(3))
    net.subscribe(2, LOW)
    net.drop("JoinTable", sender=2, receiver=1, count=None)
    net.publish(0, 42)
    net.run(3.0)
    assert senders(net, "JoinTable") == [2, 2, 2]
    assert UNCONFIRMED in net.transcript("dropped")
    assert net.contents(2) == []


@pytest.mark.parametrize(("filtering", "expected"), [(True, [0]), (False, [0, 1, 3])])
def test_relays_filter_by_the_summaries_behind_them(filtering: bool, expected: list[int]) -> None:
    """Section 3.5.2, the optional filter. The event is sent for a member near the publisher only."""
    net = network([*BRANCHES, (0, 5)], forwarding_filter=filtering, grouping="graph", advertisement=True)
    net.subscribe(4, LOW)
    net.subscribe(5, HIGH)
    net.node(0).advertise(LOW)
    net.run(6.0)
    began_s = net.now_s
    net.publish(0, 7000)
    net.run(1.0)
    assert net.contents(5) == [7000]
    assert senders(net, "Data", since_s=began_s) == expected


def test_channels_separate_members_without_filters() -> None:
    """Section 3.4.3: an event travels only to the members of the channels that it matches."""
    net = network([*BRANCHES, (0, 5)], forwarding_filter=False, grouping="k-means", advertisement=True)
    net.subscribe(4, LOW)
    net.subscribe(5, HIGH)
    net.node(0).advertise(LOW)
    net.run(6.0)
    assert len(net.node(0).publisher.channels) == 2
    assert "is channels value=2" in net.transcript("structure")
    began_s = net.now_s
    net.publish(0, 7000)
    net.run(1.0)
    assert net.contents(5) == [7000]
    assert senders(net, "Data", since_s=began_s) == [0]


def test_a_changed_subscription_counts_at_the_next_request() -> None:
    net = network(line(3), advertisement=True)
    net.subscribe(2, LOW)
    net.node(0).advertise(LOW)
    net.run(7.0)  # a member of a channel by now, which the publisher knows by heart
    net.unsubscribe(2, LOW)
    net.subscribe(2, HIGH)
    net.run(5.0)
    net.publish(0, 7000)
    net.publish(0, 42)
    net.run(1.0)
    assert net.contents(2) == [7000]


@pytest.mark.parametrize(("at_once", "got"), [(True, [42]), (False, [])])
def test_a_new_subscription_may_be_told_at_once(at_once: bool, got: list[int]) -> None:
    net = network(line(4), advertisement=True, join_at_once=at_once)
    net.node(0).advertise(LOW)
    net.run(1.0)
    net.subscribe(3, HIGH)
    net.run(0.5)
    net.subscribe(3, LOW)  # another version, on the same path
    net.run(0.5)
    net.publish(0, 42)
    net.run(0.5)
    assert net.contents(3) == got


def test_a_false_positive_never_reaches_the_application() -> None:
    net = network(line(2), range_buckets=1)  # all numbers look alike
    net.subscribe(1, LOW)
    net.publish(0, 7000)
    net.run(2.0)
    assert senders(net, "Data") == [0]
    assert net.contents(1) == []
    assert "false-positive" in net.transcript("dropped")


def test_events_reach_two_members_once_each_over_a_mesh() -> None:
    net = network([(0, 1), (0, 2), (1, 3), (2, 3), (1, 2), (3, 4)])
    for member in (3, 4):
        net.subscribe(member, Topics.of("fire/**"))
    for number in range(5):
        publish_later(net, number * 2.0, "fire/north")
    net.run(15.0)
    assert net.contents(3) == net.contents(4) == ["fire/north"] * 5


def test_two_publishers_do_not_mix() -> None:
    net = network(line(5))
    net.subscribe(2, XPaths.parse("/PGMFORUM"))
    net.subscribe(0, LOW)
    net.publish(4, 42)
    net.run(2.0)
    assert net.contents(0) == [42]
    assert forwarders(net, 4) == [1, 2, 3]
    assert forwarders(net, 0) == []


def test_a_publisher_that_returns_is_believed() -> None:
    net = network(line(3))
    net.subscribe(2, LOW)
    net.publish(0, 42)
    net.run(5.0)
    net.restart(0)
    net.publish(0, 43)
    net.run(5.0)
    assert net.contents(2) == [42, 43]


def test_a_request_that_a_newer_one_overtakes_is_answered_and_passed_on() -> None:
    net = network(line(3))
    net.subscribe(1, LOW)
    wanted, unwanted = question_of(42), question_of(7000)
    net.node(1).on_message(0, request(8, unwanted))
    net.node(1).on_message(0, request(7, wanted))
    net.node(1).on_message(0, request(7, wanted))
    net.run(0.05)
    assert senders(net, "JoinRequest").count(1) == 2
    assert senders(net, "JoinTable") == [1]
    assert net.node(1).mesh.routes[0].newest == (1, 8)


def test_an_event_that_leaves_when_channels_change_still_arrives() -> None:
    """Published at the very instant of the refresh that gives the newcomer its channel."""
    net = network(line(5), jitter_s=0.01)
    net.subscribe(4, LOW)
    net.publish(0, 42)
    for delay_s in (2.5, 5.0, 5.0, 10.0):
        publish_later(net, delay_s, 42)
    net.run(12.0)
    assert net.contents(4) == [42] * 5


def test_the_list_of_members_travels_when_it_has_changed() -> None:
    net = network(line(3), advertisement=True, member_list_every=4)
    net.subscribe(2, LOW)
    net.node(0).advertise(LOW)
    for second in range(60):
        publish_later(net, second + 0.5, 42)
    net.run(61.0)
    assert len(net.contents(2)) == 60
    route = net.node(1).mesh.routes[0]
    assert route.knows_channels
    assert route.channels == {2: 1}
    assert net.node(0).publisher._listing == 1, "one list, told several times"
    long, short = (max(sizes) for sizes in request_sizes(net))
    assert long > short


def request_sizes(net: TinyNet[Odmrp]) -> tuple[list[int], list[int]]:
    """Bytes of the requests with and without a list that the publisher would send from now on."""
    publisher = net.node(0).publisher
    with_list: list[int] = []
    without: list[int] = []
    for _ in range(8):
        listed = publisher._list_to_send()
        asked = msgspec.structs.replace(request(1, question_of(42)), channels=listed)
        (without if listed is None else with_list).append(len(msgspec.msgpack.encode(asked)))
    assert len(with_list) == 2
    return with_list, without


def test_a_relay_that_missed_the_list_forwards_for_all() -> None:
    net = network(line(3), advertisement=True, member_list_every=1000, forwarding_filter=False)
    net.subscribe(2, LOW)
    net.node(0).advertise(LOW)
    net.run(4.0)
    net.drop("JoinRequest", sender=0, receiver=1, count=1)  # the one with the list
    publish_later(net, 3.0, 42)
    net.run(9.0)
    assert not net.node(1).mesh.routes[0].knows_channels
    net.publish(0, 43)
    net.run(1.0)
    assert net.contents(2) == [42, 43]


@pytest.mark.parametrize(("shared", "got"), [(True, [42, 43]), (False, [42])])
def test_forwarding_groups_of_several_publishers_form_one_mesh(shared: bool, got: list[int]) -> None:
    """Sections 2.2 and 3.5.2: nodes 1 and 2 both lead to the member, each for another publisher. When node 1 dies, the
    redundant path over node 2 carries the events of node 0 too."""
    net = network([(0, 1), (1, 4), (0, 2), (2, 4), (3, 2)], advertisement=True, shared_mesh=shared)
    net.subscribe(4, LOW)
    net.node(0).advertise(LOW)
    net.node(3).advertise(LOW)
    net.run(1.0)
    net.publish(0, 42)
    net.run(0.5)
    assert forwarders(net, 0) == [1]
    assert forwarders(net, 3) == [2]
    net.crash(1)
    net.publish(0, 43)
    net.run(0.5)
    assert net.contents(4) == got


def test_more_members_than_fit_a_frame_have_channels() -> None:
    """The list once ended after 80 members."""
    star = [(0, member) for member in range(1, 121)]
    net = network(star, advertisement=True)
    for member in range(1, 121):
        net.subscribe(member, LOW if member % 2 else HIGH)
    net.node(0).advertise(LOW)
    net.run(8.0)
    channels = net.node(0).publisher.channels
    assert sorted(len(members) for members in channels.values()) == [60, 60]
    net.publish(0, 42)
    net.run(1.0)
    assert [net.contents(member) for member in (1, 2, 119, 120)] == [[42], [], [42], []]


# -- Brokers and clients -----------------------------------------------------------------------------------------


def test_clients_publish_and_subscribe_through_brokers() -> None:
    """Section 3.5: unicast between clients and brokers."""
    net = with_brokers(line(6), {1, 4})
    net.subscribe(5, LOW)
    net.subscribe(3, LOW)
    net.run(3.0)
    assert [net.node(client).attachment.home for client in (0, 2, 3, 5)] == [1, 1, 4, 4]
    net.publish(0, 42)
    net.run(3.0)
    assert net.contents(5) == net.contents(3) == [42]
    assert "is home peer=1" in net.transcript("structure")
    assert next(each.hops for each in net.deliveries if each.node == 5) == 5


def test_clients_of_one_broker_need_no_mesh() -> None:
    net = with_brokers(line(3), {1})
    net.subscribe(2, LOW)
    net.subscribe(0, LOW)
    net.run(3.0)
    net.publish(0, 42)
    net.run(3.0)
    assert net.contents(2) == [42]
    assert net.contents(0) == []  # nobody is served its own events
    assert senders(net, "Data") == []


def test_a_client_whose_broker_dies_finds_another() -> None:
    net = with_brokers([(0, 1), (0, 2), (1, 2), (2, 3)], {1, 2}, client_refresh_s=2.0)
    net.subscribe(0, LOW)
    net.run(3.0)
    home = net.node(0).attachment.home
    other = 3 - home
    net.crash(home)
    net.run(15.0)
    assert net.node(0).attachment.home == other
    net.publish(3, 42)
    net.run(5.0)
    assert net.contents(0) == [42]


def test_a_broker_forgets_a_silent_client() -> None:
    net = with_brokers(line(2), {1}, client_refresh_s=2.0)
    net.subscribe(0, LOW)
    net.run(3.0)
    assert net.node(1).clients.addresses == [0]
    net.crash(0)
    net.run(10.0)
    assert net.node(1).clients.addresses == []


def test_a_client_keeps_its_events_until_it_has_a_broker() -> None:
    net = with_brokers([(0, 1)], {2, 1})
    net.unlink(0, 1)
    net.subscribe(1, LOW)
    net.publish(0, 42)
    net.run(4.0)
    assert net.contents(1) == []
    net.link(0, 1)
    net.run(10.0)
    assert net.contents(1) == [42]


def test_a_client_that_unsubscribes_is_not_served_any_more() -> None:
    net = with_brokers(line(3), {1})
    net.subscribe(2, LOW)
    net.subscribe(2, HIGH)
    net.run(3.0)
    net.unsubscribe(2, LOW)
    net.run(1.0)
    net.publish(0, 42)
    net.publish(0, 7000)
    net.run(3.0)
    assert net.contents(2) == [7000]


def test_many_subscriptions_travel_in_parts() -> None:
    net = with_brokers(line(3), {1})
    for low in range(0, 8000, 1000):
        net.subscribe(2, Intervals.of((low, low + 10)))
    net.run(3.0)
    assert net.frames["Attach"] >= 2
    for content in (5, 7005, 500):
        net.publish(0, content)
    net.run(3.0)
    assert sorted(net.contents(2), key=float) == [5, 7005]


def test_a_constrained_client_sends_filters_made_from_what_its_user_entered() -> None:
    """Section 3: devices without XML produce Bloom filters from the user's input directly."""
    net = with_brokers(line(3), {1}, client_filters=True)
    net.run(1.0)
    net.node(2).subscribe_values("PGMFORUM", {"player": "woods", "hole": (10, 18)})
    net.run(1.0)
    wanted = [net.node(1).clients._owner[row][1] for row in net.node(1).clients._rows[2]]
    assert [type(each).__name__ for each in wanted] == ["PackedEntry"]
    for player, hole in (("woods", 15), ("woods", 3), ("els", 15)):
        net.publish(0, golf_document(player, hole))
        net.run(1.0)
    assert net.contents(2) == [golf_document("woods", 15)]


def golf_document(player: str, hole: int) -> str:
    values: dict[str, int | str] = {"@id": "001", "player": player, "hole": hole, "holescore": 4}
    return write("PGMFORUM", values | {"totalscore": 9, "currentrank": 1})


ADVERTISING = {"advertisement": True, "client_refresh_s": 2.0}


def test_a_client_advertises_through_its_broker() -> None:
    """Section 3.5.1 for a publisher that is not its own broker: the way from the broker is there before the event."""
    net = with_brokers(line(6), {1, 4}, **ADVERTISING)
    net.subscribe(5, LOW)
    net.run(3.0)
    net.node(0).advertise(Intervals.of((0, 10_000)))
    net.run(1.0)
    assert forwarders(net, 1) == [2, 3]
    published_s = net.now_s
    net.publish(0, 42)
    net.run(0.2)
    assert net.contents(5) == [42]
    assert senders(net, "JoinRequest", since_s=published_s) == []


def test_a_client_without_a_broker_advertises_as_soon_as_it_has_one() -> None:
    net = with_brokers(line(3), {1}, **ADVERTISING)
    net.node(0).advertise(LOW)
    net.run(2.0)
    assert sorted(senders(net, "JoinRequest")) == [0, 1, 2]


def test_advertisements_of_clients_fade_if_no_event_follows() -> None:
    """A client that stays, and repeats what it advertises, does not keep its broker asking for ever (3.6)."""
    net = with_brokers(line(3), {1}, **ADVERTISING)
    net.node(0).advertise(LOW)
    net.run(40.0)
    quiet_s = net.now_s
    net.run(60.0)
    assert senders(net, "JoinRequest", since_s=quiet_s) == []
    net.node(0).advertise(Topics.of("fire/**"))  # another type
    net.run(1.0)
    assert senders(net, "JoinRequest", since_s=quiet_s).count(1) == 1


def test_clients_do_not_advertise_where_brokers_ask_per_event() -> None:
    net = with_brokers(line(3), {1})
    net.node(0).advertise(LOW)
    net.run(3.0)
    assert net.node(1).clients.addresses == [0, 2]
    assert senders(net, "JoinRequest") == []


def test_a_client_that_moves_advertises_at_its_next_broker() -> None:
    net = with_brokers([(0, 1), (1, 2), (2, 3), (3, 4)], {1, 3}, **ADVERTISING)
    net.subscribe(2, LOW)
    net.node(0).advertise(LOW)
    net.run(3.0)
    assert net.node(0).attachment.home == 1
    net.unlink(0, 1)
    net.link(0, 4)
    assert 3 not in net.node(1).mesh.routes
    net.run(20.0)
    assert net.node(0).attachment.home == 3
    assert 0 not in net.node(1).clients.addresses
    assert 3 in net.node(1).mesh.routes
    published_s = net.now_s
    net.publish(0, 42)
    net.run(0.2)
    assert net.contents(2) == [42]
    assert senders(net, "JoinRequest", since_s=published_s) == []


def test_a_client_whose_broker_dies_advertises_at_another() -> None:
    net = with_brokers([(0, 1), (0, 2), (1, 2), (2, 3)], {1, 2}, **ADVERTISING)
    net.subscribe(3, LOW)
    net.node(0).advertise(LOW)
    net.run(3.0)
    home = net.node(0).attachment.home
    net.crash(home)
    net.run(15.0)
    other = 3 - home
    assert net.node(0).attachment.home == other
    assert other in net.node(3).mesh.routes  # as a publisher
    net.publish(0, 42)
    net.run(5.0)
    assert net.contents(3) == [42]


def test_a_client_that_repeats_itself_changes_nothing() -> None:
    net = with_brokers(line(3), {1, 0}, client_refresh_s=1.0)
    net.subscribe(2, LOW)
    net.run(3.0)
    told = net.node(1).clients.told()
    net.run(5.0)
    assert net.node(1).clients.told() is told


# -- Parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"forwarding_timeout_s": 4.0}, "above refresh_interval_s"),
        ({"bloom_bits": 100}, "multiple of 8"),
        ({"bloom_hashes": 0}, "between 1 and 16"),
        ({"grouping": "random"}, "random"),
        ({"unicast": "ospf"}, "ospf"),
        ({"refresh_max_s": 0.5}, "at least refresh_min_s"),
        ({"confirm_timeout_s": 0.01}, "above table_pause_s"),
        ({"broker_share": 1.5}, "between 0 and 1"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigurationError, match="odmrp") as refusal:
        protocol_parameters("odmrp", settings)
    assert reason in str(refusal.value)


def test_site_is_needed_for_prediction_only() -> None:
    net: TinyNet[Odmrp] = TinyNet(
        line(3),
        lambda host: Odmrp(host, OdmrpParameters(**{**PLAIN, "mobility_prediction": True, "advertisement": True})),
        positions_m={0: (0.0, 0.0), 1: (100.0, 0.0), 2: (200.0, 0.0)},
        site=Site(1000.0, 1000.0, 150.0),
    )
    net.subscribe(2, LOW)
    net.node(0).advertise(LOW)
    net.run(60.0)
    asked = [each.time_s for each in net.records if each.node == 0 and "JoinRequest" in each.text]
    assert len(asked) < 5  # nobody moves: the longest interval will do, after a first one to find out
    net.publish(0, 42)
    net.run(2.0)
    assert net.contents(2) == [42]


def test_a_request_that_a_newer_one_overtook_changes_no_path() -> None:
    """Section 3.5: the path back leads to where the newest request came from."""
    net = network([(0, 1), (0, 2), (1, 3), (2, 3)])
    mesh = net.node(3).mesh
    net.host(3).arrives(1, request(5))
    assert mesh.routes[0].upstream == 1
    net.host(3).arrives(2, request(4))
    assert (mesh.routes[0].upstream, mesh.routes[0].newest) == (1, (1, 5))
    net.host(3).arrives(2, request(6))
    assert (mesh.routes[0].upstream, mesh.routes[0].newest) == (2, (1, 6))
