"""The search for shortest paths against a slow, obvious twin."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.world.topology import Topology


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
