"""The search for shortest paths against a slow, obvious twin."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.world.topology import KNOWN_DISTANCES_MAX, Topology


def slow_distances(topology: Topology, source: int) -> list[int]:
    distance = [-1] * topology.nodes
    if topology.is_up(source):
        distance[source] = 0
    queue = [source] if topology.is_up(source) else []
    for node in queue:
        for other in topology.hear[node]:
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue.append(other)
    return distance


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(2, 30), st.integers(0, 60), st.integers(0, 10_000))
def test_distances_are_those_of_a_plain_breadth_first_search(nodes: int, changes: int, seed: int) -> None:
    random = Random(seed)
    topology = Topology(nodes)
    for _ in range(changes):
        a, b = random.sample(range(nodes), 2)
        topology.set_contact(a, b, random.random() < 0.8)
        if random.random() < 0.1:
            topology.set_up(random.randrange(nodes), random.random() < 0.5)
    for source in range(nodes):
        assert topology.distances(source) == slow_distances(topology, source)


class Links:
    """The slow twin of the neighbour lists: looks at all pairs each time."""

    def __init__(self, nodes: int) -> None:
        self.nodes = range(nodes)
        self.near: set[frozenset[int]] = set()
        self.far: set[frozenset[int]] = set()
        self.up = [True] * nodes

    def heard(self, node: int) -> list[int]:
        return [other for other in self.nodes if self._joined(node, other) and frozenset((node, other)) in self.near]

    def sensed(self, node: int) -> list[int]:
        pairs = self.far - self.near
        return [other for other in self.nodes if self._joined(node, other) and frozenset((node, other)) in pairs]

    def _joined(self, node: int, other: int) -> bool:
        return node != other and self.up[node] and self.up[other]


PAIRS = st.lists(st.integers(0, 5), min_size=2, max_size=2, unique=True)
CHANGES = st.lists(st.tuples(st.sampled_from(["near", "far", "up"]), PAIRS, st.booleans()), max_size=40)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(CHANGES)
def test_neighbour_lists_follow_every_change_and_are_replaced(changes: list[tuple[str, list[int], bool]]) -> None:
    topology, links = Topology(6), Links(6)
    for what, (a, b), is_so in changes:
        before = [(kept, kept.copy()) for kept in (*topology.hear, *topology.sense)]
        if what == "up":
            links.up[a] = is_so
            topology.set_up(a, is_so)
        else:
            pairs = links.near if what == "near" else links.far
            (pairs.add if is_so else pairs.discard)(frozenset((a, b)))
            (topology.set_contact if what == "near" else topology.set_sensed)(a, b, is_so)
        assert topology.hear == [links.heard(node) for node in links.nodes]
        assert topology.sense == [links.sensed(node) for node in links.nodes]
        assert all(kept == copy for kept, copy in before)  # a frame in the air keeps the list of when it started


def test_distances_of_a_large_network_at_rest_are_not_all_kept() -> None:
    nodes = 3000
    topology = Topology(nodes)
    topology.load([(0, node) for node in range(1, nodes)], [])
    for source in range(0, nodes, 2):
        topology.distances(source)
    assert len(topology._distances) * nodes <= KNOWN_DISTANCES_MAX + nodes
    assert topology.distances(0)[17] == 1  # the first to be forgotten is worked out again
