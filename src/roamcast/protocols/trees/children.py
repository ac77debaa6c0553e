"""A node's children in the tree: what each one's subtree wants, and when it was last heard."""

from collections.abc import Iterator

from roamcast.events import Event
from roamcast.interests import Interest, union_all


class Children:
    def __init__(self) -> None:
        self._interests: dict[int, Interest | None] = {}
        self._heard_s: dict[int, float] = {}
        self.proxied: Interest | None = None  # union of what the children's subtrees want

    def __contains__(self, child: int) -> bool:
        return child in self._interests

    def __iter__(self) -> Iterator[int]:
        return iter(self._interests)

    def __len__(self) -> int:
        return len(self._interests)

    def interest(self, child: int) -> Interest | None:
        return self._interests[child]

    def put(self, child: int, interest: Interest | None, now_s: float) -> None:
        known = child in self._interests and self._interests[child] == interest
        self._interests[child] = interest
        self._heard_s[child] = now_s
        if not known:
            self._unite()

    def remove(self, child: int) -> bool:
        """True if there was such a child."""
        if child not in self._interests:
            return False
        del self._interests[child], self._heard_s[child]
        self._unite()
        return True

    def heard(self, child: int, now_s: float) -> None:
        if child in self._heard_s:
            self._heard_s[child] = now_s

    def silent_since(self, before_s: float) -> list[int]:
        """Those not heard from since `before_s`."""
        return [child for child, heard_s in self._heard_s.items() if heard_s < before_s]

    def wanting(self, event: Event) -> list[int]:
        """Those whose subtree wants the event."""
        if self.proxied is None or not self.proxied.matches(event):
            return []
        return [c for c, interest in self._interests.items() if interest is not None and interest.matches(event)]

    def _unite(self) -> None:
        self.proxied = union_all(interest for interest in self._interests.values() if interest is not None)
