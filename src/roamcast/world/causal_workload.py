"""The causal part of the workload: events whose receipt makes applications publish further events.

A share of the nodes, drawn from the seed, are *causal nodes*; every event type of the dependencies is played by at
least one of them. Who plays a type publishes its events and subscribes to all of its causes. The causal nodes are dealt
out, in random order, to as many disjoint copies of the dependencies as they fill with one node per type (`graphs` sets
another number); what is left over plays types twice, and if there are fewer nodes than types, nodes play several.

A node that plays a type without causes is an *initiator* and publishes it at `rate_per_s`. All others react: on
receipt of an event of a cause it publishes, after a delay, one event per effect it plays. It reacts once per received
event and dependency, so each event that ends a chain has exactly one chain of causes behind it. No node reacts to
itself, since applications are not served their own events; dependencies have no circles, so every chain ends.

Links may be probabilistic and delay-tolerant (`causal/specification.py`). Whether a receipt causes an effect, and how
long a delay-tolerant link then takes (uniform up to its tolerance, on top of the reaction delay), is fixed by the seed
for each chain: by its initiation and the nodes and types along it. So all protocols meet the same fate.

Every publication is told how many chains should go on from it (`chains`), counted over the nodes that play the types,
whether they are up or down, and over the effects that fate allows: that is what a chain's completion is measured
against. An event that causes nothing is the end of its chain, whatever its type.
"""

import math
from typing import Final, NamedTuple

from roamcast.causal import Specification, parse_specification
from roamcast.events import Content, Event
from roamcast.interests import Interest, Intervals, Topics
from roamcast.seeds import Random, derive
from roamcast.world.scenario import Scenario
from roamcast.world.workload import Action, Advertise, Publish, Subscribe, publication_times, soon


class Reaction(NamedTuple):
    """What the receipt of an event makes its receiver do."""

    delay_s: float
    publish: Publish


Path = tuple[int, ...]
"""A chain so far: initiator, event type and number of the initiation, then reacting node and effect at each step."""
INITIATION: Final = 3
"""The length of a path that has not gone on yet."""


