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

If a copy fails on its way, the next best route is tried; if there is none, it returns to the root. When trees merge,
ways between roots are lost, or point at each other, for a moment. So a root that cannot reach a target, gets a copy
back, or would send one the same way twice, keeps it and looks again a little later, up to `STRAND_TRIES` times. Then it
gives up (`no-route`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer.advertising import AdvertisingTree
from roamcast.protocols.somer.messages import Crossing, Leg
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.messages import EventMessage, Publication

Legs = tuple[Leg, ...]

STRAND_RETRY_S = 0.8  # an event for trees that cannot be reached now is tried again after so long
STRAND_TRIES = 6
STRANDED = ("stranded", 0)

UPWARD = (1 << NUMBER_BITS) - 1
"""Stands for the own root where the neighbouring root is named through which an event was sent."""


class _Stranded(NamedTuple):
    event: Event
    hops: int
    targets: tuple[int, ...]
    tries: int
    returned: bool  # it was sent and came back, so it may be sent the same way again


class CrossingTree(AdvertisingTree):
    def __init__(self, host: Host, parameters: SomerParameters) -> None:
        super().__init__(host, parameters)
        self._relayed = SeenCache()  # event, target and through whom it was sent there: each way only once
        self._stranded: list[_Stranded] = []

    def on_timer(self, timer: Timer) -> None:
        if timer == STRANDED:
            self._retry_stranded()
        else:
            super().on_timer(timer)

    def on_message(self, sender: int, message: Message) -> None:
        if isinstance(message, Crossing):
            self._on_crossing(sender, message)
        else:
            super().on_message(sender, message)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        if self.role == "root" and not self.former:
            self._serve(sender, event, hops, self._plan(event, hops, self.overlay.wanting(event)))
        else:
            super()._spread(sender, event, hops)

    def _climb(self, sender: int, message: EventMessage) -> None:
        event, hops = message.event, message.hops
        if self.role == "root" and isinstance(message, Crossing):
            self._send_crossings(event, hops, self._plan_further(event, hops, message.legs))
        elif self.role == "root" and not self.former:
            self._send_crossings(event, hops, self._plan(event, hops, self.overlay.wanting(event)))
        elif isinstance(message, Crossing) and self.parent != NOBODY:
            self.host.send(self.parent, message)  # which tree it is for does not matter; one way up is enough
        else:
            super()._climb(sender, message)

    # -- events between trees ------------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        new = self._take(message)
        event, hops = message.event, message.hops + 1
        self.children.heard(sender, self.host.now())
        outward = tuple(leg for leg in message.legs if not message.climbs and leg.towards != self.root)
        inward = tuple(leg for leg in message.legs if message.climbs or leg.towards == self.root)
        ways = self._ways(event, hops, outward, besides=sender)
        if self.role == "root":
            for next_hop, legs in self._plan_further(event, hops, inward).items():
                ways[next_hop] = (*ways.get(next_hop, ()), *legs)
        else:
            legs = self._first_time(event, inward)
            if legs:
                self._climb(sender, Crossing(hops, True, event, legs))
        if new:
            self._serve(sender, event, hops, ways)
        else:
            self._send_crossings(event, hops, ways)

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

    def _plan(
        self, event: Event, hops: int, targets: Iterable[int], tries: int = 0, anew: bool = False
    ) -> dict[int, Legs]:
        """As a root: legs to the neighbouring roots that lead to the targets, by next hop; `anew` sends even where the
        event was sent before."""
        by_root: dict[int, list[int]] = {}
        stranded: list[int] = []
        for target in targets:
            if target != self.host.address:
                via = self.overlay.via(target)
                if via != NOBODY and (self._relayed.add(_key(event, target, via)) or anew):
                    by_root.setdefault(via, []).append(target)
                else:
                    stranded.append(target)
        if stranded:
            self._strand(_Stranded(event, hops, tuple(stranded), tries + 1, False))
        legs = tuple(Leg(root, tuple(reached), tries) for root, reached in by_root.items())
        return self._ways(event, hops, legs)

    def _plan_further(self, event: Event, hops: int, legs: Legs) -> dict[int, Legs]:
        """As a root: what follows these legs that end here; those that came back wait."""
        for leg in legs:
            if leg.towards == NOBODY:
                self._strand(_Stranded(event, hops, leg.targets, leg.tries, True))
        return self._plan(event, hops, [t for leg in legs if leg.towards != NOBODY for t in leg.targets])

    def _ways(self, event: Event, hops: int, legs: Legs, besides: int = NOBODY) -> dict[int, Legs]:
        """Legs by the neighbour, other than `besides`, that is next on the way; where there is none, to the root."""
        ways: dict[int, Legs] = {}
        lost: list[Leg] = []
        for leg in legs:
            next_hop = self.routes.next_hop(leg.towards)
            if next_hop is None or next_hop == besides:
                lost.append(Leg(NOBODY, leg.targets, leg.tries + 1))
                self._deny_route()
            else:
                ways[next_hop] = (*ways.get(next_hop, ()), leg)
        back = self._first_time(event, tuple(lost))
        if back:
            self._climb(NOBODY, Crossing(hops, True, event, back))
        return ways

    def _first_time(self, event: Event, legs: Legs) -> Legs:
        """What of the legs was not sent to the own root before."""
        fresh: list[Leg] = []
        for leg in legs:
            targets = tuple(t for t in leg.targets if self._relayed.add(_key(event, t, UPWARD - leg.tries)))
            if targets:
                fresh.append(Leg(leg.towards, targets, leg.tries))
        return tuple(fresh)

    def _strand(self, stranded: _Stranded) -> None:
        if stranded.tries > STRAND_TRIES:
            if any(self.overlay.via(target) == NOBODY for target in stranded.targets):
                self.host.dropped("no-route", stranded.event.id)
            return
        self._stranded.append(stranded)
        if len(self._stranded) == 1:
            self.host.set_timer(STRAND_RETRY_S, STRANDED)

    def _retry_stranded(self) -> None:
        waiting, self._stranded = self._stranded, []
        for event, hops, targets, tries, returned in waiting:
            if self.role == "root":
                self._send_crossings(event, hops, self._plan(event, hops, targets, tries, returned))
            elif returned:
                self._climb(NOBODY, Crossing(hops, True, event, (Leg(NOBODY, targets, tries),)))

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        super().on_send_failed(neighbour, message)
        if isinstance(message, Crossing) and not self._climbs_here(message):
            ways = self._ways(message.event, message.hops, message.legs)
            self._send_crossings(message.event, message.hops, ways)

    def _publication_failed(self, neighbour: int, message: EventMessage) -> None:
        if not isinstance(message, Crossing) or self._climbs_here(message):
            super()._publication_failed(neighbour, message)

    def _climbs_here(self, message: Crossing) -> bool:
        """Whether it was on its way up this tree, rather than on its way out of it."""
        return message.climbs and message.legs[0].towards in (self.root, NOBODY)


def _key(event: Event, target: int, via: int) -> int:
    return (event.id << NUMBER_BITS | target) << NUMBER_BITS | via

