"""Routes between trees and advertisements among roots: SOMER's top layer, without the events (thesis, section 4.3.2).

Theory of operation
-------------------
*Routes.* Who hears the refresh of a node u in another tree knows a way to that tree's root: level + u's level + 1 hops
from root to root. Each node reports the best distance per foreign root to its parent whenever that changed, so the root
ends up with the shortest way to each neighbouring tree, hop by hop (theorem 4.1); that a tree is within reach at all is
reported sooner than a distance that changed. A report is the whole truth at the time and replaces the one before; a
neighbour whose last refresh was missed (`ROUTE_PERIODS`), or that a unicast failed to reach, is no candidate any more.
With three periods, as for parents, a moving network keeps many dead routes; each costs an event a failed frame. Who is
sent something along a route that he does not have reports again.

*Between roots* a message descends along these routes, crosses to the other tree at the border, and climbs to whatever
root is there.

*Advertisements.* Each period a root sends its own entry (what its tree wants, its neighbouring roots, its causal nodes)
to all neighbouring roots, together with those entries of others that they have not been told yet. Thus entries flood
among all roots. News do not wait for the next period: a tree unknown so far, one that has absorbed another, wants more
than before, or brings trees within reach or out of it, go on to those neighbours that the teller has not told himself;
an advertisement names them (`told`), since what the teller's last entry says of its neighbours may be out of date. A
root whose interest grows beyond what it said last, or that has a neighbour it did not name then, speaks up before its
time.

How soon depends on how rare news are. A new root, and one that has missed no neighbour for long (`REST_PERIODS`), tells
them after `QUICK_HOLD_S`: in a network at rest everybody knows of a change before the links that it replaces end, and
nothing is lost. Where neighbours come and go news wait for others, `WORD_HOLD_S` if they are of another root, and the
time between two entries of one's own doubles from `NEWS_SPACING_S` to `NEWS_SPACING_MAX_S`.

An interest that shrinks waits for the period: until then somebody merely sends events in vain. So does a neighbour that
went, as long as another way to it is known: events that miss it are sent another way by the root that misses it. Who
comes within reach is told everything. An advertisement that cannot go on returns to its root and is told again; where
neighbours come and go that often waits for the period. It also says which entry of the receiver the sender knows, so
that one lost otherwise is noticed.

Only roots keep an overlay; a node that becomes one starts with an empty table and is told by its neighbours.
"""

import math
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace
from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Message, Timer
from roamcast.protocols.somer_plus.chain_tree import TreeProtocol
from roamcast.protocols.somer_plus.messages import Advertisement, Distances, Entry, RoleReport, RouteReport
from roamcast.protocols.somer_plus.overlay import LIFETIME_PERIODS, Overlay
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.somer_plus.roles import Roles
from roamcast.protocols.somer_plus.routes import Routes
from roamcast.protocols.trees.messages import Path, Refresh, Subscription

ROUTE_PERIODS: Final = 1.5  # a neighbour in another tree that was not heard for so many refresh periods is no way there
ROUTES_HOLD_S: Final = 0.05  # trees within reach that were not, or no longer are, wait so long to be reported together
DISTANCES_HOLD_S: Final = 0.3  # the same for routes that merely got longer or shorter
WORD_HOLD_S: Final = 2.0  # news from other roots wait so long for further news, more or less
NEWS_HOLD_S: Final = 1.0  # an own entry that comes before its time waits so long
NEWS_SPACING_S: Final = 1.0  # between the first two such entries
NEWS_SPACING_MAX_S: Final = 4.0  # between any two; former links live longer, so nothing is lost that waits for the news
REST_PERIODS: Final = 10  # a root that has missed no neighbour for so many refresh periods is at rest
YOUNG_S: Final = 5.0  # to a root that is no older everything is new
QUICK_HOLD_S: Final = 0.1  # news wait so long where they do not have to wait for others
RETELL_AFTER_S: Final = 2.0  # what a neighbour was told earlier than this and still does not know got lost
ENTRIES_CHARACTERS_MAX: Final = 900  # of the text form of interests in one advertisement; it must fit into a frame

HOPS_MAX: Final = 64
"""What has come this far between two roots is going in circles."""

ROUTES: Final = ("routes", 0)
ADVERTISE: Final = ("advertise", 0)
WORD: Final = ("word", 0)
# ("tell", root): a neighbouring root that missed something is told everything


