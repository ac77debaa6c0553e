"""Events between trees (thesis, section 4.3.2).

Theory of operation
-------------------
An event climbs to its publisher's root as in any tree. That root looks up which other trees want it, groups them by the
neighbouring root that leads there, and sends one copy per next hop, carrying a *leg* for each neighbouring root: where
the leg ends, and which trees are to be reached through there. The copy descends along the inter-tree routes, crosses
the border and climbs to the other root, which serves its own tree and plans the next legs for the targets that are
left. Only the publisher's own root decides who shall get an event, so copies do not multiply.

A copy serves everybody it passes: on the way down the branches of its own tree (a child that wants the event and lies
on the way gets one frame, not two), on the way up the branches of the other.

A node that has become a root, and still has the link to its former parent, leaves the distribution to that tree: its
own table is not complete yet (`former` in `dissemination.py`).

A node at which a copy cannot go on tells its parent which routes it still has, and sends the copy back up behind that
report. Whoever knows another way on the way up takes it; otherwise the root plans anew with what it just learned. When
trees merge, ways between roots are lost, or point at each other, for a moment. A root that knows no way to a target, or
only one that it has used already, or gets a copy back again, keeps it until its view of the others changes, and looks
again every `STRAND_RETRY_S` in any case. After `WAITS_MAX` waits in all, or `TRIES_MAX` returns, it
gives up (`no-route`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer.advertising import AdvertisingTree
from roamcast.protocols.somer.messages import Crossing, Leg
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.messages import EventMessage, Publication

Legs = tuple[Leg, ...]

STRAND_RETRY_S: Final = 0.8  # an event for trees that cannot be reached now is tried again after so long
WAITS_MAX: Final = 4  # after that a copy is given up; with fewer, trees that merge lose events even at rest
TRIES_BITS: Final = 4
TRIES_MAX: Final = 14  # fits into `TRIES_BITS` with one to spare
TRIES_AT_ONCE: Final = 1  # a copy that came back is sent out again at once; while trees merge that would use all up
STRANDED: Final = ("stranded", 0)

CROSSING_HOPS_MAX: Final = 255
"""A copy that has come this far is going in circles."""


class _Copy(NamedTuple):
    """An event at a root, with the trees it has yet to reach."""

    event: Event
    hops: int
    targets: tuple[int, ...]
    tries: int  # how often it turned back
    waits: int  # how often it waited, here or at other roots, this time included
    rests: int = 0  # times to wait yet before it is sent again the way it went before, which proved wrong
    misled_by: int = NOBODY  # the neighbouring root on that way


@mypyc_attr(allow_interpreted_subclasses=True)
class CrossingTree(AdvertisingTree):
    def __init__(self, host: Host, parameters: SomerParameters) -> None:
        super().__init__(host, parameters)
        self._relayed = SeenCache()  # event, target and number of tries: sent out once from here
        self._stranded: list[_Copy] = []  # no way is known, or the one that was proved wrong

    def on_timer(self, timer: Timer) -> None:
        if timer == STRANDED:
            self._retry_stranded()
        else:
            super().on_timer(timer)

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is Crossing:
            self._on_crossing(sender, message)
        else:
            super().on_message(sender, message)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        if self.role == "root" and not self.former:
            self._serve(sender, event, hops, self._plan(self._first(event, hops)))
        else:
            super()._spread(sender, event, hops)

    def _climb(self, sender: int, message: EventMessage) -> None:
        event, hops = message.event, message.hops
        if self.role == "root" and type(message) is Crossing:
            self._send_crossings(event, hops, self._plan_further(event, hops, message.legs))
        elif self.role == "root" and not self.former:
            self._send_crossings(event, hops, self._plan(self._first(event, hops)))
        elif type(message) is Crossing and self.parent != NOBODY:
            self.host.send(self.parent, message)  # which tree it is for does not matter; one way up is enough
        else:
            super()._climb(sender, message)

    # -- events between trees ------------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        new = self._take(message)
        event, hops = message.event, message.hops + 1
        self.children.heard(sender, self.host.now())
        outward: list[Leg] = []
        inward: list[Leg] = []
        for leg in message.legs:
            if leg.returns and self._knows_other_way(leg, sender):
                outward.append(Leg(leg.towards, leg.targets, leg.tries, leg.waits))
            elif message.climbs or leg.towards == self.root:
                inward.append(leg)
            else:
                outward.append(leg)
        ways = self._ways(event, hops, outward, besides=sender)
        if self.role == "root":
            for next_hop, legs in self._plan_further(event, hops, inward).items():
                ways[next_hop] = (*ways.get(next_hop, ()), *legs)
        else:
            self._send_up(sender, event, hops, tuple(inward))
        if new:
            self._serve(sender, event, hops, ways)
        else:
            self._send_crossings(event, hops, ways)

    def _knows_other_way(self, leg: Leg, besides: int) -> bool:
        next_hop = self.routes.next_hop(leg.towards)
        return self.role == "member" and next_hop not in (None, besides)

    def _serve(self, sender: int, event: Event, hops: int, ways: dict[int, Legs]) -> None:
        """Sends an event to the children that want it and along these ways, one frame to each neighbour."""
        down = Publication(hops, False, event)
        for child in self.children.wanting(event):
            if child != sender and child != self.parent and child not in ways:
                self.host.send(child, down)
        self._send_crossings(event, hops, ways)

    def _send_crossings(self, event: Event, hops: int, ways: dict[int, Legs]) -> None:
        for next_hop, legs in ways.items():
            self.host.send(next_hop, Crossing(hops, next_hop not in self.children, event, legs))

    def _first(self, event: Event, hops: int) -> _Copy:
        return _Copy(event, hops, tuple(self.overlay.wanting(event)), 0, 0)

    def _plan(self, copy: _Copy) -> dict[int, Legs]:
        """As a root: legs to the neighbouring roots that lead to the targets, by next hop."""
        event, hops, targets, tries, waits = copy[:5]
        by_root: dict[int, list[int]] = {}
        stranded: list[int] = []
        circled: dict[int, list[int]] = {}
        for target in dict.fromkeys(map(self.overlay.heir, targets)):
            if target != self.host.address:
                via = self.overlay.via(target)
                if via == NOBODY:
                    stranded.append(target)
                elif self._relayed.add(_key(event, target, tries)):
                    by_root.setdefault(via, []).append(target)
                else:
                    circled.setdefault(via, []).append(target)
        if stranded:
            self._strand(_Copy(event, hops, tuple(stranded), tries, waits + 1))
        for via, misled in circled.items():
            self._strand(_Copy(event, hops, tuple(misled), tries + 1, waits + 1, min(tries, 1), via))
        return self._ways(event, hops, [Leg(root, tuple(reached), tries, waits) for root, reached in by_root.items()])

    def _plan_further(self, event: Event, hops: int, legs: Iterable[Leg]) -> dict[int, Legs]:
        """As a root: what follows these legs, which end here or came back."""
        ways: dict[int, Legs] = {}
        for leg in legs:
            copy = _Copy(event, hops, leg.targets, leg.tries + leg.returns, leg.waits)
            if leg.returns:
                self._report_routes()  # what made it turn back was reported ahead of it
            if leg.returns and copy.tries > TRIES_AT_ONCE:
                self._strand(_Copy(event, hops, leg.targets, copy.tries, leg.waits + 1, 0, leg.towards))
                continue
            for next_hop, onward in self._plan(copy).items():
                ways[next_hop] = (*ways.get(next_hop, ()), *onward)
        return ways

    def _ways(self, event: Event, hops: int, legs: Iterable[Leg], besides: int = NOBODY) -> dict[int, Legs]:
        """Legs by the neighbour, other than `besides`, that is next on the way; where there is none, they go back."""
        ways: dict[int, Legs] = {}
        lost: list[Leg] = []
        for leg in legs:
            next_hop = self.routes.next_hop(leg.towards)
            if next_hop is None or next_hop == besides:
                lost.append(Leg(leg.towards, leg.targets, leg.tries, leg.waits, returns=True))
            else:
                ways[next_hop] = (*ways.get(next_hop, ()), leg)
        if lost and self.role == "root":
            for leg in lost:
                self._strand(_Copy(event, hops, leg.targets, leg.tries + 1, leg.waits + 1))
        elif lost:
            self._deny_route()
            self._send_up(NOBODY, event, hops, tuple(lost))
        return ways

    def _send_up(self, sender: int, event: Event, hops: int, legs: Legs) -> None:
        if legs and hops <= CROSSING_HOPS_MAX:
            self._climb(sender, Crossing(hops, True, event, legs))

    def _strand(self, stranded: _Copy) -> None:
        if stranded.tries > TRIES_MAX or stranded.waits > WAITS_MAX:
            if any(self.overlay.via(target) == NOBODY for target in stranded.targets):
                self.host.dropped("no-route", stranded.event.id)
            return
        self._stranded.append(stranded)
        if len(self._stranded) == 1:
            self.host.set_timer(STRAND_RETRY_S, STRANDED)

    def _retry_stranded(self) -> None:
        waiting, self._stranded = self._stranded, []
        for copy in waiting:
            if copy.rests:
                self._strand(copy._replace(waits=copy.waits + 1, rests=copy.rests - 1))
            else:
                self._retry(copy)

    def _on_overlay_changed(self) -> None:
        """Perhaps there is a way now for those that wait for one."""
        waiting, self._stranded = self._stranded, []
        for stranded in waiting:
            if self._has_way(stranded):
                self._retry(stranded)
            else:
                self._stranded.append(stranded)

    def _has_way(self, copy: _Copy) -> bool:
        """Whether there is one besides the way that it went before."""
        vias = [self.overlay.via(self.overlay.heir(target)) for target in copy.targets]
        return any(via not in (NOBODY, copy.misled_by) for via in vias)

    def _retry(self, copy: _Copy) -> None:
        if self.role == "root":
            self._send_crossings(copy.event, copy.hops, self._plan(copy))
        else:
            leg = Leg(NOBODY, copy.targets, copy.tries, copy.waits, returns=True)
            self._send_up(NOBODY, copy.event, copy.hops, (leg,))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        super().on_send_failed(neighbour, message)
        if type(message) is Crossing and not self._climbs_here(message):
            ways = self._ways(message.event, message.hops, message.legs)
            self._send_crossings(message.event, message.hops, ways)

    def _publication_failed(self, neighbour: int, message: EventMessage) -> None:
        if type(message) is not Crossing or self._climbs_here(message):
            super()._publication_failed(neighbour, message)

    def _climbs_here(self, message: Crossing) -> bool:
        """Whether it was on its way up this tree, rather than on its way out of it."""
        return message.climbs and (message.legs[0].returns or message.legs[0].towards == self.root)


def _key(event: Event, target: int, tries: int) -> int:
    return (event.id << NUMBER_BITS | target) << TRIES_BITS | tries
