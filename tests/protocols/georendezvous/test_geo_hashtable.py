"""Cell Hash Routing as a hash table of its own: what is put can be got, whatever happens to single nodes."""

from collections.abc import Callable
from typing import Any

import pytest

from roamcast.errors import CallerError
from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.protocols.api import Host
from roamcast.protocols.components import ComposedProtocol
from roamcast.protocols.georendezvous.hashtable import CellHashTable
from roamcast.protocols.georendezvous.messages import Entry, Messages
from roamcast.protocols.georendezvous.parameters import CellHashParameters
from roamcast.protocols.georendezvous.store import Shelf, StoredEntry


class Keeper(ComposedProtocol):
    """Nothing but a hash table."""

    messages = Messages
    keepers_per_key = 0

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        parameters = CellHashParameters(
            graph="cells", verification_period_s=5.0, custody_period_s=2.0, keepers_per_key=self.keepers_per_key
        )
        self.table = CellHashTable(host, parameters)
        self.stored: list[tuple[str, bytes | None]] = []
        self.expired: list[str] = []
        self.claimed: list[str] = []
        self.table.watch(self.on_stored, self.on_claimed, self.on_expired)
        self.compose(self.table.router, self.table)

    def start(self) -> None:
        self.table.start()

    def subscribe(self, interest: Interest) -> None:
        raise AssertionError("a hash table has no subscriptions")

    def unsubscribe(self, interest: Interest) -> None:
        raise AssertionError("a hash table has no subscriptions")

    def publish(self, event: Event) -> None:
        raise AssertionError("a hash table has no events")

    def on_stored(self, shelf: Shelf, entry: Entry, before: StoredEntry | None) -> None:
        self.stored.append((shelf.key, entry.value))

    def on_claimed(self, shelf: Shelf) -> None:
        self.claimed.append(shelf.key)

    def on_expired(self, shelf: Shelf, kept: StoredEntry) -> None:
        self.expired.append(shelf.key)


class Divider(Keeper):
    """A hash table in which one member of a cell keeps each key."""

    keepers_per_key = 1


Build = Callable[..., Any]


def got(field: Any, node: int, key: str) -> list[bytes | None]:
    """What `node` is answered when it asks for `key`; an empty list if nobody answers."""
    keeper: Keeper = field.net.node(node)
    request = keeper.table.get(key)
    field.net.run(0.5)
    return [entry.value for entry in keeper.table.found[request]]


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


def test_section_2_2_all_members_keep_a_key_and_so_do_the_cells_around(row: Any, key_in: Build) -> None:
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
    assert not any(row.net.node(3).table.store.merge(shelf, entry, row.net.now_s) for entry in older)
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


def test_a_node_that_enters_a_cell_is_told_what_it_keeps(row: Any, key_in: Build, place: Build) -> None:
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
    assert row.net.frames["Replica"] >= 8 * 600 / row.net.frame_bytes_max
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


def test_section_2_2_keys_inside_a_cell_can_be_divided_by_the_nodes(field: Build, place: Build, key_in: Build) -> None:
    crowd = [place(5, 5, 0.1 * number - 0.25) for number in range(6)]
    network = field([place(2, 5), place(3, 5), place(4, 5), *crowd], Divider)
    network.net.run(1.0)
    point = key_in(5, 5)
    keys = [point, *(f"{point} {number}" for number in range(400))]
    home = network.net.node(3).table.router
    keys = [key for key in keys if home.grid.cell(home.grid.point(key)) == (5, 5)]
    for key in keys:
        network.net.node(0).table.put(key, key.encode())
    network.net.run(1.0)
    kept = {key: [node for node in holders(network, key) if node >= 3] for key in keys}
    assert all(len(nodes) == 1 for nodes in kept.values()), "one member keeps each key"
    assert len(keys) < 3 or len({nodes[0] for nodes in kept.values()}) > 1, "and not always the same one"
    assert [got(network, 1, key) for key in keys] == [[key.encode()] for key in keys]


def test_a_divided_key_survives_its_keeper(field: Build, place: Build, key_in: Build) -> None:
    crowd = [place(5, 5, 0.1 * number - 0.25) for number in range(4)]
    network = field([place(3, 5), place(4, 5), place(6, 5), *crowd], Divider)
    network.net.run(1.0)
    key = key_in(5, 5)
    network.net.node(0).table.put(key, b"fire")
    network.net.run(0.5)
    (keeper,) = [node for node in holders(network, key) if node >= 3]
    network.net.crash(keeper)
    network.net.run(20.0)
    assert got(network, 0, key) == [b"fire"]
