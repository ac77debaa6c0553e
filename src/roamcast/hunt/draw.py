"""Drawing cases: random scenarios, faults and parameters, from a seed and a number.

A case is *rough*, *healing* or *long*. Rough networks move, over any radio with any loss, with random parameters, and
faults strike until the end: what must hold at every instant is checked. Healing networks stand still over a radio that
loses nothing, and faults end early: from the time that the protocol promises (`promises.py`) every event must arrive.
Long networks live for hours, larger and with less traffic: what grows, leaks or wraps slowly shows there.
"""

from typing import Any, Final, Literal, get_args

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.hunt.case import Case
from roamcast.hunt.promises import promise
from roamcast.hunt.settings import draw_parameters
from roamcast.protocols.catalogue import PROTOCOLS
from roamcast.seeds import Random, derive, derive_int
from roamcast.world.incident import Incident, IncidentKind
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.models.wifi_g import Wifi80211g
from roamcast.world.radio.settings import Radio
from roamcast.world.radio.signals import LogDistance
from roamcast.world.scenario import Faults, Mobility, Partition, Positioning, Processing, Run, Scenario, Workload

HUNTED = tuple(name for name, kind in PROTOCOLS.items() if not kind.is_limit)
"""What is hunted if nothing is asked for. The oracles cannot be deployed."""

Model = Literal["waypoint", "group", "gauss-markov", "roads", "static", "grid"]
MODELS: tuple[Model, ...] = ("waypoint", "waypoint", "group", "gauss-markov", "roads", "static", "grid")
LONG_MODELS: tuple[Model, ...] = ("waypoint", "group", "roads", "static", "grid")
"""Of hours; a Gauss-Markov path turns every second."""

Language = Literal["intervals", "topics", "content"]
LANGUAGES: tuple[Language, ...] = ("intervals", "topics", "topics", "content")

HEALING_SHARE = 0.5
LONG_SHARE = 0.5  # of those that are not healing
EVERY_INSTANT_SHARE = 0.2  # of the rough cases; the others are checked now and then
CLEARED_S = 10.0  # by then what was delayed by faults has arrived
JUDGED_S = 20.0  # how long a healed network is judged
RANGE_M = 250.0
COPIES_MAX = 100_000  # of events in a rough case if all of them were flooded; heavier load makes a shorter case
EVENTS_LONG = 300  # in all, of a long case
NODE_HOURS_MAX: dict[str, float] = {"georendezvous": 120.0, "overlays": 60.0, "waymark": 20.0}
"""Of a long case of protocols that cost far more processor time than others: shorter lives, so that there are more."""

LASTS_S_MAX = 600.0  # of a fault in a long case
LIVE_LOAD: Final = {"publisher_share": 0.5, "subscriber_share": 1.0, "selectivity": 0.5, "rate_per_s": 0.5}
"""Of real nodes: a case takes minutes, so each has plenty of pairs to judge."""

PLACED = ("georendezvous",)  # refuses to run without positions

BRISK: dict[str, dict[str, str | int | float | bool]] = {
    "ps-maodv": {"refresh_period_s": 2.0},
    "sp-combo": {"refresh_period_s": 2.0},
    "dsapst": {"refresh_period_s": 2.0, "probe_period_s": 4.0},
    "somer": {"refresh_period_s": 2.0, "out_period_s": 3.0, "advertisement_period_s": 2.0, "root_density": 0.15},
    "somer-plus": {"refresh_period_s": 2.0, "out_period_s": 3.0, "advertisement_period_s": 2.0, "root_density": 0.15},
    "odmrp": {"refresh_interval_s": 5.0, "forwarding_timeout_s": 12.0, "refresh_max_s": 8.0, "client_refresh_s": 4.0},
    "georendezvous": {"refresh_period_s": 5.0, "advertisement_period_s": 10.0, "verification_period_s": 15.0},
    "overlays": {"update_period_s": 5.0, "home_timeout_s": 11.0, "handoff_timeout_s": 6.0, "alone_s": 20.0},
    "waymark": {"hello_max_s": 5.0, "hello_placed_s": 8.0},
}
"""Half of all cases have short periods, so that a short run sees many of them."""


