"""Whereabouts: what this node announces about its position and its links.

A node that knows its position announces it together with its velocity, and again only when it has strayed from the
predicted course. Its links follow from positions; only exceptions are listed: neighbours farther away than expected
(`extra`), and nodes so near that they should be heard but are not (`lacks`). A node without a position lists all its
neighbours as `extra`. Measurements thus correct wrong positions, and correct positions make knowledge cheap.
"""

from enum import StrEnum

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import Links
from roamcast.protocols.waymark.news import Spreading
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.records import Records


class WhereaboutsTimer(StrEnum):
    CHECK = "whereabouts.check"  # look whether this node is where it said, and whether its links are as it said


class Whereabouts(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        links: Links,
        places: Places,
        graph: Graph,
        news: Spreading,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._links = links
        self._places = places
        self._graph = graph
        self._news = news
        self._told_s = -1e9
        self._measured_s = host.now() + 2 * parameters.settle_s  # by then two hellos of every neighbour were heard
        self._links_then = -1
        self._extra: tuple[int, ...] = ()
        self._lacks: tuple[int, ...] = ()

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(WhereaboutsTimer.CHECK, self._check)

    def start(self) -> None:
        if self._place() is not None:
            self._tell(is_urgent=True)
        jitter = self._parameters.check_jitter
        first_s = self._parameters.check_s * (1 - jitter + 2 * jitter * self.host.random.random())
        self.host.set_timer(first_s, (WhereaboutsTimer.CHECK, 0))

    def _place(self) -> tuple[float, float, float, float] | None:
        place, velocity = self.host.position(), self.host.velocity()
        if place is None or not self._places.are_trusted():
            return None
        return (*place, *(velocity or (0.0, 0.0)))

    def _check(self, key: int) -> None:
        self.host.set_timer(self._parameters.check_s, (WhereaboutsTimer.CHECK, 0))
        place = self._place()
        has_dropped_place = place is None and self._records.own.has_place
        if has_dropped_place or (place is not None and self._has_strayed(place)):
            self._tell(is_urgent=True)
        elif not self._records.own.where_mark:
            if self.host.now() >= self._measured_s and self._links.neighbours():
                self._tell(is_urgent=True)
        elif self._links.changes != self._links_then:
            self._tell_exceptions()

    def _tell_exceptions(self) -> None:
        """That a node nearby is not heard is told soon, unless others have done so, because others count on it; other
        changes are told now and then."""
        own = self._records.own
        rest_s = self.host.now() - self._told_s
        self._find_exceptions()
        is_urgent = any(node not in own.lacks and not self._graph.is_silent(node) for node in self._lacks)
        where_s = min(self._parameters.where_periods * self._links.period_s, self._parameters.where_max_s)
        if is_urgent or rest_s >= where_s:
            self._links_then = self._links.changes
            if self._lacks != own.lacks or self._extra != own.extra:
                self._tell(is_urgent)

    def _has_strayed(self, place: tuple[float, float, float, float]) -> bool:
        own = self._records.own
        if not own.has_place:
            return True
        age_s = self.host.now() - own.place_s
        dx, dy = own.x + own.vx * age_s - place[0], own.y + own.vy * age_s - place[1]
        return bool(dx * dx + dy * dy > self._parameters.stray_m**2)

    def _tell(self, is_urgent: bool) -> None:
        self._told_s = self.host.now()
        self._find_exceptions()
        self._records.own_where_changed(self._place(), self._extra, self._lacks)
        self._news.own_where_changed(is_urgent)

    def _find_exceptions(self) -> None:
        neighbours = self._links.neighbours()
        if self._place() is None:
            self._extra = tuple(sorted(neighbours))
            self._lacks = ()
            return
        links = self._links
        explains, is_near = self._places.explains, self._places.is_near
        self._extra = tuple(
            sorted(n for n in neighbours if links.known[n].is_far or not (explains(n) or links.is_stranger(n)))
        )
        self._lacks = tuple(sorted(n for n, neighbour in links.known.items() if neighbour.is_cut and is_near(n)))
