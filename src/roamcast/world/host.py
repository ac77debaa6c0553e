"""The host of a simulated node: the contract of `protocols/api.py`, kept by the simulator."""

from collections.abc import Callable
from typing import Final

import msgspec

from roamcast.events import NO_EVENT, Event
from roamcast.protocols.api import NOBODY, Host, Message, Oracle, Point, Protocol, Site, Timer
from roamcast.seeds import Random
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record
from roamcast.world.mobility import Movements
from roamcast.world.radio.medium import Medium
from roamcast.world.scheduler import Scheduler

_encode: Final = msgspec.msgpack.Encoder().encode


class SimulatedHost(Host):
    """One life of one node; a node that crashes and returns gets a new one."""

    def __init__(
        self,
        address: int,
        random: Random,
        site: Site,
        oracle: Oracle,
        scheduler: Scheduler,
        medium: Medium,
        movements: Movements | None,
        recorder: Recorder,
        on_delivery: Callable[[int, Event], None],
    ) -> None:
        self.address = address
        self.random = random
        self.site = site
        self.oracle = oracle
        self._scheduler = scheduler
        self._medium = medium
        self._movements = movements
        self._recorder = recorder
        self._on_delivery = on_delivery
        self._timers: dict[Timer, float] = {}  # pending -> due
        self._when_due = self._fire
        self._protocol: Protocol | None = None

    def connect(self, protocol: Protocol) -> None:
        self._protocol = protocol

    def end_life(self) -> None:
        self._timers.clear()
        self._protocol = None

    def now(self) -> float:
        return self._scheduler.now

    def position(self) -> Point | None:
        return None if self._movements is None else self._movements.position(self.address, self._scheduler.now)

    def velocity(self) -> Point | None:
        return None if self._movements is None else self._movements.velocity(self.address, self._scheduler.now)

    def broadcast(self, message: Message) -> None:
        self._medium.transmit(self.address, NOBODY, message, len(_encode(message)))

    def send(self, neighbour: int, message: Message) -> None:
        self._medium.transmit(self.address, neighbour, message, len(_encode(message)))

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        due = self._scheduler.now + delay_s
        self._timers[timer] = due
        self._scheduler.at(due, self._when_due, timer)

    def cancel_timer(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def _fire(self, timer: Timer) -> None:
        # An entry of a timer that was moved, cancelled or fired already does not find its due time here.
        if self._timers.get(timer) == self._scheduler.now:
            del self._timers[timer]
            assert self._protocol is not None
            self._protocol.on_timer(timer)

    def deliver(self, event: Event, hops: int) -> None:
        now = self._scheduler.now
        publisher, cause = event.publisher, event.cause or None
        latency, size = now - event.time_s, len(event.payload)
        self._recorder.add((
            now, "delivered", self.address, publisher, event.id, cause, latency, hops, size,
            None, None, None, None, None, None,
        ))  # fmt: skip
        self._on_delivery(self.address, event)

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        self._recorder.add(
            Record(self._scheduler.now, "dropped", self.address, event_id=event_id or None, detail=reason)
        )

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        self._recorder.add(
            Record(
                self._scheduler.now,
                "structure",
                self.address,
                None if peer == NOBODY else peer,
                value=float(value),  # a level is a whole number, and a trace the same however it came about
                category=aspect,
                detail=detail,
            )
        )
