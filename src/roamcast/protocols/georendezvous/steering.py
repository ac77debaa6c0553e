"""Steering: where a packet goes next, by geography alone (paper section 2.1, after GPSR).

Goal: from every vertex of a connected graph, a packet for a target place ends at the same vertex, the *home* of that
place: the place's own vertex if it has one, else the vertex nearest to it.

Nearer is a total order (`closer`): equal distances, which are common among cells, are ordered as if the target lay a
tiny step to the north and a still tinier one to the east of where it is. So there is one nearest vertex, and all
geometry below may assume that no two distances are equal.

- *Greedy*: go to the neighbour nearest to the target, as long as that is closer than here.
- *Tour*: at a local minimum, walk around the face of the planar graph that the line to the target enters, right hand
  on the wall: first along the edge that comes next counter-clockwise after the line to the target, then always along
  the edge that comes next counter-clockwise after the one the packet came by. A vertex closer to the target than the
  one where the tour began ends the tour; greedy goes on.
- *Home*: back where the tour began and about to turn past the line to the target again, the packet has seen the whole
  face and nothing closer, so this vertex is the home. (The paper says "the same node twice"; but a tour may pass a
  vertex several times, so it must be about to take the same edge in the same direction.)
- *Lost*: where nodes move, the vertex where the tour began may be gone, and the tour would go on for ever. So the
  packet remembers an edge it took, a later one each time that its steps have doubled. When it takes that edge again it
  has gone in a circle without meeting its start, and begins a new tour on the spot. (In a graph that does not change
  the start always comes first.)

Why a single face is enough, where GPSR changes faces: let u be the local minimum and D the target. Suppose the line uD
leaves the face through an edge ab, with a and b both farther from D than u. Then u and D lie on different sides of ab,
the circle around D through u cuts ab twice, and from u, on the shorter arc, the line ab is seen under at least a right
angle: u lies in the disc with diameter ab. But edges with a vertex in that disc are not in the graph (`cells.py`). So a
or b is closer than u, both are on the face, and the tour finds one. If uD does not leave the face, D lies in it, and by
the same argument the vertex nearest to D, seen from D, has no edge before it: it is on that face too, and the tour
finds it unless it is u. Every change back to greedy comes strictly closer, so the packet arrives.
"""

from collections.abc import Iterable
from math import atan2, pi
from typing import Final, NamedTuple

from roamcast.protocols.georendezvous.cells import Vertex
from roamcast.protocols.georendezvous.tour import Tour

Closeness = tuple[float, float, float]

_ASIDE: Final = 1e-4  # cells or metres
_SAME_DIRECTION: Final = 1e-9  # radians; different edges of a vertex differ by far more


class Step(NamedTuple):
    vertex: Vertex
    tour: Tour


def closeness(vertex: Vertex, target: Vertex) -> Closeness:
    """Orders vertices by how near they are to the target, the nearest first; no two are equal."""
    dx, dy = vertex[0] - target[0], vertex[1] - target[1]
    return dx * dx + dy * dy, -dy, -dx


def closer(vertex: Vertex, other: Vertex, target: Vertex) -> bool:
    return closeness(vertex, target) < closeness(other, target)


def greedy(here: Vertex, neighbours: Iterable[Vertex], target: Vertex) -> Vertex | None:
    """The neighbour nearest to the target if it is closer than here."""
    best: Vertex | None = None
    nearest = closeness(here, target)
    for vertex in neighbours:
        near = closeness(vertex, target)
        if near < nearest:
            best, nearest = vertex, near
    return best


def begin_tour(here: Vertex, planar: list[Vertex], target: Vertex) -> Step | None:
    """The first step of the tour from a local minimum, or `None` if there is nowhere to go."""
    if not planar:
        return None
    first = _next_after(_toward(here, target), here, planar)
    return Step(first, Tour(here, here, (here, first), 1))


def continue_tour(here: Vertex, planar: list[Vertex], target: Vertex, tour: Tour) -> Step | None:
    """The tour's next step, or `None` if it is complete, which makes this vertex the home."""
    if not planar:
        return None
    back = _direction(here, tour.previous)
    step = _next_after(back, here, planar)
    if here == tour.start and _turn(back, _toward(here, target)) < _turn(back, _direction(here, step)):
        return None
    if (here, step) == tour.marked:
        return begin_tour(here, planar, target)
    return Step(step, tour.onward(here, step))


def _direction(here: Vertex, there: Vertex) -> float:
    return atan2(there[1] - here[1], there[0] - here[0])


def _toward(here: Vertex, target: Vertex) -> float:
    """The direction of the target, which lies a tiny step aside (`closer`): never exactly that of an edge."""
    return atan2(target[1] + _ASIDE - here[1], target[0] + _ASIDE / 16 - here[0])


def _turn(since: float, direction: float) -> float:
    """How far counter-clockwise `direction` comes after `since`; the same direction comes last, after a full turn."""
    angle = (direction - since) % (2 * pi)
    return angle if angle > _SAME_DIRECTION else 2 * pi


def _next_after(direction: float, here: Vertex, planar: list[Vertex]) -> Vertex:
    return min(planar, key=lambda vertex: _turn(direction, _direction(here, vertex)))
