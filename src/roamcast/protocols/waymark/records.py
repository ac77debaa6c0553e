"""Records: what every node has said of itself, as far as it is known here.

A record is replaced by one with a higher number. First-hand beats hearsay: what a node says itself is always taken,
whatever its number, so nobody can silence another node by using up its numbers. A node that hears a
number of its own that it has not reached yet takes the next one. No record says that another node is dead: a node tells
its own links and nothing else.
"""

from typing import Final

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.protocols.waymark.messages import AGE_DS_MAX, PLACE_MAX, Want, Where

LIFE_BITS: Final = 12
"""A node's records count up from its life times 2 to this power, so those of a later life are newer."""

NUMBER_MAX: Final = 1 << 61
NODES_MAX: Final = 4096
"""Records are kept of so many nodes at most; those of further nodes are not taken in."""


class Known:
    """What is known of one node."""

    __slots__ = (
        "extra", "has_place", "index", "interest", "lacks", "listed_s", "place_s", "vx", "vy", "want_number",
        "want_signature", "wanted_since_s", "where_number", "where_signature", "x", "y",
    )  # fmt: skip

    def __init__(self, index: int) -> None:
        self.index = index  # its bit in sets of nodes
        self.want_number = 0  # 0: no want known
        self.interest: Interest | None = None
        self.want_signature: bytes | None = None  # of the node, where nodes have identities
        self.where_signature: bytes | None = None
        self.wanted_since_s = 0.0
        self.where_number = 0  # 0: no where known
        self.has_place = False
        self.x = self.y = self.vx = self.vy = 0.0  # m, m/s
        self.place_s = 0.0  # when it was there
        self.listed_s = -1e9  # when it listed its neighbours last
        self.extra: tuple[int, ...] = ()
        self.lacks: tuple[int, ...] = ()


class Records:
    def __init__(self, host: Host, backdating_s: float = 0.0) -> None:
        self.host = host
        self._backdating_s = backdating_s  # this node wants what it wants since so long before it said so
        self.subscriptions = Subscriptions()
        self.known: dict[int, Known] = {}
        self.nodes: list[int] = []  # by index
        self.says: list[int] = []  # by index: whom a node lists as neighbours, as a set of bits
        self.said_of: list[int] = []  # by index: who lists it
        self.wants_digest = 0
        self.wheres_digest = 0
        self.changes = 0  # counts every change of a where, for caches
        self.own = self._take_in(host.address)
        self.own.wanted_since_s = host.now()
        first = host.life << LIFE_BITS
        self._renumber(self.own, first, first)

    def _take_in(self, node: int) -> Known:
        known = self.known[node] = Known(len(self.nodes))
        self.nodes.append(node)
        self.says.append(0)
        self.said_of.append(0)
        return known

    # -- This node's own records -----------------------------------------------------------------------------------

    def own_want_changed(self) -> None:
        own = self.own
        own.interest = self.subscriptions.interest
        own.wanted_since_s = self.host.now() - self._backdating_s
        self._renumber(own, own.want_number % NUMBER_MAX + 1, own.where_number)

    def own_where_changed(
        self, place: tuple[float, float, float, float] | None, extra: tuple[int, ...], lacks: tuple[int, ...]
    ) -> None:
        own = self.own
        self._stand(own, place, extra, lacks)
        self._renumber(own, own.want_number, own.where_number % NUMBER_MAX + 1)

    def skip_to(self, is_want: bool, number: int) -> None:
        """Somebody knows a record of this node with this number: its next one gets a higher one."""
        own = self.own
        if number < NUMBER_MAX:
            if is_want:
                self._renumber(own, number + 1, own.where_number)
            else:
                self._renumber(own, own.want_number, number + 1)

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
        return Where(node, known.where_number, place, known.extra, known.lacks, known.where_signature)

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
        number = 0 if known is None else known.want_number
        verdict = self._verdict(number, want.number, first_hand)
        if verdict == 1:
            if known is None:
                if len(self.nodes) >= NODES_MAX:
                    return 0
                known = self._take_in(want.node)
            known.interest = want.interest
            known.want_signature = want.signature
            known.wanted_since_s = self.host.now() - want.since_ds / 10
            self._renumber(known, want.number, known.where_number)
        return verdict

    def learn_where(self, where: Where, first_hand: bool) -> int:
        """As `learn_want`."""
        known = self.known.get(where.node)
        number = 0 if known is None else known.where_number
        verdict = self._verdict(number, where.number, first_hand)
        if verdict == 1:
            if known is None:
                if len(self.nodes) >= NODES_MAX:
                    return 0
                known = self._take_in(where.node)
            place = where.place
            meters = None if place is None else (place[0] / 10, place[1] / 10, place[2] / 100, place[3] / 100)
            self._stand(known, meters, where.extra, where.lacks)
            known.where_signature = where.signature
            self._renumber(known, known.want_number, where.number)
        return verdict

    def _verdict(self, known: int, told: int, first_hand: bool) -> int:
        if told == known or told <= 0:
            return 0
        return 1 if first_hand or known < told else -1

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

    def _renumber(self, known: Known, want_number: int, where_number: int) -> None:
        node = self.nodes[known.index]
        self.wants_digest ^= _mixed(node, known.want_number) ^ _mixed(node, want_number)
        self.wheres_digest ^= _mixed(node, known.where_number) ^ _mixed(node, where_number)
        known.want_number, known.where_number = want_number, where_number

    def numbers(self, node: int) -> tuple[int, int]:
        """The numbers of the newest want and where known of a node; 0 where there is none."""
        known = self.known.get(node)
        return (0, 0) if known is None else (known.want_number, known.where_number)


def _told(value: float) -> int:
    """A coordinate or a speed as it is told."""
    return max(-PLACE_MAX, min(PLACE_MAX, round(value)))


def _mixed(node: int, number: int) -> int:
    """16 bits in which any change of a number shows, nearly always."""
    return ((node + 1) * 40503 ^ number * 30011) >> 1 & 0xFFFF if number else 0
