"""Whatever a peer sends, a node does not loop, swell, raise anything but `PeerError`, or stay poisoned."""

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect
from tests.protocols.overlays.network import broker

from roamcast.errors import PeerError
from roamcast.interests import Intervals
from roamcast.protocols.api import Message, Protocol
from roamcast.protocols.overlays import Overlays
from roamcast.protocols.overlays.heard import HeardSearches
from roamcast.protocols.overlays.messages import (
    PATH_MAX,
    Attach,
    Carried,
    Forward,
    Found,
    LinkState,
    Payload,
    Probe,
    Seek,
    Spread,
    TopologyRows,
)
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.overlays.ranks import is_newer, is_newer_epoch, next_epoch
from roamcast.protocols.routing import Routed
from roamcast.seeds import Random, derive
from roamcast.testing import TinyNet, line

ALL = Intervals.of((0, 1000))
QUICK: dict[str, Any] = {
    "unicast": "oracle",
    "bootstrap_s": 2.0,
    "bootstrap_period_s": 0.3,
    "discovery_period_s": 2.0,
    "update_period_s": 3.0,
}
LAST = 2**32 - 1


def tiny(links: list[tuple[int, int]], brokers: str, **parameters: Any) -> TinyNet[Protocol]:
    return TinyNet(links, "overlays", QUICK | {"brokers": brokers} | parameters, oracle=True)


def tell(net: TinyNet[Protocol], victim: int, payload: Message, source: int = 99) -> None:
    """A payload reaches the victim, in the name of `source`."""
    net.node(victim).on_message(net.neighbours(victim)[0], Routed(source, victim, 1, 1, payload))


# -- What is forwarded ends ------------------------------------------------------------------------------------------


def test_an_answer_to_a_search_does_not_circle_between_relays_that_point_at_each_other() -> None:
    net = tiny(line(3), "2")
    net.run(1.0)
    net.node(0).on_message(1, Seek(77, 5, 1, 1))
    net.node(1).on_message(0, Seek(77, 5, 1, 1))
    before = net.frames["Found"]
    net.node(0).on_message(1, Found(77, 5, 88, 1, 0.0, ttl=255))
    net.run(5.0)
    assert net.frames["Found"] - before <= 7


def test_a_search_goes_no_farther_than_the_widest_ring() -> None:
    net = tiny(line(15), "20")
    net.node(0).on_message(1, Seek(77, 5, 255, 1))
    net.run(5.0)
    assert net.frames["Seek"] <= 7


@pytest.mark.parametrize("path", [(1, 2) * 15, (2, 3, 2, 3, 2), (3, 1, 3)])
def test_a_source_route_that_passes_a_broker_twice_is_dropped(path: tuple[int, ...]) -> None:
    net = tiny(line(5), "1-3")
    net.run(5.0)
    before = net.frames["Probe"]
    tell(net, 1, Carried(77, path, 0, 0, Probe()))
    net.run(2.0)
    assert net.frames["Probe"] - before <= len(set(path))
    assert "bad source route" in net.transcript("dropped")


def test_a_tree_of_source_routes_that_passes_a_broker_twice_is_dropped() -> None:
    net = tiny(line(5), "1-3")
    net.subscribe(4, ALL)
    net.run(5.0)
    event = net.publish(0, 1)
    net.run(1.0)
    before = dict(net.frames)
    tell(net, 1, Spread(77, 0, 0, (((2, 1) * 8, ()), ((3, 2, 3, 2), ())), event))
    net.run(1.0)
    assert net.frames["Spread"] == before.get("Spread", 0)


def decode(message: Message) -> Message:
    envelope = Routed(1, 2, 1, 1, message)
    decoded: Message = msgspec.msgpack.decode(msgspec.msgpack.encode(envelope), type=Overlays.messages)
    return decoded


@pytest.mark.parametrize(
    "message",
    [
        Carried(1, (2**40,), 0, 0, Probe()),
        Carried(1, tuple(range(PATH_MAX + 1)), 0, 0, Probe()),
        Carried(2**40, (1,), 0, 0, Probe()),
        TopologyRows((LinkState(1, 2**40, (), 0.0, 0),), False),
        TopologyRows((LinkState(1, 1, ((2**40, 1),), 0.0, 0),), False),
    ],
)
def test_what_no_node_could_send_on_is_refused_at_decoding(message: Message) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(message)


# -- No value can be used up -----------------------------------------------------------------------------------------


def test_there_is_no_highest_epoch() -> None:
    for epoch in (0, 1, 2**31, LAST):
        assert is_newer_epoch(next_epoch(epoch, 0.0), epoch)
    assert is_newer((1, 0), (LAST, 5))
    assert is_newer((7, 2), (7, 1))
    assert not is_newer((7, 1), (7, 1))


def test_a_row_forged_in_a_brokers_name_is_outdone_by_the_broker() -> None:
    net = tiny(line(4), "1-3", adaptors="topology")
    net.run(10.0)
    real = broker(net, 1).brokers.topology.rows[3]
    for victim in (1, 2, 3):
        tell(net, victim, TopologyRows((LinkState(3, (real.sequence + 2**31 - 1) % 2**32, ((1, 1),), 0.0, 0),), False))
    assert broker(net, 1).brokers.topology.rows[3].neighbours == ((1, 1),)
    net.run(10.0)
    assert broker(net, 1).brokers.topology.rows[3].neighbours == real.neighbours


