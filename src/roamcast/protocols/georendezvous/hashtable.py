"""Cell Hash Routing as a distributed hash table: `put` and `get` by key, kept by cells rather than by nodes.

Theory of operation
-------------------
A key is hashed to a point of the area. The home of that point (`routing.py`) keeps what is put under the key: a set of
*entries*, one per owner and slot, of which the newer version replaces the older. So two copies of a key are merged in
any order with the same result, and nobody needs to agree on anything.

Nodes die and move; the key must outlive them:

1. *Members*: whoever takes an entry at home broadcasts it once (`Replica`). All members of the cell hear it and keep it
   too; so do all members of the cells around it (`Graph.near`), as backups.
2. *Entering*: the member with the lowest address, the cell's *custodian*, sends what the cell keeps to each newcomer.
3. *Leaving*: the last one to leave a cell routes what it keeps to the home of each key (`Handover`), which is now
   another cell. A node that is told to go does the same before it goes.
4. *Dying*: when the last member of a cell falls silent, a neighbour routes the backup to the new home. First to do so
   is who hears nobody closer to the key, as it is likely to be that home; the others do if they do not hear from a new
   home for `RESCUE_PATIENCE_S`. Each waits a random time before.
5. *Populating*: when somebody is heard in a cell that is closer to a key's point than the present home, the custodian
   hands the key over. A closer cell out of earshot is found by a handover each `verification_period_s`: it tours the
   empty cell again, and comes back if nothing has changed. A new home out of earshot tells the former one (`Moved`).
6. *Repeating*: broadcasts get lost, so the custodian repeats what was not broadcast for `custody_period_s`. If it does
   not, it has missed the key itself, and another member does.

A node forgets keys of cells that it no longer touches. So a key survives as long as somebody is in its cell or next to
it, up to the time that it takes to notice.

Timers: `table.custody` repeats and verifies; `table.rescue` hands over the keys of cells that died out.
"""

import typing
from collections.abc import Iterable, Iterator
from typing import Final

from roamcast.errors import CallerError
from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.georendezvous.cells import Cell, touching
from roamcast.protocols.georendezvous.messages import (
    PLAIN,
    AnyPayload,
    Entry,
    Found,
    Get,
    Handover,
    Moved,
    MovedNearby,
    Notification,
    Put,
    Replica,
)
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.routing import CellRouter, RouterOwner
from roamcast.protocols.georendezvous.steering import closer
from roamcast.protocols.georendezvous.store import Kept, Shelf, Store

VALUE_BYTES_MAX: Final = 1024
FRAME_BYTES: Final = 1200  # of entries in one frame: one larger would not fit a datagram
ENTRY_OVERHEAD_BYTES: Final = 32
RESCUE_AFTER_S: Final = 0.2  # the last one to leave may have handed its keys over already
RESCUE_WITHIN_S: Final = 2.0
RESCUE_PATIENCE_S: Final = 2.0  # for who is closer to an orphaned key to take care of it
MEMBERS_PATIENCE: Final = 2.5  # custody periods; a custodian that knows the key has repeated it by then
HANDOVER_GAP_S: Final = 5.0  # a neighbour that looks closer but cannot be reached does not make us try all the time

CUSTODY: Final[Timer] = ("table.custody", 0)
RESCUE: Final[Timer] = ("table.rescue", 0)

FOREVER_S: Final = float("inf")


class TableOwner(typing.Protocol):
    """What the table tells its owner."""

    def on_stored(self, shelf: Shelf, entry: Entry, before: Kept | None) -> None:
        """As the one who took a packet at the same home as before: `entry` is kept now, and `before` was until now."""

    def on_claimed(self, shelf: Shelf) -> None:
        """As the one who took a packet at home: this cell is the home of the key from now on, with all it holds."""

    def on_expired(self, shelf: Shelf, kept: Kept) -> None:
        """As the custodian of its home: the entry's lifetime has ended."""

    def on_found(self, key: str, request: int, entries: tuple[Entry, ...]) -> None:
        """The answer to the `get` that returned `request`, in several parts if it is long; no entries if there are
        none. What was taken back is not among them."""

    def on_payload(self, payload: AnyPayload, hops: int) -> None:
        """A payload that is not the table's own arrived."""

    def on_beat(self) -> None:
        """Time to look whether this node has moved."""


