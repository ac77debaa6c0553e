"""Interests up, events up and down: what a tree is for.

Theory of operation
-------------------
Every node knows what its own application wants (inherent interest) and what each child's subtree wants; their union is
its effective interest, which it reports to its parent whenever it changed. So a subscription climbs exactly until it
meets an ancestor whose effective interest covers it already. (The thesis stops at the first ancestor whose interest
overlaps, which would lose events wherever the overlap is partial.)

An event climbs from its publisher to the root, and at every node it passes it also descends into each child's branch
whose interest matches. A node that has seen an event ignores it.

Frames. Events and interests travel as unicasts, one per tree link, acknowledged and retried by the link layer, in all
tree protocols alike. A single broadcast could serve several children at once, but it is neither repeated when it
collides nor does it tell that a child is gone; with the refresh period of the thesis (10 s, three losses) a broken link
would then swallow half a minute of events. The failed unicast of an event is what repairs the tree in time.

While a node has no parent it keeps the events that should climb, for `waiting_max_s` at most, and sends them when it
has one. An event that failed on its way up is among them; one that failed on its way down is lost for that branch,
since its nodes look for another parent by themselves and nobody here knows which. A node's very first events wait until
it has been in a tree for `SETTLE_S`: where one node finds no tree, its neighbours find none either, and would come too
late to hear.

A node that changes its parent by choice keeps the former link working for a while (`former`): it hears and serves both
until the news has reached the root.
"""

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Protocol
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.protocols.trees.children import Children
from roamcast.protocols.trees.messages import EventMessage, Publication, Subscription

REPORT: Final = ("report", 0)
"""Timer: a changed effective interest is due at the parent."""

SETTLE_S: Final = 2.0
SETTLED: Final = ("settled", 0)
"""Timer: the node has been in its first tree for `SETTLE_S`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Disseminator(Protocol):
    """The part of a tree node that carries interests and events; where the tree comes from is its subclass's matter."""

    def __init__(self, host: Host, report_hold_s: float, waiting_max: int, waiting_max_s: float) -> None:
        super().__init__(host)
        self.subscriptions = Subscriptions()
        self.children = Children()
        self.parent = NOBODY
        self.former: dict[int, Interest | None] = {}  # former parents whose links still work -> what they were told
        self._report_hold_s = report_hold_s
        self._waiting_max = waiting_max
        self._waiting_max_s = waiting_max_s
        self._reported: Interest | None = None
        self._report_pending = False
        self._seen = SeenCache()
        self._settled = False
        self._early: list[Event] = []  # published before the first tree stood
        self._waiting: list[tuple[float, EventMessage]] = []  # since when: climbing events without a parent

    @property
    @abstractmethod
    def is_root(self) -> bool:
        """Whether climbing events end here."""

    @property
    def effective_interest(self) -> Interest | None:
        """All that this node's subtree wants."""
        own, proxied = self.subscriptions.interest, self.children.proxied
        if own is None or proxied is None:
            return proxied if own is None else own
        return own.union(proxied)

    # -- the application -----------------------------------------------------------------------------------------

    def subscribe(self, interest: Interest) -> None:
        self.subscriptions.add(interest)
        self._interest_changed()

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        self._interest_changed()

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        if self._settled:
            self._spread(NOBODY, event, 1)
        else:
            self._early.append(event)
            if len(self._early) > self._waiting_max:
                self.host.dropped("no-tree", self._early.pop(0).id)

    def _settle(self) -> None:
        """The first tree stands and knows what everybody wants: events published until now may go."""
        self._settled = True
        early, self._early = self._early, []
        for event in early:
            self._spread(NOBODY, event, 1)

    # -- interests -----------------------------------------------------------------------------------------------

    def _interest_changed(self) -> None:
        """Own or children's interest changed: tell the parent soon, in one message for what comes together."""
        if not self._report_pending:
            self._report_pending = True
            self.host.set_timer(self._report_hold_s, REPORT)

    def _report(self) -> None:
        self._report_pending = False
        interest = self.effective_interest
        if interest != self._reported:
            self._reported = interest
            if self.parent != NOBODY:
                self.host.send(self.parent, Subscription(interest))
            if interest is not None:
                self._report_to_former(interest)

    def _report_to_former(self, interest: Interest) -> None:
        """Former parents are told of more, but not of less: who was below this node may be above it now, and gets what
        the tree that was left sends only through here."""
        for neighbour, told in self.former.items():
            if neighbour != self.parent and (told is None or not told.covers(interest)):
                self.former[neighbour] = more = interest if told is None else told.union(interest)
                self.host.send(neighbour, Subscription(more))

    def _attach(self) -> None:
        """Makes this node a child of its parent, and sends what has waited for one."""
        self._reported = self.effective_interest
        self.host.send(self.parent, Subscription(self._reported))
        self._send_waiting()

    def _on_subscription(self, child: int, message: Subscription) -> None:
        self.children.put(child, message.interest, self.host.now())
        self._interest_changed()

    def _forget_child(self, child: int) -> None:
        if self.children.remove(child):
            self._interest_changed()

    # -- events --------------------------------------------------------------------------------------------------

    def _on_publication(self, sender: int, message: Publication) -> None:
        self.children.heard(sender, self.host.now())
        if self._take(message):
            self._spread(sender, message.event, message.hops + 1)

    def _take(self, message: EventMessage) -> bool:
        """Delivers an event that arrived, if it is wanted; true if it is new here."""
        event = message.event
        if not self._seen.add(event.id):
            return False
        if self.subscriptions.match(event):
            self.host.deliver(event, message.hops)
        return True

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        """Sends a new event to all who should have it, except where it came from."""
        self._descend(sender, event, hops)
        self._climb(sender, Publication(hops, True, event))

    def _descend(self, sender: int, event: Event, hops: int) -> None:
        down = Publication(hops, False, event)
        for child in self.children.wanting(event):
            if child != sender and child != self.parent:
                self.host.send(child, down)

    def _climb(self, sender: int, message: EventMessage) -> None:
        """Sends an event toward the root, or keeps it until there is a way."""
        for neighbour in self._upstream():
            if neighbour != sender:
                self.host.send(neighbour, message)
        if self.parent == NOBODY and not self.is_root:
            self._hold(message)

    def _hold(self, message: EventMessage) -> None:
        self._waiting.append((self.host.now(), message))
        if len(self._waiting) > self._waiting_max:
            self.host.dropped("no-tree", self._waiting.pop(0)[1].event.id)

    def _upstream(self) -> list[int]:
        """The parent, if there is one, and the former parents whose links still work."""
        upstream = [neighbour for neighbour in self.former if neighbour != self.parent]
        return upstream if self.parent == NOBODY else [self.parent, *upstream]

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for since_s, message in waiting:
            if since_s < self.host.now() - self._waiting_max_s:
                self.host.dropped("no-tree", message.event.id)
            else:
                self._climb(NOBODY, message)

    def _publication_failed(self, neighbour: int, message: EventMessage) -> None:
        """The link gave up on an event; upward it tries again as soon as there is another parent."""
        if not message.climbs:
            self.host.dropped("child-lost", message.event.id)
        elif self.parent != neighbour:
            self._climb(neighbour, message)
