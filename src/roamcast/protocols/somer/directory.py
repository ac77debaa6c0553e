"""Section 4.3.2, inter-tree overlay event routing: what a root knows of all other roots.

Roots act as super publishers and subscribers. Each `advertisement_period_s` a root floods an advertisement among all
roots: the effective subscriptions and publications of its tree. A root r0 that gets the advertisement of r2 through its
neighbour r1 remembers r2's interests, and r1 as the next root on the path to r2. So events follow the reverse of the
path that the advertisement took. Of several copies the one that passed the fewest roots counts.

How the flood travels. From root to neighbouring root an advertisement descends along the route of section 4.3.2,
crosses the border, and climbs to whatever root is there. A root relays what is new to it, that is each first copy of an
advertisement, after `relay_hold_s` to all neighbours that have not sent it a copy by then. What arrives meanwhile goes
with it.

A root forgets another that has not been heard of for `entry_lifetime_periods`. Sequence numbers only order the entries
of one root within that time: a forged number is forgotten with its entry.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from mypy_extensions import mypyc_attr

from roamcast.causal import Role
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import NOBODY, Host, Timer
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.jitter import jittered
from roamcast.protocols.somer.announcements import Announcements
from roamcast.protocols.somer.messages import Advertisement, Entry
from roamcast.protocols.somer.parameters import SomerParameters
from roamcast.protocols.somer.routes import BorderRoutes
from roamcast.protocols.trees.dissemination import Dissemination
from roamcast.protocols.trees.standing import SEQUENCE_MAX


class DirectoryTimer(StrEnum):
    ADVERTISE = "directory.advertise"  # the root's own advertisement is due
    RELAY = "directory.relay"  # what was learned goes on to the other neighbouring roots


ADVERTISE: Final[Timer] = (DirectoryTimer.ADVERTISE, 0)
RELAY: Final[Timer] = (DirectoryTimer.RELAY, 0)


class KnownRoot(NamedTuple):
    """Another root."""

    entry: Entry
    via: int  # the neighbouring root through which its advertisement came
    roots: int  # how many roots that passed
    heard_s: float


@mypyc_attr(allow_interpreted_subclasses=True)
class Directory(Component):
    def __init__(
        self,
        host: Host,
        parameters: SomerParameters,
        routes: BorderRoutes,
        announcements: Announcements,
        dissemination: Dissemination,
    ) -> None:
        super().__init__(host)
        self._parameters = parameters
        self._routes = routes
        self._announcements = announcements
        self._dissemination = dissemination
        self._place = dissemination.place
        self._lifetime_s = parameters.entry_lifetime_periods * parameters.advertisement_period_s * (
            1 + parameters.jitter
        )
        self._known: dict[int, KnownRoot] = {}  # by root
        self._news: dict[int, list[int]] = {}  # roots whose entries are to be relayed -> neighbours that have them
        self._sequence = 0  # of own entries

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Advertisement, self._on_advertisement)
        inputs.on_timer(DirectoryTimer.ADVERTISE, self._advertise)
        inputs.on_timer(DirectoryTimer.RELAY, self._relay)

    # -- what others ask -----------------------------------------------------------------------------------------

    def wanting(self, event: Event) -> list[int]:
        """The roots whose trees want the event."""
        since_s = self.host.now() - self._lifetime_s
        found: list[int] = []
        for root, known in self._known.items():
            interest = known.entry.subscriptions
            if known.heard_s >= since_s and interest is not None and interest.matches(event):
                found.append(root)
        return found

    def next_root(self, root: int) -> int:
        """The neighbouring root on the path to that one, or `NOBODY`."""
        known = self._known.get(root)
        if known is None or known.heard_s < self.host.now() - self._lifetime_s:
            return NOBODY
        return known.via

    def publications(self, root: int) -> Interest | None:
        """What that root's tree publishes."""
        known = self._known.get(root)
        return None if known is None else known.entry.publications

    def subscriptions(self, root: int) -> Interest | None:
        """What that root's tree wants."""
        known = self._known.get(root)
        return None if known is None else known.entry.subscriptions

    def roots(self) -> list[int]:
        """The other roots that are known, ascending."""
        return sorted(self._known)

    def roles(self) -> dict[int, Role]:
        """The causal nodes of all other trees."""
        return {node: role for known in self._known.values() for node, role in known.entry.roles}

    # -- telling -------------------------------------------------------------------------------------------------

    def became_root(self) -> None:
        self._known.clear()
        self._news.clear()
        self.host.set_timer(self._parameters.first_advertisement_s, ADVERTISE)

    def _advertise(self, key: int) -> None:
        """The period is over: the own entry, and what waits to be relayed."""
        if self._place.role != "root":
            return
        self._expire()
        self._sequence = self._sequence + 1 if self._sequence < SEQUENCE_MAX else 1
        news, self._news = self._news, {}
        own = Entry(
            self.host.address,
            self._sequence,
            self._dissemination.effective_interest,
            self._announcements.publications,
            self._announcements.roles,
        )
        for neighbour in self._routes.neighbouring_roots():
            self._tell(neighbour, [(own, 0), *self._to_relay(news, neighbour)])
        delay_s = self._parameters.stretched(self._parameters.advertisement_period_s, self.host.random)
        self.host.set_timer(delay_s, ADVERTISE)

    def _relay(self, key: int) -> None:
        news, self._news = self._news, {}
        if self._place.role == "root":
            for neighbour in self._routes.neighbouring_roots():
                self._tell(neighbour, self._to_relay(news, neighbour))

    def _to_relay(self, news: dict[int, list[int]], neighbour: int) -> list[tuple[Entry, int]]:
        """The entries that this neighbour lacks, as far as is known here."""
        found: list[tuple[Entry, int]] = []
        for root, told_by in news.items():
            known = self._known.get(root)
            if known is not None and neighbour not in told_by and root != neighbour:
                found.append((known.entry, known.roots + 1))
        return found

    def _tell(self, neighbour: int, entries: list[tuple[Entry, int]]) -> None:
        next_hop = self._routes.next_hop(neighbour)
        if next_hop == NOBODY:
            return
        climbs = next_hop not in self._dissemination.children
        room = room_bytes(self.host, Advertisement(neighbour, self.host.address, climbs, 1, ()))
        for batch in batches(entries, encoded_bytes, room, self._parameters.entries_per_advertisement):
            self.host.send(next_hop, Advertisement(neighbour, self.host.address, climbs, 1, tuple(batch)))

    # -- being told ----------------------------------------------------------------------------------------------

    def _on_advertisement(self, sender: int, message: Advertisement) -> None:
        outward = not message.climbs and message.towards != self._place.root
        if self._place.role == "root" and not outward:
            if message.via != self.host.address:
                self._learn(message)
        elif message.hops < self._parameters.path_max:
            next_hop = self._routes.next_hop(message.towards) if outward else self._place.parent
            if next_hop not in (NOBODY, sender):
                climbs = next_hop not in self._dissemination.children
                onward = Advertisement(message.towards, message.via, climbs, message.hops + 1, message.entries)
                self.host.send(next_hop, onward)

    def _learn(self, message: Advertisement) -> None:
        now = self.host.now()
        for entry, roots in message.entries:
            if entry.root in (self.host.address, NOBODY) or roots >= self._parameters.entries_max:
                continue
            known = self._known.get(entry.root)
            if known is None:
                if len(self._known) >= self._parameters.entries_max:
                    continue
                self._put(entry, message.via, roots)
            elif entry.sequence > known.entry.sequence or known.heard_s < now - self._lifetime_s:
                self._put(entry, message.via, roots)
            elif entry.sequence == known.entry.sequence:
                if entry.root in self._news:
                    self._news[entry.root].append(message.via)
                if roots < known.roots:
                    self._known[entry.root] = known._replace(via=message.via, roots=roots)

    def _put(self, entry: Entry, via: int, roots: int) -> None:
        self._known[entry.root] = KnownRoot(entry, via, roots, self.host.now())
        if not self._news:
            parameters = self._parameters
            delay_s = jittered(parameters.relay_hold_s, parameters.relay_hold_jitter, self.host.random)
            self.host.set_timer(delay_s, RELAY)
        self._news[entry.root] = [via]

    def _expire(self) -> None:
        since_s = self.host.now() - self._lifetime_s
        for root in [root for root, known in self._known.items() if known.heard_s < since_s]:
            del self._known[root]
