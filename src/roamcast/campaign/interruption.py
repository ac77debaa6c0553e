"""Signals that wait until the work under way can be left.

A Python signal handler runs between any two instructions. One that raises in the middle of a call to Spark's Java
process leaves a response half read on the connection, and an orderly end of the jobs then fails as well.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], object]


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Holds SIGINT and SIGTERM back. The function that it gives hands a signal that came to its former handler, which
    usually raises. A signal without a handler keeps its default effect."""
    came: list[int] = []
    former: dict[int, Handler] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    def hand_over() -> None:
        if came:
            number = came[0]
            came.clear()
            former[number](number, None)

    if current_thread() is main_thread():  # only there can a program handle signals
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                former[number] = handler
                signal.signal(number, note)
    try:
        yield hand_over
        hand_over()
    finally:
        for handled, handler in former.items():
            signal.signal(handled, handler)
