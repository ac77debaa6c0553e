"""Records: what every node has announced about itself, as far as it is known here.

A newer record replaces an older one. Numbers are circular (RFC 1982) and cannot be exhausted: every number has a
successor. First-hand knowledge overrides hearsay: a record from its own node is always accepted, whatever its number. A
node that receives a record of its own that it has not issued (from an earlier life, or forged) issues a newer one. The
node's own word therefore prevails.

Records with the same number but different content are distinguished by a *mark* computed from both. The digests in
hellos are made of marks, so neighbours with different records notice it and compare them.

No record can declare another node dead: a node reports only its own links.
"""

import zlib
from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.protocols.waymark.messages import AGE_DS_MAX, PLACE_MAX, Want, Where

LIFE_BITS: Final = 12
"""A node's records count up from its life times 2 to this power, so those of a later life are newer."""

CIRCLE: Final = 1 << 32
NODES_MAX: Final = 4096
"""Nodes whose records are kept; those of further nodes are ignored."""


class Known:
    """What is known of one node."""

    __slots__ = (
        "extra", "has_place", "index", "interest", "lacks", "listed_s", "place_s", "reborn_s", "vx", "vy",
        "want_mark", "want_number", "want_signature", "wanted_since_s", "where_mark", "where_number", "where_s",
        "where_signature", "x", "y",
    )  # fmt: skip

    def __init__(self, index: int) -> None:
        self.index = index  # its bit in sets of nodes
        self.want_number = 0
        self.want_mark = 0  # 0: no want known
        self.interest: Interest | None = None
        self.want_signature: bytes | None = None  # of the node, where nodes have identities
        self.where_signature: bytes | None = None
        self.wanted_since_s = 0.0
        self.where_number = 0
        self.where_mark = 0  # 0: no where known
        self.where_s = -1e9  # when its where became known here
        self.reborn_s = -1e9  # when the first where of its present life became known here
        self.has_place = False
        self.x = self.y = self.vx = self.vy = 0.0  # m, m/s
        self.place_s = 0.0  # when it was there
        self.listed_s = -1e9  # when it listed its neighbours last
        self.extra: tuple[int, ...] = ()
        self.lacks: tuple[int, ...] = ()


