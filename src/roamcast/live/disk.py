"""The journal: what the delivery layer must not forget, in one SQLite file.

A call that writes has written when it returns. `sync` says what that means: with `full` it survives a loss of power,
with `normal` the end of the process in whatever way, and after a loss of power the file is whole but may lack the last
seconds; with `off` a loss of power may damage the file. The file is in WAL mode and locked by its node.

The file's size is bounded: bodies of events by `bytes_max`, all of it by SQLite's `max_page_count`.

Times in the file are on a clock of its own, which goes on while the node is down. How long that was is read from the
system's clock of time since boot, which cannot be set, or from the calendar if the machine was started in the meantime.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from roamcast.delivery.storage import DurableRow, DurableState, Row, Storage, StorageError
from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest

SYNCS: Final = ("full", "normal", "off")
VERSION: Final = 1
WAL_BYTES_MAX: Final = 4 << 20
PAGE_BYTES: Final = 4096
SPARE_BYTES: Final = 32 << 20  # for ids, indexes and half-empty pages
WAITING, HANDED, DONE = range(3)

SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, forget_s REAL NOT NULL, published_s REAL NOT NULL,
    size INTEGER NOT NULL, worth REAL NOT NULL, own INTEGER NOT NULL, hops INTEGER NOT NULL, body BLOB);
CREATE TABLE durable (
    name TEXT PRIMARY KEY, interest BLOB NOT NULL, ordered INTEGER NOT NULL, since_s REAL NOT NULL);
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY, name TEXT NOT NULL, id INTEGER NOT NULL, state INTEGER NOT NULL, UNIQUE (name, id));
CREATE INDEX inbox_id ON inbox (id);
"""

_encode = msgspec.msgpack.Encoder().encode
_event = msgspec.msgpack.Decoder(Event).decode
_interest: Callable[[bytes], Interest] = msgspec.msgpack.Decoder(Interest).decode