COMPLETE: dict[str, dict[str, str | int | float | bool]] = {
    **{tree: {"report_again": 3} for tree in ("ps-maodv", "sp-combo", "dsapst", "somer-plus")},
    "overlays": {"broker_share": 1.0},
}
"""What promises need. Trees as published report an interest once, and so never make good for a report that was lost
after its link had acknowledged it. A part of the network without a broker delivers nothing."""


def draw_case(master: int, number: int, protocol: str) -> Case:
    """The case of this number; nothing else decides it."""
    random = derive(master, "hunt", protocol, number)
    parameters = dict(BRISK.get(protocol, {})) if random.random() < 0.5 else {}
    seed = derive_int(master, "hunt", "seed", number) % 2**31
    if random.random() < HEALING_SHARE and promise(protocol, parameters) is not None:
        return _healing(random, protocol, parameters, seed)
    if random.random() < LONG_SHARE:
        return _long(random, protocol, seed)
    return _rough(random, protocol, parameters, seed)


def draw_healing(
    master: int, number: int, protocol: str, *, nodes: int, kinds: tuple[str, ...], slack_s: float
) -> Case | None:
    """A case for real nodes: of this many, with faults of these kinds, `slack_s` later than simulated ones promise.
    None: the protocol promises nothing."""
    random = derive(master, "live hunt", protocol, number)
    parameters = dict(BRISK.get(protocol, {}))
    if promise(protocol, parameters) is None:
        return None
    seed = derive_int(master, "live hunt", "seed", number) % 2**31
    case = _healing(random, protocol, parameters, seed, nodes=nodes, kinds=kinds)
    scenario = case.run.scenario
    busy = msgspec.structs.replace(scenario.workload, **LIVE_LOAD)
    scenario = msgspec.structs.replace(scenario, duration_s=scenario.duration_s + slack_s, workload=busy)
    run = msgspec.structs.replace(case.run, scenario=scenario)
    return msgspec.structs.replace(case, run=run, within_s=case.within_s + slack_s)


def _healing(
    random: Random,
    protocol: str,
    parameters: dict[str, Any],
    seed: int,
    *,
    nodes: int | None = None,
    kinds: tuple[str, ...] = get_args(IncidentKind),
) -> Case:
    parameters |= COMPLETE.get(protocol, {})
    promised = promise(protocol, parameters)
    assert promised is not None
    nodes = random.choice((2, 4, 7, 10, 14, 20, 25)) if nodes is None else nodes
    side_m = _side_m(random, nodes)
    trouble_s = 10.0 + random.random() * 30.0
    settled_s = trouble_s + CLEARED_S + promised.heal_s
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=settled_s + JUDGED_S + promised.within_s,
        mobility=Mobility(model=random.choice(("static", "static", "grid"))),
        radio=Ideal(range_m=RANGE_M, loss=0.0, delay_s=random.choice((0.001, 0.005, 0.02))),
        workload=_workload(random, tail_s=promised.within_s, churn=False),
        faults=Faults(
            incidents=draw_incidents(random, nodes, trouble_s, clears=True, kinds=kinds),
            partitions=_partitions(random, side_m, trouble_s),
        ),
    )
    run = Run(scenario=scenario, protocol=protocol, parameters=parameters, seed=seed)
    return Case(run, step_s=0.5, settled_s=settled_s, within_s=promised.within_s, hops=promised.hops)


