"""A node's children in the tree: what each one's subtree wants, and when it was last heard."""

from collections.abc import Iterator

from roamcast.events import Event
from roamcast.interests import Interest, union_all
from roamcast.interests.matching import matches


class Children:
    """At most `children_max` of them, so that no neighbour can make this node remember ever more addresses."""

    def __init__(self, children_max: int) -> None:
        self._max = children_max
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

    def put(self, child: int, interest: Interest | None, now_s: float) -> bool:
        """False if it is refused: there are too many children, or they speak another interest language."""
        if child not in self._interests and len(self._interests) >= self._max:
            return False
        if interest is not None and self.proxied is not None and type(interest) is not type(self.proxied):
            return False
        is_new = child not in self._interests
        known = not is_new and self._interests[child] == interest
        self._interests[child] = interest
        self._heard_s[child] = now_s
        if is_new and interest is not None:
            self.proxied = interest if self.proxied is None else self.proxied.union(interest)
        elif not known:
            self._unite()
        return True

    def forget_other_languages(self, own: Interest) -> None:
        """The application speaks this language, so what children said in another one was nonsense."""
        if self.proxied is not None and type(self.proxied) is not type(own):
            self._interests = dict.fromkeys(self._interests)
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
        if self.proxied is None or not matches(self.proxied, event):
            return []
        return [c for c, interest in self._interests.items() if interest is not None and matches(interest, event)]

    def _unite(self) -> None:
        self.proxied = union_all(interest for interest in self._interests.values() if interest is not None)
