"""The guarantees of relocation over thousands of random histories in the simulator, judged from the trace alone.

A history is a list of steps: publish, move to another place, relocate a modulator in one of its three forms, crash,
leave, return, let time pass. It becomes a scenario with the movements of every node, a workload and faults for
`Simulation`; frames are lost on top. Then all nodes gather at one place, crashed nodes that are to return do so, and
the judge compares what was published with what was delivered: lost, duplicated, reordered, unexpected.

What a consumer is owed
    Every event that matches what it wants, published once its subscription had time to become known (all begin and end
    at one place, where all nodes hear each other; nodes that vanished and returned subscribe again), if it is up from
    then on until the end, and

    - a copy survives: the producer stays up; or, when it crashed or left, its home broker had acknowledged the event,
      stays up, and the producer has not published anything since (what is older than something delivered would break
      the order, so it is not delivered);
    - the stores hold it: it is among the producer's latest `store_events`, and the history becomes whole again early
      enough within `store_lifetime_s` for everybody to find a home and deliver.

    How many brokers crash, how often, and how many at once, does not matter. Order and uniqueness are owed always, in
    each life of a consumer: one that crashed has forgotten what it got.

A failure prints the shortest history that fails and the command that replays it. `ROAMCAST_HISTORIES=5000-9999` runs
the histories of other seeds.
"""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from roamcast.events import NUMBER_BITS, event_id
from roamcast.interests import Intervals
from roamcast.protocols.catalogue import protocol_parameters
from roamcast.protocols.overlays import Overlays, OverlaysParameters
from roamcast.protocols.overlays.relocation import Form
from roamcast.seeds import Random, derive
from roamcast.world.faults import Fault
from roamcast.world.radio.models.ideal import Ideal
from roamcast.world.radio.models.wifi_b import Wifi80211b
from roamcast.world.radio.settings import Radio
from roamcast.world.scenario import Mobility, Run, Scenario
from roamcast.world.simulator import Simulation
from roamcast.world.workload import Action, Advertise, Publish, Subscribe

BROKERS = (0, 1, 2)
PRODUCERS = (3, 4)
CONSUMERS = (5, 6)
CLIENTS = PRODUCERS + CONSUMERS
NODES = 7
OFFERED, WANTED = Intervals.of((0, 60)), Intervals.of((0, 50))
RANGE_M = 250.0
PLACES_M = [(x_m, y_m) for x_m in (50.0, 250.0, 450.0, 650.0) for y_m in (50.0, 230.0)]  # neighbours hear each other
GATHERING_M = [(300.0 + 20.0 * node, 100.0) for node in range(NODES)]
TRIP_S = 2.0  # how long a move takes
START_S = 6.0  # the first step: all nodes have found a home
SETTLED_S = 20.0  # after the end of all faults all nodes have found a home, and publish once more
RECOVERY_S = 60.0  # and after this time everything has arrived

SETTINGS: dict[str, str | int | float | bool] = {
    "brokers": "0-2",
    "adaptors": "topology,home-broker",
    "hop_time_s": 0.07,
    "bootstrap_s": 3.0,
    "update_period_s": 15.0,
    "discovery_period_s": 5.0,
    "home_timeout_s": 11.0,
    "handoff_timeout_s": 6.0,
    "retry_s": 1.0,
}

# -- Histories ---------------------------------------------------------------------------------------------------------

What = Literal["publish", "relocate", "move", "crash", "leave", "return"]


class Step(NamedTuple):
    wait_s: float  # before it
    what: What
    one: int
    other: int


class Kind(NamedTuple):
    """What histories are made of."""

    steps: tuple[What, ...]
    radios: tuple[Radio, ...]
    settings: Mapping[str, str | int | float | bool] = MappingProxyType({})


# The ideal radio tries a unicast seven times and says so if it failed; over several hops the loss may go unreported. A
# slow one leaves much time to meddle with a relocation under way. With 802.11, frames also collide and wait their turn,
# and may arrive although the sender was told that they did not.
RADIOS = (
    Ideal(range_m=RANGE_M, loss=0.3),
    Ideal(range_m=RANGE_M, loss=0.0, delay_s=0.05),
    Ideal(range_m=RANGE_M, loss=0.5, delay_s=0.05),
    Wifi80211b(range_m=RANGE_M, loss=0.0),
    Wifi80211b(range_m=RANGE_M, loss=0.1),
)
CALM: tuple[What, ...] = ("publish", "publish", "publish", "relocate", "relocate")
ROAMING: tuple[What, ...] = (*CALM, "publish", "relocate", "move", "move")
FAILING: tuple[What, ...] = (*ROAMING, "crash", "crash", "leave", "return", "return")
KINDS = {
    "relocations": Kind(CALM, RADIOS),
    "moves": Kind(ROAMING, RADIOS),
    "crashes": Kind(FAILING, RADIOS),
    "small-stores": Kind(FAILING, RADIOS, {"store_events": 6, "store_lifetime_s": 90.0}),
}


