"""Events between trees along paths that their publisher's root lays out (thesis, section 4.3.2).

An event climbs to its publisher's root as in any tree. That root looks up which other trees want it and lays out the
shortest paths to all of them, as a tree of *legs* from root to root that the event carries; one copy goes to each next
hop. A copy descends along the inter-tree routes, crosses the border and climbs toward the other root, where the legs
that follow begin. Only the publisher's own root decides which trees get an event, so copies do not multiply, and since
the whole path is laid out at one place, it has no circles however much the views of different roots differ.

A copy serves each node that it passes: on the way down the branches of its own tree (a child that wants the event and
lies on the path gets one frame, not two), on the way up the branches of the other.

What comes down a tree does not climb another one, even if this node has left the tree it comes from: every tree gets an
event once, from its publisher's root. The exception is a node whose parent was its child before, as happens below a new
root: the tree that was left serves those above only through here.

A node that has become a root, and still has the link to its former parent, leaves the distribution to that tree: its
own table is not complete yet.

The additions, each with its switch:

- *Ascent through neighbours* (`neighbour_ascent`). A node that has lost its parent does not make events wait for
  another one if it hears a neighbour in another tree: what should climb goes up there. Any root can distribute an
  event, or plan the rest of its path; the tree that was lost is among those it is sent to.
- *Salvage* (`salvage`). A node at which a copy cannot go on tells the sender which routes it still has, and sends the
  copy back up behind that report. A node on the way up that knows another route takes it; otherwise the root plans
  again with what it just learned. So does a root that has no route for a leg that begins there, but it may not use
  roots that were passed already. Where that leaves no path, or a copy comes back a second time, it waits until the
  root's view of the others changes, or looks again after `strand_retry_s`. After `tries_max` waits and returns it is
  given up (`no-route`): the tree is probably gone. But a root at rest assumes that the tree is there and that an update
  with its route is on its way (`tries_at_rest_max`).
- *Newcomers* (`newcomers`). A tree that absorbs another may have had an event before those who came with the other one.
  When a copy for such a tree comes to the root that agreed to absorb it, the event goes down a second time, in copies
  without legs, which each node passes on once, whether it has the event or not. Unless the other root can be heard to
  be in this tree now, the copy goes on nevertheless: a third tree may have been quicker, or have taken a part.
- *Maturity* (`maturity`). A new root without a former link does what it can, and after `mature_s` sends the same events
  to those it had not heard of.

Refreshes get lost, so a node may take a neighbour for one of another tree when both are in the same by now, and events
would go in circles. A node that gets a copy by such a mistake answers with its refresh; one without any tree sends the
copy back.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from mypy_extensions import mypyc_attr

from roamcast.events import NUMBER_BITS, Event
from roamcast.protocols.api import NOBODY, Host, Timer
from roamcast.protocols.components import Inputs
from roamcast.protocols.seen import SeenCache
from roamcast.protocols.somer_plus.borders import Borders
from roamcast.protocols.somer_plus.linkstate import LinkStates
from roamcast.protocols.somer_plus.messages import Crossing, Leg
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.somer_plus.voyage import (
    Legs,
    Stranded,
    Voyage,
    crossing,
    depth,
    targets_of,
    voyage_of,
)
from roamcast.protocols.trees.dissemination import NO_COPIES, Dissemination, Outlet
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import EventMessage, Publication


class CrossingsTimer(StrEnum):
    STRANDED = "crossings.stranded"  # events that wait for a path are tried again
    MATURE = "crossings.mature"  # a new root has heard of all others


STRANDED: Final[Timer] = (CrossingsTimer.STRANDED, 0)
MATURE: Final[Timer] = (CrossingsTimer.MATURE, 0)
TRIES_BITS: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class Crossings(Outlet):
    def __init__(
        self,
        host: Host,
        parameters: SomerPlusParameters,
        membership: Membership,
        link_state: LinkStates,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._membership = membership
        self._place = membership.place
        self._children = membership.children
        self._link_state = link_state
        self._borders: Borders = link_state.borders
        self._routes = link_state.borders.routes
        self._dissemination = dissemination
        self._relayed = SeenCache()  # event, target and number of tries: sent out once from here
        self._served_again = SeenCache()  # events that went down a second time
        self._stranded: list[Stranded] = []
        self._parent_was_child = False  # before it became the parent
        self._climbed = SeenCache()  # events that were sent up from here, or out as the publisher's root
        self._early_voyages: list[Voyage] = []  # of events that were sent out when this root was new
        link_state.on_changed = self._retry_where_paths_changed

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Crossing, self._on_crossing)
        inputs.on_failure(Crossing, self._on_failure)
        inputs.on_timer(CrossingsTimer.STRANDED, self._retry_stranded)
        inputs.on_timer(CrossingsTimer.MATURE, self._mature)

    def becoming_member(self, parent: int) -> None:
        self._parent_was_child = parent in self._children

    def became_root(self) -> None:
        self._early_voyages.clear()
        if self._parameters.maturity:
            self.host.set_timer(self._parameters.mature_s, MATURE)

    # -- events of the own tree ----------------------------------------------------------------------------------

    def receive(self, sender: int, message: Publication) -> None:
        new = self._dissemination.take(message)
        hops = message.hops + 1
        # What comes down is from a tree that has it; if this node has left that one, its new tree is reached between
        # roots. But where the parent was a child before, those above get nothing from the tree that was left any more.
        climbs = message.climbs or self._was_above(sender)
        if climbs and self._climbed.add(message.event.id):
            if new:
                self.spread(sender, message.event, hops)
            else:
                self.climb(sender, Publication(hops, True, message.event))
        elif new:
            self._dissemination.descend(sender, message.event, hops, NO_COPIES)

    def _was_above(self, sender: int) -> bool:
        """Whether it was a parent, and those who are above this node now were below it."""
        return self._parent_was_child and sender in self._place.former

    def spread(self, sender: int, event: Event, hops: int) -> None:
        self._climbed.add(event.id)
        if self._place.role == "root" and not self._place.former:
            self.host.work("root")
            voyage = Voyage(event, hops)
            self._serve(sender, voyage, self._set_out(voyage))
        else:
            self._dissemination.descend(sender, event, hops, NO_COPIES)
            self.climb(sender, Publication(hops, True, event))

    def climb(self, sender: int, message: EventMessage) -> None:
        place = self._place
        if place.role == "root":
            self.host.work("root")
        if place.role == "root" and type(message) is Crossing:
            voyage = voyage_of(message, message.hops)
            self._send_copies(voyage, self._continue(sender, voyage, message.legs, message.returns))
        elif place.role == "root" and not place.former:
            voyage = Voyage(message.event, message.hops)
            self._send_copies(voyage, self._set_out(voyage))
        elif place.parent != NOBODY:
            if place.parent != sender:
                self.host.send(place.parent, message)  # one root is enough, whichever it is
        else:
            self._climb_without_parent(sender, message)

    def _climb_without_parent(self, sender: int, message: EventMessage) -> None:
        place = self._place
        stranger = None
        if self._parameters.neighbour_ascent and not place.former:
            stranger = self._routes.nearest((*self._children, sender))
        if stranger is not None:
            self.host.send(stranger, message)
        elif type(message) is Crossing:
            self._dissemination.hold(message)  # a former parent may be below this node by now
        else:
            self._dissemination.send_to_former(sender, message)
            if place.role != "root":
                self._dissemination.hold(message)

    def _set_out(self, voyage: Voyage) -> dict[int, Legs]:
        """As the publisher's root: the paths to all trees that want the event. Those that this tree absorbed, and whose
        root can be heard to be in it, are served with it."""
        is_new = self.host.now() < self._link_state.root_since_s + self._parameters.mature_s
        if is_new and self._parameters.maturity and len(self._early_voyages) < self._parameters.waiting_max:
            self._early_voyages.append(voyage)
        wanting = self._link_state.overlay.wanting(voyage.event)
        return self._plan(voyage, [root for root in wanting if not self._link_state.is_merged(root)])

    def _mature(self, key: int) -> None:
        """A new root has heard of all others by now: those it did not know of get what has been published since."""
        voyages, self._early_voyages = self._early_voyages, []
        for voyage in voyages:
            self.climb(NOBODY, Publication(voyage.hops, True, voyage.event))

    # -- events between trees ------------------------------------------------------------------------------------

    def _on_crossing(self, sender: int, message: Crossing) -> None:
        if message.hops >= self._parameters.hops_max or depth(message.legs) > self._parameters.legs_depth_max + 1:
            self.host.dropped("astray", message.event.id)
            return
        new = self._dissemination.take(message)
        self._children.heard(sender, self.host.now())
        voyage = voyage_of(message, message.hops + 1)
        if not message.legs:
            self._serve_again(sender, voyage)
            if self._was_above(sender) and self._climbed.add(voyage.event.id):
                self.climb(sender, Publication(voyage.hops, True, voyage.event))
            return
        if message.climbs:
            self._correct_stale_sender(sender, message)
        if message.climbs and self._sends_back(sender, message):
            copies: dict[int, Legs] = {}
            self.host.send(sender, crossing(voyage, True, message.legs, returns=True))
        else:
            copies = self._route(sender, voyage, message, message.climbs)
        if new:
            self._serve(sender, voyage, copies)
        else:
            self._send_copies(voyage, copies)

    def _sends_back(self, sender: int, message: Crossing) -> bool:
        """Whether this node was taken for one of another tree, and is in none."""
        searching = self._place.role == "searching" and sender not in self._children
        return searching and self._parameters.salvage and not message.returns

    def _correct_stale_sender(self, sender: int, message: Crossing) -> None:
        """A sender that has missed that this node is in another tree now is told, so that events do not circle."""
        if message.returns and sender not in self._children:
            self._borders.drop(sender)
        elif self._place.role != "searching" and self._place.root not in [leg.towards for leg in message.legs]:
            heard = self._membership.neighbours.last(sender)
            if heard is None or heard.parent != self.host.address or heard.root != self._place.root:
                self.host.send(sender, self._membership.refresh())

    def _route(self, sender: int, voyage: Voyage, message: Crossing, climbs: bool) -> dict[int, Legs]:
        """Legs by the neighbour that is next on the path, but not back to the sender; what has to climb does so."""
        if self._place.role == "root":
            self.host.work("root")
            return self._continue(sender, voyage, message.legs, message.returns)
        outward: list[Leg] = []
        inward: list[Leg] = []
        lost: list[Leg] = []
        for leg in message.legs:
            if leg.towards in (self._place.root, self.host.address):  # or this was the root of a tree absorbed since
                inward.append(Leg(self._place.root, leg.wanted, leg.onward))
            elif (message.returns or not climbs) and self._has_route(leg.towards, sender):
                outward.append(leg)
            elif climbs:
                inward.append(leg)  # to whatever root is there
            else:
                lost.append(leg)
        self._send_up(voyage, tuple(inward), message.returns)
        if lost:
            self._give_back(sender, voyage, tuple(lost))
        return self._by_next_hop(sender, outward)

    def _give_back(self, sender: int, voyage: Voyage, legs: Legs) -> None:
        """There is no route for these legs."""
        self._borders.deny_route(sender)
        if self._parameters.salvage:
            self._send_up(voyage, legs, returns=True)
        else:
            self.host.dropped("no-route", voyage.event.id)

    def _continue(self, sender: int, voyage: Voyage, legs: Legs, returns: bool) -> dict[int, Legs]:
        """As a root: what follows these legs, which end here or came back."""
        self._serve_newcomers(voyage, targets_of(legs))
        if returns or self.host.address in voyage.passed:
            self._borders.report()  # what made it turn back was reported ahead of it
            again = voyage.again()
            if voyage.tries == 0 and self._parameters.salvage:
                self._send_copies(again, self._plan(again, targets_of(legs)))
            else:
                self._strand(again, targets_of(legs))
            return {}
        known: list[Leg] = []
        unknown: list[int] = []
        for leg in legs:
            for onward in leg.onward if leg.towards == self.host.address else (leg,):
                if self._has_route(onward.towards, sender):
                    known += self._unrelayed(voyage, onward)
                elif self._link_state.is_merged(onward.towards):
                    unknown += targets_of(onward.onward)  # its tree has been served with this one
                else:
                    unknown += targets_of((onward,))
        copies = self._by_next_hop(sender, known)
        for next_hop, planned in self._plan(voyage, unknown).items():
            copies[next_hop] = (*copies.get(next_hop, ()), *planned)
        return copies

    def _plan(self, voyage: Voyage, targets: Iterable[int]) -> dict[int, Legs]:
        """As a root: the shortest paths to these trees, by next hop."""
        self._borders.look_around()
        wanted = dict.fromkeys(targets)
        wanted.pop(self.host.address, None)
        legs = self._link_state.overlay.plan(wanted, voyage.passed)
        for root in targets_of(legs):
            wanted.pop(root, None)
        self._strand(voyage.again(), wanted)
        return self._by_next_hop(NOBODY, [fresh for leg in legs for fresh in self._unrelayed(voyage, leg)])

    def _unrelayed(self, voyage: Voyage, leg: Leg) -> Legs:
        """The leg with those targets only that the event was not sent to from here before; empty if there are none.
        Legs are at most `legs_depth_max` deep."""
        onward = tuple(fresh for further in leg.onward for fresh in self._unrelayed(voyage, further))
        key = (voyage.event.id << NUMBER_BITS | leg.towards) << TRIES_BITS | voyage.tries
        wanted = leg.wanted and self._relayed.add(key)
        return (Leg(leg.towards, wanted, onward),) if wanted or onward else ()

    def _has_route(self, root: int, besides: int) -> bool:
        return self._routes.next_hop(root, besides) is not None

    def _by_next_hop(self, besides: int, legs: Iterable[Leg]) -> dict[int, Legs]:
        """Legs by next hop; there is a route for each of them."""
        copies: dict[int, Legs] = {}
        for leg in legs:
            next_hop = self._routes.next_hop(leg.towards, besides)
            if next_hop is not None:
                copies[next_hop] = (*copies.get(next_hop, ()), leg)
        return copies

    def _serve(self, sender: int, voyage: Voyage, copies: dict[int, Legs]) -> None:
        """Sends an event to the children that want it and along these legs, one frame to each neighbour."""
        down = Publication(voyage.hops, False, voyage.event)
        for child in self._children.wanting(voyage.event):
            if child != sender and child != self._place.parent and child not in copies:
                self.host.send(child, down)
        self._send_copies(voyage, copies)

    def _serve_newcomers(self, voyage: Voyage, targets: Iterable[int]) -> None:
        """As a root: nodes that came with an absorbed tree, to which the event is still on its way."""
        if self._parameters.newcomers and any(root in self._link_state.absorbed for root in targets):
            self._serve_again(NOBODY, voyage)

    def _serve_again(self, sender: int, voyage: Voyage) -> None:
        """Serves those who came into this tree after the event, through others that have it already."""
        if self._served_again.add(voyage.event.id):
            down = crossing(voyage, False, ())
            for child in self._children.wanting(voyage.event):
                if child != sender and child != self._place.parent:
                    self.host.send(child, down)

    def _send_copies(self, voyage: Voyage, copies: dict[int, Legs]) -> None:
        if self._place.role == "root":
            voyage = voyage.through(self.host.address)
        for next_hop, legs in copies.items():
            self.host.send(next_hop, crossing(voyage, next_hop not in self._children, legs))

    def _send_up(self, voyage: Voyage, legs: Legs, returns: bool) -> None:
        if legs and voyage.hops <= self._parameters.hops_max:
            self.climb(NOBODY, crossing(voyage, True, legs, returns))

    # -- events that wait for a path -----------------------------------------------------------------------------

    def _strand(self, voyage: Voyage, targets: Iterable[int]) -> None:
        waiting = tuple(targets)
        if not waiting:
            return
        parameters = self._parameters
        tries_max = parameters.tries_at_rest_max if self._link_state.is_at_rest() else parameters.tries_max
        if voyage.tries > tries_max or not parameters.salvage:
            self.host.dropped("no-route", voyage.event.id)
            return
        if not self._stranded:
            self.host.set_timer(parameters.strand_retry_s, STRANDED)
        elif len(self._stranded) >= parameters.stranded_max:
            self.host.dropped("no-route", self._stranded.pop(0).voyage.event.id)
        self._stranded.append(Stranded(voyage, waiting, tuple(map(self._via, waiting))))

    def _via(self, target: int) -> int:
        overlay = self._link_state.overlay
        heirs = overlay.heirs(target)
        return overlay.via(heirs[0]) if heirs else NOBODY

    def _retry_stranded(self, key: int) -> None:
        waiting, self._stranded = self._stranded, []
        for stranded in waiting:
            self._retry(stranded.voyage, stranded.targets)

    def _retry_where_paths_changed(self) -> None:
        """Perhaps there is a path now for events that wait for one, or another than the one that proved wrong."""
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

    def _retry(self, voyage: Voyage, targets: Iterable[int]) -> None:
        if self._place.role == "root":
            self._serve_newcomers(voyage, targets)
            self._send_copies(voyage, self._plan(voyage, targets))
        else:
            self._send_up(voyage, (Leg(NOBODY, False, tuple(map(Leg, targets))),), returns=True)

    def _on_failure(self, neighbour: int, message: Crossing) -> None:
        """The link gave up on a copy: it takes another route from here."""
        voyage = voyage_of(message, message.hops)
        self._send_copies(voyage, self._route(NOBODY, voyage, message, climbs=False))
