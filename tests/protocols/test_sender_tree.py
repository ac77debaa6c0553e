"""Trees with few senders against their slow twin, which looks for each path from the beginning."""

from random import Random

from roamcast.protocols.sender_tree import Adjacency, Plan, grow_tree, indices


class RandomGraph(Adjacency):
    def __init__(self, seed: int, nodes: int) -> None:
        random = Random(seed)
        self.links = [0] * nodes
        for a in range(nodes):
            for b in range(a):
                if random.random() < 3.5 / nodes:
                    self.links[a] |= 1 << b
                    if random.random() < 0.95:  # a few are heard in one direction only
                        self.links[b] |= 1 << a

    def adjacent(self, index: int, loose: bool) -> int:
        return self.links[index]


def slow_tree(graph: Adjacency, me: int, excluded: int, wanted: int) -> Plan:
    own = graph.adjacent(me, False) & ~excluded
    here = 1 << me
    head = {index: index for index in indices(own)}
    open_, reached = wanted & ~own & ~here, own
    groups: dict[int, int] = {}
    while open_ and (path := slow_path(graph, reached, here, open_, wanted)):
        first = head[path[0]]
        for sender in path:
            new = graph.adjacent(sender, False) & ~reached & ~here
            head.update(dict.fromkeys(indices(new), first))
            reached |= new
        groups[first] = groups.get(first, 0) | open_ & reached
        open_ &= ~reached
    for index in indices(wanted & own):
        groups.setdefault(index, 0)
    return Plan(groups, open_)


def slow_path(graph: Adjacency, reached: int, here: int, open_: int, wanted: int) -> list[int]:
    levels, seen = [reached], reached | here
    while not levels[-1] & open_:
        step = heard_by(graph, levels[-1]) & ~seen
        if not step:
            return []
        seen |= step
        levels.append(step)
    goal = levels[-1] & open_
    path: list[int] = []
    for level in reversed(levels[:-1]):
        able = [index for index in indices(heard_by(graph, goal) & level) if graph.adjacent(index, False) & goal]
        if not able:
            return []
        gains = {i: 2 * (graph.adjacent(i, False) & open_).bit_count() + (wanted >> i & 1) for i in able}
        best = max(able, key=lambda i: (gains[i], -i))
        path.insert(0, best)
        goal = 1 << best
    return path


def heard_by(graph: Adjacency, nodes: int) -> int:
    heard = 0
    for index in indices(nodes):
        heard |= graph.adjacent(index, False)
    return heard


def test_trees_are_those_of_the_slow_twin() -> None:
    for seed in range(150):
        random = Random(seed)
        nodes = random.randrange(2, 40)
        graph = RandomGraph(seed, nodes)
        wanted, excluded = random.getrandbits(nodes), random.getrandbits(nodes) & random.getrandbits(nodes)
        fast, slow = grow_tree(graph, 0, excluded, wanted, False), slow_tree(graph, 0, excluded, wanted)
        assert (list(fast.groups.items()), fast.lost) == (list(slow.groups.items()), slow.lost), seed
