"""What a node keeps for its cell and, as backups, for the cells around it."""

from collections.abc import Iterator

from roamcast.protocols.georendezvous.cells import Cell
from roamcast.protocols.georendezvous.messages import Entry
from roamcast.protocols.georendezvous.parameters import CellHashParameters

EntryId = tuple[int, int]
"""Owner and slot."""


class StoredEntry:
    """One entry as it is kept: with the instant of its end instead of the time it has left."""

    __slots__ = ("expires_s", "owner", "signature", "slot", "value", "version")

    def __init__(self, entry: Entry, expires_s: float) -> None:
        self.owner = entry.owner
        self.slot = entry.slot
        self.version = entry.version
        self.expires_s = expires_s
        self.value = entry.value
        self.signature = entry.signature

    def entry(self, now_s: float) -> Entry:
        left_s = max(0.0, self.expires_s - now_s)
        return Entry(
            owner=self.owner,
            slot=self.slot,
            version=self.version,
            lifetime_s=left_s,
            value=self.value,
            signature=self.signature,
        )


class Shelf:
    """Everything under one key."""

    __slots__ = ("_present", "handed_s", "home", "kept", "key", "orphaned_s", "repeated_s")

    def __init__(self, key: str, home: Cell) -> None:
        self.key = key
        self.home = home  # the cell that last claimed the key
        self.kept: dict[EntryId, StoredEntry] = {}  # changed by `keep` and `remove` only
        self._present: dict[int, list[StoredEntry]] = {}  # by slot: answers of `present`, until something changes
        self.repeated_s = float("-inf")  # when its home last broadcast it
        self.handed_s = float("-inf")  # when this node last sent it to the home of its key
        self.orphaned_s = float("inf")  # since when its home is known to have died out

    def present(self, slot: int) -> list[StoredEntry]:
        """What is kept in a slot and was not withdrawn, in the order of owners. Do not change the list."""
        known = self._present.get(slot)
        if known is None:
            found = [kept for kept in self.kept.values() if kept.slot == slot and kept.value is not None]
            known = self._present[slot] = sorted(found, key=lambda kept: kept.owner)
        return known

    def keep(self, kept: StoredEntry) -> None:
        """Keeps an entry, in the place of an older one of the same owner and slot."""
        self.kept[kept.owner, kept.slot] = kept
        self._present.clear()

    def remove(self, entry_id: EntryId) -> None:
        del self.kept[entry_id]
        self._present.clear()

    def entries(self, now_s: float) -> tuple[Entry, ...]:
        return tuple(kept.entry(now_s) for kept in self.kept.values())


class EntryStore:
    """The shelves of a node, with bounds: on keys, on entries per key, on entries per owner and on lifetimes."""

    def __init__(self, parameters: CellHashParameters) -> None:
        self._shelves: dict[str, Shelf] = {}
        self._owned: dict[int, int] = {}  # owner -> its entries here, over all keys
        self._keys_max = parameters.keys_max
        self._entries_max = parameters.entries_max
        self._owner_entries_max = parameters.owner_entries_max
        self._lifetime_max_s = parameters.lifetime_max_s

    def __iter__(self) -> Iterator[Shelf]:
        return iter(list(self._shelves.values()))

    def __len__(self) -> int:
        return len(self._shelves)

    def __contains__(self, key: str) -> bool:
        return key in self._shelves

    def shelf(self, key: str) -> Shelf | None:
        return self._shelves.get(key)

    def open(self, key: str, home: Cell) -> Shelf | None:
        """The shelf of a key, a new one if there is none; None if this node keeps as many keys as it may."""
        shelf = self._shelves.get(key)
        if shelf is None and len(self._shelves) < self._keys_max:
            shelf = self._shelves[key] = Shelf(key, home)
        return shelf

    def merge(self, shelf: Shelf, entry: Entry, now_s: float) -> bool:
        """Keeps the entry if it is newer than what is here and there is room; true if it was kept."""
        known = shelf.kept.get((entry.owner, entry.slot))
        if known is not None:
            if known.version >= entry.version:
                return False
        else:
            owned = self._owned.get(entry.owner, 0)
            if entry.lifetime_s <= 0 or len(shelf.kept) >= self._entries_max or owned >= self._owner_entries_max:
                return False
            self._owned[entry.owner] = owned + 1
        shelf.keep(StoredEntry(entry, now_s + min(entry.lifetime_s, self._lifetime_max_s)))
        return True

    def forget(self, key: str) -> None:
        shelf = self._shelves.pop(key, None)
        if shelf is not None:
            for kept in shelf.kept.values():
                self._release(kept.owner)

    def expire(self, now_s: float) -> list[tuple[Shelf, StoredEntry]]:
        """Removes what has reached its end and returns it."""
        ended: list[tuple[Shelf, StoredEntry]] = []
        for shelf in self:
            for entry_id, kept in list(shelf.kept.items()):
                if kept.expires_s <= now_s:
                    shelf.remove(entry_id)
                    self._release(kept.owner)
                    ended.append((shelf, kept))
            if not shelf.kept:
                del self._shelves[shelf.key]
        return ended

    def _release(self, owner: int) -> None:
        left = self._owned[owner] - 1
        if left:
            self._owned[owner] = left
        else:
            del self._owned[owner]
