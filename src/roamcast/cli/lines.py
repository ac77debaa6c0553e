"""Lines of output that never make the program wait, however slowly they are read."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable

LINES_MAX = 10_000
"""Lines that wait to be written; beyond it the oldest are dropped and counted."""


class Lines:
    """Writes lines to a descriptor from a thread of its own."""

    def __init__(self, descriptor: int, on_broken: Callable[[], object]) -> None:
        self.lost = 0
        self._descriptor = descriptor
        self._on_broken = on_broken  # called in that thread when there is no reader any more
        self._lines: deque[tuple[str, Callable[[], object] | None]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def add(self, line: str, then: Callable[[], object] | None = None) -> None:
        """Takes a line; `then` is called in the thread that has written it, unless it was dropped."""
        with self._changed:
            if len(self._lines) == LINES_MAX:
                self._lines.popleft()
                self.lost += 1
            self._lines.append((line, then))
            self._changed.notify()

    def close(self, patience_s: float = 5.0) -> None:
        """Writes what is left, if it is read within `patience_s`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(patience_s)

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._is_closed:
                    self._changed.wait()
                if not self._lines:
                    return
                lines = list(self._lines)
                self._lines.clear()
            data = "".join(f"{line}\n" for line, _ in lines).encode()
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    for _, then in lines:
                        if then is not None:
                            then()
            except OSError:
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    self._on_broken()
                return
