"""What the hunt found, each as small as it was shrunk: it must not come back."""

from collections import Counter
from math import floor
from pathlib import Path
from typing import Any

import pytest

from roamcast.checkers import InvariantError, OwnWords, check_deliveries
from roamcast.hunt.accountant import account
from roamcast.hunt.draw import HUNTED
from roamcast.hunt.fuzz import Corpus, Fuzzer
from roamcast.interests import Intervals
from roamcast.live.codec import Datagram
from roamcast.protocols.api import Site
from roamcast.protocols.georendezvous.clients import following, publishing
from roamcast.protocols.odmrp.messages import JoinRequest
from roamcast.protocols.odmrp.routes import Route
from roamcast.protocols.trees.messages import Subscription
from roamcast.protocols.trees.standing import NEWBORN
from roamcast.protocols.trees.tree import TreeProtocol
from roamcast.protocols.waymark.records import LIFE_BITS
from roamcast.testing import TinyNet, line
from roamcast.testing.host import TestHost as Host
from roamcast.trace.summary import summarise
from roamcast.world.incident import Incident
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation, simulate


@pytest.mark.parametrize("protocol", HUNTED)
def test_a_node_that_returns_is_not_served_what_it_published_before(protocol: str) -> None:
    """Waymark, flooding and others told own events by having seen them; a node that returns has seen nothing."""
    incidents = [Incident(what="crash", node=0, from_s=8.02 + at, until_s=8.05 + at) for at in range(12)]
    incidents += [Incident(what="delay", node=node, from_s=0.0, amount=0.08) for node in (1, 2, 3)]
    scenario = Scenario(
        nodes=4,
        area_m=(400.0, 100.0),
        duration_s=25.0,
        mobility=Mobility(model="static", positions_m=((50.0, 50.0), (150.0, 50.0), (250.0, 50.0), (350.0, 50.0))),
        radio=Ideal(range_m=250.0),
        workload=Workload(publishers=4, selectivity=1.0, rate_per_s=20.0),
        faults=Faults(incidents=tuple(incidents)),
    )
    check_deliveries(simulate(Run(scenario=scenario, protocol=protocol)).recorder.table())


@pytest.mark.parametrize("protocol", ["ps-maodv", "sp-combo", "dsapst"])
def test_an_interest_that_was_lost_behind_the_link_is_reported_again(protocol: str) -> None:
    """With a full queue a report vanishes without a failure; nothing else would ever repeat it."""
    settings = {"refresh_period_s": 2.0, "report_again": 2}
    net: TinyNet[Any] = TinyNet(line(2), protocol, settings, seed=1, language="intervals")
    net.run(10.0)
    child, parent = (0, 1) if net.node(0).parent == 1 else (1, 0)
    assert isinstance(net.node(child), TreeProtocol)
    net.subscribe(child, Intervals.of((0, 100)))
    net.run(0.5)
    net.node(parent).children.put(child, None, net.host(parent).now())  # as if the report had never come
    net.run(8.0)
    assert net.node(parent).children.interest(child) == Intervals.of((0, 100))


