"""What a node must remember from one life to the next: which life this is, and which event numbers are used up.

Both are kept in one small file, so that neither a quick restart nor a clock that went back makes a node repeat itself.
Event numbers are reserved in blocks of `BLOCK` before they are used; a node that is killed wastes the rest of a block.
The file is replaced by an atomic rename, after its contents have reached the disk.

A node without a directory for its state takes both from the clock: lives count the seconds since `EPOCH_S`, and event
numbers start at `NUMBERS_PER_S` times that. This is right as long as the clock does not go back, restarts are at least
a second apart, and the node publishes no more than `NUMBERS_PER_S` events per second in the long run.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from roamcast.errors import ConfigurationError
from roamcast.events import NUMBER_BITS

EPOCH_S = 1_767_225_600  # 2026-01-01 00:00 UTC
NUMBERS_PER_S = 16
BLOCK = 4096


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    life: int
    number: int  # no event of this node has a higher number, counted without wrapping around


class Lives:
    """One life of a node."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        now_s = clock() - EPOCH_S
        state = None if path is None else _read(path)
        before = _State(0, 0) if state is None else state
        self.life = max(1, int(now_s), before.life + 1)
        """Of this node, larger than any before."""
        self._number = max(int(now_s * NUMBERS_PER_S), before.number)
        self._reserved = self._number
        if path is not None:
            self._reserve()

    def next_life(self) -> int:
        """The node starts over without having been away."""
        self.life += 1
        if self._path is not None:
            self._reserve()
        return self.life

    def next_number(self) -> int:
        """The number of the next event, never 0; after 2^32 events numbers start over."""
        while True:
            if self._number >= self._reserved and self._path is not None:
                self._reserve()
            self._number += 1
            wrapped = self._number % (1 << NUMBER_BITS)
            if wrapped:
                return wrapped

    def _reserve(self) -> None:
        assert self._path is not None
        self._reserved = self._number + BLOCK
        data = msgspec.json.encode(_State(self.life, self._reserved))
        try:
            replace_file(self._path, data)
        except OSError as error:
            raise ConfigurationError(f"state: cannot write {self._path}: {error.strerror or error}") from None


def replace_file(path: Path, data: bytes) -> None:
    """Writes a small file so that a crash leaves the old contents or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _read(path: Path) -> _State | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"state: cannot read {path}: {error.strerror or error}") from None
    except msgspec.MsgspecError:
        raise ConfigurationError(
            f"state: {path} is damaged; remove it, and the node goes on with numbers taken from the clock"
        ) from None
