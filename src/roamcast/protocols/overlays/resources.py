"""The resource monitor: a broker's CPU, what occupies it, and how loaded it is [3.3].

Modulators run one after the other, in the order in which their events became ready. *Load* is the share of time that
the arriving work takes: the work that was done, plus what the queue has grown by. It exceeds 1 while work arrives
faster than it gets done. Readings are smoothed.

What a piece of work costs is the CPU time that it took, as the host measures it. In the simulator no time passes during
a call, so there the work is charged what its operators declare (`modulators/`). Its result leaves only when that much
time has passed: an overloaded broker is slow in both worlds, for the same reason. A host may stand for a slower machine
than it runs on, and then counts more time than has passed. `work(SECONDS)` stands for a computation, and is charged as
declared in both.

Live, the machine counts too: a broker is at least as loaded as its machine's CPU or memory (`machine_load`).
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from roamcast.protocols.api import Host
from roamcast.protocols.components import Component, Inputs
from roamcast.protocols.overlays.channel import LoadMeasured, SystemChannel
from roamcast.protocols.overlays.parameters import OverlaysParameters


class ResourceTimer(StrEnum):
    DONE = "resources.done"  # the CPU has finished a piece of work; key 0
    READING = "resources.reading"  # time to read the load; key 0


class Cost(NamedTuple):
    """What a piece of work costs where its time cannot be measured, and what it costs at least where it can."""

    declared_s: float
    least_s: float = 0.0


class _Work(NamedTuple):
    compute: Callable[[], tuple[Any, Cost]]
    finish: Callable[[Any, float], None]  # takes the result and what it cost


class ResourceMonitor(Component):
    def __init__(self, host: Host, channel: SystemChannel, parameters: OverlaysParameters) -> None:
        super().__init__(host)
        self.load = 0.0
        self.channel = channel
        self._period_s = parameters.load_reading_period_s
        self._weight = parameters.load_weight
        self._queue_max = parameters.work_queue_max
        self._counts_machine = parameters.machine_load
        self._queue: deque[_Work] = deque()
        self._running: tuple[_Work, Any, float] | None = None
        self._busy_s = 0.0  # work done or begun since the last reading
        self._begun = 0  # pieces of it
        self._mean_cost_s = 0.0  # of a piece of work, in the last reading that saw any
        self._waited = 0  # pieces that were waiting at the last reading

    def declare(self, inputs: Inputs) -> None:
        inputs.on_timer(ResourceTimer.DONE, self._done)
        inputs.on_timer(ResourceTimer.READING, self._read)

    def start(self) -> None:
        self.host.set_timer(self._period_s, (ResourceTimer.READING, 0))

    @property
    def has_room(self) -> bool:
        return len(self._queue) < self._queue_max

    def run(self, compute: Callable[[], tuple[Any, Cost]], finish: Callable[[Any, float], None]) -> None:
        """Does a piece of work as soon as the CPU is free; `finish` gets its result and its cost when it is done."""
        self._queue.append(_Work(compute, finish))
        if self._running is None:
            self._next()

    def _next(self) -> None:
        while self._queue and self._running is None:
            work = self._queue.popleft()
            began_s, began_cpu_s = self.host.now(), self.host.cpu_s()
            result, cost = work.compute()
            used_s = self.host.cpu_s() - began_cpu_s
            cost_s = max(used_s, cost.least_s) if used_s > 0 else cost.declared_s
            self._busy_s += cost_s
            self._begun += 1
            self._running = (work, result, cost_s)
            left_s = cost_s - (self.host.now() - began_s)
            if left_s > 0:
                self.host.set_timer(left_s, (ResourceTimer.DONE, 0))
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
        if self._begun:
            self._mean_cost_s = self._busy_s / self._begun
        growth_s = max(0, len(self._queue) - self._waited) * self._mean_cost_s
        newest = (self._busy_s + growth_s) / self._period_s
        if self._counts_machine:
            newest = max(newest, self.host.machine_load())
        self._waited = len(self._queue)
        self._busy_s = 0.0
        self._begun = 0
        before = self.load
        self.load = (1 - self._weight) * self.load + self._weight * newest
        if self.load < 1e-6:
            self.load = 0.0
        if self.load or before:
            self.host.structure("load", value=self.load)
        self.channel.post(LoadMeasured(self.load))
        self.host.set_timer(self._period_s, (ResourceTimer.READING, 0))
