"""What the neighbours' refreshes said: who is around, in which tree, how far from its root."""

from collections.abc import Iterator
from typing import NamedTuple

from roamcast.protocols.trees.messages import Refresh


class Neighbour(NamedTuple):
    address: int
    refresh: Refresh
    heard_s: float


class Neighbours:
    """The last refresh of each neighbour, forgotten after `lifetime_s`."""

    def __init__(self, lifetime_s: float) -> None:
        self._lifetime_s = lifetime_s
        self._known: dict[int, Neighbour] = {}
        self.newest_sequence = 0  # of all trees ever heard

    def hear(self, address: int, refresh: Refresh, now_s: float) -> None:
        self._known[address] = Neighbour(address, refresh, now_s)
        if refresh.sequence > self.newest_sequence:
            self.newest_sequence = refresh.sequence

    def last(self, address: int) -> Refresh | None:
        """What a neighbour said last, however long ago."""
        neighbour = self._known.get(address)
        return None if neighbour is None else neighbour.refresh

    def forget(self, address: int) -> None:
        self._known.pop(address, None)

    def present(self, now_s: float) -> Iterator[Neighbour]:
        """Those heard lately, in the order in which they were first met."""
        for neighbour in list(self._known.values()):
            if neighbour.heard_s < now_s - self._lifetime_s:
                del self._known[neighbour.address]
            else:
                yield neighbour