class CellHashTable(RouterOwner):
    def __init__(self, host: Host, owner: TableOwner, parameters: CellHashParameters) -> None:
        self.host = host
        self.router = CellRouter(host, self, parameters)
        self.store = Store()
        self._owner = owner
        self._period_s = parameters.custody_period_s
        self._verification_period_s = parameters.verification_period_s
        self._version = 0
        self._requests = 0

    def start(self) -> None:
        self.router.start()
        self.host.set_timer(self._period_s * (0.5 + self.host.random.random()), CUSTODY)

    def put(
        self,
        key: str,
        value: bytes | None,
        lifetime_s: float = FOREVER_S,
        slot: int = PLAIN,
        message: type[Put] = Put,
    ) -> None:
        """Keeps `value` under `key`, in this node's own slot; `None` takes back what was there."""
        if value is not None and len(value) > VALUE_BYTES_MAX:
            raise CallerError(f"put: value of {len(value)} bytes; allowed: {VALUE_BYTES_MAX}")
        self._version = max(self._version + 1, int(self.host.now() * 1000))
        entry = Entry(self.host.address, slot, self._version, lifetime_s, value)
        self.router.send_to_place(self.router.target(key), message(key, (entry,)))

    def get(self, key: str) -> int:
        """Asks for what is kept under `key`; the answer comes with the number that this returns."""
        self._requests += 1
        request = Get(key, self._requests, self.host.address, self.router.here)
        self.router.send_to_place(self.router.target(key), request)
        return self._requests

    def leave(self) -> None:
        self.router.say_goodbye()
        if not self.router.neighbourhood.members(self.router.cell):
            for shelf in self._ours():
                for handover in self._handovers(shelf):
                    self.router.send_away(self.router.target(shelf.key), handover)

    # -- What the host says --------------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> bool:
        if self.router.on_message(sender, message):
            return True
        if type(message) is Replica:
            self._on_replica(message)
        elif type(message) is MovedNearby:
            self._on_moved(message.moved)
        else:
            return False
        return True

    def on_timer(self, timer: Timer) -> bool:
        if timer == CUSTODY:
            self._take_care()
        elif timer == RESCUE:
            self._rescue()
        else:
            return self.router.on_timer(timer)
        return True

    def on_send_failed(self, neighbour: int, message: Message) -> bool:
        return self.router.on_send_failed(neighbour, message)

    # -- What the router says ------------------------------------------------------------------------------------

    def on_arrival(self, payload: AnyPayload, hops: int) -> None:
        if isinstance(payload, Put):
            self._keep(payload.key, payload.entries)
        elif isinstance(payload, Handover):
            self._keep(payload.key, payload.entries)
            origin = payload.origin
            if origin is not None and not touching(origin, self.router.cell):  # who touches us has heard our broadcast
                centre = self.router.grid.centre(origin)
                moved = Moved(payload.key, origin, self.router.cell)
                self.router.send_to_place(self.router.graph.vertex(centre), moved)
        elif isinstance(payload, Moved):
            self._on_moved(payload)
            self.host.broadcast(MovedNearby(payload))
        elif isinstance(payload, Get):
            self._answer(payload)
        elif isinstance(payload, Found):
            self._owner.on_found(payload.key, payload.request, payload.entries)
        else:
            self._owner.on_payload(payload, hops)

    def is_home(self, payload: AnyPayload) -> bool:
        if isinstance(payload, Handover) and payload.origin == self.router.cell:
            return False  # its purpose is to find out
        shelf = self.store.shelf(payload.key) if isinstance(payload, Put | Handover | Get | Notification) else None
        return shelf is not None and shelf.home == self.router.cell

    def on_cell_changed(self, before: Cell) -> None:
        here = self.router.cell
        deserted = not self.router.neighbourhood.members(before)
        for shelf in self.store:
            if shelf.home == before and deserted:
                self._hand_over(shelf)
            if shelf.home != here and not self.router.graph.near(here, shelf.home):
                self.store.forget(shelf.key)

    def on_neighbour_moved(self, address: int, before: Cell | None, after: Cell | None) -> None:
        here = self.router.cell
        if before is not None and before != here and self.router.graph.near(here, before):
            self._look_for_orphans(before)
        if after == here:
            if self._is_custodian(newcomer=address):
                for shelf in self._ours():
                    self._tell(shelf, shelf.entries(self.host.now()), newcomer=address)
        elif after is not None:
            vertex = self.router.neighbourhood.nodes[address].vertex
            for shelf in self._ours():
                if closer(vertex, self.router.here, self.router.target(shelf.key)) and self._is_custodian():
                    self._hand_over(shelf, not_within_s=HANDOVER_GAP_S)

    def on_beat(self) -> None:
        self._owner.on_beat()

    # -- Keeping -------------------------------------------------------------------------------------------------

    def _keep(self, key: str, entries: Iterable[Entry]) -> None:
        """This cell is the home of `key`: keep the entries, tell the members, tell the owner what is new."""
        now_s = self.host.now()
        is_new = key not in self.store
        shelf = self.store.open(key, self.router.cell)
        claimed = is_new or shelf.home != self.router.cell
        shelf.home = self.router.cell
        before = dict(shelf.kept)
        news = [entry for entry in entries if shelf.merge(entry, now_s)]
        if not shelf.kept:
            self.store.forget(key)
            return
        if claimed:
            self.host.structure("home", detail=f"{key} {shelf.home[0]} {shelf.home[1]}")
        if news or claimed:
            self._tell(shelf, shelf.entries(now_s) if claimed else news)
        if claimed:
            self._owner.on_claimed(shelf)
            return
        for entry in news:
            self._owner.on_stored(shelf, entry, before.get((entry.owner, entry.slot)))

    def _tell(self, shelf: Shelf, entries: Iterable[Entry], newcomer: int | None = None) -> None:
        for batch in _batches(entries):
            replica = Replica(shelf.home, shelf.key, tuple(batch))
            if newcomer is None:
                shelf.repeated_s = self.host.now()
                self.host.broadcast(replica)
            else:
                self.host.send(newcomer, replica)

    def _on_replica(self, replica: Replica) -> None:
        here = self.router.cell
        if not self.router.graph.near(here, replica.home):
            self._on_moved(Moved(replica.key, here, replica.home))
            return
        now_s = self.host.now()
        shelf = self.store.open(replica.key, replica.home)
        shelf.home = replica.home
        for entry in replica.entries:
            shelf.merge(entry, now_s)
        if shelf.home == here:
            shelf.repeated_s = now_s

    def _on_moved(self, moved: Moved) -> None:
        shelf = self.store.shelf(moved.key)
        if shelf is not None and shelf.home == moved.origin:
            shelf.home = moved.home
            if not self.router.graph.near(self.router.cell, moved.home):
                self.store.forget(moved.key)

    def _answer(self, question: Get) -> None:
        shelf = self.store.shelf(question.key)
        entries = () if shelf is None else shelf.entries(self.host.now())
        present = [entry for entry in entries if entry.value is not None]
        for batch in list(_batches(present)) or [[]]:
            found = Found(question.key, question.request, tuple(batch))
            self.router.send_to_node(question.asker, question.asker_at, found)

    # -- Custody -------------------------------------------------------------------------------------------------

    def _take_care(self) -> None:
        now_s = self.host.now()
        in_charge = self._is_custodian()
        for shelf, kept in self.store.expire(now_s):
            if in_charge and shelf.home == self.router.cell:
                self._owner.on_expired(shelf, kept)
        patience_s = self._period_s * (1.0 if in_charge else MEMBERS_PATIENCE)
        for shelf in self._ours():
            if in_charge and self.router.target(shelf.key) != self.router.here:
                self._hand_over(shelf, not_within_s=self._verification_period_s)
            if shelf.repeated_s < now_s - patience_s:
                self._tell(shelf, shelf.entries(now_s))
        self.host.set_timer(self._period_s * (0.75 + 0.5 * self.host.random.random()), CUSTODY)

    def _ours(self) -> Iterator[Shelf]:
        """What this cell is the home of."""
        return (shelf for shelf in self.store if shelf.home == self.router.cell)

    def _is_custodian(self, newcomer: int | None = None) -> bool:
        members = self.router.neighbourhood.members(self.router.cell)
        return all(self.host.address < member for member in members if member != newcomer)

    def _is_orphan(self, shelf: Shelf) -> bool:
        home = shelf.home
        return home != self.router.cell and not self.router.neighbourhood.members(home)

    def _look_for_orphans(self, cell: Cell) -> None:
        if not self.router.neighbourhood.members(cell) and any(shelf.home == cell for shelf in self.store):
            self.host.set_timer(self.host.random.uniform(RESCUE_AFTER_S, RESCUE_WITHIN_S), RESCUE)

    def _rescue(self) -> None:
        now_s = self.host.now()
        others_first = False
        for shelf in self.store:
            if not self._is_orphan(shelf):
                shelf.orphaned_s = FOREVER_S
                continue
            shelf.orphaned_s = min(shelf.orphaned_s, now_s)
            if self.router.is_closest(shelf.key) or now_s - shelf.orphaned_s >= RESCUE_PATIENCE_S:
                self._hand_over(shelf, not_within_s=RESCUE_PATIENCE_S)
            else:
                others_first = True
        if others_first:
            self.host.set_timer(self.host.random.uniform(1.0, 1.5) * RESCUE_PATIENCE_S, RESCUE)

    def _handovers(self, shelf: Shelf) -> Iterator[Handover]:
        origin = shelf.home if shelf.home == self.router.cell else None
        for batch in _batches(shelf.entries(self.host.now())):
            yield Handover(shelf.key, tuple(batch), origin)

    def _hand_over(self, shelf: Shelf, not_within_s: float = 0.0) -> None:
        """Sends the shelf to the home of its key, unless this node did so a moment ago."""
        now_s = self.host.now()
        if now_s - shelf.handed_s < not_within_s:
            return
        shelf.handed_s = now_s
        for handover in self._handovers(shelf):
            self.router.send_to_place(self.router.target(shelf.key), handover)


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """The entries in portions that fit a frame."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        entry_bytes = ENTRY_OVERHEAD_BYTES + len(entry.value or b"")
        if batch and size + entry_bytes > FRAME_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry_bytes
    if batch:
        yield batch
