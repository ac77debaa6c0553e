"""Signals held back while Spark is being called."""

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from roamcast.campaign.interruption import deferred_signals


class _EndedError(Exception):
    pass


def _end(number: int, frame: FrameType | None) -> None:
    raise _EndedError(number)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_next_safe_point(number: signal.Signals) -> None:
    with deferred_signals() as hand_over:
        os.kill(os.getpid(), number)
        with pytest.raises(_EndedError):
            hand_over()
        hand_over()  # it is handed over once
    assert signal.getsignal(number) is _end


def _interrupted_in_its_last_step() -> None:
    with deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_in_the_last_step_is_not_lost() -> None:
    with pytest.raises(_EndedError):
        _interrupted_in_its_last_step()


def _interrupted_again_while_cleaning_up(steps: list[str]) -> None:
    with deferred_signals() as hand_over:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            hand_over()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append("cleaned up")


def test_cleaning_up_is_not_interrupted() -> None:
    steps: list[str] = []
    with pytest.raises(_EndedError):
        _interrupted_again_while_cleaning_up(steps)
    assert steps == ["cleaned up"]
