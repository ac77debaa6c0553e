"""News that waits for a frame: records that some neighbour may lack."""

from typing import Final

from roamcast.protocols.waymark.messages import Want, Where
from roamcast.protocols.waymark.records import Records

WANT: Final = 0
WHERE: Final = 1


class PendingNews:
    def __init__(self, records: Records, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._records = records
        self._reached: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})  # by kind and node: who has it
        self._asked: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})  # by kind and node: who asks for it

    def __len__(self) -> int:
        return sum(map(len, self._reached)) + sum(map(len, self._asked))

    def renew(self, kind: int, node: int, sender: int, around: frozenset[int]) -> None:
        """A record is new here. `sender` has told it to those around it."""
        reached = self._reached[kind][node] = set(around)
        reached.add(sender)

    def ask(self, kind: int, node: int, asking: int) -> None:
        """A neighbour lacks this record."""
        self._asked[kind].setdefault(node, set()).add(asking)

    def reached(self, kind: int, node: int, sender: int, around: frozenset[int]) -> None:
        """`sender` has told this record, the newest, to those around it."""
        have = self._reached[kind].get(node)
        if have is not None:
            have |= around
            have.add(sender)
        asked = self._asked[kind].get(node)
        if asked is not None:
            asked -= around
            asked.discard(sender)
            if not asked:
                del self._asked[kind][node]

    def take(self, neighbours: frozenset[int], bytes_max: int) -> tuple[tuple[Want, ...], tuple[Where, ...]]:
        """As many records as fit, oldest first, of those that a neighbour may lack; all others are forgotten."""
        left = min(bytes_max, self._bytes_max)
        wants: list[Want] = []
        for node in self._wanted(WANT, neighbours):
            want = self._records.want(node)
            left -= 12 + (0 if want.interest is None else len(str(want.interest)))
            if left < 0 and wants:
                return tuple(wants), ()
            self._told(WANT, node)
            wants.append(want)
        wheres: list[Where] = []
        for node in self._wanted(WHERE, neighbours):
            where = self._records.where(node)
            left -= 18 + 3 * (len(where.extra) + len(where.lacks))
            if left < 0 and (wants or wheres):
                break
            self._told(WHERE, node)
            wheres.append(where)
        return tuple(wants), tuple(wheres)

    def take_own(self, node: int) -> tuple[tuple[Want, ...], tuple[Where, ...]]:
        """The records of this node itself, if they are waiting."""
        wants = (self._records.want(node),) if node in self._reached[WANT] else ()
        wheres = (self._records.where(node),) if node in self._reached[WHERE] else ()
        self._told(WANT, node)
        self._told(WHERE, node)
        return wants, wheres

    def _wanted(self, kind: int, neighbours: frozenset[int]) -> list[int]:
        reached = self._reached[kind]
        for node in [node for node, have in reached.items() if have >= neighbours and neighbours]:
            del reached[node]
        return list(dict.fromkeys([*self._asked[kind], *reached]))

    def _told(self, kind: int, node: int) -> None:
        self._reached[kind].pop(node, None)
        self._asked[kind].pop(node, None)
