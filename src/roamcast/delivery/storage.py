"""Where the delivery layer keeps what it must not forget. `live/disk.py` keeps it in a file; here it is in memory.

Times go in and out as ages and as what is left, in seconds, so that a storage may have a clock of its own.
"""

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import Event
from roamcast.interests import Interest


class StorageError(Exception):
    """The storage cannot be written: one line that says why."""


class UnstoredError(ConfigurationError):
    """An event was not published because it could not be stored. It may be tried again."""


class Row(msgspec.Struct):
    """What is remembered of one event."""

    id: int
    left_s: float  # until it is forgotten
    age_s: float  # since it was published
    size_bytes: int  # of its body; 0: only its id is known
    worth: float
    is_own: bool  # published here
    hops: int


class DurableRow(msgspec.Struct):
    """One durable subscription."""

    name: str
    interest: Interest
    is_ordered: bool
    age_s: float  # since it was made


class DurableState(msgspec.Struct):
    """How far an event is at a durable subscription."""

    name: str
    id: int
    is_done: bool  # acknowledged; else only handed over


class Storage(ABC):
    """Calls that write may raise `StorageError`; then nothing of the call is kept."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """All events, in the order in which they came."""

    @abstractmethod
    def body(self, event_id: int) -> Event | None: ...

    @abstractmethod
    def put(self, row: Row, event: Event | None, waiting: list[str]) -> None:
        """Remembers an event, its body unless it is None, and the durable subscriptions that it waits for."""

    @abstractmethod
    def drop_bodies(self, ids: list[int]) -> None: ...

    @abstractmethod
    def forget(self, ids: list[int]) -> None: ...

    @abstractmethod
    def subscriptions(self) -> list[DurableRow]: ...

    @abstractmethod
    def subscribe(self, row: DurableRow) -> None:
        """Remembers a durable subscription, or another interest of one."""

    @abstractmethod
    def unsubscribe(self, name: str) -> None: ...

    @abstractmethod
    def states(self) -> list[DurableState]:
        """Of the events that durable subscriptions were handed, in no certain order."""

    @abstractmethod
    def waiting(self) -> list[tuple[str, int]]:
        """The events that durable subscriptions have not been handed, by name, in the order in which they came."""

    @abstractmethod
    def handed(self, name: str, event_id: int) -> None: ...

    @abstractmethod
    def done(self, name: str, event_id: int) -> None: ...

    def counters(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:  # noqa: B027 - memory needs no closing
        """Nothing is written from here on."""


class MemoryStorage(Storage):
    """Forgets everything with its process."""

    def __init__(self) -> None:
        self._bodies: dict[int, Event] = {}

    def rows(self) -> list[Row]:
        return []

    def body(self, event_id: int) -> Event | None:
        return self._bodies.get(event_id)

    def put(self, row: Row, event: Event | None, waiting: list[str]) -> None:
        if event is not None:
            self._bodies[row.id] = event

    def drop_bodies(self, ids: list[int]) -> None:
        for each in ids:
            self._bodies.pop(each, None)

    def forget(self, ids: list[int]) -> None:
        self.drop_bodies(ids)

    def subscriptions(self) -> list[DurableRow]:
        return []

    def subscribe(self, row: DurableRow) -> None: ...

    def unsubscribe(self, name: str) -> None: ...

    def states(self) -> list[DurableState]:
        return []

    def waiting(self) -> list[tuple[str, int]]:
        return []

    def handed(self, name: str, event_id: int) -> None: ...

    def done(self, name: str, event_id: int) -> None: ...
