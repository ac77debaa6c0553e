"""What a tree carries: interests up, events up and down.

Theory of operation
-------------------
Every node knows what its own application wants (inherent interest) and what each child's subtree wants. Their union is
its effective interest, which it reports to its parent whenever it changes. So a subscription climbs until it meets an
ancestor whose effective interest covers it. (The thesis stops at the first ancestor whose interest overlaps, which
would lose events wherever the overlap is partial.)

An event climbs from its publisher to the root, and at every node on its path it also descends into each child's branch
whose interest matches. A node that has seen an event ignores it.

Frames. Events and interests travel as unicasts, one per tree link, acknowledged and retried by the link layer, in all
tree protocols alike. A single broadcast could serve several children at once, but it is not repeated after a collision
and does not tell that a child is gone. With the refresh period of the thesis (10 s, three losses) a broken link would
then swallow half a minute of events. The failed unicast of an event is what repairs the tree in time.

While a node has no parent it keeps the events that should climb, for `waiting_max_s` at most, and sends them when it
has one. An event that failed on its way up is among them. One that failed on its way down is lost for that branch: its
nodes look for another parent themselves, and this node does not know which. A node's very first events wait until it
has been in a tree for `settle_s`: where one node finds no tree its neighbours find none either, and would subscribe too
late.

With `recent_s`, a node remembers the events that it saw so recently, and hands them to a child that attaches or whose
interest grew, as far as they match what is new in that interest. So what a branch missed while it moved comes from the
first ancestor that has it. A node that has just subscribed may get events that were published shortly before.

A node that changes its parent by choice keeps the former link working for a while (`Place.former`): it hears and serves
both until the root has been told.

Where there are several trees, an `Outlet` decides where an event goes besides up and down this one.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.interests.matching import matches
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.subscriptions import Subscriptions
from roamcast.protocols.trees.children import Children
from roamcast.protocols.trees.messages import EventMessage, Publication, Subscription
from roamcast.protocols.trees.parameters import TreeParameters
from roamcast.protocols.trees.place import Place


class DisseminationTimer(StrEnum):
    REPORT = "dissemination.report"  # a changed effective interest is due at the parent
    SETTLED = "dissemination.settled"  # the node has been in its first tree for `settle_s`


REPORT: Final[Timer] = (DisseminationTimer.REPORT, 0)
SETTLED: Final[Timer] = (DisseminationTimer.SETTLED, 0)
NO_COPIES: Final[dict[int, Message]] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Outlet(Component):
    """Where events go if there are several trees."""

    @abstractmethod
    def receive(self, sender: int, message: Publication) -> None:
        """An event arrived along a link of this node's tree."""

    @abstractmethod
    def spread(self, sender: int, event: Event, hops: int) -> None:
        """Sends a new event to all who should have it, except where it came from."""

    @abstractmethod
    def climb(self, sender: int, message: EventMessage) -> None:
        """Sends an event toward the root, or keeps it until there is a parent."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Dissemination(Component):
    """The part of a tree node that carries interests and events."""

    def __init__(self, host: Host, parameters: TreeParameters, place: Place) -> None:
        super().__init__(host)
        self.place = place
        self.subscriptions = Subscriptions()
        self.children = Children(parameters.children_max)
        self.outlet: Outlet | None = None  # there is one tree only
        self.on_interest_reported = _nothing  # called when a changed effective interest has been reported
        self.reported: Interest | None = None  # what the parent was last told
        self._report_hold_s = parameters.report_hold_s
        self._waiting_max = parameters.waiting_max
        self._waiting_max_s = parameters.waiting_max_s
        self._settle_s = parameters.settle_s
        self._hops_max = parameters.hops_max
        self._report_pending = False
        self._recent_s = parameters.recent_s
        self._recent: list[tuple[float, int, Event]] = []  # when it came and after how many hops, the oldest first
        self._seen = SeenCache()
        self._settled = False
        self._early: list[Event] = []  # published before the first tree had formed
        self._waiting: list[tuple[float, EventMessage]] = []  # since when: climbing events without a parent

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Publication, self._on_publication)
        inputs.on_failure(Publication, self.event_failed)
        inputs.on_timer(DisseminationTimer.REPORT, self._report)
        inputs.on_timer(DisseminationTimer.SETTLED, self._settle)

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
        self.children.forget_other_languages(interest)
        self.interest_changed()

    def unsubscribe(self, interest: Interest) -> None:
        self.subscriptions.remove(interest)
        self.interest_changed()

    def publish(self, event: Event) -> None:
        self._seen.add(event.id)
        self._remember(event, 0)
        if self._settled:
            self._spread(NOBODY, event, 1)
        else:
            self._early.append(event)
            if len(self._early) > self._waiting_max:
                self.host.dropped("no-tree", self._early.pop(0).id)

    def settle_soon(self) -> None:
        """This node is in its first tree."""
        self.host.set_timer(self._settle_s, SETTLED)

    def _settle(self, key: int) -> None:
        """The first tree has formed and knows all interests: events that waited may go."""
        self._settled = True
        early, self._early = self._early, []
        for event in early:
            self._spread(NOBODY, event, 1)

    # -- interests -----------------------------------------------------------------------------------------------

    def interest_changed(self) -> None:
        """Own or children's interest changed: tell the parent soon, in one message for what comes together."""
        if not self._report_pending:
            self._report_pending = True
            self.host.set_timer(self._report_hold_s, REPORT)

    def _report(self, key: int) -> None:
        self._report_pending = False
        interest = self.effective_interest
        if interest != self.reported:
            self.reported = interest
            if self.place.parent != NOBODY:
                self.host.send(self.place.parent, Subscription(interest))
            if interest is not None:
                self._report_to_former(interest)
        self.on_interest_reported()

    def report_again(self) -> None:
        """Tells the parent what it should know already."""
        if self.reported is not None and not self._report_pending and self.place.parent != NOBODY:
            self.host.send(self.place.parent, Subscription(self.reported))

    def _report_to_former(self, interest: Interest) -> None:
        """Former parents are told of more, but not of less. A node that was below this one may be above it now, and it
        gets what the tree that was left sends only through here."""
        for neighbour, told in self.place.former.items():
            if neighbour != self.place.parent and (told is None or not told.covers(interest)):
                self.place.former[neighbour] = more = interest if told is None else told.union(interest)
                self.host.send(neighbour, Subscription(more))

    def attach(self) -> None:
        """Makes this node a child of its parent, and sends what has waited for one."""
        self.reported = self.effective_interest
        self.host.send(self.place.parent, Subscription(self.reported))
        self.send_waiting()

    def put_child(self, child: int, interest: Interest | None) -> bool:
        """Takes in what a child's subtree wants; false if it is refused: too many children, or another language."""
        own = self.subscriptions.interest
        if own is not None and interest is not None and type(own) is not type(interest):
            return False
        before = self.children.interest(child) if child in self.children else None
        if not self.children.put(child, interest, self.host.now()):
            return False
        self.interest_changed()
        if interest is not None and self._recent:
            self._hand_recent(child, interest, before)
        return True

    def _remember(self, event: Event, hops: int) -> None:
        if self._recent_s > 0:
            self._recent.append((self.host.now(), hops, event))
            if len(self._recent) > self._waiting_max:
                del self._recent[0]

    def _hand_recent(self, child: int, interest: Interest, before: Interest | None) -> None:
        """Sends a child the recent events that its interest matches and the one before did not."""
        since_s = self.host.now() - self._recent_s
        self._recent = [each for each in self._recent if each[0] >= since_s]
        for _, hops, event in self._recent:
            if matches(interest, event) and (before is None or not matches(before, event)):
                self.host.send(child, Publication(hops + 1, False, event))

    # -- events --------------------------------------------------------------------------------------------------

    def _on_publication(self, sender: int, message: Publication) -> None:
        self.children.heard(sender, self.host.now())
        if message.hops >= self._hops_max:
            self.host.dropped("astray", message.event.id)
        elif self.outlet is not None:
            self.outlet.receive(sender, message)
        elif self.take(message):
            self._spread(sender, message.event, message.hops + 1)

    def take(self, message: EventMessage) -> bool:
        """Delivers an event that arrived, if it is wanted; true if it is new here."""
        event = message.event
        if not self._seen.add(event.id):
            return False
        self._remember(event, message.hops)
        is_own = event.publisher == self.host.address  # of an earlier life
        if not is_own and self.subscriptions.match(event):
            self.host.deliver(event, message.hops)
        return True

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        """Sends a new event to all who should have it, except where it came from."""
        if self.outlet is not None:
            self.outlet.spread(sender, event, hops)
        else:
            self.descend(sender, event, hops, NO_COPIES)
            self.climb(sender, Publication(hops, True, event))

    def descend(self, sender: int, event: Event, hops: int, besides: dict[int, Message]) -> None:
        """Sends an event to the children that want it, except where it came from and to `besides`."""
        down = Publication(hops, False, event)
        for child in self.children.wanting(event):
            if child != sender and child != self.place.parent and child not in besides:
                self.host.send(child, down)

    def climb(self, sender: int, message: EventMessage) -> None:
        """Sends an event toward the root, or keeps it until there is a parent."""
        if self.outlet is not None:
            self.outlet.climb(sender, message)
            return
        place = self.place
        if place.parent != NOBODY and place.parent != sender:
            self.host.send(place.parent, message)
        self.send_to_former(sender, message)
        if place.parent == NOBODY and place.role != "root":
            self.hold(message)

    def send_to_former(self, sender: int, message: EventMessage) -> None:
        """Sends an event to the former parents whose links still work."""
        for neighbour in self.place.former:
            if neighbour not in (sender, self.place.parent):
                self.host.send(neighbour, message)

    def hold(self, message: EventMessage) -> None:
        self._waiting.append((self.host.now(), message))
        if len(self._waiting) > self._waiting_max:
            self.host.dropped("no-tree", self._waiting.pop(0)[1].event.id)

    def send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for since_s, message in waiting:
            if since_s < self.host.now() - self._waiting_max_s:
                self.host.dropped("no-tree", message.event.id)
            else:
                self.climb(NOBODY, message)

    def event_failed(self, neighbour: int, message: EventMessage) -> None:
        """The link gave up on an event. Upward it is tried again as soon as there is another parent."""
        if not message.climbs:
            self.host.dropped("child-lost", message.event.id)
        elif self.place.parent != neighbour:
            self.climb(neighbour, message)


def _nothing() -> None:
    """Default: no listener."""