def _rough(random: Random, protocol: str, parameters: dict[str, Any], seed: int) -> Case:
    if random.random() < 0.5:
        parameters = draw_parameters(random, protocol, parameters)
    nodes = random.choice((2, 3, 5, 8, 12, 20, 30, 40))
    side_m = _side_m(random, nodes)
    narrow_m = side_m * random.choice((0.3, 1.0, 1.0))
    workload = _workload(random, tail_s=5.0, churn=True)
    duration_s = min(random.choice((30.0, 60.0, 120.0, 300.0)), _bearable_s(nodes, workload))
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, narrow_m),
        duration_s=duration_s,
        mobility=_mobility(random, narrow_m),
        positioning=_positioning(random, protocol),
        processing=random.choice((Processing(), Processing(), Processing(match_s=0.002, spread=1.0))),
        radio=_radio(random),
        workload=workload,
        faults=Faults(
            incidents=draw_incidents(random, nodes, duration_s, clears=False),
            partitions=_partitions(random, side_m, duration_s),
        ),
    )
    step_s = 0.0 if nodes <= 12 and random.random() < EVERY_INSTANT_SHARE else 0.25
    return Case(Run(scenario=scenario, protocol=protocol, parameters=parameters, seed=seed), step_s=step_s)


def _long(random: Random, protocol: str, seed: int) -> Case:
    """Hours, with the periods that the protocol has by default."""
    nodes = random.choice((20, 40, 80))
    hours = min(random.choice((1, 3, 6, 12)), NODE_HOURS_MAX.get(protocol, 1000.0) / nodes)
    duration_s = 3600.0 * hours
    side_m = _side_m(random, nodes)
    workload = _workload(random, tail_s=5.0, churn=False, languages=("intervals", "topics"))
    publishers = max(1.0, workload.publisher_share * nodes)
    workload = msgspec.structs.replace(
        workload,
        rate_per_s=EVENTS_LONG / publishers / duration_s,
        resubscribe_period_s=random.choice((None, 300.0, 1200.0)),
    )
    scenario = Scenario(
        nodes=nodes,
        area_m=(side_m, side_m),
        duration_s=duration_s,
        mobility=_mobility(random, side_m, LONG_MODELS, speeds_mps=(1.0, 2.0)),
        positioning=_positioning(random, protocol),
        radio=_radio(random, shadowed=False),  # which costs a hundred times as much where nodes move
        workload=workload,
        faults=Faults(
            incidents=draw_incidents(random, nodes, duration_s, clears=False, lasts_s_max=LASTS_S_MAX),
            partitions=_partitions(random, side_m, duration_s),
        ),
    )
    return Case(Run(scenario=scenario, protocol=protocol, parameters={}, seed=seed), step_s=5.0)


def _bearable_s(nodes: int, workload: Workload) -> float:
    """How long a case with this load may last."""
    fragments = 1 + workload.payload_bytes // 1200
    copies_per_s = workload.publisher_share * workload.rate_per_s * nodes * nodes * fragments
    return max(30.0, COPIES_MAX / copies_per_s)


def _side_m(random: Random, nodes: int) -> float:
    """From fully connected networks to partitioned ones."""
    neighbours = random.choice((4.0, 8.0, 12.0, 25.0))
    return float(round(max(100.0, (nodes * 3.14159 / neighbours) ** 0.5 * RANGE_M)))


def _positioning(random: Random, protocol: str) -> Positioning:
    wrong = Positioning(bias_m=20.0, drift_m=10.0)
    blind = Positioning() if protocol in PLACED else Positioning(source="none")
    return random.choice((Positioning(), blind, wrong))


def _mobility(
    random: Random,
    narrow_m: float,
    models: tuple[Model, ...] = MODELS,
    speeds_mps: tuple[float, ...] = (2.0, 10.0, 30.0),
) -> Mobility:
    model = random.choice(models)
    speed_mps = random.choice(speeds_mps)
    return Mobility(
        model=model,
        speed_min_mps=0.5,
        speed_max_mps=speed_mps,
        speed_mean_mps=speed_mps / 2,
        groups=2,
        group_radius_m=min(100.0, 0.4 * narrow_m),
        block_m=150.0,
    )


def _radio(random: Random, *, shadowed: bool = True) -> Radio:
    loss = random.choice((0.0, 0.0, 0.1, 0.3))
    radios: list[Radio] = [
        Ideal(range_m=RANGE_M, loss=loss),
        Ideal(range_m=RANGE_M, loss=loss, delay_s=0.05),
        Wifi80211b(range_m=RANGE_M, loss=loss),
        Wifi80211b(range_m=RANGE_M, preset="ns2"),
        Wifi80211g(range_m=RANGE_M, loss=loss),
    ]
    if shadowed:
        radios.append(Wifi80211g(range_m=RANGE_M, signal=LogDistance(shadowing_db=6.0)))
    return random.choice(radios)


