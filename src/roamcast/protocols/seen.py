"""Remembering what was seen, within bounds."""


class SeenCache:
    """The last `capacity` keys; the oldest is forgotten first. Capacity bounds memory on nodes that run for weeks.

    Keys are numbers, and typed as objects: the compiled form takes them as they are, instead of making new ones.
    """

    def __init__(self, capacity: int = 65_536) -> None:
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
