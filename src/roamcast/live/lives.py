"""What a node must remember from one life to the next: which life this is, and which event numbers are used up.

Both are kept in one small file, so that neither a quick restart nor a clock that went back makes a node repeat itself.
Event numbers are reserved in blocks of `BLOCK` before they are used; a node that is killed wastes the rest of a block.
The file is replaced by an atomic rename, after its contents have reached the disk.

Every user has a directory for such files (`default_state`), so a node needs to be told of none. A node that cannot
write there, and was not told of another, takes both from the clock: lives count the seconds since `EPOCH_S`, and event
numbers start at `NUMBERS_PER_S` times that. This is right as long as the clock does not go back, restarts are at least
a second apart, and the node publishes no more than `NUMBERS_PER_S` events per second in the long run.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from roamcast.delivery.storage import UnstoredError
from roamcast.errors import ConfigurationError
from roamcast.events import NUMBER_BITS

EPOCH_S = 1_767_225_600  # 2026-01-01 00:00 UTC
NUMBERS_PER_S = 16
BLOCK = 16_384


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    life: int
    number: int  # no event of this node has a higher number, counted without wrapping around


def default_state() -> Path | None:
    """Where nodes of this user remember their lives, if they are not told where; None: the user has no home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state") / "roamcast"
    except RuntimeError:
        return None


class Lives:
    """One life of a node."""

    def __init__(
        self, path: Path | None = None, clock: Callable[[], float] | None = None, *, is_required: bool = True
    ) -> None:
        """`is_required`: the operator has named the file, so it must be there; otherwise the clock has to do."""
        self._path = path
        self._is_required = is_required
        self.trouble = ""
        """Why nothing is remembered, if that is so."""
        now_s = (clock or time.time)() - EPOCH_S
        state = None if path is None else self._read(path)
        before = _State(0, 0) if state is None else state
        self.life = max(1, int(now_s), before.life + 1)
        """Of this node, larger than any before."""
        self._number = max(int(now_s * NUMBERS_PER_S), before.number)
        self._reserved = self._number
        if self._path is not None:
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
            self._do_without(UnstoredError(f"state: cannot write {self._path}: {error.strerror or error}"))

    def _read(self, path: Path) -> _State | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=_State)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._do_without(ConfigurationError(f"state: cannot read {path}: {error.strerror or error}"))
        except msgspec.MsgspecError:
            advice = "remove it, and the node goes on with numbers taken from the clock"
            self._do_without(ConfigurationError(f"state: {path} is damaged; {advice}"))
        return None

    def _do_without(self, error: ConfigurationError) -> None:
        if self._is_required:
            raise error from None
        self._path = None
        self.trouble = str(error)


def replace_file(path: Path, data: bytes) -> None:
    """Writes a small file so that a crash leaves the old contents or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)

