"""Pub/Sub ODMRP in the simulator: complete where it can be, loop-free and forgetful always, the same for a seed."""

import math
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.checkers import InvariantError, Watch, check_deliveries, check_served
from roamcast.errors import PeerError
from roamcast.interests import Intervals
from roamcast.protocols.odmrp.messages import Messages
from roamcast.protocols.odmrp.odmrp import Odmrp
from roamcast.protocols.odmrp.parameters import OdmrpParameters
from roamcast.protocols.odmrp.prediction import lasts_longer, link_expiration_s, shorter
from roamcast.seeds import derive
from roamcast.testing import TinyNet, line
from roamcast.trace.summary import summarise
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.scenario import Faults, Mobility, Run, Scenario, Workload
from roamcast.world.simulator import Simulation, simulate

quick = settings(deadline=None, derandomize=True, max_examples=150)


def run_of(language: str = "content", **choices: Any) -> Run:
    """40 nodes on 600 m, where static networks with this seed are connected."""
    scenario = Scenario(
        nodes=40,
        area_m=(600.0, 600.0),
        duration_s=choices.pop("duration_s", 30.0),
        mobility=choices.pop("mobility", Mobility(model="static")),
        radio=choices.pop("radio", Ideal()),
        faults=choices.pop("faults", Faults()),
        workload=Workload(language=language, publishers=4, subscribers=20, selectivity=0.3),  # type: ignore[arg-type]
    )
    return Run(scenario=scenario, protocol="odmrp", parameters=choices, seed=1)


MODES: list[dict[str, Any]] = [
    {},
    {"advertisement": True, "grouping": "graph"},
    {"broker_share": 0.3},
    {"advertisement": True, "forwarding_filter": False, "grouping": "least-constrained"},
]
LANGUAGES = ("content", "intervals", "topics")


def connected_positions(nodes: int, side_m: float, seed: int) -> tuple[tuple[float, float], ...]:
    """Random places, each in range of an earlier one."""
    random = derive(seed, "places")
    places = [(side_m / 2, side_m / 2)]
    while len(places) < nodes:
        place = (random.uniform(0, side_m), random.uniform(0, side_m))
        if any(math.dist(place, other) < 199 for other in places):
            places.append(place)
    return tuple(places)


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_subscriber_misses_anything_in_a_static_network(seed: int) -> None:
    """Once the routes are set up: events of the first seconds may find answers still on their way."""
    nodes = (12, 25, 40, 60)[seed % 4]
    side_m = 1000 * math.sqrt(nodes / 50)
    language, parameters = LANGUAGES[seed % 3], MODES[seed // 2 % 4]
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=25.0,
        mobility=Mobility(model="static", positions_m=connected_positions(nodes, side_m, seed)),
        radio=Ideal(),
        workload=Workload(language=language, rate_per_s=0.4, selectivity=0.3, tail_s=6.0),  # type: ignore[arg-type]
    )
    table = simulate(Run(scenario=scenario, protocol="odmrp", parameters=parameters, seed=seed)).recorder.table()
    check_deliveries(table)
    assert check_served(table, 8.0, within_s=3.0) > 10


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("parameters", MODES[:3])
def test_every_mode_serves_every_language(language: str, parameters: dict[str, Any]) -> None:
    table = simulate(run_of(language, **parameters)).recorder.table()
    check_deliveries(table)
    summary = summarise(table)
    assert summary["expected"] > 100
    assert summary["delivery_ratio"] == 1.0


def test_changing_subscriptions_are_followed() -> None:
    run = run_of(advertisement=True)
    workload = msgspec.structs.replace(run.scenario.workload, resubscribe_period_s=10.0)
    changing = msgspec.structs.replace(run, scenario=msgspec.structs.replace(run.scenario, workload=workload))
    table = simulate(changing).recorder.table()
    check_deliveries(table)
    assert summarise(table)["delivery_ratio"] > 0.7  # a new wish is known at the next refresh, 2.5 s later on average