class Records:
    def __init__(self, host: Host, backdating_s: float = 0.0) -> None:
        self.host = host
        self._backdating_s = backdating_s  # this node also wants what was published this long before
        self.subscriptions = Subscriptions()
        self.known: dict[int, Known] = {}
        self.nodes: list[int] = []  # by index
        self.by_index: list[Known] = []
        self.says: list[int] = []  # by index: whom a node lists as neighbours, as a set of bits
        self.said_of: list[int] = []  # by index: who lists it
        self.wants_digest = 0
        self.wheres_digest = 0
        self.changes = 0  # counts every change of a where, for caches
        self.own = self._take_in(host.address)
        self.own.wanted_since_s = host.now()
        self.own.where_number = (host.life << LIFE_BITS) % CIRCLE
        self._number_want(self.own, self.own.where_number)

    def _take_in(self, node: int) -> Known:
        known = self.known[node] = Known(len(self.nodes))
        self.nodes.append(node)
        self.by_index.append(known)
        self.says.append(0)
        self.said_of.append(0)
        return known

    # -- This node's own records -----------------------------------------------------------------------------------

    def own_want_changed(self) -> None:
        own = self.own
        own.interest = self.subscriptions.interest
        own.wanted_since_s = self.host.now() - self._backdating_s
        self._number_want(own, (own.want_number + 1) % CIRCLE)

    def own_where_changed(
        self, place: tuple[float, float, float, float] | None, extra: tuple[int, ...], lacks: tuple[int, ...]
    ) -> None:
        own = self.own
        self._stand(own, place, extra, lacks)
        self._number_where(own, (own.where_number + 1) % CIRCLE)

    def reissue_where(self) -> None:
        """What this node said last about itself is still true."""
        self._number_where(self.own, (self.own.where_number + 1) % CIRCLE)

    def outdo_want(self, told: Want) -> bool:
        """Told is a want in this node's name. If it is not the one it issued, its own gets a newer number: True."""
        own = self.own
        if told.number == own.want_number and told.interest == own.interest:
            return False
        if told.number == own.want_number or is_newer(told.number, own.want_number):
            self._number_want(own, (told.number + 1) % CIRCLE)
            return True
        return False

    def outdo_where(self, told: Where) -> bool:
        """As `outdo_want`."""
        own = self.own
        if told.number == own.where_number and _where_mark(own, told.number) == _told_mark(told):
            return False
        if told.number == own.where_number or is_newer(told.number, own.where_number):
            self._number_where(own, (told.number + 1) % CIRCLE)
            return True
        return False

    # -- Of all ------------------------------------------------------------------------------------------------------

    def want(self, node: int) -> Want:
        known = self.known[node]
        since_s = self.host.now() - known.wanted_since_s
        since_ds = min(AGE_DS_MAX, max(0, int(since_s * 10)))
        return Want(node, known.want_number, since_ds, known.interest, known.want_signature)

    def where(self, node: int) -> Where:
        known = self.known[node]
        place = None
        if known.has_place:
            age_s = self.host.now() - known.place_s
            place = (
                _told((known.x + known.vx * age_s) * 10),
                _told((known.y + known.vy * age_s) * 10),
                _told(known.vx * 100),
                _told(known.vy * 100),
            )
        return Where(
            node=node,
            number=known.where_number,
            place=place,
            extra=known.extra,
            lacks=known.lacks,
            signature=known.where_signature,
        )

    def wanting(self, event: Event) -> list[int]:
        """All other nodes that are known to want the event."""
        me = self.host.address
        return [
            node
            for node, known in self.known.items()
            if known.interest is not None and node != me and known.interest.matches(event)
        ]

    def wants(self, node: int, event: Event, born_s: float) -> bool:
        """Whether a node wants an event, and did so when it was published."""
        known = self.known.get(node)
        if known is None or known.interest is None or known.wanted_since_s > born_s:
            return False
        return known.interest.matches(event)

    def has_place(self, node: int) -> bool:
        known = self.known.get(node)
        return known is not None and known.has_place

    def learn_want(self, want: Want, first_hand: bool) -> int:
        """Takes a record in if it is newer: 1; returns 0 if it is the one that is known, and -1 if it is older."""
        known = self.known.get(want.node)
        if known is None:
            if len(self.nodes) >= NODES_MAX:
                return 0
            known = self._take_in(want.node)
        if known.want_mark and want.number == known.want_number and want.interest == known.interest:
            return 0
        mark = _want_mark(want.interest, want.number)
        verdict = _verdict(known.want_mark, known.want_number, mark, want.number, first_hand)
        if verdict == 1:
            known.interest = want.interest
            known.want_signature = want.signature
            known.wanted_since_s = self.host.now() - want.since_ds / 10
            self._number_want(known, want.number)
        return verdict

    def learn_where(self, where: Where, first_hand: bool) -> int:
        """As `learn_want`."""
        known = self.known.get(where.node)
        if known is None:
            if len(self.nodes) >= NODES_MAX:
                return 0
            known = self._take_in(where.node)
        mark = _told_mark(where)
        if mark == known.where_mark and where.number == known.where_number:
            return 0
        verdict = _verdict(known.where_mark, known.where_number, mark, where.number, first_hand)
        if verdict == 1:
            place = where.place
            meters = None if place is None else (place[0] / 10, place[1] / 10, place[2] / 100, place[3] / 100)
            self._stand(known, meters, where.extra, where.lacks)
            known.where_signature = where.signature
            self._number_where(known, where.number)
        return verdict

    def _stand(
        self,
        known: Known,
        place: tuple[float, float, float, float] | None,
        extra: tuple[int, ...],
        lacks: tuple[int, ...],
    ) -> None:
        known.has_place = place is not None
        if place is not None:
            known.x, known.y, known.vx, known.vy = place
            known.place_s = self.host.now()
            self.changes += 1
        known.extra, known.lacks = extra, lacks
        self.list_links(known, extra)

    def list_links(self, known: Known, neighbours: tuple[int, ...]) -> None:
        """A node lists its neighbours, in a record or in a hello."""
        says = 0
        for node in neighbours:
            other = self.known.get(node)
            if other is None:
                if len(self.nodes) >= NODES_MAX:
                    continue
                other = self._take_in(node)
            says |= 1 << other.index
        known.listed_s = self.host.now()
        index = known.index
        before = self.says[index]
        if says == before:
            return
        self.says[index] = says
        bit = 1 << index
        changed = says ^ before
        while changed:
            low = changed & -changed
            changed ^= low
            self.said_of[low.bit_length() - 1] ^= bit
        self.changes += 1

    def _number_want(self, known: Known, number: int) -> None:
        node = self.nodes[known.index]
        self.wants_digest ^= _mixed(node, known.want_mark)
        known.want_number = number
        known.want_mark = _want_mark(known.interest, number)
        self.wants_digest ^= _mixed(node, known.want_mark)

    def _number_where(self, known: Known, number: int) -> None:
        node = self.nodes[known.index]
        self.wheres_digest ^= _mixed(node, known.where_mark)
        if number >> LIFE_BITS != known.where_number >> LIFE_BITS:
            known.reborn_s = self.host.now()
        known.where_number = number
        known.where_mark = _where_mark(known, number)
        known.where_s = self.host.now()
        self.wheres_digest ^= _mixed(node, known.where_mark)

    def marks(self, node: int) -> tuple[int, int]:
        """The marks of the want and of the where known of a node; 0 where there is none."""
        known = self.known.get(node)
        return (0, 0) if known is None else (known.want_mark, known.where_mark)