class History(NamedTuple):
    """One history, ready to be lived through."""

    run: Run
    actions: list[Action]
    faults: list[Fault]
    relocations: list[tuple[float, int, int, Form]]  # when, whose modulator, where to, how
    healed_s: float


def draw_steps(random: Random, kind: Kind) -> list[Step]:
    waits_s = (0.0, 0.003, 0.05, 0.1, 0.2, 0.5, 2.0, 5.0)
    return [
        Step(waits_s[int(8 * random.random() ** 1.5)], random.choice(kind.steps), *random.sample(range(10_000), 2))
        for _ in range(random.randrange(6, 30))
    ]


def build(seed: int, kind: Kind, steps: list[Step]) -> History:
    random = derive(seed, "conditions")
    unicast = random.choice(("oracle", "oracle", "aodv"))
    paths = [[(0.0, *place_m)] for place_m in GATHERING_M]
    if "move" in kind.steps:
        for path in paths:
            _move(path, START_S, random.choice(PLACES_M))
    actions: list[Action] = [Advertise(0.1, node, OFFERED) for node in PRODUCERS]
    actions += [Subscribe(0.2, node, WANTED) for node in CONSUMERS]
    faults: list[Fault] = []
    relocations: list[tuple[float, int, int, Form]] = []
    down_since_s: dict[int, float] = {}
    t_s = START_S
    for step in steps:
        t_s += step.wait_s
        node = step.one % NODES
        match step.what:
            case "publish":
                for number in range(1 + step.other % 3):
                    producer = PRODUCERS[step.one % len(PRODUCERS)]
                    actions.append(Publish(t_s, producer, (step.one + number) % 60, payload_bytes=20))
            case "relocate":
                client, destination = CLIENTS[step.one % len(CLIENTS)], BROKERS[step.other % len(BROKERS)]
                relocations.append((t_s, client, destination, get_args(Form)[step.other % 3]))
            case "move":
                _move(paths[node], t_s, PLACES_M[step.other % len(PLACES_M)])
            case "crash" | "leave":
                if node not in down_since_s:
                    down_since_s[node] = t_s
                    faults.append(Fault(t_s, node, "crash" if step.what == "crash" else "leave"))
            case "return":
                for absent in [absent for absent, since_s in down_since_s.items() if t_s > since_s + 1.0]:
                    faults.append(Fault(t_s, absent, "return"))
                    del down_since_s[absent]
    t_s += TRIP_S + 1.0
    for node, path in enumerate(paths):
        _move(path, t_s, GATHERING_M[node])
    for absent in down_since_s:
        if absent in BROKERS or random.random() < 0.7:
            faults.append(Fault(t_s, absent, "return"))
    healed_s = t_s + TRIP_S
    for producer in PRODUCERS:
        actions += [Publish(healed_s + SETTLED_S, producer, content, payload_bytes=20) for content in (7, 57, 8)]
    scenario = Scenario(
        nodes=NODES,
        area_m=(700.0, 300.0),
        duration_s=t_s + 2 * RECOVERY_S,
        mobility=Mobility(model="movements", paths=tuple(map(tuple, paths))),
        radio=random.choice(kind.radios),
    )
    run = Run(
        scenario=scenario, protocol="overlays", parameters={**SETTINGS, **kind.settings, "unicast": unicast}, seed=seed
    )
    return History(run, actions, faults, relocations, healed_s)


def _move(path: list[tuple[float, float, float]], t_s: float, place_m: tuple[float, float]) -> None:
    """A node goes to another place, once it has got where it was going."""
    start_s = max(t_s, path[-1][0])
    if path[-1][1:] != place_m:
        if start_s > path[-1][0]:
            path.append((start_s, *path[-1][1:]))
        path.append((start_s + TRIP_S, *place_m))


# -- Living through them -----------------------------------------------------------------------------------------------


Acknowledged = dict[tuple[int, float], tuple[int, int]]  # producer, when it vanished -> up to which number, by whom


