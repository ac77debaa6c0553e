"""The host of a simulated node: the contract of `protocols/api.py`, kept by the simulator."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from roamcast.events import NO_EVENT, Event
from roamcast.protocols.api import NOBODY, Host, Message, Oracle, Point, Protocol, Site, Timer
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX
from roamcast.seeds import Random
from roamcast.trace.recorder import Recorder
from roamcast.world.fragmentation import Fragmentation
from roamcast.world.positioning import Whereabouts
from roamcast.world.radio.medium import Medium
from roamcast.world.scheduler import Due, Scheduler

_encode_into: Final = msgspec.msgpack.Encoder().encode_into
_encoded: Final = bytearray()  # the message that was sent last, by anybody


class HostServices:
    """What the hosts of one simulated network share."""

    def __init__(
        self,
        *,
        site: Site,
        oracle: Oracle,
        scheduler: Scheduler,
        medium: Medium,
        whereabouts: Whereabouts,
        recorder: Recorder,
        on_delivery: Callable[[int, Event], None] | None,
    ) -> None:
        self.site = site
        self.oracle = oracle
        self.scheduler = scheduler
        self.medium = medium
        self.fragmentation = Fragmentation(medium)
        self.whereabouts = whereabouts
        self.recorder = recorder
        self.on_delivery = on_delivery


class SimulatedHost(Host):
    """One life of one node; a node that crashes and returns gets a new one."""

    def __init__(self, services: HostServices, address: int, life: int, random: Random) -> None:
        self.address = address
        self.life = life
        self.random = random
        self.site = services.site
        self.oracle = services.oracle
        self.message_bytes_max = MESSAGE_BYTES_MAX
        self._scheduler = services.scheduler
        self._medium = services.medium
        self.frame_bytes_max = self._medium.frame_bytes_max
        self._fragmentation = services.fragmentation
        self._whereabouts = services.whereabouts
        self._recorder = services.recorder
        self._on_delivery = services.on_delivery
        self._timers: dict[Any, _Alarm] = {}  # those that are pending
        self._protocol: Protocol | None = None

    def connect(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._fragmentation.attach(self.address, self.life, protocol)

    def end_life(self) -> None:
        self._timers.clear()
        self._protocol = None
        self._fragmentation.attach(self.address, self.life, None)

    def now(self) -> float:
        return self._scheduler.now

    def position(self) -> Point | None:
        return self._whereabouts.position(self.address, self._scheduler.now)

    def velocity(self) -> Point | None:
        return self._whereabouts.velocity(self.address, self._scheduler.now)

    def broadcast(self, message: Message) -> None:
        _encode_into(message, _encoded)
        size = len(_encoded)
        if size <= self.frame_bytes_max:
            self._medium.transmit(self.address, NOBODY, message, size)
        else:
            self._send_in_fragments(NOBODY, message)

    def send(self, neighbour: int, message: Message) -> None:
        if neighbour == NOBODY:  # which would be a broadcast
            return
        _encode_into(message, _encoded)
        size = len(_encoded)
        if size <= self.frame_bytes_max:
            self._medium.transmit(self.address, neighbour, message, size)
        else:
            self._send_in_fragments(neighbour, message)

    def _send_in_fragments(self, receiver: int, message: Message) -> None:
        if len(_encoded) > self.message_bytes_max:
            self._medium.lose("oversized")
        else:
            self._fragmentation.send(self.address, receiver, message, bytes(_encoded))

    def backlog(self) -> int:
        return self._medium.backlog(self.address) + self._fragmentation.backlog(self.address)

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        alarm = _Alarm(self, timer, self._scheduler.now + delay_s)
        self._timers[alarm.timer] = alarm
        self._scheduler.put(alarm.due_s, alarm)

    def cancel_timer(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def ring(self, timer: Any) -> None:
        # A timer that was moved, cancelled or fired already does not find its due time here.
        alarm = self._timers.get(timer)
        if alarm is not None and alarm.due_s == self._scheduler.now:
            del self._timers[timer]
            assert self._protocol is not None
            self._protocol.on_timer(timer)

    def deliver(self, event: Event, hops: int) -> None:
        self._recorder.delivered(self._scheduler.now, self.address, event, hops)
        if self._on_delivery is not None:
            self._on_delivery(self.address, event)

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        self._recorder.dropped(self._scheduler.now, self.address, reason, event_id)

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        self._recorder.structure(self._scheduler.now, self.address, aspect, peer=peer, value=value, detail=detail)


class _Alarm(Due):
    """A timer of a host, on its way."""

    __slots__ = ("_host", "due_s", "timer")

    def __init__(self, host: SimulatedHost, timer: Timer, due_s: float) -> None:
        self._host = host
        self.due_s = due_s
        self.timer: Any = timer  # not a `Timer`: the compiled form would take it apart and put it together at each use

    def due(self) -> None:
        self._host.ring(self.timer)
