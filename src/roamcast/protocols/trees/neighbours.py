"""What the neighbours' refreshes said: who is around, in which tree, how far from its root."""

from collections.abc import Iterator
from typing import NamedTuple

from roamcast.protocols.trees.messages import Refresh


class Neighbour(NamedTuple):
    address: int
    refresh: Refresh
    heard_s: float


class Neighbours:
    """The last refresh of each neighbour, forgotten after `lifetime_s`; beyond `capacity` the one heard longest ago is
    dropped."""

    def __init__(self, lifetime_s: float, capacity: int) -> None:
        self._lifetime_s = lifetime_s
        self._capacity = capacity
        self._known: dict[int, Neighbour] = {}
        self.newest_sequence = 0  # of all trees ever heard

    def hear(self, address: int, refresh: Refresh, now_s: float) -> None:
        if len(self._known) >= self._capacity and address not in self._known:
            del self._known[min(self._known.values(), key=_heard_s).address]
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


def _heard_s(neighbour: Neighbour) -> float:
    return neighbour.heard_s