def is_newer(told: int, known: int) -> bool:
    """Whether a number is less than half a circle ahead of another."""
    return 0 < (told - known) % CIRCLE < CIRCLE // 2


def _verdict(known_mark: int, known: int, told_mark: int, told: int, first_hand: bool) -> int:
    """Of two records that differ: 1 if the one that is told is to be believed, else -1."""
    if first_hand or known_mark == 0 or is_newer(told, known) or (told == known and told_mark > known_mark):
        return 1
    return -1


def _told(value: float) -> int:
    """A coordinate or a speed as it is told."""
    return max(-PLACE_MAX, min(PLACE_MAX, round(value)))


def _want_mark(interest: Interest | None, number: int) -> int:
    return _mark(number, "" if interest is None else str(interest))


def _where_mark(known: Known, number: int) -> int:
    if not known.has_place:
        return _mark(number, f"{known.extra}{known.lacks}")
    return _mark(number, f"{_told(known.vx * 100)} {_told(known.vy * 100)}{known.extra}{known.lacks}")


def _told_mark(where: Where) -> int:
    """Of what a where says, except for its place, which moves on as it is passed on."""
    if where.place is None:
        return _mark(where.number, f"{where.extra}{where.lacks}")
    return _mark(where.number, f"{where.place[2]} {where.place[3]}{where.extra}{where.lacks}")


def _mark(number: int, content: str) -> int:
    return 1 + zlib.crc32(content.encode(), number) % 0xFFFF


def _mixed(node: int, mark: int) -> int:
    """16 bits in which any change of a mark shows, nearly always. Not linear, so that equal changes of two nodes'
    marks do not cancel each other in a digest."""
    if not mark:
        return 0
    mixed = (node * 65_537 + mark) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    return (mixed ^ mixed >> 13) & 0xFFFF
