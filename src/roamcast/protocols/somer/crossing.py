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

If a copy fails on its way, the next best route is tried; if there is none, it is dropped as `no-route`.
"""

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import Host, Message
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer.advertising import AdvertisingTree
from roamcast.protocols.somer.messages import Crossing, Leg
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.trees.messages import EventMessage, Publication

Legs = tuple[Leg, ...]


class CrossingTree(AdvertisingTree):
    def __init__(self, host: Host, parameters: SomerParameters) -> None:
        super().__init__(host, parameters)
        self._relayed = SeenCache()  # event and target root that this root has sent on already

    def on_message(self, sender: int, message: Message) -> None:
        if isinstance(message, Crossing):
            self._on_crossing(sender, message)
        else:
            super().on_message(sender, message)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def _spread(self, sender: int, event: Event, hops: int) -> None:
        if self.role == "root" and not self.former:
            self._serve(sender, event, hops, self._plan(event, self.overlay.wanting(event)))
        else:
            super()._spread(sender, event, hops)

    def _climb(self, sender: int, message: EventMessage) -> None:
        super()._climb(sender, message)
        if self.role == "root" and not self.former:
            targets = _targets(message.legs) if isinstance(message, Crossing) else self.overlay.wanting(message.event)
            self._send_crossings(message.event, message.hops, self._plan(message.event, targets))

    # -- events between trees ------------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        new = self._take(message)
        event, hops = message.event, message.hops + 1
        self.children.heard(sender, self.host.now())
        if sender == self.parent or sender in self.former:
            ways = self._ways(event, message.legs)
        elif self.role == "root":
            ways = self._plan(event, _targets(message.legs))
        else:
            if new:
                self._descend(sender, event, hops)
            self._climb(sender, Crossing(hops, True, event, message.legs))
            return
        if new:
            self._serve(sender, event, hops, ways)
        else:
            self._send_crossings(event, hops, ways)

    def _serve(self, sender: int, event: Event, hops: int, ways: dict[int, Legs]) -> None:
        """Sends an event to the children that want it and along these ways, one frame to each neighbour."""
        down = Publication(hops, False, event)
        for child in self.children.wanting(event):
            if child != sender and child != self.parent and child not in self.former and child not in ways:
                self.host.send(child, down)
        self._send_crossings(event, hops, ways)

    def _send_crossings(self, event: Event, hops: int, ways: dict[int, Legs]) -> None:
        for next_hop, legs in ways.items():
            self.host.send(next_hop, Crossing(hops, next_hop not in self.children, event, legs))

    def _plan(self, event: Event, targets: list[int]) -> dict[int, Legs]:
        """As a root: legs to the neighbouring roots that lead to the targets, by next hop."""
        by_root: dict[int, list[int]] = {}
        for target in targets:
            tree = self.overlay.trees.get(target)
            if target == self.host.address or not self._relayed.add(event.id << NUMBER_BITS | target):
                continue
            if tree is None:
                self.host.dropped("no-route", event.id)
            else:
                by_root.setdefault(tree.via, []).append(target)
        return self._ways(event, tuple(Leg(root, tuple(reached)) for root, reached in by_root.items()))

    def _ways(self, event: Event, legs: Legs) -> dict[int, Legs]:
        """Legs by the neighbour that is next on the way."""
        ways: dict[int, Legs] = {}
        for leg in legs:
            next_hop = self.routes.next_hop(leg.towards)
            if next_hop is None:
                self.host.dropped("no-route", event.id)
            else:
                ways[next_hop] = (*ways.get(next_hop, ()), leg)
        return ways

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        super().on_send_failed(neighbour, message)
        if isinstance(message, Crossing) and not self._climbs_here(message):
            self._send_crossings(message.event, message.hops, self._ways(message.event, message.legs))

    def _publication_failed(self, neighbour: int, message: EventMessage) -> None:
        if not isinstance(message, Crossing) or self._climbs_here(message):
            super()._publication_failed(neighbour, message)

    def _climbs_here(self, message: Crossing) -> bool:
        """Whether it was on its way up this tree, rather than on its way out of it."""
        return message.climbs and message.legs[0].towards == self.root


def _targets(legs: Legs) -> list[int]:
    return [target for leg in legs for target in leg.targets]
