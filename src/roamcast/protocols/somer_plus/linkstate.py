"""Advertisements among roots: every root knows all others and how they are connected (thesis, section 4.3.2).

Each period a root sends its own entry (what its tree wants, its neighbouring roots, its causal nodes) to all
neighbouring roots, together with those entries of others that they have not been told yet. Thus entries flood among all
roots, and each root computes the shortest paths itself (`overlay.py`). In the thesis events follow the reverse of the
path that an advertisement took, which is only as fresh as the last advertisement.

*Early updates* (`early_news`). Some updates do not wait for the next period: a new tree, one that has absorbed another,
wants more than before, or gains or loses a neighbouring tree. They are relayed to the neighbours that the sender has
not told itself. An advertisement names those it has told (`told`), because the neighbours in the sender's last entry
may be out of date. A root whose interest grows beyond what it said last, or that has a neighbour it did not name then,
advertises before its time. Where neighbours come and go, updates wait for further ones (`relay_hold_s`), and the time
between two early entries doubles from `news_spacing_s` to `news_spacing_max_s`.

*At rest* (`rest_rules`). A young root, and one that has missed no neighbour for `rest_periods`, sends updates after
`quick_hold_s`. In a network at rest every root knows of a change before the links that it replaces end.

An interest that shrinks waits for the period: until then some events are sent without need. A root that comes within
reach is sent all entries. An advertisement that cannot go on returns to its root and is told again. It also says which
entry of the receiver the sender knows, so that one lost otherwise is noticed.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from msgspec.structs import replace
from mypy_extensions import mypyc_attr

from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Timer
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import jittered
from roamcast.protocols.somer_plus.borders import Borders
from roamcast.protocols.somer_plus.messages import Advertisement, Distances, Entry
from roamcast.protocols.somer_plus.overlay import Overlay
from roamcast.protocols.somer_plus.parameters import SomerPlusParameters
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.membership import Membership
from roamcast.protocols.trees.messages import Path
from roamcast.protocols.trees.standing import SEQUENCE_MAX


class LinkStateTimer(StrEnum):
    ADVERTISE = "linkstate.advertise"  # the own entry is due
    RELAY = "linkstate.relay"  # updates of other roots are relayed
    TELL = "linkstate.tell"  # a neighbouring root that missed something is told everything; key: its address


ADVERTISE: Final[Timer] = (LinkStateTimer.ADVERTISE, 0)
RELAY: Final[Timer] = (LinkStateTimer.RELAY, 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkStates(Component):
    def __init__(
        self,
        host: Host,
        parameters: SomerPlusParameters,
        membership: Membership,
        borders: Borders,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self.overlay = self._empty_overlay(host, parameters)
        self.absorbed: dict[int, float] = {}  # root of a tree that this one has agreed to absorb -> when
        self.root_since_s = -parameters.young_s
        self.on_changed: Callable[[], None] = _ignore_change  # paths to other roots have changed
        self._parameters = parameters
        self._membership = membership
        self._place = membership.place
        self._children = membership.children
        self.borders = borders
        self._dissemination = dissemination
        self._near: dict[int, int] = {}  # neighbouring root -> hops
        self._told: dict[int, dict[int, int]] = {}  # root that is or was near -> root -> newest sequence it knows of
        self._news: dict[int, Path] = {}  # root whose entry changed and was not relayed yet -> who knows already
        self._told_s: dict[int, float] = {}  # neighbouring root -> when it was last told something
        self._sequence = 0  # of own advertisements
        self._advertised: Interest | None = None
        self._advertised_near: list[int] = []  # roots that were named as neighbours then
        self._advertised_s = -parameters.news_spacing_s
        self._spacing_s = parameters.news_spacing_s
        borders.on_near = self._greet
        dissemination.on_interest_reported = self._interest_reported

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Advertisement, self._on_advertisement)
        inputs.on_timer(LinkStateTimer.ADVERTISE, self._advertise)
        inputs.on_timer(LinkStateTimer.RELAY, self._relay)
        inputs.on_timer(LinkStateTimer.TELL, self._tell_all)

    def _empty_overlay(self, host: Host, parameters: SomerPlusParameters) -> Overlay:
        lifetime_s = parameters.entry_lifetime_periods * parameters.advertisement_period_s
        return Overlay(host.address, lifetime_s, parameters.advertisement_period_s, parameters.legs_depth_max)

    # -- role ----------------------------------------------------------------------------------------------------

    def becoming_root(self) -> None:
        self.overlay = self._empty_overlay(self.host, self._parameters)
        self._near.clear()
        self._told.clear()
        self._news.clear()
        self.root_since_s = self.host.now()

    def became_root(self) -> None:
        self._advertised = None
        self._advertised_near = []
        self._wait_for_period()

    def is_at_rest(self) -> bool:
        """Whether no neighbour has been missed for long."""
        periods_s = self._parameters.rest_periods * self._parameters.refresh_period_s
        return self._parameters.rest_rules and self.host.now() >= self.borders.missed_s + periods_s

    def _tells_at_once(self) -> bool:
        """Whether updates should go out at once: all is new to this root, or updates are infrequent."""
        return self.is_at_rest() or self.host.now() < self.root_since_s + self._parameters.young_s

    def is_merged(self, root: int) -> bool:
        """Whether this tree has absorbed another, and its root can be heard to be in this one now."""
        heard = self._membership.neighbours.last(root)
        return root in self.absorbed and heard is not None and heard.root == self.host.address

    def agree_to_absorb(self, root: int) -> None:
        if self._parameters.heirs:
            self.absorbed[root] = self.host.now()
            self.overlay.dismiss(root)

    # -- telling -------------------------------------------------------------------------------------------------

    def _greet(self, near: Distances) -> None:
        """The neighbouring roots are these now. All others are told soon of one that they have not been told of, or of
        one that went if no other path to it is known; a root that was out of reach until now is told everything."""
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
        self.on_changed()

    def _wait_for_period(self) -> None:
        self.host.set_timer(self._membership.stretched(self._parameters.advertisement_period_s), ADVERTISE)

    def _advertise(self, key: int) -> None:
        """The period is over, or there are news: the own entry, and what others have not been told."""
        if self._place.role != "root":
            return
        parameters = self._parameters
        early = self.host.now() < self._advertised_s + parameters.advertisement_period_s
        doubled_s = min(2 * self._spacing_s, parameters.news_spacing_max_s)
        self._spacing_s = doubled_s if early else parameters.news_spacing_s
        self.borders.look_around()
        self._sequence = self._sequence + 1 if self._sequence < SEQUENCE_MAX else 1
        self._advertised = self._dissemination.effective_interest
        self._advertised_near = list(self._near)
        self._advertised_s = self.host.now()
        self.overlay.expire(self.host.now())
        self._news.clear()
        for root in self._near:
            self._tell(root, [self.host.address, *self.overlay.entries], self._near)
        self._wait_for_period()

    def _interest_reported(self) -> None:
        interest = self._dissemination.effective_interest
        if self._place.role != "root" or interest is None:
            return
        if self._advertised is None or not self._advertised.covers(interest):
            self._advertise_soon()

    def _advertise_soon(self) -> None:
        if not self._parameters.early_news:
            return
        if self._tells_at_once():
            self.host.set_timer(self._parameters.quick_hold_s, ADVERTISE)
        else:
            wait_s = self._advertised_s + self._spacing_s - self.host.now()
            self.host.set_timer(max(self._parameters.news_hold_s, wait_s), ADVERTISE)

    def _relay(self, key: int) -> None:
        news, self._news = self._news, {}
        if self._place.role != "root":
            return
        self.borders.look_around()
        for neighbour in self._near:
            known_here = [root for root in news if root in self.overlay.entries]
            self._tell(neighbour, [root for root in known_here if neighbour not in news[root]], self._near)

    def _tell(self, neighbour: int, roots: Iterable[int], told: Iterable[int] = ()) -> None:
        """Sends a neighbouring root the entries of `roots` that are new to it; those `told` know them too."""
        next_hop = self.borders.routes.next_hop(neighbour)
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
        climbs = next_hop not in self._children
        if entries:
            self._told_s[neighbour] = self.host.now()
        empty = Advertisement(
            towards=neighbour,
            via=self.host.address,
            hops=1,
            climbs=climbs,
            entries=(),
            heard=heard,
            told=tuple(told),
        )
        for batch in batches(entries, encoded_bytes, room_bytes(self.host, empty)):
            self.host.send(next_hop, replace(empty, entries=tuple(batch)))

    def _own_entry(self) -> Entry:
        lifetime_s = self._parameters.entry_lifetime_periods * self._parameters.advertisement_period_s
        since_s = self.host.now() - lifetime_s
        absorbed = tuple(r for r, agreed_s in self.absorbed.items() if agreed_s >= since_s and self._has_yielded(r))
        return Entry(
            root=self.host.address,
            sequence=self._sequence,
            near=tuple(self._near.items()),
            interest=self._dissemination.effective_interest,
            roles=self.borders.roles.all(),
            absorbed=absorbed,
        )

    def _has_yielded(self, root: int) -> bool:
        """Whether the root of a tree that was to be absorbed is one no more, as far as can be heard from here."""
        heard = self._membership.neighbours.last(root)
        return heard is None or heard.root != root

    def _retell(self, neighbour: int) -> None:
        """What a neighbouring root was told lately did not get there: tell it once more, but not too often."""
        self._told.pop(neighbour, None)
        self.borders.report()  # what made it turn back was reported ahead of it
        wait_s = self._told_s.get(neighbour, 0.0) + self._parameters.news_hold_s - self.host.now()
        if neighbour in self._near and (wait_s <= 0.0 or self.is_at_rest()):
            self.host.set_timer(max(0.0, wait_s), (LinkStateTimer.TELL, neighbour))

    def _tell_all(self, neighbour: int) -> None:
        if self._place.role == "root" and neighbour in self._near:
            self._tell(neighbour, [self.host.address, *self.overlay.entries])

    # -- being told ----------------------------------------------------------------------------------------------

    def _on_advertisement(self, sender: int, message: Advertisement) -> None:
        outward = not message.climbs and message.towards != self._place.root
        if self._place.role == "root" and not outward:
            if message.via == self.host.address:
                self._retell(message.towards)
            else:
                self._learn(message)
        elif message.hops < self._parameters.path_max:
            next_hop = self.borders.routes.next_hop(message.towards, sender) if outward else self._place.parent
            if next_hop is None:
                self.borders.deny_route(sender)
                next_hop = self._place.parent  # back to its root
            if next_hop != NOBODY and (next_hop != sender or self.is_at_rest()):
                climbs = next_hop not in self._children
                self.host.send(next_hop, replace(message, hops=message.hops + 1, climbs=climbs))

    def _learn(self, message: Advertisement) -> None:
        now = self.host.now()
        at_once = self._tells_at_once()
        changed = False
        if message.via not in self._told and len(self._told) >= self._parameters.entries_max:
            return
        known = self._told.setdefault(message.via, {})
        for entry in message.entries:
            if entry.root == self.host.address:
                self._correct(entry)
            elif self._has_room_for(entry.root):
                known[entry.root] = max(known.get(entry.root, -1), entry.sequence)
                self._forget_absorption(entry, now)
                if self.overlay.learn(entry, now, eager=at_once):
                    self._note_news(entry.root, (message.via, *message.told), at_once)
                    changed = True
        if changed:
            self.on_changed()
        lost = message.via in self._near and message.heard < known.get(self.host.address, -1)
        if lost and now >= self._told_s.get(message.via, 0.0) + self._parameters.retell_after_s:
            del self._told[message.via]
            self._tell_all(message.via)

    def _has_room_for(self, root: int) -> bool:
        return root in self.overlay.entries or len(self.overlay.entries) < self._parameters.entries_max

    def _forget_absorption(self, entry: Entry, now_s: float) -> None:
        """The root of a tree that was absorbed is one again."""
        absorbed_s = self.absorbed.get(entry.root, now_s)
        news = entry.sequence > self.overlay.sequence(entry.root)
        if absorbed_s < now_s - self._parameters.linger_s and news:
            del self.absorbed[entry.root]

    def _note_news(self, root: int, told: Path, at_once: bool) -> None:
        if not self._news:
            hold_s = self._parameters.quick_hold_s if at_once else self._parameters.relay_hold_s
            self.host.set_timer(jittered(hold_s, self._parameters.relay_hold_jitter, self.host.random), RELAY)
        self._news[root] = told

    def _correct(self, entry: Entry) -> None:
        """Others hold a newer entry of this tree than it ever sent, from an earlier life as a root. Whatever it says
        next must be newer still."""
        if self._sequence < entry.sequence < SEQUENCE_MAX:
            self._sequence = entry.sequence
            self.host.set_timer(self._parameters.news_hold_s, ADVERTISE)


def _ignore_change() -> None:
    """Until `Crossings` is there."""
