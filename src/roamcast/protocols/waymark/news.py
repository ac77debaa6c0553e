"""News: how records spread.

A changed record is sent to the neighbours, and from node to node until all nodes have it. A node passes a record on
only if it has neighbours that the nodes it heard sending the record do not reach. Urgent records (changed interests,
changes of course) wait up to `news_s` so that several share a frame; changed links are sent with the next hello.

Distant nodes need less precise positions, because only the direction matters to them. A change of course is therefore
passed on at once to the node's neighbours, and later the farther away a node is: before the direction towards the node
is off by more than `angle`. By then a frame of news or a hello is usually due anyway.

Every hello carries digests of all records. If the digests of two neighbours differ although neither has received
anything new for a while, one lists the marks of all its records, and the other sends what differs. A new neighbour is
sent everything at once.
"""

from collections.abc import Callable
from enum import StrEnum
from math import hypot, inf
from typing import Final

from roamcast.protocols.api import Host, Message
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import NEIGHBOURS_MAX, Links
from roamcast.protocols.waymark.messages import Carry, Hello, Listed, News, Want, Where
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.pending import WANT, WHERE, PendingNews
from roamcast.protocols.waymark.places import Places
from roamcast.protocols.waymark.records import Records

_NOBODY: Final[frozenset[int]] = frozenset()


LISTED_MAX: Final = 200
"""Nodes in a listing, at most."""


class NewsTimer(StrEnum):
    TELL = "news.tell"  # urgent news has waited long enough for company
    LIST = "news.list"  # a neighbour's records differ from this node's for good: compare them


