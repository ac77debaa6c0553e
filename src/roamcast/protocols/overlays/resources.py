"""The resource monitor: a broker's CPU, what occupies it, and how loaded it is [3.3].

Modulators run one after the other, in the order in which their events became ready. *Load* is the share of time that
this work takes, smoothed over a few readings; it exceeds 1 when work arrives faster than it gets done.

What a piece of work costs is read from the host's clock around it. Live, that is the true time. In the simulator the
clock stands still during a call, so there the work is charged what its operators declare (`modulators/`), and its
result leaves only when that time has passed: an overloaded broker is slow in both worlds, for the same reason.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from roamcast.protocols.api import Host
from roamcast.protocols.overlays.channel import LoadMeasured, SystemChannel
from roamcast.protocols.overlays.concentrator import Concentrator

READING_PERIOD_S: Final = 2.0
SMOOTHING: Final = 0.5  # weight of the newest reading
QUEUE_MAX: Final = 512  # pieces of work that may wait
DONE: Final = "resources.done"
READING: Final = "resources.reading"


class _Work(NamedTuple):
    cost_s: float  # declared
    compute: Callable[[], Any]
    finish: Callable[[Any, float], None]  # takes the result and what it cost


class ResourceMonitor:
    def __init__(self, host: Host, concentrator: Concentrator, channel: SystemChannel) -> None:
        self.load = 0.0
        self._host = host
        self._channel = channel
        self._queue: deque[_Work] = deque()
        self._running: tuple[_Work, Any, float] | None = None
        self._busy_s = 0.0  # work done or begun since the last reading
        concentrator.on_tick(DONE, self._done)
        concentrator.on_tick(READING, self._read)

    def start(self) -> None:
        self._host.set_timer(READING_PERIOD_S, (READING, 0))

    @property
    def has_room(self) -> bool:
        return len(self._queue) < QUEUE_MAX

    def run(self, cost_s: float, compute: Callable[[], Any], finish: Callable[[Any, float], None]) -> None:
        """Does a piece of work as soon as the CPU is free; `finish` gets its result and its cost when it is done."""
        self._queue.append(_Work(cost_s, compute, finish))
        if self._running is None:
            self._next()

    def _next(self) -> None:
        while self._queue and self._running is None:
            work = self._queue.popleft()
            began_s = self._host.now()
            result = work.compute()
            elapsed_s = self._host.now() - began_s
            cost_s = elapsed_s if elapsed_s > 0 else work.cost_s
            self._busy_s += cost_s
            self._running = (work, result, cost_s)
            if cost_s > elapsed_s:
                self._host.set_timer(cost_s - elapsed_s, (DONE, 0))
                return
            self._finish()

    def _done(self, _: int) -> None:
        self._finish()
        self._next()

    def _finish(self) -> None:
        assert self._running is not None
        work, result, cost_s = self._running
        self._running = None
        work.finish(result, cost_s)

    def _read(self, _: int) -> None:
        newest = self._busy_s / READING_PERIOD_S
        self._busy_s = 0.0
        before = self.load
        self.load = (1 - SMOOTHING) * self.load + SMOOTHING * newest
        if self.load < 1e-6:
            self.load = 0.0
        if self.load or before:
            self._host.structure("load", value=self.load)
        self._channel.post(LoadMeasured(self.load))
        self._host.set_timer(READING_PERIOD_S, (READING, 0))
