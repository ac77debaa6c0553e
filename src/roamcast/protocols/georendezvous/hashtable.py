"""Cell Hash Routing as a distributed hash table: `put` and `get` by key, kept by cells rather than by nodes.

Theory of operation
-------------------
A key is hashed to a point of the area. The home of that point (`routing.py`) keeps what is put under the key: a set of
*entries*, one per owner and slot, of which the newer version replaces the older. Two copies of a key can be merged in
any order with the same result, so nodes need not agree on anything.

Everything is soft state: an entry lives as long as it was put for, and at most `lifetime_max_s`.

Nodes die and move; the key must outlive them:

1. *Members*: the node that takes an entry at home broadcasts it once (`Replica`). All members of the cell hear it and
   keep it too; so do all members of the cells around it (`Graph.near`), as backups. With `keepers_per_key`, only some
   members of each cell do (2.2: keys inside a cell can be divided by the nodes), and a packet that arrives at another
   member goes one hop further.
2. *Entering*: the *custodian* of a key, the keeper with the lowest address, sends the key to each newcomer.
3. *Leaving*: the last one to leave a cell routes what it keeps to the home of each key (`Handover`), which is now
   another cell. A node that is told to go does the same before it goes.
4. *Dying*: when the last member of a cell falls silent, a neighbour routes the backup to the new home. The first to do
   so is a node that hears no neighbour closer to the key, as it is likely to be that home. The others do if they do not
   hear from a new home for `rescue_patience_s`. Each waits a random time before.
   Where keys are divided, a backup that its home has not repeated for long is handed over too.
5. *Populating*: when a node is heard in a cell that is closer to a key's point than the present home, the custodian
   hands the key over. A closer cell out of range is found by a handover each `verification_period_s`: it tours the
   empty cell again, and comes back if nothing has changed. A new home out of range tells the former one (`Moved`).
6. *Repeating*: broadcasts get lost, so the custodian repeats what was not broadcast for `custody_period_s`. If it does
   not, it has missed the key itself, and another member does.

A node forgets keys of cells that it is no longer near. So a key survives as long as there is a node in its cell or next
to it, up to the time that it takes to notice.

What a payload means is up to the component that registered for it (`receive`); who wants to know of changes to shelves
registers with `watch`.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

from roamcast.errors import CallerError
from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.batches import batches, encoded_bytes, room_bytes
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.georendezvous.cells import Cell, touching
from roamcast.protocols.georendezvous.messages import (
    ENTRIES_MAX,
    PLAIN,
    VALUE_BYTES_MAX,
    Advertisement,
    AnyPayload,
    Entry,
    Found,
    Get,
    Handover,
    Leg,
    Moved,
    MovedNearby,
    Prune,
    Put,
    Replica,
    Subscription,
)
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.routing import CellRouter, RouterListener
from roamcast.protocols.georendezvous.steering import closer
from roamcast.protocols.georendezvous.store import EntryStore, Shelf, StoredEntry
from roamcast.protocols.jitter import jittered

PACKET_BYTES: Final = 80
"""What a packet with one leg, on a tour, adds to its payload."""

NEVER_S: Final = float("inf")


class TableTimer(StrEnum):
    CUSTODY = "georendezvous.custody"  # time to expire, verify and repeat what this node keeps
    RESCUE = "georendezvous.rescue"  # time to hand over backups of cells that died out


_CUSTODY: Final[Timer] = (TableTimer.CUSTODY.value, 0)
_RESCUE: Final[Timer] = (TableTimer.RESCUE.value, 0)

StoredWatcher = Callable[[Shelf, Entry, StoredEntry | None], None]
ClaimedWatcher = Callable[[Shelf], None]
ExpiredWatcher = Callable[[Shelf, StoredEntry], None]


class CellHashTable(Component, RouterListener):
    def __init__(self, host: Host, parameters: CellHashParameters) -> None:
        super().__init__(host)
        self.router = CellRouter(host, parameters, self)
        self.store = EntryStore(parameters)
        self.found: dict[int, list[Entry]] = {}  # by the number of a `get`: its answers so far
        self._parameters = parameters
        self._keepers_max = parameters.keepers_per_key
        self._version = 0
        self._requests = 0
        self._receivers: dict[Any, Callable[[Any, int, int], None]] = {}
        self._beats: list[Callable[[], None]] = []
        self._on_stored: list[StoredWatcher] = []
        self._on_claimed: list[ClaimedWatcher] = []
        self._on_expired: list[ExpiredWatcher] = []
        for kind in (Put, Advertisement, Subscription, Prune):
            self.receive(kind, self._on_put)
        self.receive(Handover, self._on_handover)
        self.receive(Moved, self._on_moved_here)
        self.receive(Get, self._on_get)
        self.receive(Found, self._on_found)

    def declare(self, inputs: Inputs) -> None:
        inputs.on(Replica, self._on_replica)
        inputs.on(MovedNearby, self._on_moved_nearby)
        inputs.on_timer(TableTimer.CUSTODY, self._take_care)
        inputs.on_timer(TableTimer.RESCUE, self._rescue)

    def start(self) -> None:
        self.router.start()
        parameters = self._parameters
        first_s = jittered(parameters.custody_period_s, 2 * parameters.jitter, self.host.random)
        self.host.set_timer(first_s, _CUSTODY)

    # -- For siblings --------------------------------------------------------------------------------------------

    def receive(self, kind: type[AnyPayload], handler: Callable[[Any, int, int], None]) -> None:
        """`handler(payload, point, hops)` takes payloads of this type that arrive here."""
        self._receivers[kind] = handler

    def watch(self, stored: StoredWatcher, claimed: ClaimedWatcher, expired: ExpiredWatcher) -> None:
        """`stored(shelf, entry, before)`: this node took an entry at the home of its key; `before` was kept until now.
        `claimed(shelf)`: this node took a packet at a new home of the key, which holds all that the shelf holds.
        `expired(shelf, kept)`: as the custodian at the home, the entry's lifetime has ended."""
        self._on_stored.append(stored)
        self._on_claimed.append(claimed)
        self._on_expired.append(expired)

    def each_beat(self, handler: Callable[[], None]) -> None:
        """`handler()` runs each time this node has checked where it is."""
        self._beats.append(handler)

    def put(
        self,
        key: str,
        value: bytes | None,
        lifetime_s: float | None = None,
        slot: int = PLAIN,
        message: type[Put] = Put,
    ) -> None:
        """Keeps `value` under `key`, in this node's own slot; `None` withdraws what was there. Without a lifetime it is
        kept for `lifetime_max_s`."""
        if value is not None and len(value) > VALUE_BYTES_MAX:
            raise CallerError(f"put: value of {len(value)} bytes; allowed: {VALUE_BYTES_MAX}")
        self._version = max(self._version + 1, int(self.host.now() * 1000))
        longest_s = self._parameters.lifetime_max_s
        lifetime_s = longest_s if lifetime_s is None else min(lifetime_s, longest_s)
        entry = Entry(self.host.address, slot, self._version, lifetime_s, value)
        self.router.send_to_place(self.router.target(key), message(key, (entry,)))

    def get(self, key: str) -> int:
        """Asks for what is kept under `key`; the answers are collected in `found` under the number returned."""
        self._requests += 1
        self.found[self._requests] = []
        if len(self.found) > self._parameters.requests_max:
            del self.found[next(iter(self.found))]
        request = Get(key, self._requests, self.host.address, self.router.here)
        self.router.send_to_place(self.router.target(key), request)
        return self._requests

    def leave(self) -> None:
        self.router.say_goodbye()
        if not self.router.neighbourhood.members(self.router.cell):
            for shelf in self._ours():
                for handover in self._handovers(shelf):
                    self.router.send_away(self.router.target(shelf.key), handover)

    # -- What the router says ------------------------------------------------------------------------------------

    def on_arrival(self, payload: AnyPayload, leg: Leg, hops: int) -> None:
        if leg.addressee < 0 and self._keepers_max and payload.key_at(leg.point):
            keepers = self._keepers(payload.key_at(leg.point))
            if self.host.address not in keepers:
                keeper = keepers[0]
                at = self.router.neighbourhood.nodes[keeper].vertex
                self.router.send((Leg(at, keeper, leg.point),), payload, hops)
                return
        handler = self._receivers.get(type(payload))
        if handler is not None:
            handler(payload, leg.point, hops)

    def is_home(self, payload: AnyPayload, point: int) -> bool:
        if isinstance(payload, Handover) and payload.origin == self.router.cell:
            return False  # its purpose is to find out
        key = payload.key_at(point)
        shelf = self.store.shelf(key) if key else None
        return shelf is not None and shelf.home == self.router.cell

    def on_cell_changed(self, before: Cell) -> None:
        here = self.router.cell
        hands_over = self._keepers_max > 0 or not self.router.neighbourhood.members(before)
        for shelf in self.store:
            if shelf.home == before and hands_over:
                self._hand_over(shelf)
            if shelf.home != here and not self.router.graph.near(here, shelf.home):
                self.store.forget(shelf.key)

    def on_neighbour_moved(self, address: int, before: Cell | None, after: Cell | None) -> None:
        here = self.router.cell
        if before is not None and before != here and self.router.graph.near(here, before):
            self._look_for_orphans(before)
        if after == here:
            for shelf in self._ours():
                if self._is_custodian(shelf.key, newcomer=address) and self._is_for(shelf.key, address):
                    self._tell(shelf, shelf.entries(self.host.now()), newcomer=address)
        elif after is not None:
            vertex = self.router.neighbourhood.nodes[address].vertex
            for shelf in self._ours():
                target = self.router.target(shelf.key)
                if closer(vertex, self.router.here, target) and self._is_custodian(shelf.key):
                    self._hand_over(shelf, not_within_s=self._parameters.handover_gap_s)

    def on_beat(self) -> None:
        for beat in self._beats:
            beat()

    # -- Keeping -------------------------------------------------------------------------------------------------

    def _on_put(self, put: Put, point: int, hops: int) -> None:
        self._keep(put.key, put.entries)

    def _on_handover(self, handover: Handover, point: int, hops: int) -> None:
        self._keep(handover.key, handover.entries)
        origin = handover.origin
        if origin is not None and not touching(origin, self.router.cell):  # a cell that touches has heard the broadcast
            centre = self.router.grid.centre(origin)
            moved = Moved(handover.key, origin, self.router.cell)
            self.router.send_to_place(self.router.graph.vertex(centre), moved)

    def _keep(self, key: str, entries: Iterable[Entry]) -> None:
        """This cell is the home of `key`: keeps the entries, tells the members, tells the watchers what is new."""
        now_s = self.host.now()
        is_new = key not in self.store
        shelf = self.store.open(key, self.router.cell)
        if shelf is None:
            return
        claimed = is_new or shelf.home != self.router.cell
        shelf.home = self.router.cell
        before = dict(shelf.kept)
        fresh = [entry for entry in entries if self.store.merge(shelf, entry, now_s)]
        if not shelf.kept:
            self.store.forget(key)
            return
        if claimed:
            self.host.structure("home", detail=f"{key} {shelf.home[0]} {shelf.home[1]}")
        if fresh or claimed:
            self._tell(shelf, shelf.entries(now_s) if claimed else fresh)
        if claimed:
            for tell_claimed in self._on_claimed:
                tell_claimed(shelf)
            return
        for entry in fresh:
            for tell_stored in self._on_stored:
                tell_stored(shelf, entry, before.get((entry.owner, entry.slot)))

    def _tell(self, shelf: Shelf, entries: Iterable[Entry], newcomer: int | None = None) -> None:
        for batch in self._batches(entries, Replica(shelf.home, shelf.key, ())):
            replica = Replica(shelf.home, shelf.key, tuple(batch))
            if newcomer is None:
                shelf.repeated_s = self.host.now()
                self.host.broadcast(replica)
            else:
                self.host.send(newcomer, replica)

    def _on_replica(self, sender: int, replica: Replica) -> None:
        here = self.router.cell
        if not self.router.graph.near(here, replica.home):
            self._on_moved(Moved(replica.key, here, replica.home))
            return
        if replica.key not in self.store and not self._is_for(replica.key, self.host.address):
            return
        now_s = self.host.now()
        shelf = self.store.open(replica.key, replica.home)
        if shelf is None:
            return
        shelf.home = replica.home
        for entry in replica.entries:
            self.store.merge(shelf, entry, now_s)
        shelf.repeated_s = now_s
        if not shelf.kept:
            self.store.forget(replica.key)

    def _on_moved_here(self, moved: Moved, point: int, hops: int) -> None:
        self._on_moved(moved)
        self.host.broadcast(MovedNearby(moved))

    def _on_moved_nearby(self, sender: int, message: MovedNearby) -> None:
        self._on_moved(message.moved)

    def _on_moved(self, moved: Moved) -> None:
        shelf = self.store.shelf(moved.key)
        if shelf is not None and shelf.home == moved.origin:
            shelf.home = moved.home
            if not self.router.graph.near(self.router.cell, moved.home):
                self.store.forget(moved.key)

    def _on_get(self, question: Get, point: int, hops: int) -> None:
        shelf = self.store.shelf(question.key)
        entries = () if shelf is None else shelf.entries(self.host.now())
        present = [entry for entry in entries if entry.value is not None]
        for batch in self._batches(present, Found(question.key, question.request, ())) or [[]]:
            found = Found(question.key, question.request, tuple(batch))
            self.router.send_to_node(question.asker, question.asker_at, found)

    def _on_found(self, found: Found, point: int, hops: int) -> None:
        answers = self.found.get(found.request)
        if answers is not None and len(answers) < self._parameters.entries_max:
            answers.extend(found.entries)

    # -- Custody -------------------------------------------------------------------------------------------------

    def _take_care(self, key: int) -> None:
        now_s = self.host.now()
        period_s = self._parameters.custody_period_s
        for shelf, kept in self.store.expire(now_s):
            if shelf.home == self.router.cell and self._is_custodian(shelf.key):
                for tell_expired in self._on_expired:
                    tell_expired(shelf, kept)
        for shelf in self._ours():
            in_charge = self._is_custodian(shelf.key)
            if in_charge and self.router.target(shelf.key) != self.router.here:
                self._hand_over(shelf, not_within_s=self._parameters.verification_period_s)
            patience_s = period_s * (1.0 if in_charge else self._parameters.custody_patience)
            if shelf.repeated_s < now_s - patience_s:
                self._tell(shelf, shelf.entries(now_s))
        if self._keepers_max:
            self._rescue_from_silence(now_s - 2 * self._parameters.custody_patience * period_s)
        self.host.set_timer(jittered(period_s, self._parameters.jitter, self.host.random), _CUSTODY)

    def _rescue_from_silence(self, limit_s: float) -> None:
        """Where keys are divided, a cell may lose the keepers of a key and still have members: a backup that has not
        been repeated since `limit_s` is handed over."""
        for shelf in self.store:
            if shelf.home != self.router.cell and shelf.repeated_s < limit_s:
                self._hand_over(shelf, not_within_s=self.host.now() - limit_s)

    def _ours(self) -> Iterator[Shelf]:
        """What this cell is the home of."""
        return (shelf for shelf in self.store if shelf.home == self.router.cell)

    def _keepers(self, key: str, newcomer: int | None = None) -> list[int]:
        """The members of this node's cell that keep a key, this node included if it does."""
        members = [member for member in self.router.neighbourhood.members(self.router.cell) if member != newcomer]
        members.append(self.host.address)
        if self._keepers_max and len(members) > self._keepers_max:
            members.sort(key=lambda member: _rank(key, member))
            del members[self._keepers_max :]
        return members

    def _is_custodian(self, key: str, newcomer: int | None = None) -> bool:
        if self._keepers_max:
            return min(self._keepers(key, newcomer)) == self.host.address
        members = self.router.neighbourhood.members(self.router.cell)
        return all(self.host.address < member for member in members if member != newcomer)

    def _is_for(self, key: str, member: int) -> bool:
        """Whether a member of this node's cell is to keep a key."""
        return not self._keepers_max or member in self._keepers(key)

    def _is_orphan(self, shelf: Shelf) -> bool:
        home = shelf.home
        return home != self.router.cell and not self.router.neighbourhood.members(home)

    def _look_for_orphans(self, cell: Cell) -> None:
        if not self.router.neighbourhood.members(cell) and any(shelf.home == cell for shelf in self.store):
            parameters = self._parameters
            self.host.set_timer(
                self.host.random.uniform(parameters.rescue_after_s, parameters.rescue_within_s), _RESCUE
            )

    def _rescue(self, key: int) -> None:
        now_s = self.host.now()
        patience_s = self._parameters.rescue_patience_s
        others_first = False
        for shelf in self.store:
            if not self._is_orphan(shelf):
                shelf.orphaned_s = NEVER_S
                continue
            shelf.orphaned_s = min(shelf.orphaned_s, now_s)
            if self.router.is_closest(shelf.key) or now_s - shelf.orphaned_s >= patience_s:
                self._hand_over(shelf, not_within_s=patience_s)
            else:
                others_first = True
        if others_first:
            longer = 1 + 2 * self._parameters.jitter * self.host.random.random()
            self.host.set_timer(longer * patience_s, _RESCUE)

    def _handovers(self, shelf: Shelf) -> Iterator[Handover]:
        origin = shelf.home if shelf.home == self.router.cell else None
        for batch in self._batches(shelf.entries(self.host.now()), Handover(shelf.key, (), origin)):
            yield Handover(shelf.key, tuple(batch), origin)

    def _batches(self, entries: Iterable[Entry], message: Message) -> list[list[Entry]]:
        """The entries, as many at a time as fit a frame with `message`, which is sent as it is or in a packet."""
        room = room_bytes(self.host, message) - PACKET_BYTES
        return batches(entries, encoded_bytes, room, ENTRIES_MAX)

    def _hand_over(self, shelf: Shelf, not_within_s: float = 0.0) -> None:
        """Sends the shelf to the home of its key, unless this node did so a moment ago."""
        now_s = self.host.now()
        if now_s - shelf.handed_s < not_within_s:
            return
        shelf.handed_s = now_s
        for handover in self._handovers(shelf):
            self.router.send_to_place(self.router.target(shelf.key), handover)


def _rank(key: str, member: int) -> bytes:
    return blake2b(f"{key}@{member}".encode(), digest_size=8).digest()
