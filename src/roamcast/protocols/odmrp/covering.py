"""The covering graph: summary entries in their order of generality.

An entry is below another that covers it, with only immediate neighbours linked. What no entry covers is a root. A
digest that does not match an entry matches nothing below it, so a search begins at the roots and ends at the first
match; and since a root covers all below it, the roots alone decide whether anything matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roamcast.errors import CallerError
from roamcast.protocols.odmrp.packed import Digest
from roamcast.protocols.odmrp.summaries import Family, SummaryEntry


class CoveringGraph:
    def __init__(self, family: Family) -> None:
        self._family = family
        self._count: dict[SummaryEntry, int] = {}  # equal entries are one node
        self._below: dict[SummaryEntry, dict[SummaryEntry, None]] = {}
        self._above: dict[SummaryEntry, dict[SummaryEntry, None]] = {}

    def __len__(self) -> int:
        return len(self._count)

    @property
    def roots(self) -> list[SummaryEntry]:
        return [entry for entry, above in self._above.items() if not above]

    def below(self, entry: SummaryEntry) -> list[SummaryEntry]:
        """What an entry covers immediately."""
        return list(self._below[entry])

    def matches(self, digest: Digest) -> bool:
        return any(self._family.matches(root, digest) for root in self.roots)

    def matching(self, digest: Digest) -> Iterator[SummaryEntry]:
        """All entries that match, each once."""
        waiting = self.roots
        seen = dict.fromkeys(waiting)
        while waiting:
            entry = waiting.pop()
            if self._family.matches(entry, digest):
                yield entry
                fresh = [each for each in self._below[entry] if each not in seen]
                seen.update(dict.fromkeys(fresh))
                waiting += fresh

    def add(self, entry: SummaryEntry) -> None:
        if entry in self._count:
            self._count[entry] += 1
            return
        self._count[entry] = 1
        bottoms = [each for each, below in self._below.items() if not below]
        above = _last(self.roots, self._below, lambda other: other.covers(entry))
        below = _last(bottoms, self._above, lambda other: entry.covers(other))
        for upper in above:
            for lower in below:
                self._unlink(upper, lower)  # the new entry stands between them
        self._below[entry], self._above[entry] = {}, {}
        for upper in above:
            self._link(upper, entry)
        for lower in below:
            self._link(entry, lower)

    def remove(self, entry: SummaryEntry) -> None:
        if entry not in self._count:
            raise CallerError(f"remove: {entry} is not in the graph")
        self._count[entry] -= 1
        if self._count[entry]:
            return
        del self._count[entry]
        above, below = self._above.pop(entry), self._below.pop(entry)
        for upper in above:
            del self._below[upper][entry]
        for lower in below:
            del self._above[lower][entry]
        for upper in above:
            for lower in below:
                if not self._reaches(upper, lower):
                    self._link(upper, lower)

    def _link(self, upper: SummaryEntry, lower: SummaryEntry) -> None:
        self._below[upper][lower] = None
        self._above[lower][upper] = None

    def _unlink(self, upper: SummaryEntry, lower: SummaryEntry) -> None:
        self._below[upper].pop(lower, None)
        self._above[lower].pop(upper, None)

    def _reaches(self, upper: SummaryEntry, lower: SummaryEntry) -> bool:
        waiting, seen = [upper], {upper}
        while waiting:
            for each in self._below[waiting.pop()]:
                if each == lower:
                    return True
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return False


def _last(
    start: list[SummaryEntry],
    onward: dict[SummaryEntry, dict[SummaryEntry, None]],
    fits: Callable[[SummaryEntry], bool],
) -> list[SummaryEntry]:
    """Going `onward` through entries that fit, those after which none fits: the nearest neighbours of a new entry."""
    waiting = [entry for entry in start if fits(entry)]
    seen = dict.fromkeys(waiting)
    found: list[SummaryEntry] = []
    while waiting:
        entry = waiting.pop()
        farther = [each for each in onward[entry] if fits(each)]
        if not farther:
            found.append(entry)
        fresh = [each for each in farther if each not in seen]
        seen.update(dict.fromkeys(fresh))
        waiting += fresh
    return found