def forged_attach(client: int, epoch: int) -> Attach:
    return Attach(
        client=client,
        epoch=epoch,
        version=2**61,
        wants=((ALL, 0.0, 0),),
        modulations=(),
        produces=True,
        advertised=None,
        cursors=(),
    )


@pytest.mark.parametrize("ahead", [2**31 - 1, 2**30, 5])
def test_a_client_in_whose_name_somebody_attached_gets_its_events_again(ahead: int) -> None:
    net = tiny(line(5), "1,3")
    net.subscribe(4, ALL)
    net.node(0).advertise(ALL)
    net.run(6.0)
    epoch = broker(net, 3).clients.table[4].epoch
    tell(net, 3, forged_attach(4, (epoch + ahead) % 2**32))
    net.run(20.0)
    for content in range(5):
        net.publish(0, content)
        net.run(1.0)
    net.run(5.0)
    assert net.contents(4) == list(range(5))


# -- Bounded state ---------------------------------------------------------------------------------------------------


def test_state_that_peers_can_claim_is_bounded() -> None:
    bounds = {"clients_max": 20, "brokers_max": 20, "requests_max": 50, "searches_max": 60, "places_max": 20}
    net = tiny(line(3), "1", searches_per_neighbour_max=30, **bounds)
    net.run(3.0)
    here = broker(net, 1)
    event = net.publish(0, 5)
    net.run(1.0)
    for number in range(500):
        tell(net, 1, forged_attach(1000 + number, 7), source=1000 + number)
        tell(net, 1, TopologyRows((LinkState(2000 + number, 7, (), 0.0, 0),), False), source=2000 + number)
        tell(net, 1, Forward(3000 + number, 1, ((1000, 7, 0),), event), source=3000 + number)
        net.node(1).on_message(0, Seek(4000 + number, 1, 2, 1))
    assert len(here.clients.table) <= 20
    assert len(here.brokers.topology.rows) <= 21
    assert len(here.registry.sources) <= 21


def test_a_neighbour_that_claims_many_searches_pushes_out_only_its_own() -> None:
    heard = HeardSearches(OverlaysParameters(searches_max=100, searches_per_neighbour_max=50, searches_per_s=1000))
    assert heard.add(1, 1, neighbour=5, now_s=0.0)
    for number in range(500):
        heard.add(2, number, neighbour=6, now_s=0.0)
    assert heard.neighbour(1, 1) == 5
    assert heard.neighbour(2, 499) == 6
    assert len(heard) == 51
    limited = HeardSearches(OverlaysParameters(searches_per_s=10))
    assert sum(limited.add(2, number, neighbour=6, now_s=0.5) for number in range(100)) == 10


# -- Anything that fits the wire -------------------------------------------------------------------------------------


def draw(random: Random, kind: Any) -> Any:
    """A random value of a type, as `msgspec.inspect` describes it."""
    match kind:
        case inspect.IntType():
            low = kind.ge if kind.ge is not None else -5
            high = kind.lt - 1 if kind.lt is not None else kind.le if kind.le is not None else 2**62
            return random.choice((low, high, random.randrange(low, min(high, low + 8) + 1)))
        case inspect.FloatType():
            return random.choice((0.0, 0.5, 1.0, 1e9))
        case inspect.StrType():
            return random.choice(("", "sample(2)", "a", "explode("))
        case inspect.BytesType():
            return random.choice((b"", b"\xff\xff", b"\x91\x91\x91"))
        case inspect.BoolType():
            return random.random() < 0.5
        case inspect.NoneType():
            return None
        case inspect.VarTupleType() | inspect.ListType():
            return tuple(draw(random, kind.item_type) for _ in range(random.randrange(3)))
        case inspect.TupleType():
            return tuple(draw(random, item) for item in kind.item_types)
        case inspect.UnionType():
            return draw(random, random.choice(kind.types))
        case inspect.StructType():
            return kind.cls(*(draw(random, field.type) for field in kind.fields))
    raise AssertionError(f"no generator for {kind}")


def generators() -> list[Callable[[Random], Message]]:
    kinds = [inspect.type_info(kind) for kind in get_args(Payload)]
    return [lambda random, kind=kind: draw(random, kind) for kind in kinds]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(6))
def test_after_an_attack_with_anything_that_fits_the_wire_good_events_arrive(seed: int) -> None:
    """What was claimed is gone after `store_lifetime_s` and `silent_periods`, which are short here.

    The attacker is a broker or a stranger. Against one that publishes in the producer's name only signatures help."""
    random = derive(seed, "hostile")
    net = tiny(line(5), "1-3", store_lifetime_s=15.0, silent_periods=4, source_idle_s=5.0)
    net.subscribe(4, ALL)
    net.node(0).advertise(ALL)
    net.run(6.0)
    makers = generators()
    refused = accepted = 0
    for _ in range(600):
        victim = random.randrange(5)
        try:
            payload = random.choice(makers)(random)
            decode(payload)
            tell(net, victim, payload, source=random.choice((1, 2, 3, 7, 99)))
            accepted += 1
        except (PeerError, msgspec.ValidationError):
            refused += 1
        net.run(random.choice((0.0, 0.001, 0.01)))
    assert accepted > 100
    net.run(60.0)
    got = len(net.contents(4))
    for content in range(20):
        net.publish(0, 100 + content)
        net.run(0.5)
    net.run(20.0)
    assert [content for content in net.contents(4)[got:] if int(content) >= 100] == [100 + n for n in range(20)]
