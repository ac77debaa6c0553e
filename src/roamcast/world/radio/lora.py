"""LoRa: long, slow frames of at most 255 bytes on one channel, without coordination.

Theory of operation
-------------------
A node sends when it has a frame (pure ALOHA), or first listens for two symbols and waits for a random time if it hears
one (carrier detection). Regulators limit the share of time a node may send (duty cycle): after a frame of length T it
keeps silent for T (1 / share - 1). While sending it hears nothing.

A receiver locks on the first frame it hears. Frames of the same spreading factor destroy each other unless one is
stronger than the sum of all others by the capture ratio, all the time; a later frame that is stronger by that ratio
takes the receiver over. On discs all signals are equally strong, so every overlap destroys.

A unicast is acknowledged by a frame that has a header only, and repeated after a random time if no acknowledgement
arrives. Acknowledgements go out at once, but their time counts for the duty cycle.
"""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from roamcast.protocols.api import NOBODY, Listener, Message
from roamcast.seeds import Random
from roamcast.world.radio.links import RadioLinks
from roamcast.world.radio.medium import Frame, Medium
from roamcast.world.scheduler import Due, Scheduler
from roamcast.world.topology import Topology

PHY_BYTES_MAX: Final = 255
DETECTION_SYMBOLS: Final = 2  # that carrier detection listens for
LOW_RATE_SYMBOL_S: Final = 0.016  # slower symbols carry two bits less (low data rate optimisation)


class LoraSettings(NamedTuple):
    spreading_factor: int
    bandwidth_hz: float
    coding_rate: int  # 1 to 4: 4/5 to 4/8
    preamble_symbols: int
    duty_cycle: float
    carrier_detection: bool
    capture_ratio: float  # of powers; infinite: none
    overhead_bytes: int
    queue_frames: int
    tries: int
    backoff_s: float  # repetitions wait up to this, twice as long each time
    turnaround_s: float  # between receiving and sending

    def airtime_s(self, size: int) -> float:
        return airtime_s(size, self.spreading_factor, self.bandwidth_hz, self.coding_rate, self.preamble_symbols)