@pytest.mark.parametrize("protocol", HUNTED)
def test_a_timer_that_fires_an_instant_early_starts_no_endless_loop(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rounding, a timer may fire just before its due time. Waymark set it again for the same instant, forever."""
    monkeypatch.setattr(Host, "now", lambda host: floor(host._net.now_s * 1e7) / 1e7)
    place = {node: (100.0 * node, 50.0) for node in range(5)}
    net: TinyNet[Any] = TinyNet(
        line(5),
        protocol,
        loss=0.3,
        positions_m=place,
        site=Site(500.0, 100.0, 150.0),
        oracle=True,
        language="intervals",
    )
    times: Counter[float] = Counter()

    def count() -> None:
        times[round(net.now_s, 4)] += 1
        assert times[round(net.now_s, 4)] < 1000, f"more than 1000 things are due at {net.now_s} s"

    net.check(count)
    for node in (0, 2, 4):
        net.subscribe(node, Intervals.of((0, 100)))
    net.run(10.0)
    for number in range(20):
        net.publish(number % 5, float(number))
        net.run(0.5)


@pytest.mark.parametrize("protocol", ["ps-maodv", "sp-combo", "dsapst", "somer", "somer-plus"])
def test_a_node_that_is_in_no_tree_takes_no_children(protocol: str) -> None:
    """A node that returns may get the answer to an offer of its earlier life. It listed a child that stood above it."""
    net: TinyNet[Any] = TinyNet(line(2), protocol, {"start_within_s": 5.0}, seed=1, language="intervals")
    late = max((0, 1), key=lambda node: net.node(node).standing == NEWBORN)
    net.host(late).arrives(1 - late, Subscription(Intervals.of((0, 100))))
    assert list(net.node(late).children) == []


def test_a_broker_whose_clock_jumps_goes_on_serving_its_consumers() -> None:
    """Overlays forgot a consumer that seemed silent for an hour, and its broker was never asked for it again."""
    jump = Incident(what="clock-jump", node=0, from_s=20.0, amount=3600.0)
    scenario = Scenario(
        nodes=3,
        area_m=(300.0, 100.0),
        duration_s=120.0,
        mobility=Mobility(model="static", positions_m=((50.0, 50.0), (150.0, 50.0), (250.0, 50.0))),
        radio=Ideal(range_m=120.0),
        workload=Workload(publishers=1, selectivity=1.0, rate_per_s=5.0, payload_bytes=400),
        faults=Faults(incidents=(jump,)),
    )
    run = Run(scenario=scenario, protocol="overlays", parameters={"broker_share": 1.0})
    books = account(simulate(run).recorder.table())
    late = [debt for debt in books.debts if debt.published_s > 80.0]
    assert late
    assert all((debt.event_id, debt.node) in books.delays_s for debt in late)


def test_members_of_a_publisher_that_returns_read_its_first_list() -> None:
    """ODMRP: a publisher that returns counts its lists from the beginning. Members took the new list for one that they
    knew, left out what they wanted, and got nothing for as long as they answered."""
    route = Route(contexts_max=4)
    before = JoinRequest(publisher=9, life=1, sequence=7, hops=1, context=b"", listing=1, channels=((1, ((3, 55),)),))
    after = JoinRequest(publisher=9, life=2, sequence=1, hops=1, context=b"", listing=1, channels=((1, ((4, 66),)),))
    route.renew(before, 9, None, 1.0)
    assert route.versions == {3: 55}
    assert route.renew(after, 9, None, 2.0)
    assert route.versions == {4: 66}
    assert route.channels == {4: 1}


def test_a_life_that_outgrew_its_numbers_does_not_make_its_node_a_liar() -> None:
    """A life of Waymark has room for `2**LIFE_BITS` records. After ten hours a node had issued more, crashed and came
    back: for a while others held records newer than its own."""
    positions_m = ((50.0, 50.0), (150.0, 50.0), (250.0, 50.0))
    scenario = Scenario(
        nodes=3,
        area_m=(300.0, 100.0),
        duration_s=150.0,
        mobility=Mobility(model="static", positions_m=positions_m),
        radio=Ideal(range_m=120.0),
        faults=Faults(incidents=(Incident(what="crash", node=0, from_s=20.0, until_s=30.0),)),
    )
    simulation = Simulation(Run(scenario=scenario, protocol="waymark"))
    checker = OwnWords()
    simulation.run_until(10.0)
    first: Any = simulation.protocols[0]
    for _ in range(3 << LIFE_BITS):
        first.records.reissue_where()
    while simulation.scheduler.now < 150.0:
        simulation.run_until(simulation.scheduler.now + 0.5)
        checker(simulation)
    second: Any = simulation.protocols[0]
    assert second is not first
    for node in (1, 2):
        other: Any = simulation.protocols[node]
        assert other.records.known[0].where_number == second.records.own.where_number, "its own word prevails"


def test_a_record_that_no_life_has_issued_is_still_an_invention() -> None:
    scenario = Scenario(nodes=3, area_m=(100.0, 100.0), duration_s=20.0, radio=Ideal(range_m=250.0))
    simulation = Simulation(Run(scenario=scenario, protocol="waymark"))
    checker = OwnWords()
    simulation.run_until(10.0)
    checker(simulation)
    liar: Any = simulation.protocols[1]
    liar.records.known[0].where_number += 1000
    with pytest.raises(InvariantError, match="never issued"):
        checker(simulation)


def test_a_consumer_that_its_broker_forgot_in_the_middle_of_an_epoch_loses_nothing() -> None:
    """Overlays: the consumer told its broker of another interest before it noticed. The broker took it for a new one
    and counted its deliveries from 1 again. The consumer took these for old ones and acknowledged them."""
    net: TinyNet[Any] = TinyNet(line(3), "overlays", {"brokers": "1"}, seed=1, language="intervals")
    net.subscribe(0, Intervals.of((0, 100)))
    net.node(2).advertise(Intervals.of((0, 1000)))
    net.run(10.0)
    for content in (1, 2, 3):
        net.publish(2, content)
    net.run(2.0)
    assert net.contents(0) == [1, 2, 3]
    net.node(1).broker.clients.drop(0)
    net.subscribe(0, Intervals.of((500, 600)))
    net.run(0.5)
    for content in (4, 500):
        net.publish(2, content)
        net.run(0.5)
    net.run(10.0)
    assert net.contents(0) == [1, 2, 3, 4, 500]


def test_an_event_under_an_old_number_begins_a_new_epoch() -> None:
    """As before, but the numbers meet: the consumer has as many deliveries as its broker counts again."""
    net: TinyNet[Any] = TinyNet(line(3), "overlays", {"brokers": "1"}, seed=1, language="intervals")
    net.subscribe(0, Intervals.of((0, 100)))
    net.node(2).advertise(Intervals.of((0, 1000)))
    net.run(10.0)
    net.publish(2, 1)
    net.run(2.0)
    net.node(1).broker.clients.drop(0)
    net.subscribe(0, Intervals.of((500, 600)))
    net.run(0.5)
    net.publish(2, 2)
    net.run(10.0)
    assert net.contents(0) == [1, 2]


@pytest.mark.parametrize("decode", [publishing, following])
@pytest.mark.parametrize("value", ["9511c8", "93a1c8", "9392010190a3c8c8c8", "939201019092a141a1c8", "91" * 900, ""])
def test_a_value_that_is_no_text_makes_no_sense_and_raises_nothing(decode: Any, value: str) -> None:
    """GeoRendezvous: what an owner keeps is decoded where it is kept. Bytes that are not UTF-8 broke the node there."""
    assert decode(bytes.fromhex(value)) is None


def test_the_datagram_that_broke_a_rendezvous_point_is_survived() -> None:
    corpus = Corpus.read(Path(__file__).parent / "corpus" / "georendezvous.txt")
    fuzzer = Fuzzer("georendezvous", corpus, seed=103)
    body = "9511929492d280000000d280df0000ce7ffffffe3ec09492ce7ffffffed2800000000900c0cdfffe00920bce7fffffff"
    decoded = fuzzer._codec.decode(fuzzer._header + bytes.fromhex(body))
    assert isinstance(decoded, Datagram)
    assert decoded.message is not None
    fuzzer._received(decoded.message, at_protocol=True)


def test_frames_that_come_twice_are_passed_on_once() -> None:
    """GeoRendezvous: where nodes got frames twice, packets doubled at every hop: 1088 of these instead of 14."""
    positions_m = tuple((100.0 + 200.0 * node, 50.0) for node in range(8))
    twice = tuple(Incident(what="duplicate", node=node, from_s=0.0, amount=1.0) for node in range(8))
    sent = []
    for incidents in ((), twice):
        scenario = Scenario(
            nodes=8,
            area_m=(1600.0, 100.0),
            duration_s=12.0,
            mobility=Mobility(model="static", positions_m=positions_m),
            radio=Ideal(range_m=250.0),
            workload=Workload(publishers=1, selectivity=1.0, rate_per_s=1.0),
            faults=Faults(incidents=incidents),
        )
        summary = summarise(simulate(Run(scenario=scenario, protocol="georendezvous")).recorder.table())
        assert summary["delivered"] == summary["expected"]
        sent.append({label: count for label, count in summary["frames"].items() if label != "Beacon"})
    assert sent[0]["ForwardedNotification"] == 14
    assert sent[0] == sent[1]
