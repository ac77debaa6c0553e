"""Retransmission of what was not acknowledged.

A component that sends something reliably keeps an `Attempt` with it, asks `Patience` how long to wait for the answer,
and looks at what is due whenever its `Ticker` ticks. The first wait is twice what answers have taken lately, but at
least `retry_s`. Each later one doubles, up to `retry_growth_max` times `retry_s`. Without that, events that take long
to transmit would be repeated while they are still in transit, and repetitions would congest a slow network.
"""

from collections.abc import Callable
from enum import StrEnum

from roamcast.protocols.api import Host
from roamcast.protocols.overlays.parameters import OverlaysParameters


class Attempt:
    """How often something was sent, and when it is due again. Base of whatever is to be repeated."""

    __slots__ = ("began_s", "due_s", "tries")

    def __init__(self) -> None:
        self.began_s = 0.0
        self.due_s = 0.0
        self.tries = 0


class Patience:
    """How long to wait for an answer."""

    def __init__(self, parameters: OverlaysParameters) -> None:
        self._shortest_s = parameters.retry_s
        self._longest_s = parameters.retry_s * parameters.retry_growth_max
        self._weight = parameters.answer_weight
        self._answers_s = 0.0  # what answers have taken lately

    def tried(self, attempt: Attempt, now_s: float) -> None:
        """It was sent just now, for the first time or again."""
        if not attempt.tries:
            attempt.began_s = now_s
        wait_s = max(self._shortest_s, 2 * self._answers_s) * (1 << min(attempt.tries, 16))
        attempt.tries += 1
        attempt.due_s = now_s + min(wait_s, self._longest_s)

    def answered(self, attempt: Attempt, now_s: float) -> None:
        took_s = min(now_s - attempt.began_s, self._longest_s)
        self._answers_s += self._weight * (took_s - self._answers_s)


class Ticker:
    """Calls `work` twice per shortest wait, for as long as it says that there is more to do."""

    def __init__(self, host: Host, timer: StrEnum, shortest_s: float, work: Callable[[float], bool]) -> None:
        self._host = host
        self._timer = (timer, 0)
        self._period_s = shortest_s / 2
        self._work = work
        self._is_ticking = False

    def start(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._host.set_timer(self._period_s, self._timer)

    def tick(self, _: int) -> None:
        """The timer ran out."""
        self._is_ticking = False
        if self._work(self._host.now()):
            self.start()
