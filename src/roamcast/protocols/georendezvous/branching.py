"""Branching: which neighbours carry on a packet that has several legs.

Each greedy leg on its own would take the neighbour nearest to its target. Legs that go roughly the same way then part
early and pay for two paths. So a neighbour may serve a leg if its progress toward the target is at least a share of the
best neighbour's progress. Of these, the neighbour that serves the most legs is taken first (of several, the one with
the most progress in total), until all legs are served. This is the greedy heuristic for set cover.

Every step still makes progress, so paths stay free of loops. A share of 1 gives each leg its best step.
"""

from math import dist

from roamcast.protocols.georendezvous.cells import Vertex


def branches(here: Vertex, candidates: list[Vertex], targets: list[Vertex], share: float) -> list[Vertex | None]:
    """The next vertex of each target's leg out of `candidates`; None where none is closer than here."""
    chosen: list[Vertex | None] = [None] * len(targets)
    serves: dict[Vertex, dict[int, float]] = {}  # candidate -> leg -> progress
    open_legs: dict[int, None] = {}
    for leg, target in enumerate(targets):
        away = dist(here, target)
        progress = [(away - dist(vertex, target), vertex) for vertex in candidates]
        best = max((gained for gained, _ in progress), default=0.0)
        if best <= 0:
            continue
        open_legs[leg] = None
        for gained, vertex in progress:
            if gained >= share * best and gained > 0:
                serves.setdefault(vertex, {})[leg] = gained
    while open_legs:
        taken = max(serves, key=lambda vertex: (len(serves[vertex]), sum(serves[vertex].values()), vertex))
        for leg in list(serves[taken]):
            chosen[leg] = taken
            del open_legs[leg]
            for legs in serves.values():
                legs.pop(leg, None)
    return chosen