@pytest.mark.parametrize("bits", [8, 64])
def test_small_filters_let_more_through_but_nothing_is_missed(bits: int) -> None:
    usual, small = (
        summarise(simulate(run_of(bloom_bits=size, bloom_hashes=2)).recorder.table()) for size in (256, bits)
    )
    assert small["delivery_ratio"] == usual["delivery_ratio"] == 1.0
    assert small["unexpected"] == 0
    assert small["dropped"]["false-positive"] > usual["dropped"]["false-positive"]


def test_a_run_is_the_same_every_time() -> None:
    run = run_of(radio=Wifi80211b(), broker_share=0.5, duration_s=15.0)
    assert simulate(run).recorder.trace_hash() == simulate(run).recorder.trace_hash()


@pytest.mark.parametrize("prediction", [False, True])
def test_what_must_hold_at_every_instant_under_mobility_and_faults(prediction: bool) -> None:
    faults = Faults(crash_share=0.1, return_share=0.1, return_after_s=5.0)
    mobility = Mobility(model="waypoint", speed_max_mps=15.0)
    choices: dict[str, Any] = {"advertisement": True, "mobility_prediction": prediction}
    run = run_of(mobility=mobility, faults=faults, radio=Wifi80211b(), **choices)
    watch = Watch(run, check_paths_back, check_soft_state, step_s=0.2)
    watch.run_until(run.scenario.duration_s)
    watch.simulation.finish()
    table = watch.simulation.recorder.table()
    check_deliveries(table)
    assert summarise(table)["delivery_ratio_reachable"] > 0.8


def check_paths_back(simulation: Simulation) -> None:
    """Along a path back life and sequence numbers never fall, and where they are equal the hops do: no circles."""
    for protocol in simulation.protocols:
        assert protocol is None or isinstance(protocol, Odmrp)
        for publisher, route in protocol.mesh.routes.items() if protocol else ():
            upstream = simulation.protocols[route.upstream]
            if isinstance(upstream, Odmrp) and route.upstream != publisher and publisher in upstream.mesh.routes:
                onward = upstream.mesh.routes[publisher]
                if (onward.newest, -onward.hops) <= (route.newest, -route.hops):
                    raise InvariantError(f"a path back to {publisher} may run in a circle at {route.upstream}")


def check_soft_state(simulation: Simulation) -> None:
    """No member is remembered for longer than the timeout and the time to the next sweep."""
    now_s = simulation.scheduler.now
    parameters = OdmrpParameters()
    timeout_s = parameters.forwarding_timeout_s
    sweep_s = timeout_s / parameters.sweeps_per_timeout
    for protocol in simulation.protocols:
        assert protocol is None or isinstance(protocol, Odmrp)
        for behind in protocol.mesh.downstream.values() if protocol else ():
            for address, member in behind.items():
                if not now_s - sweep_s - 1e-6 <= member.expires_s <= now_s + timeout_s:
                    raise InvariantError(f"member {address} is remembered until {member.expires_s} s")


def test_prediction_refreshes_more_often_where_nodes_move_faster() -> None:
    counts = []
    for speed_mps in (1.0, 20.0):
        mobility = Mobility(model="waypoint", speed_min_mps=speed_mps, speed_max_mps=speed_mps)
        run = run_of(mobility=mobility, advertisement=True, mobility_prediction=True, duration_s=40.0)
        counts.append(summarise(simulate(run).recorder.table())["frames"]["JoinRequest"])
    assert counts[0] < counts[1]


# -- Link expiration -----------------------------------------------------------------------------------------------

coordinates = st.floats(-100, 100)
speeds = st.floats(-20, 20)
motions = st.tuples(coordinates, coordinates, speeds, speeds)


@given(motions, motions, st.floats(10, 300))
@quick
def test_the_link_expires_when_the_distance_reaches_the_range(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float], range_m: float
) -> None:
    def distance_m(t_s: float) -> float:
        x = one[0] - other[0] + t_s * (one[2] - other[2])
        y = one[1] - other[1] + t_s * (one[3] - other[3])
        return float((x * x + y * y) ** 0.5)

    expires_s = link_expiration_s(one, other, range_m)
    assert expires_s == link_expiration_s(other, one, range_m)
    if distance_m(0) > range_m * (1 + 1e-9):
        assert expires_s == 0
    elif expires_s < 1e6:
        assert distance_m(expires_s) == pytest.approx(range_m, rel=1e-3) or expires_s == 0
        assert distance_m(expires_s / 2) <= range_m * (1 + 1e-6)


