"""The host of a simulated node: the contract of `protocols/api.py`, kept by the simulator."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from mypy_extensions import mypyc_attr

from roamcast.events import NO_EVENT, Event
from roamcast.protocols.api import (
    NOBODY,
    PLAIN_CHANNEL,
    Host,
    Listener,
    Message,
    Oracle,
    Point,
    Protocol,
    Site,
    Timer,
    Work,
)
from roamcast.protocols.contents import Contents
from roamcast.protocols.fragments import MESSAGE_BYTES_MAX
from roamcast.seeds import Random
from roamcast.trace.recorder import Recorder
from roamcast.world.fragmentation import Fragmentation
from roamcast.world.positioning import ReportedPositions
from roamcast.world.processing import Processor, factor
from roamcast.world.radio.medium import Medium
from roamcast.world.scenario import Processing, Security
from roamcast.world.scheduler import Due, Scheduler

_encode_into: Final = msgspec.msgpack.Encoder().encode_into


class HostServices:
    """What the hosts of one simulated network share."""

    def __init__(
        self,
        *,
        site: Site,
        oracle: Oracle,
        scheduler: Scheduler,
        medium: Medium,
        whereabouts: ReportedPositions,
        recorder: Recorder,
        on_delivery: Callable[[int, Event], None] | None,
        processing: Processing,
        security: Security,
        seed: int,
    ) -> None:
        self.security = security
        self.site = site
        self.oracle = oracle
        self.scheduler = scheduler
        self.medium = medium
        self.fragmentation = Fragmentation(medium, security.frame_bytes)
        self.whereabouts = whereabouts
        self.recorder = recorder
        self.on_delivery = on_delivery
        self.processing = processing if processing.takes_time else None
        self.seed = seed
        self.encoded = bytearray()  # the message that was sent last, by any host
        self.encoded_message: Message | None = None  # that message: it is often sent to several neighbours in a row
        self.mishaps: dict[str, int] = {}  # what faulty hosts did to messages and timers, by kind of incident


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
        self._extra_bytes = services.security.frame_bytes
        self._signature_bytes = services.security.signature_bytes
        self._contents: Contents | None = None  # of the protocol's messages, if records are signed
        self.frame_bytes_max = self._medium.frame_bytes_max - self._extra_bytes
        self._services = services
        self._fragmentation = services.fragmentation
        self._whereabouts = services.whereabouts
        self._recorder = services.recorder
        self._on_delivery = services.on_delivery
        self._timers: dict[Any, _Alarm] = {}  # those that are pending
        self._protocol: Protocol | None = None
        self._processing = services.processing
        self._seed = services.seed
        self._processor: Processor | None = None
        self._departing = 0  # messages that wait until the processor is free

    def connect(self, protocol: Protocol) -> None:
        self._protocol = protocol
        if self._signature_bytes:
            self._contents = Contents(type(protocol).messages)
        listener: Listener = protocol
        if self._processing is not None:
            slowness = factor(self._processing, self._seed, self.address)
            match_s, root_s = self._processing.match_s * slowness, self._processing.root_s * slowness
            self._processor = Processor(self._scheduler, protocol, match_s, root_s)
            listener = self._processor
        self._fragmentation.attach(self.address, self.life, self.guarded(listener), type(protocol).messages)

    def guarded(self, listener: Listener) -> Listener:
        """What the link reports to: `listener`, or what wraps it (`faulty.py`)."""
        return listener

    def resumes_s(self) -> float:
        """When the node goes on: now, unless it is paused."""
        return self._scheduler.now

    def end_life(self) -> None:
        self._timers.clear()
        self._protocol = None
        if self._processor is not None:
            self._processor.close()
        self._fragmentation.attach(self.address, self.life, None)

    def now(self) -> float:
        return self._scheduler.now

    def position(self) -> Point | None:
        return self._whereabouts.position(self.address, self._scheduler.now)

    def velocity(self) -> Point | None:
        return self._whereabouts.velocity(self.address, self._scheduler.now)

    def work(self, kind: Work) -> None:
        if self._processor is not None:
            self._processor.work(kind)

    def broadcast(self, message: Message) -> None:
        if self._processor is not None and self._processor.free_s > self._scheduler.now:
            self._send_later(NOBODY, message)
        else:
            self.transmit(NOBODY, message)

    def send(self, neighbour: int, message: Message) -> None:
        if neighbour == NOBODY:  # which would be a broadcast
            return
        if self._processor is not None and self._processor.free_s > self._scheduler.now:
            self._send_later(neighbour, message)
        else:
            self.transmit(neighbour, message)

    def _send_later(self, receiver: int, message: Message) -> None:
        assert self._processor is not None
        self._departing += 1
        self._scheduler.put(self._processor.free_s, _Departure(self, receiver, message))

    def depart(self, receiver: int, message: Message) -> None:
        """A message that waited for the processor leaves, if the node still lives."""
        self._departing -= 1
        if self._protocol is not None:
            self.transmit(receiver, message)

    def transmit(self, receiver: int, message: Message) -> None:
        services = self._services
        if message is not services.encoded_message:
            _encode_into(message, services.encoded)
            services.encoded_message = message
        size = len(services.encoded)
        if size <= self.frame_bytes_max:
            extra_bytes = self._extra_bytes
            if self._contents is not None:
                extra_bytes += self._record_bytes(message)
            self._medium.transmit(self.address, receiver, message, size + extra_bytes)
        else:
            self._send_in_fragments(receiver, message)

    def _record_bytes(self, message: Message) -> int:
        """The bytes that signatures would add to the records in a message. Without one, a record has one byte in its
        place; with one, two bytes and the signature. A frame may become longer than allowed by them."""
        assert self._contents is not None
        return len(self._contents.records(message)) * (self._signature_bytes + 1)

    def _send_in_fragments(self, receiver: int, message: Message) -> None:
        encoded = self._services.encoded
        if len(encoded) > self.message_bytes_max:
            self._medium.lose("oversized")
        else:
            self._fragmentation.send(self.address, receiver, message, bytes(encoded))

    def backlog(self) -> int:
        return self._medium.backlog(self.address) + self._fragmentation.backlog(self.address) + self._departing

    def set_timer(self, delay_s: float, timer: Timer) -> None:
        alarm = _Alarm(self, timer, self._scheduler.now + delay_s)
        self._timers[alarm.timer] = alarm
        self._scheduler.put(alarm.due_s, alarm)

    def cancel_timer(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def ring(self, timer: Any) -> None:
        # A timer that was moved, cancelled or fired already does not find its due time here.
        alarm = self._timers.pop(timer, None)  # most are as they were set
        if alarm is None:
            return
        if alarm.due_s != self._scheduler.now:
            self._timers[timer] = alarm
            return
        assert self._protocol is not None
        self._protocol.on_timer(timer)

    def deliver(self, event: Event, hops: int, channel: int = PLAIN_CHANNEL) -> None:
        self._recorder.delivered(self._scheduler.now, self.address, event, hops)
        if self._on_delivery is not None:
            self._on_delivery(self.address, event)

    def dropped(self, reason: str, event_id: int = NO_EVENT) -> None:
        self._recorder.dropped(self._scheduler.now, self.address, reason, event_id)

    def structure(self, aspect: str, peer: int = NOBODY, value: float = 0.0, detail: str = "") -> None:
        self._recorder.structure(self._scheduler.now, self.address, aspect, peer=peer, value=value, detail=detail)


class _Departure(Due):
    """A message that leaves when its sender's processor is free."""

    __slots__ = ("_host", "_message", "_receiver")

    def __init__(self, host: SimulatedHost, receiver: int, message: Message) -> None:
        self._host = host
        self._receiver = receiver
        self._message = message

    def due(self) -> None:
        self._host.depart(self._receiver, self._message)


@mypyc_attr(free_list_len=1)
class _Alarm(Due):
    """A timer of a host, on its way."""

    __slots__ = ("_host", "due_s", "timer")

    def __init__(self, host: SimulatedHost, timer: Timer, due_s: float) -> None:
        self._host = host
        self.due_s = due_s
        self.timer: Any = timer  # not a `Timer`: the compiled form would take it apart and put it together at each use

    def due(self) -> None:
        self._host.ring(self.timer)