class Life(NamedTuple):
    """What is known after a history: the trace's rows, and what producers had been told when they vanished."""

    rows: list[dict[str, Any]]
    acknowledged: Acknowledged


class Witness:
    """Acts in a simulation at given times."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.acknowledged: Acknowledged = {}

    def overlays(self, node: int) -> Overlays | None:
        protocol = self.simulation.protocols[node]
        assert protocol is None or isinstance(protocol, Overlays)
        return protocol

    def relocate(self, relocation: tuple[float, int, int, Form]) -> None:
        _, client, destination, form = relocation
        for broker in BROKERS:
            overlays = self.overlays(broker)
            if overlays is not None and overlays.broker is not None and client in overlays.broker.clients.table:
                overlays.broker.relocation.migrate(client, destination, form)

    def note(self, fault: Fault) -> None:
        overlays = self.overlays(fault.node)
        if overlays is not None and fault.what in ("crash", "leave"):
            self.acknowledged[fault.node, fault.t_s] = (overlays.member.publications.received, overlays.member.home)


def live_through(history: History) -> Life:
    """Until everything that is owed has arrived and a while longer, or until the patience ends."""
    simulation = Simulation(history.run, actions=history.actions, faults=history.faults)
    witness = Witness(simulation)
    for relocation in history.relocations:
        simulation.scheduler.at(relocation[0], witness.relocate, relocation)
    for fault in history.faults:
        simulation.scheduler.at(fault.t_s - 1e-6, witness.note, fault)
    t_s = history.healed_s + SETTLED_S + 3.0
    simulation.run_until(t_s)
    while any(judge(history, Life(_rows(simulation), witness.acknowledged))) and t_s < history.run.scenario.duration_s:
        t_s += 10.0
        simulation.run_until(t_s)
    simulation.run_until(t_s + 3.0)
    return Life(_rows(simulation), witness.acknowledged)


def _rows(simulation: Simulation) -> list[dict[str, Any]]:
    table = simulation.recorder.table()
    return table.filter(pc.is_in(table["kind"], pa.array(["published", "delivered", "fault"]))).to_pylist()


# -- The judge ---------------------------------------------------------------------------------------------------------


class Wrongs(NamedTuple):
    lost: list[tuple[int, int]]  # consumer, event
    duplicated: list[tuple[int, int]]
    reordered: list[tuple[int, int]]
    unexpected: list[tuple[int, int]]


NONE = Wrongs([], [], [], [])


class Fate:
    """When a node was up, as the trace tells."""

    def __init__(self, faults: list[dict[str, Any]]) -> None:
        self.vanished_s = [row["t"] for row in faults if row["detail"] in ("crash", "leave")]
        self.returned_s = [row["t"] for row in faults if row["detail"] == "return"]

    def is_up_from(self, t_s: float) -> bool:
        """From then on until the end."""
        return len(self.vanished_s) == len(self.returned_s) and all(other_s < t_s for other_s in self.vanished_s)


def judge(history: History, life: Life) -> Wrongs:
    """What is wrong with these deliveries, from first principles."""
    published = {row["event_id"]: row for row in life.rows if row["kind"] == "published"}
    fates = {
        node: Fate([row for row in life.rows if row["kind"] == "fault" and row["node"] == node])
        for node in range(NODES)
    }
    got: dict[tuple[int, int], list[int]] = defaultdict(list)  # by consumer and how often it had returned
    for row in life.rows:
        if row["kind"] == "delivered":
            lives = sum(returned_s <= row["t"] for returned_s in fates[row["node"]].returned_s)
            got[row["node"], lives].append(row["event_id"])
    wrongs = Wrongs([], [], [], [])
    for (consumer, _), events in got.items():
        newest: dict[int, int] = {}
        for at, event in enumerate(events):
            publisher = event >> NUMBER_BITS
            if consumer not in CONSUMERS or event not in published or not _is_wanted(published[event]):
                wrongs.unexpected.append((consumer, event))
            elif event in events[:at]:
                wrongs.duplicated.append((consumer, event))
            elif event < newest.get(publisher, 0):
                wrongs.reordered.append((consumer, event))
            else:
                newest[publisher] = event  # ids of one publisher grow
    for event, row in published.items():
        for consumer in CONSUMERS:
            known_s = START_S if not fates[consumer].vanished_s else history.healed_s + SETTLED_S
            is_awake = row["t"] >= known_s and fates[consumer].is_up_from(row["t"])
            is_owed = is_awake and _is_wanted(row) and _is_kept(history, life, row, fates)
            if is_owed and event not in got[consumer, len(fates[consumer].returned_s)]:
                wrongs.lost.append((consumer, event))
    return wrongs


def _is_wanted(row: dict[str, Any]) -> bool:
    return bool(0 <= row["value"] < 50)


def _is_kept(history: History, life: Life, row: dict[str, Any], fates: dict[int, Fate]) -> bool:
    """Whether a copy of the event survives, and the stores hold it for long enough."""
    producer, event, t_s = row["node"], row["event_id"], row["t"]
    published = [other for other in life.rows if other["kind"] == "published" and other["node"] == producer]
    later = [other for other in published if other["event_id"] > event]
    settings = protocol_parameters("overlays", dict(history.run.parameters))
    assert isinstance(settings, OverlaysParameters)
    if len(later) >= settings.store_events or history.healed_s + RECOVERY_S - t_s > settings.store_lifetime_s:
        return False
    vanished_s = min((each_s for each_s in fates[producer].vanished_s if each_s >= t_s), default=None)
    if vanished_s is None:
        return True
    number, home = life.acknowledged[producer, vanished_s]
    is_with_home = event <= event_id(producer, number) and home in fates and fates[home].is_up_from(t_s)
    return is_with_home and not any(other["t"] >= vanished_s for other in later)


def test_the_judge_sees_every_kind_of_wrong() -> None:
    history = build(0, KINDS["relocations"], [])
    first, second, unwanted = (
        {"kind": "published", "t": 10.0 + number, "node": 3, "event_id": event_id(3, number), "value": value}
        for number, value in ((1, 7.0), (2, 8.0), (3, 57.0))
    )

    def verdict(*delivered: dict[str, Any], acknowledged: int = 0, faults: Sequence[dict[str, Any]] = ()) -> Wrongs:
        got = [
            {"kind": "delivered", "t": 30.0, "node": node, "event_id": row["event_id"]}
            for node in CONSUMERS
            for row in delivered
        ]
        return judge(history, Life([first, second, unwanted, *got, *faults], {(3, 20.0): (acknowledged, 0)}))

    one, two, three = event_id(3, 1), event_id(3, 2), event_id(3, 3)
    assert verdict(first, second) == NONE
    assert verdict(first).lost == [(5, two), (6, two)]
    assert verdict(first, first, second).duplicated == [(5, one), (6, one)]
    assert verdict(second, first).reordered == [(5, one), (6, one)]
    assert verdict(first, second, unwanted).unexpected == [(5, three), (6, three)]
    crash = {"kind": "fault", "t": 20.0, "node": 3, "detail": "crash"}
    assert verdict(faults=[crash], acknowledged=1).lost == [(5, one), (6, one)]
    assert verdict(faults=[crash], acknowledged=0) == NONE
    assert verdict(faults=[crash | {"node": 5}]).lost == [(6, one), (6, two)]


# -- Tests -------------------------------------------------------------------------------------------------------------


def shrink(seed: int, kind: Kind, steps: list[Step]) -> list[Step]:
    """Leaves out steps while the history still goes wrong."""
    at = 0
    while at < len(steps):
        fewer = steps[:at] + steps[at + 1 :]
        history = build(seed, kind, fewer)
        if any(judge(history, live_through(history))):
            steps = fewer
        else:
            at += 1
    return steps


def seeds(count: int) -> range:
    """Which histories to live through: the first ones, or those that the environment names."""
    first, _, last = os.environ.get("ROAMCAST_HISTORIES", "").partition("-")
    return range(int(first), int(last or first) + 1) if first else range(count)


@pytest.mark.slow("many random histories: relocations go wrong rarely")
@pytest.mark.parametrize("name", KINDS)
def test_nothing_owed_is_lost_and_nothing_is_duplicated_reordered_or_unexpected(name: str) -> None:
    for seed in seeds(250):
        steps = draw_steps(derive(seed, name, "steps"), KINDS[name])
        history = build(seed, KINDS[name], steps)
        wrongs = judge(history, live_through(history))
        if any(wrongs):
            smallest = shrink(seed, KINDS[name], steps)
            replay = f"ROAMCAST_HISTORIES={seed} python -m pytest -n 0 {os.path.relpath(__file__)} -k {name}"
            story = "\n".join(map(str, smallest))
            pytest.fail(f"{wrongs}\nreplay: {replay}\nsmallest history:\n{story}")
