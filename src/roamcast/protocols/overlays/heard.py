"""The searches that a node has heard, and from which neighbour first.

A neighbour may invent any number of searches. So each neighbour has a quota and a rate limit: its newest searches
replace its own oldest, and do not displace those of other neighbours until the memory as a whole is full.
"""

from roamcast.protocols.api import NOBODY
from roamcast.protocols.overlays.parameters import OverlaysParameters
from roamcast.protocols.routing.discovery import RateLimit

Search = tuple[int, int]
"""Its origin and its number there."""


class _Neighbour:
    __slots__ = ("limit", "searches")

    def __init__(self, per_s: int) -> None:
        self.limit = RateLimit(per_s)
        self.searches: dict[Search, None] = {}  # oldest first


class HeardSearches:
    def __init__(self, parameters: OverlaysParameters) -> None:
        self._parameters = parameters
        self._from: dict[Search, int] = {}  # oldest first
        self._neighbours: dict[int, _Neighbour] = {}
        # The search that was added last: a flooded search is heard from many neighbours in a row.
        self._latest_origin = NOBODY
        self._latest_number = 0

    def __len__(self) -> int:
        return len(self._from)

    def add(self, origin: int, number: int, neighbour: int, now_s: float) -> bool:
        """Remembers a search; true if it is new and the neighbour has not sent too many."""
        if number == self._latest_number and origin == self._latest_origin:
            return False
        search = (origin, number)
        if search in self._from:
            return False
        heard = self._neighbours.get(neighbour)
        if heard is None:
            heard = self._neighbours[neighbour] = _Neighbour(self._parameters.searches_per_s)
        if heard.limit.wait_s(now_s) > 0:
            return False
        heard.limit.note(now_s)
        heard.searches[search] = None
        self._from[search] = neighbour
        self._latest_origin, self._latest_number = origin, number
        if len(heard.searches) > self._parameters.searches_per_neighbour_max:
            self._forget(next(iter(heard.searches)))
        if len(self._from) > self._parameters.searches_max:
            self._forget(next(iter(self._from)))
        return True

    def neighbour(self, origin: int, number: int) -> int:
        """The neighbour from which the search was heard first, or `NOBODY`."""
        return self._from.get((origin, number), NOBODY)

    def _forget(self, search: Search) -> None:
        neighbour = self._from.pop(search)
        searches = self._neighbours[neighbour].searches
        del searches[search]
        if not searches:
            del self._neighbours[neighbour]
