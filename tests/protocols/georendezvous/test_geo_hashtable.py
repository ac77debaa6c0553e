"""Cell Hash Routing as a hash table of its own: what is put can be got, whatever happens to single nodes."""

from collections.abc import Callable
from typing import Any

import pytest

from roamcast.errors import CallerError
from roamcast.protocols.api import Host, Message, Timer
from roamcast.protocols.georendezvous.hashtable import FRAME_BYTES, CellHashTable
from roamcast.protocols.georendezvous.messages import AnyPayload, Entry, Messages
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.store import Kept, Shelf


class Keeper:
    """Nothing but a hash table."""

    messages = Messages

    def __init__(self, host: Host) -> None:
        parameters = CellHashParameters(graph="cells", verification_period_s=5.0, custody_period_s=2.0)
        self.table = CellHashTable(host, self, parameters)
        self.answers: dict[int, list[bytes | None]] = {}
        self.stored: list[tuple[str, bytes | None]] = []
        self.expired: list[str] = []
        self.claimed: list[str] = []

    def start(self) -> None:
        self.table.start()

    def on_message(self, sender: int, message: Message) -> None:
        assert self.table.on_message(sender, message)

    def on_timer(self, timer: Timer) -> None:
        assert self.table.on_timer(timer)

    def on_send_failed(self, neighbour: int, message: Message) -> None:
        self.table.on_send_failed(neighbour, message)

    def on_stored(self, shelf: Shelf, entry: Entry, before: Kept | None) -> None:
        self.stored.append((shelf.key, entry.value))

    def on_claimed(self, shelf: Shelf) -> None:
        self.claimed.append(shelf.key)

    def on_expired(self, shelf: Shelf, kept: Kept) -> None:
        self.expired.append(shelf.key)

    def on_found(self, key: str, request: int, entries: tuple[Entry, ...]) -> None:
        self.answers.setdefault(request, []).extend(entry.value for entry in entries)

    def on_payload(self, payload: AnyPayload, hops: int) -> None:
        raise AssertionError(f"{payload} is none of a hash table's")

    def on_beat(self) -> None:
        """A hash table does not care where it is."""


Build = Callable[..., Any]


def got(field: Any, node: int, key: str) -> list[bytes | None]:
    """What `node` is answered when it asks for `key`; an empty list if nobody answers."""
    keeper: Keeper = field.net.node(node)
    request = keeper.table.get(key)
    field.net.run(0.5)
    return keeper.answers.get(request, [])


def holders(field: Any, key: str) -> list[int]:
    return [node for node in field.net.addresses if field.net.node(node).table.store.shelf(key) is not None]


@pytest.fixture
def row(field: Build, place: Build) -> Any:
    """Cells (2, 5) to (8, 5) with one node each, and a second node, 7, in (5, 5)."""
    network = field([*(place(column, 5) for column in range(2, 9)), place(5, 5, 0.2, 0.2)], Keeper)
    network.net.run(1.0)
    return network


def test_what_one_puts_all_get(row: Any, key_in: Build) -> None:
    key = key_in(5, 5)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    assert [got(row, node, key) for node in range(8)] == [[b"fire"]] * 8
    assert got(row, 2, key_in(3, 9)) == []


def test_decision_23_all_members_keep_a_key_and_so_do_the_cells_around(row: Any, key_in: Build) -> None:
    row.net.node(0).table.put(key_in(5, 5), b"fire")
    row.net.run(0.5)
    assert holders(row, key_in(5, 5)) == [2, 3, 4, 7]
    assert row.net.frames["Replica"] == 1
    assert [node for node in range(8) if row.net.node(node).claimed] in ([3], [7]), "one member took it for all"


def test_each_owner_has_its_entry_and_the_newer_replaces_the_older(row: Any, key_in: Build) -> None:
    key = key_in(5, 5)
    row.net.node(0).table.put(key, b"old")
    row.net.node(0).table.put(key, b"new")
    row.net.node(6).table.put(key, b"other")
    row.net.run(0.5)
    assert set(got(row, 3, key)) == {b"new", b"other"}
    row.net.node(0).table.put(key, None)
    row.net.run(0.5)
    assert got(row, 3, key) == [b"other"]


def test_an_older_copy_does_not_bring_back_what_was_taken_back(row: Any, key_in: Build) -> None:
    key = key_in(5, 5)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    shelf = row.net.node(3).table.store.shelf(key)
    older = shelf.entries(row.net.now_s)
    row.net.node(0).table.put(key, None)
    row.net.run(0.5)
    assert not any(shelf.merge(entry, row.net.now_s) for entry in older)
    assert got(row, 1, key) == []


def test_an_entry_lives_as_long_as_it_was_put_for(row: Any, key_in: Build) -> None:
    row.net.node(0).table.put(key_in(5, 5), b"fire", lifetime_s=4.0)
    row.net.run(3.0)
    assert got(row, 6, key_in(5, 5)) == [b"fire"]
    row.net.run(4.0)
    assert got(row, 6, key_in(5, 5)) == []
    assert holders(row, key_in(5, 5)) == []
    assert row.net.node(3).expired == [key_in(5, 5)], "the custodian tells its owner, once"
    assert row.net.node(7).expired == []


