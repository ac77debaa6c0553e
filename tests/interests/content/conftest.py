"""How much work a call takes, counted rather than timed: the same on every machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

WORK_MAX = 1_000_000
"""Calls and returns within which nonsense must be refused. Exponential growth takes far more."""


class TooMuchWork(BaseException):
    """Not an `Exception`, so that nothing on its path handles it."""


@pytest.fixture
def little_work() -> Callable[[], Any]:
    """A context that fails after `WORK_MAX` calls and returns. Calls inside compiled modules do not count."""

    @contextmanager
    def limited() -> Iterator[None]:
        calls = 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            calls += 1
            if calls > WORK_MAX:
                sys.setprofile(None)
                raise TooMuchWork(f"more than {WORK_MAX} calls and returns")

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)

    return limited
