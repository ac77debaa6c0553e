"""The causal part of the workload: events whose receipt makes applications publish further events.

A share of the nodes, drawn from the seed, are *causal nodes*; every event type of the dependencies is played by at
least one of them. Who plays a type publishes its events and subscribes to all of its causes. The causal nodes are dealt
out, in random order, to as many disjoint copies of the dependencies as they fill with one node per type (`graphs` sets
another number); what is left over plays types twice, and if there are fewer nodes than types, nodes play several.

Who plays a type that nothing causes is an *initiator* and publishes it at `rate_per_s`. Everybody else reacts: on
receipt of an event of a cause it publishes, after a delay, one event per effect it plays. It reacts once per received
event and dependency, so each event that ends a chain has exactly one chain of causes behind it. Nobody reacts to
himself, since applications are not served their own events; dependencies have no circles, so every chain ends.

Every publication is told how many chains should go on from it (`chains`), counted over the nodes that play the types,
whether they are up or down: that is what a chain's completion is measured against.
"""

import math
from typing import NamedTuple

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


class CausalWorkload:
    """Who plays which event type, what initiators do of their own accord, and who reacts to what."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
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

    def chains(self, publisher: int, content: Content) -> int | None:
        """How many chains should go on from such an event: 0 if it is the end of one, `None` if it is not causal."""
        number = self._type_of(content)
        if number is None:
            return None
        return self._ways_on(publisher, number) if self._successors(publisher, number) else 0

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
                delay_s = 2 * self._settings.reaction_delay_s * self._delays[node].random()
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
