"""News that is waiting for a frame: which records some neighbour may lack."""

from typing import Final

from roamcast.protocols.waymark.messages import Want, Where
from roamcast.protocols.waymark.records import Records

WANT: Final = 0
WHERE: Final = 1


class PendingNews:
    def __init__(self, records: Records) -> None:
        self._records = records
        self._lacking: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})  # of wants, of wheres: by node

    def __len__(self) -> int:
        return len(self._lacking[WANT]) + len(self._lacking[WHERE])

    def add(self, kind: int, node: int, lacking: set[int]) -> None:
        """Nodes in `lacking` may not have this record. The set is not copied."""
        waiting = self._lacking[kind].get(node)
        if waiting is None:
            self._lacking[kind][node] = lacking
        else:
            waiting |= lacking

    def replace(self, kind: int, node: int, lacking: set[int]) -> None:
        """The record is new: only these may lack it."""
        self._lacking[kind].pop(node, None)
        if lacking:
            self._lacking[kind][node] = lacking

    def reached(self, kind: int, node: int, sender: int, around: frozenset[int]) -> None:
        """`sender` has told this record to its neighbours."""
        waiting = self._lacking[kind].get(node)
        if waiting is not None:
            waiting -= around
            waiting.discard(sender)
            if not waiting:
                del self._lacking[kind][node]

    def take(self, bytes_max: int) -> tuple[tuple[Want, ...], tuple[Where, ...]]:
        """As many records as fit, oldest first; they count as told."""
        left = bytes_max
        wants: list[Want] = []
        wheres: list[Where] = []
        for node in list(self._lacking[WANT]):
            want = self._records.want(node)
            left -= 12 + (0 if want.interest is None else len(str(want.interest)))
            if left < 0 and wants:
                return tuple(wants), ()
            del self._lacking[WANT][node]
            wants.append(want)
        for node in list(self._lacking[WHERE]):
            where = self._records.where(node)
            left -= 18 + 3 * (len(where.extra) + len(where.lacks))
            if left < 0 and (wants or wheres):
                break
            del self._lacking[WHERE][node]
            wheres.append(where)
        return tuple(wants), tuple(wheres)