def test_lifetimes_of_ways() -> None:
    assert shorter(None, 3.0) == shorter(3.0, inf) == 3.0
    assert shorter(None, inf) is None
    assert shorter(2.0, 3.0) == 2.0
    assert lasts_longer(None, 3.0)
    assert not lasts_longer(3.0, 3.0)


# -- Hostile peers -------------------------------------------------------------------------------------------------

small = st.integers(0, 5)
digests = st.builds(lambda leaf, token: [231328129, [], [[leaf, token]], []], small, small)
entries = st.builds(
    lambda leaves, bits, text: [231328129, leaves, bits, bits, text],
    st.integers(0, 70),
    st.sampled_from([b"", b"\xff" * 32, b"\x01"]),
    st.sampled_from([[], [[1, b"", b"", b""]], [[63, b"\x01" * 32, b"", b""]]]),
)
members = st.builds(lambda address, version, told, here: [address, version, told, here], small, small,
                    st.one_of(st.none(), st.lists(entries, max_size=2)), st.lists(small, max_size=2))  # fmt: skip
bodies = st.one_of(
    st.builds(
        lambda publisher, number, hops, asked, listed, ids: [16, publisher, number, hops, asked, [[1, listed]], ids],
        small, st.integers(0, 9), st.integers(1, 255), st.lists(digests, max_size=2),
        st.lists(st.tuples(small, small), max_size=3), st.lists(small, max_size=3),
    ),
    st.builds(lambda publisher, hop, told: [17, publisher, hop, told], small, small, st.lists(members, max_size=3)),
    st.builds(lambda publisher, listed: [18, publisher, listed], small, st.lists(small, max_size=3)),
    st.builds(
        lambda publisher, channels, event, sending, ids: [19, publisher, channels, 1, [event, 0.0, 42], sending, ids],
        small, st.lists(small, max_size=3), st.integers(1, 2**40), st.integers(0, 255), st.lists(small, max_size=3),
    ),
    st.builds(lambda client, number, ttl: [20, client, number, ttl, 1], small, small, st.integers(1, 255)),
    st.builds(lambda source, payload: [4, source, 0, 1, 1, payload], small, st.one_of(
        st.builds(lambda part, parts, kinds: [22, 1, part, parts, [[1, [[0, 5]]]], kinds],
                  small, st.integers(1, 5), st.lists(small, max_size=2)),
        st.builds(lambda version: [23, version], small),
        st.builds(lambda event: [24, [event, 0.0, 42]], st.integers(1, 2**40)),
        st.builds(lambda hops, event: [25, hops, [event, 0.0, 42]], small, st.integers(1, 2**40)),
        st.builds(lambda number: [21, number, 1], small),
    )),
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 2), bodies), min_size=1, max_size=12), st.booleans(), st.booleans())
@quick
def test_whatever_decodes_is_survived(
    script: list[tuple[int, list[Any]]], is_broker: bool, advertisement: bool
) -> None:
    """A peer may say anything; at worst what it says is refused."""
    parameters = OdmrpParameters(broker_share=float(is_broker), advertisement=advertisement)
    net: TinyNet[Odmrp] = TinyNet([*line(3), (0, 2)], lambda host: Odmrp(host, parameters))
    net.subscribe(0, Intervals.of((0, 100)))
    for sender, body in script:
        try:
            message = msgspec.msgpack.decode(msgspec.msgpack.encode(body), type=Messages)
            net.node(0).on_message(sender, message)
        except (msgspec.ValidationError, PeerError):
            continue
        net.run(0.2)
    net.run(30.0)
    assert all(delivery.event.content == 42 for delivery in net.deliveries)