class DiskStorage(Storage):
    def __init__(
        self,
        path: Path,
        owner: str,
        *,
        bytes_max: int,
        sync: str = "normal",
        moment: Callable[[], "Moment"] | None = None,
    ) -> None:
        """`owner` names the network and the node: a journal belongs to one."""
        if sync not in SYNCS:
            raise ConfigurationError(f"sync: {sync!r} is unknown; allowed: {', '.join(SYNCS)}")
        self.path = path
        self._errors = 0
        self._moment = Moment.now if moment is None else moment
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            self._open(owner, sync, bytes_max)
        except (sqlite3.Error, OSError) as error:
            raise ConfigurationError(_refusal(path, error)) from None

    def _open(self, owner: str, sync: str, bytes_max: int) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {sync.upper()}")
        run(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        run(f"PRAGMA max_page_count = {(2 * bytes_max + SPARE_BYTES) // PAGE_BYTES}")
        version = run("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._connection.executescript(f"BEGIN EXCLUSIVE;{SCHEMA}PRAGMA user_version = {VERSION};COMMIT")
            run("INSERT INTO meta VALUES ('owner', ?)", (owner,))
        elif version != VERSION:
            raise ConfigurationError(f"journal: {self.path} is of version {version}; this Roamcast reads {VERSION}")
        found = run("SELECT value FROM meta WHERE key = 'owner'").fetchone()
        if found is None or found[0] != owner:
            whose = "nobody" if found is None else found[0]
            raise ConfigurationError(f"journal: {self.path} is the journal of {whose}, not of {owner}")
        self._set_clock()

    def _set_clock(self) -> None:
        here = self._moment()
        found = self._connection.execute("SELECT value FROM meta WHERE key = 'clock'").fetchone()
        file_s = 0.0
        if found is not None:
            there = msgspec.json.decode(found[0], type=Moment)
            file_s = there.file_s + there.until(here)
        self._offset_s = file_s - time.monotonic()
        self._save_clock()

    def _save_clock(self) -> None:
        here = msgspec.structs.replace(self._moment(), file_s=self._now())
        text = msgspec.json.encode(here).decode()
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (text,))

    def _now(self) -> float:
        return self._offset_s + time.monotonic()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._errors += 1
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StorageError(_refusal(self.path, error)) from None

    # -- Events --------------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        now_s = self._now()
        query = "SELECT id, forget_s, published_s, size, worth, own, hops FROM events ORDER BY seq"
        return [
            Row(
                id=row[0],
                left_s=row[1] - now_s,
                age_s=max(0.0, now_s - row[2]),
                size_bytes=row[3],
                worth=row[4],
                is_own=bool(row[5]),
                hops=row[6],
            )
            for row in self._connection.execute(query)
        ]

    def body(self, event_id: int) -> Event | None:
        try:
            found = self._connection.execute("SELECT body FROM events WHERE id = ?", (event_id,)).fetchone()
            return None if found is None or found[0] is None else _event(found[0])
        except (sqlite3.Error, msgspec.MsgspecError):
            self._errors += 1
            return None

    def put(self, row: Row, event: Event | None, waiting: list[str]) -> None:
        now_s = self._now()
        body = None if event is None else _encode(event)
        values = (row.id, now_s + row.left_s, now_s - row.age_s, row.size_bytes, row.worth, row.is_own, row.hops, body)
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO events (id, forget_s, published_s, size, worth, own, hops, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            for name in waiting:
                connection.execute("INSERT INTO inbox (name, id, state) VALUES (?, ?, ?)", (name, row.id, WAITING))

    def drop_bodies(self, ids: list[int]) -> None:
        with self._writing() as connection:
            connection.executemany("UPDATE events SET body = NULL, size = 0 WHERE id = ?", [(each,) for each in ids])

    def forget(self, ids: list[int]) -> None:
        with self._writing() as connection:
            connection.executemany("DELETE FROM events WHERE id = ?", [(each,) for each in ids])
            connection.executemany("DELETE FROM inbox WHERE id = ?", [(each,) for each in ids])

    # -- Subscriptions -------------------------------------------------------------------------------------------

    def subscriptions(self) -> list[DurableRow]:
        now_s = self._now()
        query = "SELECT name, interest, ordered, since_s FROM durable ORDER BY name"
        return [
            DurableRow(name, _interest(interest), bool(ordered), max(0.0, now_s - since_s))
            for name, interest, ordered, since_s in self._connection.execute(query)
        ]

    def subscribe(self, row: DurableRow) -> None:
        values = (row.name, _encode(row.interest), row.is_ordered, self._now() - row.age_s)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO durable VALUES (?, ?, ?, ?)", values)

    def unsubscribe(self, name: str) -> None:
        with self._writing() as connection:
            connection.execute("DELETE FROM durable WHERE name = ?", (name,))
            connection.execute("DELETE FROM inbox WHERE name = ?", (name,))

    def states(self) -> list[DurableState]:
        query = "SELECT name, id, state FROM inbox WHERE state <> ? ORDER BY seq"
        rows = self._connection.execute(query, (WAITING,))
        return [DurableState(name, each, state == DONE) for name, each, state in rows]

    def waiting(self) -> list[tuple[str, int]]:
        query = "SELECT name, id FROM inbox WHERE state = ? ORDER BY seq"
        return [(name, each) for name, each in self._connection.execute(query, (WAITING,))]

    def handed(self, name: str, event_id: int) -> None:
        self._mark(name, event_id, HANDED)

    def done(self, name: str, event_id: int) -> None:
        self._mark(name, event_id, DONE)

    def _mark(self, name: str, event_id: int, state: int) -> None:
        with self._writing() as connection:
            connection.execute("UPDATE inbox SET state = ? WHERE name = ? AND id = ?", (state, name, event_id))

    def counters(self) -> dict[str, Any]:
        return {"journal_errors": self._errors}

    def close(self) -> None:
        try:
            self._save_clock()
            self._connection.close()
        except sqlite3.Error:
            self._errors += 1


class Moment(msgspec.Struct, frozen=True):
    """One instant on several clocks."""

    calendar_s: float  # Unix time, which may be set
    boot_s: float  # since the machine was started, asleep or not
    boot: str  # which start that was
    file_s: float = 0.0

    @staticmethod
    def now() -> "Moment":
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            return Moment(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot)
        except (OSError, AttributeError):  # not Linux
            return Moment(time.time(), 0.0, "")

    def until(self, later: "Moment") -> float:
        """Seconds between two moments, never below 0."""
        if self.boot and self.boot == later.boot:
            return max(0.0, later.boot_s - self.boot_s)
        return max(0.0, later.calendar_s - self.calendar_s)


def _refusal(path: Path, error: Exception) -> str:
    text = str(error)
    if "locked" in text:
        return f"journal: {path} is in use by another node"
    if "malformed" in text or "not a database" in text:
        return f"journal: {path} is damaged; move it away, and the node starts with an empty one"
    said = getattr(error, "strerror", None) or text
    return f"journal: cannot write {path}: {said}"
