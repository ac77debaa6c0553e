"""Section 4.3.2, events between trees: climb to the root, cross, climb, descend.

An event climbs to its publisher's root as in any tree. The root looks up which other trees want it and sends a copy to
the next root on the path to each of them; trees behind the same next hop share one copy. A copy descends along the
route to the border, crosses it, and climbs to whatever root is there. That root serves its own tree, and sends copies
on to the roots for which this one was not the last, by its own directory.

A copy serves each node that it passes, and the branches below: a child that lies on the path and wants the event gets
one frame, not two.

One root per event is enough. An event climbs to the present parent only, and what comes down does not climb again, not
even if it came down a former link. A new root that still has the link to its former parent leaves the event to the tree
that it has left, whose root knows all others.

No copy goes in circles. Each root sends an event on to each target once, whichever node asks, and a copy that has come
`hops_max` frames far is dropped.
"""

from mypy_extensions import mypyc_attr

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import NOBODY, Host, Message
from roamcast.protocols.components import Inputs
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer.directory import Directory
from roamcast.protocols.somer.messages import Crossing, Leg
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.routes import BorderRoutes
from roamcast.protocols.trees.dissemination import NO_COPIES, Dissemination, Outlet
from roamcast.protocols.trees.messages import EventMessage, Publication


@mypyc_attr(allow_interpreted_subclasses=True)
class Crossings(Outlet):
    def __init__(
        self,
        host: Host,
        parameters: SomerParameters,
        routes: BorderRoutes,
        directory: Directory,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self._hops_max = parameters.hops_max
        self._routes = routes
        self._directory = directory
        self._dissemination = dissemination
        self._place = dissemination.place
        self._children = dissemination.children
        self._sent = SeenCache()  # event and target: sent on from here, as a root

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Crossing, self._on_crossing)
        inputs.on_failure(Crossing, self._on_failure)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def receive(self, sender: int, message: Publication) -> None:
        if self._dissemination.take(message):
            if message.climbs:
                self.spread(sender, message.event, message.hops + 1)
            else:
                self._dissemination.descend(sender, message.event, message.hops + 1, NO_COPIES)

    def spread(self, sender: int, event: Event, hops: int) -> None:
        if self._place.role == "root" and not self._place.former:
            self.host.work("root")
            copies = self._messages(event, hops, self._plan(event, self._directory.wanting(event)))
            self._dissemination.descend(sender, event, hops, copies)
            for neighbour, copy in copies.items():
                self.host.send(neighbour, copy)
        else:
            self._dissemination.descend(sender, event, hops, NO_COPIES)
            self.climb(sender, Publication(hops, True, event))

    def climb(self, sender: int, message: EventMessage) -> None:
        place = self._place
        if place.parent != NOBODY:
            if place.parent != sender:
                self.host.send(place.parent, message)
        else:
            self._dissemination.send_to_former(sender, message)
            if place.role != "root":
                self._dissemination.hold(message)

    # -- roots ---------------------------------------------------------------------------------------------------

    def _plan(self, event: Event, targets: list[int]) -> dict[int, list[Leg]]:
        """As a root: the legs to these targets, by the neighbour that is next on their path."""
        by_root: dict[int, list[int]] = {}
        for target in targets:
            if target != self.host.address and self._sent.add(event.id << NUMBER_BITS | target):
                by_root.setdefault(self._directory.next_root(target), []).append(target)
        legs: dict[int, list[Leg]] = {}
        for root, behind in by_root.items():
            next_hop = self._routes.next_hop(root) if root != NOBODY else NOBODY
            if next_hop == NOBODY:
                self.host.dropped("no-route", event.id)
            else:
                legs.setdefault(next_hop, []).append(Leg(root, tuple(behind)))
        return legs

    # -- every node on the path -----------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        self._children.heard(sender, self.host.now())
        new = self._dissemination.take(message)
        event, hops = message.event, message.hops + 1
        climbs = message.climbs
        copies: dict[int, Message] = {}
        if hops > self._hops_max:
            self.host.dropped("astray", event.id)
            return
        if self._place.role == "root":
            self.host.work("root")
            targets = [target for leg in message.legs for target in leg.targets]
            copies = self._messages(event, hops, self._plan(event, targets))
        elif not climbs:
            copies = self._messages(event, hops, self._descent(sender, event, message.legs))
        if new:
            self._dissemination.descend(sender, event, hops, copies)
        for neighbour, copy in copies.items():
            self.host.send(neighbour, copy)
        if climbs and self._place.role != "root":
            self.climb(sender, Crossing(hops, True, event, message.legs))

    def _descent(self, sender: int, event: Event, legs: tuple[Leg, ...]) -> dict[int, list[Leg]]:
        """The legs by the neighbour that is next on the path out of this tree."""
        found: dict[int, list[Leg]] = {}
        for leg in legs:
            next_hop = self._routes.next_hop(leg.towards, besides=sender)
            if next_hop == NOBODY:
                self.host.dropped("no-route", event.id)
            else:
                found.setdefault(next_hop, []).append(leg)
        return found

    def _messages(self, event: Event, hops: int, legs: dict[int, list[Leg]]) -> dict[int, Message]:
        return {
            neighbour: Crossing(hops, neighbour not in self._children, event, tuple(behind))
            for neighbour, behind in legs.items()
        }

    def _on_failure(self, neighbour: int, message: Crossing) -> None:
        """The link gave up on a copy. If it was on its way up, it waits for another parent; otherwise it takes the next
        best route."""
        if message.climbs and self._place.role == "searching":
            self.climb(neighbour, message)
        else:
            legs = self._descent(neighbour, message.event, message.legs)
            for next_hop, copy in self._messages(message.event, message.hops, legs).items():
                self.host.send(next_hop, copy)
