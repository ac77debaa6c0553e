"""The guarantees of relocation over thousands of random histories, with a checker that knows nothing of the protocol.

A history is a list of steps: publish, move a client, relocate a modulator in one of its three forms, cut and mend
links, crash and restart brokers, let time pass. Every frame is delayed at random (so frames overtake each other), and a
share of them is lost, with or without the sender being told. Then the network heals, time passes, and the checker
compares what was published with what was delivered: lost, duplicated, reordered, unexpected.

Producers and consumers stay up, since what only a crashed node knew cannot be delivered by anybody; brokers come and
go, one at a time.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import pytest

from roamcast.events import NO_EVENT, Event, event_id
from roamcast.interests import Intervals
from roamcast.protocols.api import NOBODY, Host, Message, Oracle, Point, Timer
from roamcast.protocols.overlays import Overlays, OverlaysParameters
from roamcast.seeds import Random, derive

BROKERS = (0, 1, 2)
PRODUCERS = (3, 4)
CONSUMERS = (5, 6)
WANTED = Intervals.of((0, 50))
RECOVERY_S = 45.0  # a broker that crashes before all have recovered from another crash may take knowledge with it
FORMS = ("horizontal", "upstream", "downstream")


# -- The world: everybody reaches everybody except across a cut; frames overtake each other and get lost -------------


class Lab:
    def __init__(self, random: Random, loss: float, parameters: OverlaysParameters) -> None:
        self.now_s = 0.0
        self.random = random
        self.loss = loss
        self.parameters = parameters
        self.cut: set[frozenset[int]] = set()
        self.delivered: list[tuple[int, Event]] = []  # consumer, event; in order
        self.published: list[Event] = []
        self.crashed_s = -RECOVERY_S - 1
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._numbers = dict.fromkeys(PRODUCERS, 0)
        self.hosts: dict[int, LabHost] = {}
        for address in (*BROKERS, *PRODUCERS, *CONSUMERS):
            self.hosts[address] = LabHost(self, address)
            self.hosts[address].protocol.start()

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._agenda, (self.now_s + delay_s, self._order, action))

    def run(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_s:
            self.now_s, _, action = heappop(agenda)
            action()
        self.now_s = until_s

    def reaches(self, one: int, other: int) -> bool:
        return self.hosts[one].is_up and self.hosts[other].is_up and frozenset((one, other)) not in self.cut

    def overlays(self, address: int) -> Overlays:
        return self.hosts[address].protocol

    def publish(self, producer: int, content: int) -> None:
        self._numbers[producer] += 1
        event = Event(event_id(producer, self._numbers[producer]), self.now_s, content)
        self.published.append(event)
        self.overlays(producer).publish(event)

    def crash(self, address: int) -> None:
        self.hosts[address].is_up = False

    def restart(self, address: int) -> None:
        if not self.hosts[address].is_up:
            self.hosts[address] = LabHost(self, address)
            self.overlays(address).start()


class LabOracle(Oracle):
    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def next_hop(self, source: int, destination: int) -> int:
        return destination if source != destination and self._lab.reaches(source, destination) else NOBODY

    def hops(self, source: int, destination: int) -> int:
        return 1 if self._lab.reaches(source, destination) else -1

    def subscribers(self, event: Event) -> list[int]:
        return []


class LabHost(Host):
    def __init__(self, lab: Lab, address: int) -> None:
        self.address = address
        self.random = derive(lab.random.getrandbits(32), address)
        self.site = None
        self.oracle = LabOracle(lab)
        self.is_up = True
        self._lab = lab
        self._timers: dict[Timer, float] = {}
        self.protocol = Overlays(self, lab.parameters)

    def now(self) -> float:
        return self._lab.now_s

    def position(self) -> Point | None:
        return None

    def velocity(self) -> Point | None:
        return None

    def broadcast(self, message: Message) -> None:
        for receiver in self._lab.hosts:
            if receiver != self.address and self._lab.reaches(self.address, receiver):
                self._transmit(receiver, message)

    def send(self, neighbour: int, message: Message) -> None:
        if self._lab.reaches(self.address, neighbour):
            self._transmit(neighbour, message)
        else:
            self._lab.at(0.01, lambda: self._fail(neighbour, message))

    def _transmit(self, receiver: int, message: Message) -> None:
        lab = self._lab
        if lab.loss and lab.random.random() < lab.loss:
            if lab.random.random() < 0.5:
                lab.at(0.01, lambda: self._fail(receiver, message))
            return
        lab.at(0.001 + lab.random.random() * 0.3, lambda: self._arrive(receiver, message))

    def _fail(self, receiver: int, message: Message) -> None:
        if self.is_up:
            self.protocol.on_send_failed(receiver, message)

    def _arrive(self, receiver: int, message: Message) -> None:
        host = self._lab.hosts[receiver]
        if host.is_up:
            host.protocol.on_message(self.address, message)

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        due_s = self._lab.now_s + delay_s
        self._timers[timer] = due_s
        self._lab.at(delay_s, lambda: self._fire(timer, due_s))

    def cancel_timer(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def _fire(self, timer: Timer, due_s: float) -> None:
        if self.is_up and self._timers.get(timer) == due_s:
            del self._timers[timer]
            self.protocol.on_timer(timer)

    def deliver(self, event: Event, hops: int) -> None:
        self._lab.delivered.append((self.address, event))

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        pass

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        pass


# -- The checker -----------------------------------------------------------------------------------------------------


class Faults(NamedTuple):
    lost: list[tuple[int, int]]  # consumer, event
    duplicated: list[tuple[int, int]]
    reordered: list[tuple[int, int]]
    unexpected: list[tuple[int, int]]


def judge(published: list[Event], delivered: list[tuple[int, Event]], consumers: tuple[int, ...]) -> Faults:
    """What is wrong with these deliveries, from first principles."""
    wanted = {event.id: event for event in published if isinstance(event.content, int) and 0 <= event.content < 50}
    got: dict[int, list[Event]] = {consumer: [] for consumer in consumers}
    for consumer, event in delivered:
        got[consumer].append(event)
    faults = Faults([], [], [], [])
    for consumer, events in got.items():
        seen: set[int] = set()
        newest: dict[int, int] = {}
        for event in events:
            if wanted.get(event.id) != event:
                faults.unexpected.append((consumer, event.id))
            if event.id in seen:
                faults.duplicated.append((consumer, event.id))
            elif event.number < newest.get(event.publisher, 0):
                faults.reordered.append((consumer, event.id))
            seen.add(event.id)
            newest[event.publisher] = max(event.number, newest.get(event.publisher, 0))
        faults.lost.extend((consumer, missing) for missing in wanted if missing not in seen)
    return faults


NONE = Faults([], [], [], [])


def test_the_checker_sees_every_kind_of_fault() -> None:
    first, second = Event(event_id(3, 1), 0.0, 1), Event(event_id(3, 2), 1.0, 2)
    unwanted = Event(event_id(3, 3), 2.0, 70)
    published = [first, second, unwanted]
    assert judge(published, [(5, first), (5, second)], (5,)) == NONE
    assert judge(published, [(5, first)], (5,)) == Faults([(5, second.id)], [], [], [])
    assert judge(published, [(5, first), (5, first), (5, second)], (5,)) == Faults([], [(5, first.id)], [], [])
    assert judge(published, [(5, second), (5, first)], (5,)) == Faults([], [], [(5, first.id)], [])
    assert judge(published, [(5, first), (5, second), (5, unwanted)], (5,)).unexpected == [(5, unwanted.id)]


# -- Histories -------------------------------------------------------------------------------------------------------

Step = tuple[str, int, int, float]  # what, its two subjects, how long to wait before


def draw_history(random: Random, kinds: tuple[str, ...]) -> list[Step]:
    steps: list[Step] = []
    for _ in range(random.randrange(6, 16)):
        what = random.choice(kinds)
        wait_s = random.choice((0.0, 0.01, 0.1, 0.5, 2.0, 6.0))
        steps.append((what, random.randrange(100), random.randrange(100), wait_s))
    return steps


def play(lab: Lab, step: Step) -> None:
    what, one, other, wait_s = step
    lab.run(wait_s)
    broker = BROKERS[other % len(BROKERS)]
    match what:
        case "publish":
            for _ in range(1 + other % 3):
                lab.publish(PRODUCERS[one % len(PRODUCERS)], (one * 7 + other) % 60)
        case "relocate":
            relocate(lab, (PRODUCERS + CONSUMERS)[one % 4], broker, FORMS[one % 3])
        case "cut":
            client = (PRODUCERS + CONSUMERS)[one % 4]
            lab.cut.add(frozenset((client, broker)))
        case "part":
            lab.cut.add(frozenset((BROKERS[one % 3], BROKERS[(one + 1) % 3])))
        case "mend":
            lab.cut.clear()
        case "crash":
            if lab.now_s - lab.crashed_s > RECOVERY_S:
                lab.crashed_s = lab.now_s
                lab.crash(broker)
        case "restart":
            for address in BROKERS:
                lab.restart(address)


def relocate(lab: Lab, client: int, destination: int, form: str) -> None:
    for address in BROKERS:
        broker = lab.overlays(address).broker
        if lab.hosts[address].is_up and broker is not None and client in broker.clients.table:
            broker.relocation.migrate(client, destination, form)  # type: ignore[arg-type]


def parameters(relocation: str = "strict") -> OverlaysParameters:
    return OverlaysParameters(
        unicast="oracle",
        brokers="0-2",
        adaptors="topology,home-broker",
        hop_time_s=0.16,
        bootstrap_s=3.0,
        update_period_s=15.0,
        discovery_period_s=5.0,
        home_timeout_s=11.0,
        handoff_timeout_s=6.0,
        retry_s=1.0,
        relocation=relocation,  # type: ignore[arg-type]
    )


def live_through(
    seed: int, kinds: tuple[str, ...], loss: float, steps: list[Step] | None = None
) -> tuple[Lab, list[Step]]:
    random = derive(seed, "history")
    steps = draw_history(random, kinds) if steps is None else steps
    lab = Lab(derive(seed, "world"), 0.0, parameters())
    for producer in PRODUCERS:
        lab.overlays(producer).advertise(Intervals.of((0, 60)))
    for consumer in CONSUMERS:
        lab.overlays(consumer).subscribe(WANTED)
    lab.run(5.0)
    lab.loss = loss
    for step in steps:
        play(lab, step)
    lab.loss = 0.0
    lab.cut.clear()
    for address in BROKERS:
        lab.restart(address)
    for _ in range(12):  # until everything has arrived, and a while longer
        if not any(judge(lab.published, lab.delivered, CONSUMERS)):
            break
        lab.run(10.0)
    lab.run(3.0)
    return lab, steps


def shrink(seed: int, kinds: tuple[str, ...], loss: float, steps: list[Step]) -> list[Step]:
    """Leaves out steps while the history still goes wrong."""
    at = 0
    while at < len(steps):
        fewer = steps[:at] + steps[at + 1 :]
        lab, _ = live_through(seed, kinds, loss, fewer)
        if any(judge(lab.published, lab.delivered, CONSUMERS)):
            steps = fewer
        else:
            at += 1
    return steps


CALM = ("publish", "publish", "publish", "relocate", "relocate")
MOVING = (*CALM, "cut", "mend", "part")
CRASHING = (*MOVING, "crash", "restart")


@pytest.mark.parametrize(
    ("kinds", "loss", "seeds"),
    [
        pytest.param(CALM, 0.0, range(500), id="relocations"),
        pytest.param(CALM, 0.2, range(500, 1000), id="relocations-and-loss"),
        pytest.param(MOVING, 0.1, range(1000, 1500), id="relocations-loss-and-cuts"),
        pytest.param(CRASHING, 0.1, range(1500, 2400), id="relocations-loss-cuts-and-crashes"),
    ],
)
def test_nothing_is_lost_duplicated_reordered_or_unexpected(kinds: tuple[str, ...], loss: float, seeds: range) -> None:
    for seed in seeds:
        lab, steps = live_through(seed, kinds, loss)
        faults = judge(lab.published, lab.delivered, CONSUMERS)
        if any(faults):
            smallest = shrink(seed, kinds, loss, steps)
            pytest.fail(f"seed {seed}, loss {loss}: {faults}\nsmallest history: {smallest}")


# -- State that travels ----------------------------------------------------------------------------------------------

WINDOW = "filter(content < 50) | aggregate(sum, content, 3)"


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_modulator_that_moves_computes_what_it_would_have_computed_in_one_place(loss: float) -> None:
    """State consistent: windows that are open when the modulator moves are closed at the new broker, exactly."""
    for seed in range(150):
        random = derive(seed, "window")
        lab = Lab(derive(seed, "world"), 0.0, parameters())
        (producer, *_), consumer = PRODUCERS, CONSUMERS[0]
        lab.overlays(producer).advertise(Intervals.of((0, 60)))
        lab.overlays(consumer).set_modulator(WINDOW)
        lab.overlays(consumer).subscribe(Intervals.of((0, 60)))
        lab.run(5.0)
        lab.loss = loss
        for _ in range(12):
            lab.run(random.choice((0.0, 0.1, 1.0)))
            if random.random() < 0.4:
                relocate(lab, consumer, random.choice(BROKERS), random.choice(FORMS))
            else:
                lab.publish(producer, random.randrange(60))
        lab.loss = 0.0
        lab.run(40.0)
        kept = [float(event.content) for event in lab.published if float(event.content) < 50]
        sums = [sum(kept[at : at + 3]) for at in range(0, len(kept) - 2, 3)]
        assert [event.content for _, event in lab.delivered] == sums, f"seed {seed}"


def test_the_lighter_variants_may_lose_but_never_repeat_or_reorder() -> None:
    lost = 0
    for seed in range(60):
        random = derive(seed, "light")
        lab = Lab(derive(seed, "world"), 0.0, parameters("loose"))
        lab.overlays(PRODUCERS[0]).advertise(Intervals.of((0, 60)))
        lab.overlays(CONSUMERS[0]).subscribe(WANTED)
        lab.run(5.0)
        for number in range(10):
            lab.publish(PRODUCERS[0], number)
            relocate(lab, CONSUMERS[0], random.choice(BROKERS), "horizontal")
            lab.run(0.2)
        lab.run(30.0)
        faults = judge(lab.published, lab.delivered, CONSUMERS[:1])
        assert (faults.duplicated, faults.reordered, faults.unexpected) == ([], [], [])
        lost += len(faults.lost)
    assert 0 < lost < 300