def airtime_s(
    size: int, spreading_factor: int, bandwidth_hz: float, coding_rate: int = 1, preamble_symbols: int = 8
) -> float:
    """Semtech's formula (SX1276 data sheet, section 4.1.1.7), with explicit header and CRC."""
    symbol_s = float(1 << spreading_factor) / bandwidth_hz
    low_rate = 1 if symbol_s >= LOW_RATE_SYMBOL_S else 0
    bits = 8 * size - 4 * spreading_factor + 28 + 16
    blocks = max(-(-bits // (4 * (spreading_factor - 2 * low_rate))), 0)
    return (preamble_symbols + 4.25) * symbol_s + (8 + blocks * (coding_rate + 4)) * symbol_s


class LoraFrame(Frame):
    """It is due when it ends."""

    __slots__ = ("answered", "medium", "powers", "stations", "taken_by_life", "tries")

    def __init__(
        self, medium: "LoraMedium", sender: int, receiver: int, message: Message | None, size: int, airtime_s: float
    ) -> None:
        label = "ACK" if message is None else message.label
        super().__init__(sender, receiver, message, label=label, size=size, airtime_s=airtime_s)
        self.medium = medium
        self.stations: list[LoraStation] = []
        self.powers: list[float] = []
        self.tries = 0
        self.taken_by_life = -1  # of its receiver: the life that has handed it up
        self.answered: LoraFrame | None = None  # of an acknowledgement: the frame that it acknowledges

    def due(self) -> None:
        self.medium.end(self)


class LoraStation(Due):
    """It is due when it may send."""

    __slots__ = (
        "head", "life", "listener", "lock", "medium", "node", "noise_max", "on_idle", "power", "queue",
        "receive_s", "sending_until", "signal", "signals", "silent_until", "waiting",
    )  # fmt: skip

    def __init__(self, medium: "LoraMedium", node: int) -> None:
        super().__init__()
        self.medium = medium
        self.node = node
        self.listener: Listener | None = None
        self.head: LoraFrame | None = None
        self.queue: list[LoraFrame] = []
        self.on_idle: Callable[[], None] | None = None
        self.waiting = False
        self.sending_until = 0.0
        self.silent_until = 0.0  # by the duty cycle
        self.power = 0.0  # of all signals in this node's air
        self.signals = 0
        self.lock: LoraFrame | None = None
        self.signal = 0.0  # power of the locked frame
        self.noise_max = 0.0  # the most that all others had together since
        self.receive_s = 0.0
        self.life = 0  # how often the node went down

    def due(self) -> None:
        self.medium.access(self)


class LoraMedium(Medium):
    def __init__(
        self,
        scheduler: Scheduler,
        topology: Topology,
        random: Random,
        loss: float,
        settings: LoraSettings,
        links: RadioLinks | None,
        nakagami_shape: float,
    ) -> None:
        super().__init__(scheduler, topology, random, loss, PHY_BYTES_MAX - settings.overhead_bytes)
        self._settings = settings
        self._links = links
        self._nakagami_shape = nakagami_shape  # 0: no fading
        self._gamma: Callable[[float, float], float] = random.gammavariate
        symbol_s = float(1 << settings.spreading_factor) / settings.bandwidth_hz
        self._detection_s = DETECTION_SYMBOLS * symbol_s if settings.carrier_detection else 0.0
        self._ack_s = settings.airtime_s(settings.overhead_bytes)
        self._stations = [LoraStation(self, node) for node in range(topology.nodes)]

    def attach(self, node: int, listener: Listener | None) -> None:
        self._stations[node].listener = listener

    def transmit(self, sender: int, receiver: int, message: Message, size: int) -> None:
        station = self._stations[sender]
        size += self._settings.overhead_bytes
        if size > PHY_BYTES_MAX:
            self._fail("oversized")
            return
        if len(station.queue) + (station.head is not None) >= self._settings.queue_frames:
            self._fail("queue")
            return
        frame = LoraFrame(
            medium=self,
            sender=sender,
            receiver=receiver,
            message=message,
            size=size,
            airtime_s=self._settings.airtime_s(size),
        )
        if station.head is None:
            station.head = frame
            self._request_access(station, 0.0)
        else:
            station.queue.append(frame)

    def silence(self, node: int) -> None:
        station = self._stations[node]
        station.head = station.lock = None
        station.queue.clear()
        station.life += 1

    def receive_s(self, node: int) -> float:
        station = self._stations[node]
        return station.receive_s - (station.lock.end - self.scheduler.now if station.lock is not None else 0.0)

    def backlog(self, node: int) -> int:
        station = self._stations[node]
        return 0 if station.head is None else 1 + len(station.queue)

    def when_idle(self, node: int, call: Callable[[], None]) -> None:
        self._stations[node].on_idle = call

    # -- sending -------------------------------------------------------------------------------------------------

    def _request_access(self, station: LoraStation, wait_s: float) -> None:
        if not station.waiting:
            station.waiting = True
            earliest = max(self.scheduler.now, station.silent_until, station.sending_until) + wait_s
            self.scheduler.put(earliest + self._detection_s, station)

    def access(self, station: LoraStation) -> None:
        station.waiting = False
        now = self.scheduler.now
        frame = station.head
        if frame is None or not self.topology.is_up(station.node):
            return
        if station.sending_until > now or station.silent_until > now:
            self._request_access(station, 0.0)  # an acknowledgement came between
        elif self._settings.carrier_detection and station.power >= 1.0:
            self._request_access(station, self.draw() * self._settings.backoff_s)
        else:
            frame.tries += 1
            self._start(frame)

    def _start(self, frame: LoraFrame) -> None:
        now = self.scheduler.now
        frame.start, frame.end = now, now + frame.airtime_s
        self.scheduler.put(frame.end, frame)
        sender = self._stations[frame.sender]
        if sender.lock is not None:
            self._unlock(sender, "half-duplex")
        sender.sending_until = frame.end
        silent_until = frame.end + frame.airtime_s * (1 / self._settings.duty_cycle - 1)
        sender.silent_until = max(sender.silent_until, silent_until)
        frame.hearers = self.topology.hear[frame.sender]
        self._reach(frame)
        for place, station in enumerate(frame.stations):
            self._arrive(station, frame, frame.powers[place])
        self._count(frame)

    def _reach(self, frame: LoraFrame) -> None:
        """Who is reached, and how strongly."""
        if self._links is None:
            frame.stations = [self._stations[node] for node in frame.hearers]
            frame.powers = [1.0] * len(frame.stations)
            return
        reached = frame.hearers + self.topology.sense[frame.sender]
        frame.stations = [self._stations[node] for node in reached]
        frame.powers = self._links.powers(frame.sender, reached)
        shape = self._nakagami_shape
        if shape:
            frame.powers = [power * self._gamma(shape, 1 / shape) for power in frame.powers]

    def _arrive(self, station: LoraStation, frame: LoraFrame, power: float) -> None:
        before = station.power
        station.power += power
        station.signals += 1
        if station.sending_until > frame.start:
            if power >= 1.0:
                self._half_duplex += 1
        elif station.lock is None:
            if power >= 1.0:
                self._lock(station, frame, power, before)
        elif power >= 1.0 and power >= self._settings.capture_ratio * before:
            self._unlock(station, "collision")
            self._lock(station, frame, power, before)
        else:
            station.noise_max = max(station.noise_max, station.power - station.signal)
            if power >= 1.0:
                self._collisions += 1

    def _lock(self, station: LoraStation, frame: LoraFrame, power: float, noise: float) -> None:
        station.lock = frame
        station.signal = power
        station.noise_max = noise
        station.receive_s += frame.end - frame.start

    def _unlock(self, station: LoraStation, reason: str) -> None:
        assert station.lock is not None
        station.receive_s -= station.lock.end - self.scheduler.now
        station.lock = None
        self._fail(reason)

    # -- receiving -----------------------------------------------------------------------------------------------

    def end(self, frame: LoraFrame) -> None:
        received = []
        for place, station in enumerate(frame.stations):
            station.signals -= 1
            station.power = station.power - frame.powers[place] if station.signals else 0.0
            if station.lock is frame:
                station.lock = None
                if station.noise_max > 0 and station.signal < self._settings.capture_ratio * station.noise_max:
                    self._collisions += 1
                elif self.loss and self.draw() < self.loss:
                    self._fail("loss")
                else:
                    received.append(station)
        if frame.receiver == NOBODY:
            self._finish(self._stations[frame.sender], frame)
            self.receptions += len(received)
            for station in received:
                self._hand_up(station, frame)
        else:
            self._end_unicast(frame, received)

    def _hand_up(self, station: LoraStation, frame: LoraFrame) -> None:
        if station.listener is not None and frame.message is not None:
            station.listener.on_message(frame.sender, frame.message)

    def _end_unicast(self, frame: LoraFrame, received: list[LoraStation]) -> None:
        receiver = self._stations[frame.receiver]
        if frame.answered is not None:
            if receiver in received:
                self._finish(receiver, frame.answered)
            return
        wait_s = 2 * self._settings.turnaround_s + self._ack_s
        self.scheduler.at(self.scheduler.now + wait_s, self._no_answer, frame)
        if receiver not in received:
            return
        ack = LoraFrame(
            medium=self,
            sender=frame.receiver,
            receiver=frame.sender,
            message=None,
            size=self._settings.overhead_bytes,
            airtime_s=self._ack_s,
        )
        ack.answered = frame
        self.scheduler.at(self.scheduler.now + self._settings.turnaround_s, self._acknowledge, ack)
        if frame.taken_by_life != receiver.life:  # else it is a repetition: the ACK was lost
            frame.taken_by_life = receiver.life
            self._hand_up(receiver, frame)

    def _acknowledge(self, ack: LoraFrame) -> None:
        if self.topology.is_up(ack.sender) and self._stations[ack.sender].sending_until <= self.scheduler.now:
            self._start(ack)

    def _no_answer(self, frame: LoraFrame) -> None:
        station = self._stations[frame.sender]
        if station.head is not frame or station.waiting:
            return  # it was acknowledged, or the node went down meanwhile
        if frame.tries < self._settings.tries:
            self._request_access(station, self.draw() * self._settings.backoff_s * 2 ** (frame.tries - 1))
            return
        self._fail("retries")
        self._finish(station, frame)
        if station.listener is not None and frame.message is not None:
            station.listener.on_send_failed(frame.receiver, frame.message)

    def _finish(self, station: LoraStation, frame: LoraFrame) -> None:
        """The head of the queue is dealt with."""
        if station.head is not frame:
            return
        station.head = station.queue.pop(0) if station.queue else None
        if station.head is not None:
            self._request_access(station, 0.0)
        elif station.on_idle is not None:
            call = station.on_idle
            station.on_idle = None
            call()


def capture_ratio(capture_db: float | None) -> float:
    return math.inf if capture_db is None else 10 ** (capture_db / 10)