def test_who_enters_a_cell_is_told_what_it_keeps(row: Any, key_in: Build, place: Build) -> None:
    row.net.node(0).table.put(key_in(5, 5), b"fire")
    row.net.run(0.5)
    row.move(0, place(5, 5, -0.2))
    row.net.run(1.5)
    assert row.net.node(0).table.store.shelf(key_in(5, 5)).home == (5, 5)


def test_the_last_to_leave_hands_over(row: Any, key_in: Build, place: Build) -> None:
    key = key_in(8, 5)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    row.move(6, place(3, 5, 0.2))
    row.net.run(2.0)
    assert got(row, 0, key) == [b"fire"]
    assert row.net.node(5).table.store.shelf(key).home == (7, 5)


def test_neighbours_rescue_the_keys_of_a_cell_that_died(row: Any, key_in: Build) -> None:
    key = key_in(8, 5)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    row.net.crash(6)
    row.net.run(9.0)
    assert got(row, 0, key) == [b"fire"]


def test_a_node_that_is_told_to_go_hands_over_first(row: Any, key_in: Build) -> None:
    key = key_in(8, 5)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    row.net.node(6).table.leave()
    row.net.run(0.2)
    row.net.crash(6)
    assert got(row, 0, key) == [b"fire"]


def test_the_home_of_an_empty_cell_is_next_to_it_and_moves_in_when_it_is_populated(
    row: Any, key_in: Build, place: Build
) -> None:
    key = key_in(5, 6)
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    assert row.net.node(3).table.store.shelf(key).home == (5, 5)
    row.move(0, place(5, 6))
    row.net.run(2.0)
    assert row.net.node(0).table.store.shelf(key).home == (5, 6)
    assert row.net.node(3).table.store.shelf(key).home == (5, 6), "the former home keeps a backup"
    assert got(row, 6, key) == [b"fire"]


def test_a_closer_cell_out_of_earshot_is_found_by_verification(field: Build, place: Build, key_in: Build) -> None:
    # A bay: the key lies in its mouth, and the two arms do not hear each other.
    west = [place(2, row) for row in range(3, 9)]
    bottom = [place(column, 3) for column in range(3, 9)]
    east = [place(9, row) for row in range(4, 8)]
    bay = field([*west, *bottom, *east, place(6, 3, 0.2)], Keeper)
    bay.net.run(1.0)
    key = key_in(5, 7)
    bay.net.node(0).table.put(key, b"fire")
    bay.net.run(0.5)
    assert bay.net.node(4).table.store.shelf(key).home == (2, 7)
    bay.move(16, place(8, 7))  # as near as (2, 7), which goes before it as it lies in the east, and cannot be heard
    bay.net.run(12.0)
    assert bay.net.node(16).table.store.shelf(key).home == (8, 7)
    assert bay.net.node(4).table.store.shelf(key) is None, "the former home was told"
    assert got(bay, 0, key) == [b"fire"]


def test_a_repeated_broadcast_makes_up_for_a_lost_one(row: Any, key_in: Build) -> None:
    key = key_in(5, 5)
    for member in (3, 7):
        row.net.drop("Replica", sender=member, count=len(row.net.neighbours(member)))
    row.net.node(0).table.put(key, b"fire")
    row.net.run(0.5)
    assert holders(row, key) in ([3], [7])
    row.net.run(12.0)
    assert holders(row, key) == [2, 3, 4, 7]


def test_many_entries_travel_in_several_frames(row: Any, key_in: Build, place: Build) -> None:
    key = key_in(5, 5)
    for node in range(8):
        row.net.node(node).table.put(key, bytes(600))
    row.net.run(0.5)
    row.net.frames.clear()
    row.move(0, place(5, 5, -0.2))
    row.net.run(1.5)
    assert row.net.frames["Replica"] >= 8 * 600 / FRAME_BYTES
    assert len(row.net.node(0).table.store.shelf(key).kept) == 8
    assert len(got(row, 6, key)) == 8


def test_a_link_that_fails_costs_nothing_but_time(row: Any, key_in: Build) -> None:
    row.net.drop("Put", receiver=2)
    row.net.node(0).table.put(key_in(8, 5), b"fire")
    row.net.run(3.0)
    row.net.node(0).table.put(key_in(8, 5), b"fire")
    row.net.run(0.5)
    assert got(row, 1, key_in(8, 5)) == [b"fire"]


def test_a_value_that_fits_no_frame_is_refused(row: Any) -> None:
    with pytest.raises(CallerError, match="put: value of 2000 bytes"):
        row.net.node(0).table.put("key", bytes(2000))


def test_a_new_node_listens_before_it_routes(field: Build, place: Build, key_in: Build) -> None:
    network = field([place(column, 5) for column in range(2, 9)], Keeper)
    network.net.node(0).table.put(key_in(8, 5), b"fire")
    network.net.run(0.3)
    assert network.net.frames["Put"] == 0
    network.net.run(1.0)
    assert got(network, 0, key_in(8, 5)) == [b"fire"]
