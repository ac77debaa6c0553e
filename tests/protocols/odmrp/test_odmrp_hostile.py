"""What a peer may send: nothing ends, hangs, swells or poisons a node."""

from math import inf, nan
from typing import Any

import msgspec
import pytest

from roamcast.errors import PeerError
from roamcast.interests import Intervals
from roamcast.live.codec import Codec, Datagram, DatagramKind, DropReason
from roamcast.protocols.odmrp.context import entries_in, questions_as_context, questions_in
from roamcast.protocols.odmrp.encoding import Encoder
from roamcast.protocols.odmrp.messages import JoinRequest, JoinTable, MemberEntry, Messages
from roamcast.protocols.odmrp.odmrp import Odmrp
from roamcast.protocols.odmrp.packed import JoinQuestion, PackedEntry
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.summaries import Family, SummaryEntry, aggregated
from roamcast.seeds import Random
from roamcast.testing import TinyNet, line

CODEC = Codec("net", "odmrp", Messages)
HEADER = CODEC.encode(Datagram(DatagramKind.BROADCAST, 1))
LOW = Intervals.of((0, 5000))


def decoded(*fields: Any) -> Datagram | DropReason:
    return CODEC.decode(HEADER + msgspec.msgpack.encode(fields))


def network(nodes: int, **parameters: Any) -> TinyNet[Odmrp]:
    settings = OdmrpParameters(**{"jitter_s": 0.0, **parameters})
    return TinyNet(line(nodes), lambda host: Odmrp(host, settings))


def request(publisher: int, sequence: int = 1, *, life: int = 1) -> JoinRequest:
    digest = Encoder().digest(42)
    assert digest is not None
    context = questions_as_context([JoinQuestion(digest.type)])
    return JoinRequest(publisher, life, sequence, hops=1, context=context, listing=0, channels=())


@pytest.mark.parametrize("content", [nan, inf, -inf, 1e308, -1e308, 2**62])
def test_any_number_has_a_digest(content: float) -> None:
    """Content that is not a number ended the node that made its digest."""
    assert Encoder().digest(content) is not None


@pytest.mark.parametrize("field", [nan, inf, -1.0, "soon"])
def test_a_route_is_expected_to_last_for_a_finite_time(field: Any) -> None:
    fine = [16, 5, 1, 1, 1, b"", 0, [], [], None, 3.0]
    assert isinstance(decoded(*fine), Datagram)
    assert decoded(*fine[:-1], field) is DropReason.MALFORMED_BODY
    assert decoded(*fine[:-2], [0.0, 0.0, nan, 0.0], 3.0) is DropReason.MALFORMED_BODY


def test_context_that_makes_no_sense_is_no_question_and_no_summary() -> None:
    assert questions_in(b"\xff\x00nonsense") == ()
    assert questions_in(msgspec.msgpack.encode([[2**40, b""]])) == ()
    for context in (b"\xff", msgspec.msgpack.encode([[1, -1, b"", b""]]), msgspec.msgpack.encode([[1, 1, b"x", b""]])):
        with pytest.raises(PeerError):
            entries_in(Family(), context)
    net = network(2)
    net.node(0).on_message(1, JoinTable(0, 0, (MemberEntry(1, 1, b"\xff"),)))
    net.node(0).on_message(1, JoinTable(7, 0, (MemberEntry(1, 1, b"\xff"),)))
    assert net.node(0).publisher.members == {}


def crossed(entries: int) -> list[SummaryEntry]:
    """Entries with different marks, which nothing merges at once."""
    random = Random(1)
    return [SummaryEntry(1, random.getrandbits(60) | 1 << 61, 0, random.getrandbits(256)) for _ in range(entries)]


def test_merging_many_entries_comes_to_an_end() -> None:
    """Eight datagrams of entries with different marks and one event kept a broker busy for minutes, because every merge
    compared every pair. With this many it would not have come back today."""
    assert len(aggregated(crossed(4000), 4)) == 4


def test_a_merged_summary_still_covers_every_entry() -> None:
    given = crossed(200)
    for entries_max in (1, 4, 50):
        summary = aggregated(given, entries_max)
        assert len(summary) <= entries_max
        assert all(any(each.covers(entry) for each in summary) for entry in given)


def test_eight_hostile_tables_and_one_event() -> None:
    net = network(2, grouping="k-means", refresh_interval_s=1.0)
    family = Family()
    entries = crossed(8 * 100)
    for number in range(8):
        packed = [family.packed(each) for each in entries[100 * number : 100 * number + 100]]
        context = msgspec.msgpack.encode([msgspec.structs.replace(each, enumerated=b"") for each in packed])
        net.node(0).on_message(1, JoinTable(0, 0, (MemberEntry(100 + number, 1, context),)))
    net.subscribe(1, LOW)
    net.publish(0, 42)
    net.run(5.0)
    assert net.contents(1) == [42]


def test_a_stale_request_does_no_harm() -> None:
    """A request that is older than the newest one, after the route has been forgotten, ended the node: the timer of its
    answer looked for the route."""
    net = network(
        2,
        refresh_interval_s=10.0,
        forwarding_timeout_s=12.0,
        table_pause_s=5.0,
        confirm_timeout_s=6.0,
        refresh_max_s=10.0,
    )
    net.subscribe(1, LOW)
    node = net.node(1)
    node.on_message(0, request(9, 2**31 - 1))
    for sequence in range(20):
        net.run(1.5)
        node.on_message(0, request(9, sequence))
    net.run(30.0)
    assert 9 not in node.mesh.routes


def test_no_sequence_number_shuts_a_publisher_out_for_long() -> None:
    net = network(3)
    net.subscribe(2, LOW)
    for node in (1, 2):
        net.node(node).on_message(0, request(0, 2**31 - 1, life=2**53))
    net.publish(0, 42)
    net.run(OdmrpParameters().forwarding_timeout_s * 1.5)
    for _ in range(3):
        net.publish(0, 43)
        net.run(12.0)
    assert net.contents(2)[-2:] == [43, 43]


def test_invented_publishers_members_and_clients_do_not_fill_the_memory() -> None:
    net = network(2, publishers_max=20, members_max=30, clients_max=10)
    node = net.node(0)
    for publisher in range(10, 200):
        node.on_message(1, request(publisher))
    assert len(node.mesh.routes) <= 20
    newest = next(reversed(node.mesh.routes))
    for number in range(100):
        node.on_message(1, JoinTable(newest, 0, (MemberEntry(1000 + number, 1, b"\x90"),)))
        node.on_message(1, JoinTable(0, 0, (MemberEntry(1000 + number, 1, b"\x90"),)))
    assert len(node.mesh.downstream[newest]) <= 30
    assert len(node.publisher.members) <= 30
    net.run(60.0)
    assert node.mesh.routes == {}
    assert node.mesh.downstream == {}


def test_a_filter_of_another_size_attaches_no_client() -> None:
    broker = network(2).node(0).broker
    assert not broker._is_of_family(PackedEntry(1, 1, b"short", b""))