@mypyc_attr(allow_interpreted_subclasses=True)
class AdvertisingTree(TreeProtocol):
    """A tree among others: knows the ways to its neighbours, and as a root what all trees want."""

    def __init__(self, host: Host, parameters: SomerPlusParameters) -> None:
        super().__init__(host, parameters)
        self.somer = parameters
        self.routes = Routes()
        self.roles = Roles()
        self.overlay = Overlay(host.address, parameters.advertisement_period_s)
        self._routes_pending = False
        self._routes_urgent = False  # and soon
        self._routes_reported: Distances | None = ()  # what the parent was last told; None: it got that wrong
        self._near: dict[int, int] = {}  # neighbouring root -> hops
        self._told: dict[int, dict[int, int]] = {}  # root that is or was near -> root -> newest sequence it knows of
        self._news: dict[int, Path] = {}  # root whose entry changed and was not passed on yet -> who knows already
        self._told_s: dict[int, float] = {}  # neighbouring root -> when it was last told something
        self._absorbed: dict[int, float] = {}  # root of a tree that this one has agreed to absorb -> when
        self._sequence = 0  # of own advertisements
        self._advertised: Interest | None = None
        self._advertised_near: list[int] = []  # roots that were named as neighbours then
        self._advertised_s = -NEWS_SPACING_S
        self._spacing_s = NEWS_SPACING_S
        self._root_since_s = -YOUNG_S
        self._missed_s = -math.inf  # when a neighbour was last found to be silent or gone

    def on_message(self, sender: int, message: Message) -> None:
        if type(message) is RouteReport:
            self._on_route_report(sender, message)
        elif type(message) is RoleReport:
            if sender in self.children and self.roles.put(sender, message.roles):
                self._routes_changed()
        elif type(message) is Advertisement:
            self._on_advertisement(sender, message)
        else:
            super().on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        match timer[0]:
            case "routes":
                self._report_routes()
            case "advertise":
                self._advertise()
            case "word":
                self._pass_word()
            case "tell":
                self._tell_all(timer[1])
            case _:
                super().on_timer(timer)

    # -- routes --------------------------------------------------------------------------------------------------

    def _on_foreign_refresh(self, sender: int, message: Refresh) -> None:
        self._meet(sender, message)

    def _on_refresh(self, sender: int, message: Refresh) -> None:
        if message.parent != self.host.address and self.routes.drop(sender):
            self._routes_changed()
        super()._on_refresh(sender, message)

    def _on_tree_changed(self) -> None:
        """Distances and what counts as foreign are different now."""
        self.routes.drop_root(self.root)
        for address, refresh, _ in self.neighbours.present(self.host.now()):
            if refresh.parent != self.host.address:
                self.routes.drop(address)
                self._meet(address, refresh)
        self._routes_changed()

    def _meet(self, neighbour: int, refresh: Refresh) -> None:
        foreign = refresh.root not in (self.root, self.host.address)  # nor the tree that was once this node's own
        if foreign and neighbour != self.parent and refresh.parent != self.host.address:
            distance = self.standing.level + refresh.level + 1
            if self.routes.put(neighbour, refresh.root, distance):
                self._routes_changed()

    def _on_refreshed(self) -> None:
        """Once per period: neighbours that fell silent are no way to anywhere."""
        super()._on_refreshed()
        since_s = self.host.now() - ROUTE_PERIODS * self.parameters.refresh_period_s
        present = {n.address: n.heard_s >= since_s for n in self.neighbours.present(self.host.now())}
        if not all(present.values()):
            self._missed_s = self.host.now()
        for next_hop in self.routes.next_hops():
            if not present.get(next_hop) and next_hop not in self.children and self.routes.drop(next_hop):
                self._routes_changed()

    def _beat(self) -> None:
        super()._beat()
        self._on_refreshed()

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self._missed_s = self.host.now()
        if self.routes.drop(neighbour):
            self._routes_changed()
        super().on_send_failed(neighbour, message)

    def _forget_child(self, child: int) -> None:
        if child in self.children:
            self.routes.drop(child)
            self.roles.drop(child)
            self._routes_changed()
            for address, refresh, _ in self.neighbours.present(self.host.now()):
                if address == child:  # it may be a way out now
                    self._meet(child, refresh)
        super()._forget_child(child)

    def _on_subscription(self, child: int, message: Subscription) -> None:
        if child not in self.children and self.routes.drop(child):  # until now it was a way out of the tree
            self._routes_changed()
        super()._on_subscription(child, message)

    def _on_route_report(self, sender: int, message: RouteReport) -> None:
        if sender in self.children:
            self.routes.drop(sender)
            for root, distance in message.routes:
                if root not in (self.root, self.host.address):
                    self.routes.put(sender, root, distance)
            self._routes_changed()

    def _deny_route(self, sender: int) -> None:
        """Who sent something along a route that is not there has to hear again which ones are; a former parent too."""
        if sender not in (self.parent, NOBODY):
            self.host.send(sender, RouteReport(self.routes.summary()))
        self._routes_reported = None
        self._report_routes()

    def _routes_changed(self) -> None:
        reported = self._routes_reported
        urgent = reported is None or self.routes.roots() != [root for root, _ in reported]
        if urgent and not self._routes_urgent:
            self._routes_urgent = True
            self.host.set_timer(ROUTES_HOLD_S, ROUTES)
        elif not self._routes_pending:
            self.host.set_timer(DISTANCES_HOLD_S, ROUTES)
        self._routes_pending = True

    def _report_routes(self) -> None:
        self._routes_pending = self._routes_urgent = False
        summary = self.routes.summary()
        if self.role == "root":
            self._routes_reported = summary
            self._greet(summary)
        elif self.role == "member" and summary != self._routes_reported:
            self._routes_reported = summary
            self.host.send(self.parent, RouteReport(summary))
        roles = self.roles.all()
        if self.role == "member" and roles != self.roles.reported:
            self.roles.reported = roles
            self.host.send(self.parent, RoleReport(roles))

    def _look_around(self) -> None:
        """As a root: which others are near, if that has changed a moment ago."""
        if self._routes_pending:
            self._report_routes()

    def _attach(self) -> None:
        """A new parent knows nothing yet."""
        super()._attach()
        self._routes_reported = ()
        self.roles.reported = ()
        self._routes_changed()

    # -- advertisements ------------------------------------------------------------------------------------------

    def _become_root(self, sequence: int) -> None:
        self.overlay = Overlay(self.host.address, self.somer.advertisement_period_s)
        self._near.clear()
        self._told.clear()
        self._news.clear()
        self._root_since_s = self.host.now()
        super()._become_root(sequence)
        self._advertised = None
        self._advertised_near = []
        self.host.set_timer(self._stretched(self.somer.advertisement_period_s), ADVERTISE)

    def _greet(self, near: Distances) -> None:
        """The neighbouring roots are these now. All others are told soon of one that they have not been told of, or of
        one that went if no other way to it is known; who was beyond reach until now is told everything."""
        if self._near == dict(near):
            return
        reached_before = self.overlay.vias
        self._near = dict(near)
        self.overlay.set_near(near)
        newcomer = any(root not in self._advertised_near for root in self._near)
        if newcomer or reached_before.keys() != self.overlay.vias.keys():
            self._advertise_soon()
        for root in self._near:
            if root not in reached_before:
                self._tell_all(root)
        self._on_overlay_changed()

    def _on_overlay_changed(self) -> None:
        """Other roots can be reached in other ways than before."""

    def _advertise(self) -> None:
        """The period is over, or the interest has grown: the own entry, and what others have not been told."""
        if self.role != "root":
            return
        period_s = self.somer.advertisement_period_s
        early = self.host.now() < self._advertised_s + period_s
        self._spacing_s = min(2 * self._spacing_s, NEWS_SPACING_MAX_S) if early else NEWS_SPACING_S
        self._look_around()
        self._sequence += 1
        self._advertised = self.effective_interest
        self._advertised_near = list(self._near)
        self._advertised_s = self.host.now()
        self.overlay.expire(self.host.now())
        self._news.clear()
        for root in self._near:
            self._tell(root, [self.host.address, *self.overlay.entries], self._near)
        self.host.set_timer(self._stretched(self.somer.advertisement_period_s), ADVERTISE)

    def _report(self) -> None:
        super()._report()
        interest = self.effective_interest
        if self.role != "root" or interest is None:
            return
        if self._advertised is None or not self._advertised.covers(interest):
            self._advertise_soon()

    def _advertise_soon(self) -> None:
        if self._tells_at_once():
            self.host.set_timer(QUICK_HOLD_S, ADVERTISE)
        else:
            wait_s = self._advertised_s + self._spacing_s - self.host.now()
            self.host.set_timer(max(NEWS_HOLD_S, wait_s), ADVERTISE)

    def _tells_at_once(self) -> bool:
        """Whether news should not wait: everything is new to this root, or news are rare."""
        return self._is_at_rest() or self.host.now() < self._root_since_s + YOUNG_S

    def _is_at_rest(self) -> bool:
        """Whether no neighbour has been missed for long."""
        return self.host.now() >= self._missed_s + REST_PERIODS * self.parameters.refresh_period_s

    def _pass_word(self) -> None:
        news, self._news = self._news, {}
        if self.role != "root":
            return
        self._look_around()
        for neighbour in self._near:
            known_here = [root for root in news if root in self.overlay.entries]
            self._tell(neighbour, [root for root in known_here if neighbour not in news[root]], self._near)

    def _tell(self, neighbour: int, roots: Iterable[int], told: Iterable[int] = ()) -> None:
        """Sends a neighbouring root the entries of `roots` that are news to it; those `told` know them too."""
        next_hop = self.routes.next_hop(neighbour)
        if next_hop is None:
            return
        known = self._told.setdefault(neighbour, {})
        entries: list[Entry] = []
        for root in roots:
            entry = self._own_entry() if root == self.host.address else self.overlay.entries[root]
            if root != neighbour and known.get(root, -1) < entry.sequence:
                known[root] = entry.sequence
                entries.append(entry)
        heard = self.overlay.sequence(neighbour)
        climbs = next_hop not in self.children
        if entries:
            self._told_s[neighbour] = self.host.now()
        for part in _parts(entries):
            self.host.send(next_hop, Advertisement(neighbour, self.host.address, 1, climbs, part, heard, tuple(told)))

    def _own_entry(self) -> Entry:
        near = tuple(self._near.items())
        since_s = self.host.now() - LIFETIME_PERIODS * self.somer.advertisement_period_s
        absorbed = tuple(r for r, agreed_s in self._absorbed.items() if agreed_s >= since_s and self._has_yielded(r))
        return Entry(self.host.address, self._sequence, near, self.effective_interest, self.roles.all(), absorbed)

    def _has_yielded(self, root: int) -> bool:
        """Whether the root of a tree that was to be absorbed is one no more, as far as can be heard from here."""
        heard = self.neighbours.last(root)
        return heard is None or heard.root != root

    def _is_here(self, root: int) -> bool:
        """Whether it can be heard that the root of another tree is now in this one."""
        heard = self.neighbours.last(root)
        return heard is not None and heard.root == self.host.address

    def _on_advertisement(self, sender: int, message: Advertisement) -> None:
        outward = not message.climbs and message.towards != self.root
        if self.role == "root" and not outward:
            if message.via == self.host.address:
                self._retell(message.towards)
            else:
                self._learn(message)
        elif message.hops < HOPS_MAX:
            next_hop = self.routes.next_hop(message.towards, sender) if outward else self.parent
            if next_hop is None:
                self._deny_route(sender)
                next_hop = self.parent  # back to its root
            if next_hop != NOBODY and (next_hop != sender or self._is_at_rest()):
                climbs = next_hop not in self.children
                self.host.send(next_hop, replace(message, hops=message.hops + 1, climbs=climbs))

    def _retell(self, neighbour: int) -> None:
        """What a neighbouring root was told lately did not get there: tell it once more, but not too often."""
        self._told.pop(neighbour, None)
        self._report_routes()  # what made it turn back was reported ahead of it
        wait_s = self._told_s.get(neighbour, 0.0) + NEWS_HOLD_S - self.host.now()
        if neighbour in self._near and (wait_s <= 0.0 or self._is_at_rest()):
            self.host.set_timer(max(0.0, wait_s), ("tell", neighbour))

    def _tell_all(self, neighbour: int) -> None:
        if self.role == "root" and neighbour in self._near:
            self._tell(neighbour, [self.host.address, *self.overlay.entries])

    def _learn(self, message: Advertisement) -> None:
        now = self.host.now()
        at_once = self._tells_at_once()
        changed = False
        known = self._told.setdefault(message.via, {})
        for entry in message.entries:
            if entry.root == self.host.address:
                self._correct(entry)
                continue
            known[entry.root] = max(known.get(entry.root, -1), entry.sequence)
            absorbed_s = self._absorbed.get(entry.root, now)
            if absorbed_s < now - self.parameters.linger_s and entry.sequence > self.overlay.sequence(entry.root):
                del self._absorbed[entry.root]  # it is a root again
            if self.overlay.learn(entry, now, eager=at_once):
                if not self._news:
                    hold_s = QUICK_HOLD_S if at_once else WORD_HOLD_S
                    self.host.set_timer(hold_s * (0.5 + self.host.random.random()), WORD)
                self._news[entry.root] = (message.via, *message.told)
                changed = True
        if changed:
            self._on_overlay_changed()
        lost = message.via in self._near and message.heard < known.get(self.host.address, -1)
        if lost and now >= self._told_s.get(message.via, 0.0) + RETELL_AFTER_S:
            del self._told[message.via]
            self._tell_all(message.via)

    def _correct(self, entry: Entry) -> None:
        """Others hold newer word of this tree than it ever gave, from an earlier life as a root. Whatever it says next
        must be newer still."""
        if entry.sequence > self._sequence:
            self._sequence = entry.sequence
            self.host.set_timer(NEWS_HOLD_S, ADVERTISE)


def _parts(entries: list[Entry]) -> list[tuple[Entry, ...]]:
    """The entries in portions that fit into a frame each."""
    parts: list[tuple[Entry, ...]] = []
    size = ENTRIES_CHARACTERS_MAX
    for entry in entries:
        length = 20 + len(str(entry.interest or "")) + 12 * len(entry.roles) + 4 * len(entry.near)
        size += length
        if size > ENTRIES_CHARACTERS_MAX:
            parts.append(())
            size = length
        parts[-1] = (*parts[-1], entry)
    return parts
