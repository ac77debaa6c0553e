"""Events between trees (thesis, section 4.3.2).

Theory of operation
-------------------
An event climbs to its publisher's root as in any tree. That root looks up which other trees want it and lays out the
shortest ways to all of them, as a tree of *legs* from root to root that the event carries; one copy goes to each next
hop. A copy descends along the inter-tree routes, crosses the border and climbs toward the other root, whence the legs
that follow go on. Only the publisher's own root decides who shall get an event, so copies do not multiply, and since
the whole way is laid out at one place, it has no circles however much the views of different roots differ.

A copy serves everybody it passes: on the way down the branches of its own tree (a child that wants the event and lies
on the way gets one frame, not two), on the way up the branches of the other. On the way up it also takes short cuts: a
node that knows a route for one of the legs that follow sends the event there at once; if nothing is left for the root,
because its tree does not want the event itself, the copy does not climb on. (In the thesis it always climbs to the root
and comes down again.)

What comes down a tree does not climb another one, even if this node has left the tree it comes from: every tree gets an
event once, from its publisher's root. (With both, whoever had changed trees lately made a second root distribute it.)
The exception are nodes whose parent was their child before, as happens below a new root: the tree that was left serves
them only through here.

A node that has lost its parent does not make events wait for another one if it hears a neighbour in another tree: what
should climb goes up there. Any root can distribute an event, or plan the rest of its way; the tree that was lost is
among those it is sent to. (The thesis says nothing of such events. If they wait, 250 moving nodes deliver 16 % of all
events after more than half a second; if not, 13 %.)

A node that has become a root, and still has the link to its former parent, leaves the distribution to that tree: its
own table is not complete yet (`former` in `dissemination.py`). One without such a link does what it can, and after
`MATURE_S` sends the same to those it had not heard of.

A node at which a copy cannot go on tells who sent it which routes it still has, and sends the copy back up behind that
report. Whoever knows another way on the way up takes it; otherwise the root plans anew with what it just learned. So
does a root that has no route for a leg that begins there; it knows its surroundings better than who planned, but may
not use roots that were passed already. Where that leaves no way, or a copy comes back a second time, it waits until the
root's view of the others changes, or looks again after `STRAND_RETRY_S`. After `TRIES_MAX` waits and returns it is
given up (`no-route`): the tree is probably gone. But where a root is at rest it must be there, and only the news of how
to reach it are on their way (`TRIES_MAX_AT_REST`).

A tree that absorbs another may have had an event before those who came with the other one. When a copy for such a tree
comes to the root that agreed to take it over, the event goes down a second time, in copies without legs, which
everybody passes on once, whether he has the event or not. Unless the other root can be heard to be in this tree now,
the copy goes on nevertheless: a third tree may have been quicker, or have taken a part.

Refreshes get lost, so a node may take a neighbour for one of another tree when both are in the same by now, and events
would go in circles. Who gets a copy by such a mistake answers with its refresh; one without any tree sends it back.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer_plus.advertising import AdvertisingTree
from roamcast.protocols.somer_plus.messages import Crossing, Leg
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.messages import EventMessage, Publication
from roamcast.protocols.trees.standing import Standing

Legs = tuple[Leg, ...]

STRAND_RETRY_S: Final = 0.8  # an event for trees that cannot be reached now is tried again after so long
TRIES_BITS: Final = 4
TRIES_MAX: Final = 3  # an event that comes back to roots, or waits there, more often is given up
TRIES_MAX_AT_REST: Final = 9  # the same at a root that is at rest
STRANDED: Final = ("stranded", 0)

MATURE_S: Final = 3.0  # after so long a new root has heard of all others
MATURE: Final = ("mature", 0)

CROSSING_HOPS_MAX: Final = 255
"""A copy that has come this far is going in circles."""


class _Voyage:
    """What all legs of a copy have in common; never changed."""

    __slots__ = ("event", "hops", "passed", "tries")

    def __init__(self, event: Event, hops: int, passed: tuple[int, ...] = (), tries: int = 0) -> None:
        self.event = event
        self.hops = hops
        self.passed = passed  # roots that it went through
        self.tries = tries  # how often it came back to a root, or waited there

    def again(self) -> "_Voyage":
        """The next try, which may pass the same roots."""
        return _Voyage(self.event, self.hops, (), self.tries + 1)

    def through(self, root: int) -> "_Voyage":
        return _Voyage(self.event, self.hops, (*self.passed, root), self.tries)


class _Stranded(NamedTuple):
    """An event that waits at a root for ways to these trees."""

    voyage: _Voyage
    targets: tuple[int, ...]
    vias: tuple[int, ...]  # for each target the last root before it, when the wait began


@mypyc_attr(allow_interpreted_subclasses=True)
class CrossingTree(AdvertisingTree):
    def __init__(self, host: Host, parameters: SomerPlusParameters) -> None:
        super().__init__(host, parameters)
        self._relayed = SeenCache()  # event, target and number of tries: sent out once from here
        self._served_again = SeenCache()  # events that went down a second time
        self._stranded: list[_Stranded] = []
        self._inverted = False  # the parent was a child before
        self._climbed = SeenCache()  # events that were sent up from here, or out as the publisher's root
        self._early_voyages: list[_Voyage] = []  # of events that were sent out when this root was new

    def on_timer(self, timer: Timer) -> None:
        if timer == STRANDED:
            self._retry_stranded()
        elif timer == MATURE:
            self._mature()
        else:
            super().on_timer(timer)

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Crossing:
            self._on_crossing(sender, message)
        else:
            super().on_message(sender, message)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def _on_publication(self, sender: int, message: Publication) -> None:
        self.children.heard(sender, self.host.now())
        new = self._take(message)
        hops = message.hops + 1
        # What comes down is from a tree that has it; if this node has left that one, its new tree is reached between
        # roots. But where the parent was a child before, those above get nothing from the tree that was left any more.
        climbs = message.climbs or self._was_above(sender)
        if climbs and self._climbed.add(message.event.id):
            onward = Publication(hops, True, message.event)
            if new:
                self._spread(sender, message.event, hops)
            else:
                self._climb(sender, onward)
        elif new:
            self._descend(sender, message.event, hops)

    def _was_above(self, sender: int) -> bool:
        """Whether it was a parent, and those who are above this node now were below it."""
        return self._inverted and sender in self.former

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        self._climbed.add(event.id)
        if self.role == "root" and not self.former:
            voyage = _Voyage(event, hops)
            self._serve(sender, voyage, self._set_out(voyage))
        else:
            super()._spread(sender, event, hops)

    def _become_member(self, parent: int, root: int, above: Standing, keeps_former: bool = False) -> None:
        self._inverted = parent in self.children
        super()._become_member(parent, root, above, keeps_former)

    def _climb(self, sender: int, message: EventMessage) -> None:
        if self.role == "root" and type(message) is Crossing:
            voyage = _voyage(message, message.hops)
            self._send_crossings(voyage, self._continue(sender, voyage, message.legs, message.returns))
        elif self.role == "root" and not self.former:
            voyage = _Voyage(message.event, message.hops)
            self._send_crossings(voyage, self._set_out(voyage))
        elif self.parent != NOBODY:
            if self.parent != sender:
                self.host.send(self.parent, message)  # one root is enough, whichever it is
        elif not self.former and (stranger := self.routes.nearest((*self.children, sender))) is not None:
            self.host.send(stranger, message)
        elif type(message) is Crossing:
            self._hold(message)  # a former parent may be below this node by now; only what is new to it stops there
        else:
            super()._climb(sender, message)

    def _become_root(self, sequence: int) -> None:
        super()._become_root(sequence)
        self._early_voyages.clear()
        self.host.set_timer(MATURE_S, MATURE)

    def _set_out(self, voyage: _Voyage) -> dict[int, Legs]:
        """As the publisher's root: the ways to all trees that want the event."""
        if self.host.now() < self._root_since_s + MATURE_S:
            self._early_voyages.append(voyage)
        return self._plan(voyage, self.overlay.wanting(voyage.event))

    def _mature(self) -> None:
        """A new root has heard of all others by now: those it did not know of get what has been published since."""
        voyages, self._early_voyages = self._early_voyages, []
        for voyage in voyages:
            self._climb(NOBODY, Publication(voyage.hops, True, voyage.event))

    # -- events between trees ------------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        new = self._take(message)
        self.children.heard(sender, self.host.now())
        voyage = _voyage(message, message.hops + 1)
        if not message.legs:
            self._serve_again(sender, voyage)
            if self._was_above(sender) and self._climbed.add(voyage.event.id):
                self._climb(sender, Publication(voyage.hops, True, voyage.event))
            return
        if message.climbs:
            self._set_right(sender, message)
        if message.climbs and self.role == "searching" and sender not in self.children and not message.returns:
            ways: dict[int, Legs] = {}
            self.host.send(sender, _crossing(voyage, True, message.legs, returns=True))
        else:
            ways = self._route(sender, voyage, message, message.climbs)
        if new:
            self._serve(sender, voyage, ways)
        else:
            self._send_crossings(voyage, ways)

    def _set_right(self, sender: int, message: Crossing) -> None:
        """Who has missed that this node is in another tree now is told, lest events go in circles."""
        if message.returns and sender not in self.children:
            if self.routes.drop(sender):
                self._routes_changed()
        elif self.role != "searching" and self.root not in [leg.towards for leg in message.legs]:
            heard = self.neighbours.last(sender)
            if heard is None or heard.parent != self.host.address or heard.root != self.root:
                self.host.send(sender, self._refresh())

    def _route(self, sender: int, voyage: _Voyage, message: Crossing, climbs: bool) -> dict[int, Legs]:
        """Legs by the neighbour that is next on the way, but not back to the sender; what has to climb does so."""
        if self.role == "root":
            return self._continue(sender, voyage, message.legs, message.returns)
        outward: list[Leg] = []
        inward: list[Leg] = []
        lost: list[Leg] = []
        for leg in message.legs:
            if leg.towards in (self.root, self.host.address):  # or this was the root, and its tree is another's now
                short_cuts = [onward for onward in leg.onward if self._has_route(onward.towards, sender)]
                outward += short_cuts
                rest = tuple(onward for onward in leg.onward if onward not in short_cuts)
                if leg.wanted or rest:
                    inward.append(Leg(self.root, leg.wanted, rest))
            elif (message.returns or not climbs) and self._has_route(leg.towards, sender):
                outward.append(leg)
            elif climbs:
                inward.append(leg)  # to whatever root is there
            else:
                lost.append(leg)
        self._send_up(voyage, tuple(inward), message.returns)
        if lost:
            self._deny_route(sender)
            self._send_up(voyage, tuple(lost), returns=True)
        return self._ways(sender, outward)

    def _continue(self, sender: int, voyage: _Voyage, legs: Legs, returns: bool) -> dict[int, Legs]:
        """As a root: what follows these legs, which end here or came back."""
        self._serve_newcomers(voyage, _targets(legs))
        if returns or self.host.address in voyage.passed:
            self._report_routes()  # what made it turn back was reported ahead of it
            again = voyage.again()
            if voyage.tries == 0:
                self._send_crossings(again, self._plan(again, _targets(legs)))
            else:
                self._strand(again, _targets(legs))
            return {}
        known: list[Leg] = []
        unknown: list[int] = []
        for leg in legs:
            for onward in leg.onward if leg.towards == self.host.address else (leg,):
                if self._has_route(onward.towards, sender):
                    known += self._unrelayed(voyage, onward)
                elif onward.towards in self._absorbed and self._is_here(onward.towards):
                    unknown += _targets(onward.onward)  # its tree has just been served
                else:
                    unknown += _targets((onward,))
        ways = self._ways(sender, known)
        for next_hop, planned in self._plan(voyage, unknown).items():
            ways[next_hop] = (*ways.get(next_hop, ()), *planned)
        return ways

    def _plan(self, voyage: _Voyage, targets: Iterable[int]) -> dict[int, Legs]:
        """As a root: the shortest ways to these trees, by next hop."""
        self._look_around()
        wanted = dict.fromkeys(targets)
        wanted.pop(self.host.address, None)
        legs = self.overlay.plan(wanted, voyage.passed)
        for root in _targets(legs):
            wanted.pop(root, None)
        self._strand(voyage.again(), wanted)
        return self._ways(NOBODY, [fresh for leg in legs for fresh in self._unrelayed(voyage, leg)])

    def _unrelayed(self, voyage: _Voyage, leg: Leg) -> Legs:
        """The leg with those targets only that the event was not sent to from here before; empty if there are none."""
        onward = tuple(fresh for further in leg.onward for fresh in self._unrelayed(voyage, further))
        key = (voyage.event.id << NUMBER_BITS | leg.towards) << TRIES_BITS | voyage.tries
        wanted = leg.wanted and self._relayed.add(key)
        return (Leg(leg.towards, wanted, onward),) if wanted or onward else ()

    def _has_route(self, root: int, besides: int) -> bool:
        return self.routes.next_hop(root, besides) is not None

    def _ways(self, besides: int, legs: Iterable[Leg]) -> dict[int, Legs]:
        """Legs by next hop; there is a route for each of them."""
        ways: dict[int, Legs] = {}
        for leg in legs:
            next_hop = self.routes.next_hop(leg.towards, besides)
            if next_hop is not None:
                ways[next_hop] = (*ways.get(next_hop, ()), leg)
        return ways

    def _serve(self, sender: int, voyage: _Voyage, ways: dict[int, Legs]) -> None:
        """Sends an event to the children that want it and along these ways, one frame to each neighbour."""
        down = Publication(voyage.hops, False, voyage.event)
        for child in self.children.wanting(voyage.event):
            if child != sender and child != self.parent and child not in ways:
                self.host.send(child, down)
        self._send_crossings(voyage, ways)

    def _serve_newcomers(self, voyage: _Voyage, targets: Iterable[int]) -> None:
        """As a root: those who came with a tree for which the event is still on its way."""
        if any(root in self._absorbed for root in targets):
            self._serve_again(NOBODY, voyage)

    def _serve_again(self, sender: int, voyage: _Voyage) -> None:
        """Serves those who came into this tree after the event, through others that have it already."""
        if self._served_again.add(voyage.event.id):
            down = _crossing(voyage, False, ())
            for child in self.children.wanting(voyage.event):
                if child != sender and child != self.parent:
                    self.host.send(child, down)

    def _send_crossings(self, voyage: _Voyage, ways: dict[int, Legs]) -> None:
        if self.role == "root":
            voyage = voyage.through(self.host.address)
        for next_hop, legs in ways.items():
            self.host.send(next_hop, _crossing(voyage, next_hop not in self.children, legs))

    def _send_up(self, voyage: _Voyage, legs: Legs, returns: bool) -> None:
        if legs and voyage.hops <= CROSSING_HOPS_MAX:
            self._climb(NOBODY, _crossing(voyage, True, legs, returns))

    # -- events that wait for a way ------------------------------------------------------------------------------

    def _strand(self, voyage: _Voyage, targets: Iterable[int]) -> None:
        waiting = tuple(targets)
        if not waiting:
            return
        if voyage.tries > (TRIES_MAX_AT_REST if self._is_at_rest() else TRIES_MAX):
            self.host.dropped("no-route", voyage.event.id)
            return
        if not self._stranded:
            self.host.set_timer(STRAND_RETRY_S, STRANDED)
        self._stranded.append(_Stranded(voyage, waiting, tuple(map(self._via, waiting))))

    def _via(self, target: int) -> int:
        heirs = self.overlay.heirs(target)
        return self.overlay.via(heirs[0]) if heirs else NOBODY

    def _retry_stranded(self) -> None:
        waiting, self._stranded = self._stranded, []
        for stranded in waiting:
            self._retry(stranded.voyage, stranded.targets)

    def _on_overlay_changed(self) -> None:
        """Perhaps there is a way now for those that wait for one, or another than the one that proved wrong."""
        waiting, self._stranded = self._stranded, []
        for stranded in waiting:
            pairs = list(zip(stranded.targets, stranded.vias, strict=True))
            ready = [target for target, via in pairs if self._via(target) not in (NOBODY, via)]
            rest = [(target, via) for target, via in pairs if target not in ready]
            if rest:
                targets, vias = zip(*rest, strict=True)
                self._stranded.append(stranded._replace(targets=targets, vias=vias))
            if ready:
                self._retry(stranded.voyage, ready)

    def _retry(self, voyage: _Voyage, targets: Iterable[int]) -> None:
        if self.role == "root":
            self._serve_newcomers(voyage, targets)
            self._send_crossings(voyage, self._plan(voyage, targets))
        else:
            self._send_up(voyage, (Leg(NOBODY, False, tuple(map(Leg, targets))),), returns=True)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        super().on_send_failed(neighbour, message)
        if type(message) is Crossing:
            voyage = _voyage(message, message.hops)
            self._send_crossings(voyage, self._route(NOBODY, voyage, message, climbs=False))

    def _publication_failed(self, neighbour: int, message: EventMessage) -> None:
        if type(message) is not Crossing:
            super()._publication_failed(neighbour, message)


def _voyage(message: Crossing, hops: int) -> _Voyage:
    return _Voyage(message.event, hops, message.passed, message.tries)


def _crossing(voyage: _Voyage, climbs: bool, legs: Legs, returns: bool = False) -> Crossing:
    return Crossing(voyage.hops, climbs, voyage.event, legs, voyage.passed, voyage.tries, returns)


def _targets(legs: Iterable[Leg]) -> list[int]:
    """The trees that want the event at the end of some leg."""
    targets: list[int] = []
    for leg in legs:
        if leg.wanted:
            targets.append(leg.towards)
        targets += _targets(leg.onward)
    return targets
