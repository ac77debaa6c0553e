"""What a node keeps for its cell and, in case that one dies out, for the cells around it."""

from collections.abc import Iterator

from roamcast.protocols.georendezvous.cells import Cell
from roamcast.protocols.georendezvous.messages import Entry

EntryId = tuple[int, int]
"""Owner and slot."""


class Kept:
    """One entry as it is kept: with the instant of its end instead of the time it has left."""

    __slots__ = ("expires_s", "owner", "slot", "value", "version")

    def __init__(self, entry: Entry, now_s: float) -> None:
        self.owner = entry.owner
        self.slot = entry.slot
        self.version = entry.version
        self.expires_s = now_s + entry.lifetime_s
        self.value = entry.value

    def entry(self, now_s: float) -> Entry:
        return Entry(self.owner, self.slot, self.version, max(0.0, self.expires_s - now_s), self.value)


class Shelf:
    """Everything under one key."""

    __slots__ = ("handed_s", "home", "kept", "key", "orphaned_s", "repeated_s")

    def __init__(self, key: str, home: Cell) -> None:
        self.key = key
        self.home = home  # the cell that last claimed the key
        self.kept: dict[EntryId, Kept] = {}
        self.repeated_s = float("-inf")  # when its home last told everybody
        self.handed_s = float("-inf")  # when this node last sent it to the home of its key
        self.orphaned_s = float("inf")  # since when its home is known to have died out

    def merge(self, entry: Entry, now_s: float) -> bool:
        """Keeps the entry if it is newer than what is here; true if it was."""
        known = self.kept.get((entry.owner, entry.slot))
        if known is not None and known.version >= entry.version:
            return False
        if known is None and entry.lifetime_s <= 0:
            return False
        self.kept[entry.owner, entry.slot] = Kept(entry, now_s)
        return True

    def present(self, slot: int) -> list[Kept]:
        """What is kept in a slot and was not taken back, in the order of owners."""
        found = [kept for kept in self.kept.values() if kept.slot == slot and kept.value is not None]
        return sorted(found, key=lambda kept: kept.owner)

    def entries(self, now_s: float) -> tuple[Entry, ...]:
        return tuple(kept.entry(now_s) for kept in self.kept.values())


class Store:
    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}

    def __iter__(self) -> Iterator[Shelf]:
        return iter(list(self._shelves.values()))

    def __contains__(self, key: str) -> bool:
        return key in self._shelves

    def shelf(self, key: str) -> Shelf | None:
        return self._shelves.get(key)

    def open(self, key: str, home: Cell) -> Shelf:
        """The shelf of a key, a new one if there is none."""
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = Shelf(key, home)
        return shelf

    def forget(self, key: str) -> None:
        self._shelves.pop(key, None)

    def expire(self, now_s: float) -> list[tuple[Shelf, Kept]]:
        """Removes what has reached its end and answers with it."""
        ended: list[tuple[Shelf, Kept]] = []
        for shelf in self:
            for entry_id, kept in list(shelf.kept.items()):
                if kept.expires_s <= now_s:
                    del shelf.kept[entry_id]
                    ended.append((shelf, kept))
            if not shelf.kept:
                del self._shelves[shelf.key]
        return ended
