"""Remembering what was seen, within bounds."""

from typing import Any

from roamcast.events import Event

CAPACITY = 65_536


class SeenCache:
    """The last `capacity` keys; the oldest is forgotten first. Capacity bounds memory on nodes that run for weeks.

    Keys are numbers, typed as objects: the compiled form takes them as they are, instead of converting them.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._keys: dict[object, None] = {}
        self._capacity = capacity

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: object) -> bool:
        """Remembers `key`, a number; true if it was new."""
        keys = self._keys
        known = len(keys)
        keys[key] = None  # an old key keeps its place
        if len(keys) == known:
            return False
        if known == self._capacity:
            del keys[next(iter(keys))]
        return True


class SeenEvents:
    """The ids of the events seen last. Most calls are about the event of the call before: that case comes first."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._ids = SeenCache(capacity)
        self._latest: Event | None = None

    def add(self, event: Event) -> bool:
        """Remembers the event; true if it was new."""
        if event is self._latest:
            return False
        self._latest = event
        number: Any = event.id  # not an `int`: the compiled form would convert it twice
        return self._ids.add(number)