class Spreading(Component):
    def __init__(
        self,
        host: Host,
        parameters: WaymarkParameters,
        records: Records,
        links: Links,
        graph: Graph,
        places: Places,
        pending: PendingNews,
        on_want: Callable[[int], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._links = links
        self._graph = graph
        self._places = places
        self._pending = pending
        self._on_want = on_want
        self._want_learned_s = host.now()
        self._listed_s = -1e9
        self._learned_s = host.now()  # when anything new was learned last
        self._settled_s = host.now() + parameters.settle_s
        self.has_agreed = False  # a neighbour's wants were the same as this node's
        self._differs: dict[
            int, tuple[int, int, int, int]
        ] = {}  # neighbour -> its digests and this node's, that differed
        self._tell_due_s = -1.0
        self._is_listing_due = False
        self._answered: dict[int, float] = {}  # strangers, and when they were answered

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Hello, self._on_hello)
        inputs.on(News, self._on_news)
        inputs.on_any_message(self._on_any_message)
        inputs.on_timer(NewsTimer.TELL, self._tell)
        inputs.on_timer(NewsTimer.LIST, self._list)

    # -- This node's own records -----------------------------------------------------------------------------------

    def own_want_changed(self) -> None:
        self._pending.renew(WANT, self.host.address, self.host.address, _NOBODY)
        self._tell_within(self._parameters.news_own * self._parameters.news_s)

    def own_where_changed(self, is_urgent: bool) -> None:
        self._pending.renew(WHERE, self.host.address, self.host.address, _NOBODY)
        if is_urgent:
            self._tell_within(self._parameters.news_own * self._parameters.news_s)

    # -- What others tell ----------------------------------------------------------------------------------------------

    def _on_hello(self, sender: int, hello: Hello) -> None:
        self._learn(sender, hello.wants, hello.wheres)
        records = self._records
        if hello.wants_digest == records.wants_digest:
            self.has_agreed = True
            if hello.wheres_digest == records.wheres_digest:
                self._differs.pop(sender, None)
                return
        elif self.has_agreed and self._links.is_stranger(sender):
            self._answer_stranger(sender)
        elif self.host.now() - max(self._want_learned_s, self._settled_s, self._listed_s) > self._parameters.list_s:
            self._list_within(self._parameters.list_delay_s)  # wants spread at once; by now they should agree
        digests = (hello.wants_digest, hello.wheres_digest, records.wants_digest, records.wheres_digest)
        rest_s = self.host.now() - self._learned_s
        if self._differs.get(sender) == digests and rest_s > self._parameters.list_periods * self._links.period_s:
            self._list_within(self._parameters.list_delay_s / 2)
        if len(self._differs) < NEIGHBOURS_MAX:
            self._differs[sender] = digests

    def _answer_stranger(self, stranger: int) -> None:
        """A node that has just started, or comes from another part of the network, is told everything. Its neighbours
        share that, because each leaves out what another has told."""
        now = self.host.now()
        answer_s = self._parameters.answer_s
        for node in [node for node, answered_s in self._answered.items() if now - answered_s > answer_s]:
            del self._answered[node]
        if stranger in self._answered or len(self._answered) >= NEIGHBOURS_MAX:
            return
        self._answered[stranger] = now
        for node in self._records.known:
            want_mark, where_mark = self._records.marks(node)
            if want_mark and node != stranger:
                self._pending.ask(WANT, node, stranger)
            if where_mark and node != stranger:
                self._pending.ask(WHERE, node, stranger)
        self._reply_soon()

    def is_settled(self) -> bool:
        """Whether this node knows what its neighbours know, or has had time enough to learn it. Over a slow radio it
        never does."""
        if self._links.is_slow():
            return False
        settle_s = self._parameters.settle_s
        started_s = self._settled_s - settle_s
        return self.has_agreed or self.host.now() > started_s + self._parameters.settle_periods * settle_s

    def _list_within(self, delay_s: float) -> None:
        if not self._is_listing_due:
            self._is_listing_due = True
            least = self._parameters.list_least
            self.host.set_timer(delay_s * (least + (1 - least) * self.host.random.random()), (NewsTimer.LIST, 0))

    def _on_news(self, sender: int, news: News) -> None:
        self._learn(sender, news.wants, news.wheres)
        if news.is_listing:
            if self.has_agreed and self._is_listing_due:  # one is enough
                self._is_listing_due = False
                self.host.cancel_timer((NewsTimer.LIST, 0))
            self._compare(sender, news.listing)

    def _on_any_message(self, sender: int, message: Message) -> None:
        if type(message) is Carry and (message.wants or message.wheres):
            self._learn(sender, message.wants, message.wheres)

    def _learn(self, sender: int, wants: tuple[Want, ...], wheres: tuple[Where, ...]) -> None:
        around = self._around_of(sender)
        if self._answered:
            recent_s = self.host.now() - self._parameters.answer_s
            around |= {node for node, answered_s in self._answered.items() if answered_s > recent_s}
        for want in wants:
            if want.node == self.host.address:
                if self._records.outdo_want(want):
                    self.own_want_changed()
                continue
            verdict = self._records.learn_want(want, want.node == sender)
            within_s = self._parameters.news_s
            self._consider(kind=WANT, node=want.node, sender=sender, around=around, verdict=verdict, within_s=within_s)
            if verdict == 1:
                self._want_learned_s = self.host.now()
                self._on_want(want.node)
        for where in wheres:
            if where.node == self.host.address:
                if self._records.outdo_where(where):
                    self.own_where_changed(True)
                continue
            within_s = self._patience_s(where)
            verdict = self._records.learn_where(where, where.node == sender)
            self._consider(
                kind=WHERE, node=where.node, sender=sender, around=around, verdict=verdict, within_s=within_s
            )
            if verdict == 1 and self.host.address in where.lacks and self._graph.is_silent(self.host.address):
                self._records.reissue_where()  # this node is there: its own word voids what others say
                self.own_where_changed(True)

    def _patience_s(self, where: Where) -> float:
        """How long a new where may wait until it is passed on."""
        before = self._records.known.get(where.node)
        if before is None or not before.where_mark:
            return self._parameters.news_s
        if where.place is None:
            return inf
        if not before.has_place or not self._records.own.has_place:
            return self._parameters.news_s
        turn_mps = hypot(where.place[2] / 100 - before.vx, where.place[3] / 100 - before.vy)
        if turn_mps == 0:
            return 2 * self._parameters.news_s
        distance_m = self._places.distance_m(self._records.own, before)
        return max(self._parameters.news_s, self._parameters.angle * distance_m / turn_mps)

    def _consider(
        self, kind: int, node: int, sender: int, around: frozenset[int], verdict: int, within_s: float
    ) -> None:
        """A neighbour told a record: what to do about it."""
        if verdict == 0:
            self._pending.reached(kind, node, sender, around)
        elif verdict > 0:
            self._learned_s = self.host.now()
            self._pending.renew(kind, node, sender, around)
            if within_s < inf:
                lacking = len(self._around() - around)
                if lacking:
                    few, least = self._parameters.news_few, self._parameters.news_least
                    share = min(1.0, few / (few - 1 + lacking))  # the node with the most to tell goes first
                    self._tell_within(within_s * (least + (1 - least) * share * self.host.random.random()))
        elif within_s < inf:
            self._pending.ask(kind, node, sender)
            self._tell_within(self._parameters.news_s)

    # -- Telling ------------------------------------------------------------------------------------------------------

    def _around(self) -> frozenset[int]:
        """The neighbours to tell: those heard, and those that their places make neighbours."""
        return self._around_of(self.host.address)

    def _around_of(self, node: int) -> frozenset[int]:
        self._graph.refresh(self._parameters.view_s)
        return self._graph.around(node)

    def _tell_within(self, delay_s: float) -> None:
        if self.host.now() < self._settled_s:  # many start at once: links first, then everything in few frames
            window_s = self._parameters.news_start_factor * self._parameters.news_s
            delay_s = self._settled_s - self.host.now() + window_s * self.host.random.random()
        due_s = self.host.now() + delay_s
        if self._tell_due_s < self.host.now() or due_s < self._tell_due_s:
            self._tell_due_s = due_s
            self.host.set_timer(delay_s, (NewsTimer.TELL, 0))

    def _reply_soon(self) -> None:
        parameters = self._parameters
        self._tell_within(parameters.news_gap_s + parameters.reply_spread_s * self.host.random.random())

    def _tell(self, key: int) -> None:
        self._tell_due_s = -1.0
        if self.host.backlog() or self._links.is_slow():
            parameters = self._parameters  # events first
            self._tell_within(parameters.hello_slow_s if self._links.is_slow() else parameters.news_busy_s)
            return
        wants, wheres = self._pending.take(self._around(), self.host.frame_bytes_max - 16)
        if wants or wheres:
            self.host.broadcast(News(wants, wheres))
            if len(self._pending):
                gap_s = self._parameters.news_gap_s
                self._tell_within(gap_s + gap_s * self.host.random.random())

    def take_along(self, room_bytes: int) -> tuple[tuple[Want, ...], tuple[Where, ...]]:
        """News for a frame that is sent anyway, up to the room left in it."""
        if room_bytes < self._parameters.news_ride_bytes or not len(self._pending):
            return (), ()
        return self._pending.take(self._around(), self._parameters.news_ride_bytes)

    # -- Comparing ----------------------------------------------------------------------------------------------------

    def _list(self, key: int) -> None:
        self._is_listing_due = False
        if self._links.is_slow():
            return
        self._listed_s = self.host.now()
        listing = tuple((node, *self._records.marks(node)) for node in sorted(self._records.known)[:LISTED_MAX])
        self.host.broadcast(News(is_listing=True, listing=listing))

    def _compare(self, sender: int, listing: tuple[Listed, ...]) -> None:
        theirs = {node: (want_mark, where_mark) for node, want_mark, where_mark in listing}
        found = False
        for node in sorted(self._records.known):
            want_mark, where_mark = self._records.marks(node)
            their_want, their_where = theirs.get(node, (0, 0))
            if want_mark and want_mark != their_want:
                self._pending.ask(WANT, node, sender)
                found = True
            if where_mark and where_mark != their_where:
                self._pending.ask(WHERE, node, sender)
                found = True
        if found:
            self._reply_soon()
        is_behind = any(
            (want_mark and not marks[0]) or (where_mark and not marks[1])
            for node, (want_mark, where_mark) in theirs.items()
            for marks in (self._records.marks(node),)
        )
        if is_behind:
            self._list_within(self._parameters.list_delay_s + max(0.0, self._settled_s - self.host.now()))
