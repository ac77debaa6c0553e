"""News: how records spread.

A record that changes is told to the neighbours, and on from node to node until everybody has it. A node passes a record
on only if it has neighbours out of reach of those it heard telling it. What is urgent (who wants what, where a node
turned) waits up to `news_s` for company and goes in a frame of its own; changed links go with the next hello.

Every hello carries digests of all records. If two neighbours' digests differ though nothing new has come in for a
while, one lists the numbers of all its records, and whoever has newer ones tells them. With a stranger, this is done at
once.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.waymark.graph import Graph
from roamcast.protocols.waymark.links import NEIGHBOURS_MAX, Links
from roamcast.protocols.waymark.messages import Hello, News, Want, Where
from roamcast.protocols.waymark.parameters import WaymarkParameters
from roamcast.protocols.waymark.pending import WANT, WHERE, PendingNews
from roamcast.protocols.waymark.records import Records

_NOBODY: Final[frozenset[int]] = frozenset()


LIST_NEWCOMER_S: Final = 2.0
LIST_STRANGER_S: Final = 30.0
"""A node lists its records no sooner than this after the last time: for a newcomer, for another stranger."""


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
        pending: PendingNews,
        on_want: Callable[[int], None],
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._records = records
        self._links = links
        self._graph = graph
        self._pending = pending
        self._on_want = on_want
        self._learned_s = host.now()  # when anything new was learned last
        self._settled_s = host.now() + parameters.settle_s
        self.has_agreed = False  # a neighbour's wants were the same as this node's
        self._differs: dict[
            int, tuple[int, int, int, int]
        ] = {}  # neighbour -> its digests and this node's, that differed
        self._tell_due_s = -1.0
        self._is_listing_due = False
        self._listed_s = -1e9

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Hello, self._on_hello)
        inputs.on(News, self._on_news)
        inputs.on_timer(NewsTimer.TELL, self._tell)
        inputs.on_timer(NewsTimer.LIST, self._list)

    # -- This node's own records -----------------------------------------------------------------------------------

    def own_want_changed(self) -> None:
        self._pending.renew(WANT, self.host.address, self.host.address, _NOBODY)
        self._tell_within(0.3 * self._parameters.news_s)

    def own_where_changed(self, is_urgent: bool) -> None:
        self._pending.renew(WHERE, self.host.address, self.host.address, _NOBODY)
        if is_urgent:
            self._tell_within(0.3 * self._parameters.news_s)

    # -- What others tell ----------------------------------------------------------------------------------------------

    def _on_hello(self, sender: int, hello: Hello) -> None:
        self._learn(sender, hello.wants, hello.wheres)
        records = self._records
        if hello.wants_digest == records.wants_digest:
            self.has_agreed = True
            if hello.wheres_digest == records.wheres_digest:
                self._differs.pop(sender, None)
                return
        elif self.has_agreed and self._links.is_stranger(sender):  # a newcomer, or from another part of the network
            rest_s = LIST_NEWCOMER_S if hello.number <= 2 else LIST_STRANGER_S
            if self.host.now() - self._listed_s > rest_s:
                self._list_within(0.5)
        digests = (hello.wants_digest, hello.wheres_digest, records.wants_digest, records.wheres_digest)
        rest_s = self.host.now() - self._learned_s
        if self._differs.get(sender) == digests and rest_s > 1.5 * self._links.period_s:
            self._list_within(0.5)
        if len(self._differs) < NEIGHBOURS_MAX:
            self._differs[sender] = digests

    def is_settled(self) -> bool:
        """Whether this node knows what its neighbours know, or has had time enough to learn it."""
        started_s = self._settled_s - self._parameters.settle_s
        return self.has_agreed or self.host.now() > started_s + 10 * self._parameters.settle_s

    def _list_within(self, delay_s: float) -> None:
        if not self._is_listing_due:
            self._is_listing_due = True
            self.host.set_timer(delay_s * (0.2 + 0.8 * self.host.random.random()), (NewsTimer.LIST, 0))

    def _on_news(self, sender: int, news: News) -> None:
        self._learn(sender, news.wants, news.wheres)
        if news.is_listing:
            if self.has_agreed and self._is_listing_due:  # one is enough
                self._is_listing_due = False
                self.host.cancel_timer((NewsTimer.LIST, 0))
            self._compare(sender, news.listing)

    def _learn(self, sender: int, wants: tuple[Want, ...], wheres: tuple[Where, ...]) -> None:
        around = self._around_of(sender)
        for want in wants:
            if want.node == self.host.address:
                self._heard_of_itself(want.number, self._records.own.want_number, WANT)
                continue
            verdict = self._records.learn_want(want, want.node == sender)
            self._consider(kind=WANT, node=want.node, sender=sender, around=around, verdict=verdict, is_urgent=True)
            if verdict == 1:
                self._on_want(want.node)
        for where in wheres:
            if where.node == self.host.address:
                self._heard_of_itself(where.number, self._records.own.where_number, WHERE)
                continue
            verdict = self._records.learn_where(where, where.node == sender)
            self._consider(
                kind=WHERE,
                node=where.node,
                sender=sender,
                around=around,
                verdict=verdict,
                is_urgent=where.place is not None,
            )

    def _consider(
        self, kind: int, node: int, sender: int, around: frozenset[int], verdict: int, is_urgent: bool
    ) -> None:
        """A neighbour told a record: what to do about it."""
        if verdict == 0:
            self._pending.reached(kind, node, sender, around)
        elif verdict > 0:
            self._learned_s = self.host.now()
            self._pending.renew(kind, node, sender, around)
            if is_urgent:
                lacking = len(self._around() - around)
                if lacking:
                    share = min(1.0, 3 / (2 + lacking))  # who has the most to tell goes first
                    self._tell_within(self._parameters.news_s * (0.1 + 0.9 * share * self.host.random.random()))
        elif is_urgent:
            self._pending.ask(kind, node, sender)
            self._tell_within(self._parameters.news_s)

    def _heard_of_itself(self, told: int, own: int, kind: int) -> None:
        """Somebody has a record of this node that is newer than its own: from an earlier life, or made up."""
        if told > own:
            self._records.skip_to(kind == WANT, told)
            if kind == WANT:
                self.own_want_changed()
            else:
                self.own_where_changed(True)

    # -- Telling ------------------------------------------------------------------------------------------------------

    def _around(self) -> frozenset[int]:
        """The neighbours to tell: those heard, and those that their places make neighbours."""
        return self._around_of(self.host.address)

    def _around_of(self, node: int) -> frozenset[int]:
        self._graph.refresh()
        return self._graph.around(node)

    def _tell_within(self, delay_s: float) -> None:
        if self.host.now() < self._settled_s:  # many start at once: links first, then everything in few frames
            delay_s = self._settled_s - self.host.now() + self._parameters.news_s * self.host.random.random()
        due_s = self.host.now() + delay_s
        if self._tell_due_s < self.host.now() or due_s < self._tell_due_s:
            self._tell_due_s = due_s
            self.host.set_timer(delay_s, (NewsTimer.TELL, 0))

    def _tell(self, key: int) -> None:
        self._tell_due_s = -1.0
        wants, wheres = self._pending.take(self._around(), self.host.frame_bytes_max - 16)
        if wants or wheres:
            self.host.broadcast(News(wants, wheres))
            if len(self._pending):
                self._tell_within(0.05 + 0.05 * self.host.random.random())

    # -- Comparing ----------------------------------------------------------------------------------------------------

    def _list(self, key: int) -> None:
        self._is_listing_due = False
        self._listed_s = self.host.now()
        listing: list[int] = []
        for node in sorted(self._records.known)[:200]:
            listing.extend((node, *self._records.numbers(node)))
        self.host.broadcast(News(is_listing=True, listing=tuple(listing)))

    def _compare(self, sender: int, listing: tuple[int, ...]) -> None:
        theirs = {listing[at]: (listing[at + 1], listing[at + 2]) for at in range(0, len(listing) - 2, 3)}
        found = False
        for node in sorted(self._records.known):
            want_number, where_number = self._records.numbers(node)
            their_want, their_where = theirs.get(node, (0, 0))
            if want_number > their_want and node != sender:
                self._pending.ask(WANT, node, sender)
                found = True
            if where_number > their_where and node != sender:
                self._pending.ask(WHERE, node, sender)
                found = True
        if found:
            self._tell_within(0.05 + 0.5 * self.host.random.random())
        is_behind = any(self._records.numbers(node) < numbers for node, numbers in theirs.items())
        if is_behind:
            self._list_within(1.0 + max(0.0, self._settled_s - self.host.now()))