def _workload(
    random: Random, *, tail_s: float, churn: bool, languages: tuple[Language, ...] = LANGUAGES
) -> Workload:
    return Workload(
        language=random.choice(languages),
        publisher_share=random.choice((0.2, 0.5, 1.0)),
        subscriber_share=random.choice((0.3, 1.0)),
        subscriptions_per_node=random.choice((1, 1, 3)),
        selectivity=random.choice((0.02, 0.1, 0.5, 1.0)),
        rate_per_s=random.choice((0.05, 0.2, 0.5)),
        pattern=random.choice(("constant", "poisson", "burst")),
        resubscribe_period_s=random.choice((None, 5.0, 30.0)) if churn else None,
        payload_bytes=random.choice((0, 64, 64, 400, 3000)),
        start_s=random.choice((0.0, 5.0)),
        tail_s=tail_s,
    )


def _partitions(random: Random, side_m: float, until_s: float) -> tuple[Partition, ...]:
    if random.random() < 0.6:
        return ()
    from_s = random.random() * until_s * 0.7
    east_m = side_m * random.choice((0.3, 0.5, 0.8))
    lasts_s = (until_s - from_s) * (0.1 + 0.9 * random.random())
    return (
        Partition(from_s=from_s, until_s=from_s + lasts_s, west_m=-1.0, south_m=-1.0, east_m=east_m, north_m=side_m),
    )


def draw_incidents(
    random: Random,
    nodes: int,
    until_s: float,
    *,
    clears: bool,
    lasts_s_max: float = 1e9,
    kinds: tuple[str, ...] = get_args(IncidentKind),
) -> tuple[Incident, ...]:
    """Up to three per node and hour. If the network `clears`, all that lasts has ended by `until_s`."""
    drawn: list[Incident] = []
    ended_s: dict[int, float] = {}  # of the lives of a node
    chosen = random.sample(kinds, random.randrange(1, 7))
    for _ in range(random.randrange(0, int(3 * nodes * max(1.0, until_s / 3600.0)))):
        what: Any = random.choice(chosen)
        node = random.randrange(nodes)
        from_s = random.random() * until_s * 0.9
        end_s = from_s + min(lasts_s_max, (until_s - from_s) * random.random() ** 2) + 0.01
        if what in ("crash", "join", "leave"):
            if from_s <= ended_s.get(node, -1.0) or (what == "join" and node in ended_s):
                continue
            for_good = what == "leave" or (what == "crash" and random.random() < 0.3)
            ended_s[node] = 1e9 if for_good else from_s if what == "join" else end_s
            drawn.append(Incident(what=what, node=node, from_s=from_s, until_s=1e9 if for_good else end_s))
            continue
        peer = random.randrange(nodes) if what == "deaf" else -1
        if what == "clock-jump" and clears:
            end_s = until_s
        if peer != node:
            amount = draw_amount(random, what)
            drawn.append(Incident(what=what, node=node, from_s=from_s, until_s=end_s, peer=peer, amount=amount))
    return tuple(drawn)


def draw_amount(random: Random, what: IncidentKind) -> float:
    choices: dict[str, tuple[float, ...]] = {
        "slow": (0.005, 0.05, 0.5),
        "delay": (0.01, 0.2, 2.0),
        "reorder": (0.05, 0.5, 5.0),
        "duplicate": (0.1, 0.5, 1.0),
        "corrupt": (0.05, 0.3, 1.0),
        "overflow": (0.1, 0.5, 1.0),
        "clock-jump": (0.5, 10.0, 3600.0),
        "clock-drift": (-0.1, 0.01, 0.2),
    }
    return random.choice(choices.get(what, (0.0,)))


def checked_protocol(name: str) -> str:
    if name not in PROTOCOLS:
        raise ConfigurationError(f"protocol: {name!r} is unknown; allowed: {', '.join(PROTOCOLS)}")
    return name


