"""Remembering what was seen, within bounds."""


class SeenCache:
    """The last `capacity` keys; the oldest is forgotten first. Capacity bounds memory on nodes that run for weeks."""

    def __init__(self, capacity: int = 65_536) -> None:
        self._keys: dict[int, None] = {}
        self._capacity = capacity

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: int) -> bool:
        """Remembers `key`; true if it was new."""
        keys = self._keys
        if key in keys:
            return False
        keys[key] = None
        if len(keys) > self._capacity:
            del keys[next(iter(keys))]
        return True