class CausalWorkload:
    """Who plays which event type, what initiators do of their own accord, and who reacts to what."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self._settings = scenario.workload.causal
        self.specification: Specification = causal_specification(scenario)
        nodes = causal_nodes(scenario, seed)
        types = len(self.specification.types)
        self.players: list[list[int]] = [[] for _ in range(types)]  # of each type
        for turn in range(max(len(nodes), types)):
            self.players[turn % types].append(nodes[turn % len(nodes)])
        self._roles: dict[int, list[int]] = {node: [] for node in sorted(nodes)}
        for number, players in enumerate(self.players):
            for node in players:
                self._roles[node].append(number)
        self._contents = [example(event_type.interest) for event_type in self.specification.types]
        self._delays = {node: derive(seed, "workload", "reactions", node) for node in self._roles}
        self._initiated: dict[tuple[int, int], int] = {}  # (node, type) -> how often so far
        self._paths: dict[int, Path] = {}  # of published events
        self._waits_s: dict[int, float] = {}  # of published events: what delay-tolerant links took on the way to them
        self._ways: dict[tuple[int, int], int] = {}
        self._done: set[tuple[int, int, int]] = set()  # (event, node, effect)

    def actions(self, seed: int) -> list[Action]:
        """What causal nodes do of their own accord: advertise, subscribe and, if nothing causes it, publish."""
        found: list[Action] = []
        for node, roles in self._roles.items():
            random = derive(seed, "workload", "causal", node)
            for number in roles:
                found.append(Advertise(soon(self._scenario, random), node, self.specification.types[number].interest))
            causes = dict.fromkeys(cause for number in roles for cause in self.specification.causes(number))
            for cause in causes:
                found.append(Subscribe(soon(self._scenario, random), node, self.specification.types[cause].interest))
            for number in roles:
                if not self.specification.causes(number):
                    found += self._initiations(node, number, random)
        return found

    def _initiations(self, node: int, number: int, random: Random) -> list[Action]:
        workload = self._scenario.workload
        times_s = publication_times(self._scenario, self._settings.rate_per_s, random)
        return [Publish(t_s, node, self._contents[number], workload.payload_bytes) for t_s in times_s]

    def published(self, event: Event) -> int | None:
        """How many chains should go on from an event: 0 if it is the end of one, `None` if it is not causal."""
        number = self._type_of(event.content)
        if number is None:
            return None
        if not self.specification.links:
            return self.chains(event.publisher, number)
        path = self._path(event, number)
        self._paths[event.id] = path
        if len(path) > INITIATION:
            self._waits_s[event.id] = self._waits_s.get(event.cause, 0.0) + self._wait_s(path)
        return self._fated_ways(path, number, event.publisher, is_start=True)

    def waited_s(self, event: Event) -> float:
        """What the delay-tolerant links of a published event's chain have taken so far."""
        return self._waits_s.get(event.id, 0.0)

    def chains(self, publisher: int, number: int) -> int:
        """How many chains go on from an event of this type if all links are certain."""
        return self._ways_on(publisher, number) if self._successors(publisher, number) else 0

    def _path(self, event: Event, number: int) -> Path:
        before = self._paths.get(event.cause)
        if before is not None:
            return (*before, event.publisher, number)
        key = (event.publisher, number)
        self._initiated[key] = self._initiated.get(key, 0) + 1
        return (*key, self._initiated[key])

    def _holds(self, path: Path) -> bool:
        """Whether fate lets the last step of this path take place."""
        link = self.specification.link(_type_before(path), path[-1])
        return link.probability >= 1 or derive(self._seed, "workload", "links", *path).random() < link.probability

    def _wait_s(self, path: Path) -> float:
        """What a delay-tolerant link takes in the last step of this path."""
        tolerance_s = self.specification.link(_type_before(path), path[-1]).tolerance_s
        return tolerance_s * derive(self._seed, "workload", "waits", *path).random() if tolerance_s else 0.0

    def _fated_ways(self, path: Path, number: int, publisher: int, is_start: bool = False) -> int:
        """The chains that go on from the end of this path; an end counts as one, unless it is where we start."""
        steps = [(*path, node, effect) for node, effect in self._successors(publisher, number)]
        further = [step for step in steps if self._holds(step)]
        if not further:
            return 0 if is_start else 1
        return sum(self._fated_ways(step, step[-1], step[-2]) for step in further)

    def reactions(self, node: int, event: Event) -> list[Reaction]:
        """What `node` publishes because it received `event`, the first time it does."""
        roles = self._roles.get(node)
        cause = None if roles is None else self._type_of(event.content)
        if roles is None or cause is None:
            return []
        found = []
        for effect in self.specification.effects(cause):
            key = (event.id, node, effect)
            if effect in roles and key not in self._done:
                self._done.add(key)
                path = (*self._paths.get(event.id, (event.publisher, cause, 0)), node, effect)
                if not self._holds(path):
                    continue
                delay_s = 2 * self._settings.reaction_delay_s * self._delays[node].random() + self._wait_s(path)
                size = self._scenario.workload.payload_bytes
                found.append(Reaction(delay_s, Publish(0.0, node, self._contents[effect], size, event.id)))
        return found

    def _type_of(self, content: Content) -> int | None:
        for number, event_type in enumerate(self.specification.types):
            if event_type.interest.contains(content):
                return number
        return None

    def _successors(self, publisher: int, number: int) -> list[tuple[int, int]]:
        """Who should react with what to an event of this type."""
        return [
            (node, effect)
            for effect in self.specification.effects(number)
            for node in self.players[effect]
            if node != publisher
        ]

    def _ways_on(self, publisher: int, number: int) -> int:
        key = (publisher, number)
        if key not in self._ways:
            further = self._successors(publisher, number)
            self._ways[key] = sum(self._ways_on(*each) for each in further) if further else 1
        return self._ways[key]


def _type_before(path: Path) -> int:
    """The type of the event that caused the last step."""
    return path[1] if len(path) == INITIATION + 2 else path[-3]


def causal_specification(scenario: Scenario) -> Specification:
    """The dependencies of a scenario that has some, in as many copies as it asks for or its causal nodes fill."""
    workload = scenario.workload
    settings = workload.causal

    def parsed(copies: int) -> Specification:
        text, first_number = settings.dependencies, workload.pool
        return parse_specification(text, language=workload.language, first_number=first_number, copies=copies)

    if settings.graphs is not None:
        return parsed(settings.graphs)
    single = parsed(1)
    return single if ":" in settings.dependencies else parsed(max(1, _count(scenario) // len(single.types)))


def causal_nodes(scenario: Scenario, seed: int) -> list[int]:
    """The nodes that take part, in the order in which types are dealt out to them."""
    order = list(range(scenario.nodes))
    derive(seed, "workload", "causal nodes").shuffle(order)
    return order[: _count(scenario)]


def example(interest: Interest) -> Content:
    """Some content that the interest matches."""
    if isinstance(interest, Intervals):
        return interest.ranges[0][0]
    assert isinstance(interest, Topics)  # scenarios refuse other languages
    return "/".join("any" if "*" in level else level for level in interest.patterns[0].split("/"))


def _count(scenario: Scenario) -> int:
    return math.floor(scenario.workload.causal.node_share * scenario.nodes + 0.5)
